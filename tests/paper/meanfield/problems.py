"""Small problems and random states for the mean-field tests."""

from dataclasses import replace

import numpy as np

from baldur.inference.inner_folds import Problem
from baldur.paper import updates
from baldur.paper.run import prepare_data
from baldur.paper.starts import initial_state
from baldur.paper.state import VAGUE, GammaPosterior
from baldur.paper.weights import SelectedColumns, update_weights
from baldur.views.prepared_view import PreparedView
from baldur.views.standardised_blocks import StandardisedArray

VIEW_UPDATES = {
    "W": updates.step_w,
    "delta": updates.step_delta,
    "gamma": updates.step_gamma,
    "dropped": updates.step_dropped,
}


def prepared(X):
    """A standardised array as a prepared view, or a list of them."""
    if isinstance(X, list):
        return [prepared(x) for x in X]
    return PreparedView("view", np.zeros(len(X), dtype=bool), StandardisedArray(X))


def columns_of(X):
    """A standardised array as the weights see it."""
    return SelectedColumns(prepared(X))


def as_problem(X, T, task="classification", weight=None):
    """Arrays or prepared views with their outputs as the problem of a fit."""
    views = X if isinstance(X[0], PreparedView) else prepared(X)
    weight = np.ones(len(T)) if weight is None else weight
    return Problem(views, T, weight, "binary" if task == "classification" else task)


def cells(view):
    """All columns of a view."""
    return view.columns(np.arange(view.shape[1]))


def predict(result, views):
    """Mean and variance of y for new rows, the noise of y and z included."""
    mean, var = result.predictor_moments(views)
    return mean, var + result.noise


def make_problem(task="classification", N=14, sizes=(4, 20), C=1, seed=0, weight=None, **kw):
    """Standardised views with some signal; returns ``Data``."""
    rng = np.random.default_rng(seed)
    views = [rng.standard_normal((N, d)) for d in sizes]
    views = [(X - X.mean(0)) / X.std(0) for X in views]
    eta = np.stack([sum(2 * X[:, c % X.shape[1]] for X in views) for c in range(C)], axis=1)
    noisy = eta + rng.standard_normal(eta.shape)
    T = (noisy > 0).astype(float) if task == "classification" else noisy
    return prepare_data(as_problem(views, T, task, weight), **kw)


def random_state(data, K=1, seed=0):
    """Every posterior drawn at random, none of them at an optimum."""
    rng = np.random.default_rng(seed)
    N, C = data.T.shape
    V = rng.standard_normal((C, K))
    gammas = [rng.uniform(0.3, 3.0, v.shape[1]) for v in data.views]
    selected = [np.ones(v.shape[1], dtype=bool) for v in data.views]
    state = initial_state(data, (gammas, [1.0] * len(gammas), selected), V)

    def covariance(scale):
        A = rng.standard_normal((K, K + 3))
        return scale * A @ A.T / (K + 3)

    def gamma(shape, size):
        return GammaPosterior(shape, shape / rng.uniform(0.3, 3.0, size))

    views = []
    for m, view in enumerate(state.views):
        delta = gamma(VAGUE.shape + 0.5 * view.selected.size, K)
        spectrum = updates.build_spectrum(data, m, view.gamma.mean, view.selected)
        target = rng.standard_normal((N, K))
        q = update_weights(spectrum, delta.mean, rng.uniform(0.5, 2), target, data.weight)
        views.append(replace(view, q=q, delta=delta))
    new = replace(
        state,
        Z=rng.standard_normal((N, K)),
        Z_cov=covariance(0.5),
        V_cov=covariance(0.2),
        b=rng.standard_normal(C),
        b_var=float(rng.uniform(0.1, 1)),
        xi=rng.uniform(0.1, 3, (N, C)),
        tau=gamma(VAGUE.shape + 0.5 * data.n * K, 1),
        psi=gamma(VAGUE.shape + 0.5 * data.n * C, 1),
        omega=gamma(VAGUE.shape + 0.5 * C, K),
        views=tuple(views),
    )
    if data.classification:
        new = replace(new, Y=rng.standard_normal((N, C)), Y_var=rng.uniform(0.2, 2, (N, C)))
    return new
