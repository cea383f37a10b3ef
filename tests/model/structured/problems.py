"""Small problems and states for the tests of the structured family."""

import numpy as np

from baldur.inference.starts import flat_state
from baldur.inference.sweep import start_factors
from baldur.model.ard import GammaPosterior
from baldur.model.likelihood import GaussianOutputs, JaakkolaLogistic, QuadratureLogistic, Sites
from baldur.model.priors import GammaPrior, Priors, sparsity_prior
from baldur.model.structured.state import Data
from baldur.views.products import PreparedView
from baldur.views.standardised import Kept

LIKELIHOODS = {"quadrature": QuadratureLogistic, "jaakkola": JaakkolaLogistic}


def as_view(X, absent=None, name="view"):
    """Return a float64 array as a PreparedView, rows of absent samples set to zero."""
    absent = np.zeros(len(X), dtype=bool) if absent is None else absent
    X = np.where(absent[:, None], 0.0, X)
    return PreparedView(name, Kept(np.ascontiguousarray(X)), absent)


def make_views(N=30, sizes=(3, 5), seed=0, absent=False):
    """Standardised Gaussian views; with `absent`, a fifth of the rows lack the last one."""
    rng = np.random.default_rng(seed)
    views = []
    for m, D in enumerate(sizes):
        X = rng.standard_normal((N, D))
        X = (X - X.mean(0)) / X.std(0)
        lacking = np.arange(N) % 5 == 2 if absent and m == len(sizes) - 1 else None
        views.append(as_view(X, lacking, f"view{m}"))
    return views


def make_outputs(views, task, seed=0, separable=False):
    """Outputs (N, C) that depend on the first features of every view."""
    rng = np.random.default_rng(seed + 1)
    N, C = views[0].shape[0], 1 if task == "binary" else 2 if task == "regression" else 3
    eta = np.zeros((N, C))
    for c in range(C):
        for view in views:
            eta[:, c] += 1.5 * view.columns([c % view.shape[1]])[:, 0]
    if not separable:
        eta = eta + rng.standard_normal((N, C))
    if task == "regression":
        return eta
    if task == "multiclass":
        return np.eye(C)[eta.argmax(axis=1)]
    return (eta > 0).astype(float)


def make_data(
    task="binary",
    side="feature",
    shape=0.5,
    bound="quadrature",
    *,
    N=30,
    sizes=(3, 5),
    seed=0,
    absent=False,
    separable=False,
    weighted=False,
):
    """Return a `Data` of the structured family."""
    views = make_views(N, sizes, seed, absent)
    T = make_outputs(views, task, seed, separable)
    rng = np.random.default_rng(seed + 2)
    weight = rng.uniform(0.5, 2.0, (N, 1)) if weighted else np.ones((N, 1))
    kind = GaussianOutputs if task == "regression" else LIKELIHOODS[bound]
    likelihood = kind(T, weight * np.ones(T.shape[1]))
    X = np.concatenate([v.dense() for v in views], axis=1) if side == "feature" else None
    priors = Priors(gamma=sparsity_prior(shape), omega=GammaPrior(0.5, 0.5))
    return Data(views, likelihood, priors, X)


def random_state(data, K=None, seed=0, spread=True):
    """A state with every posterior drawn at random; K learned factors, or V = I for None."""
    rng = np.random.default_rng(seed)
    C, N = data.likelihood.n_outputs, data.n_samples
    V = None if K is None else rng.standard_normal((C, K))
    gamma = [np.exp(rng.standard_normal(D)) for D in data.widths]
    state = flat_state(data, V, gamma)
    K = state.n_factors
    state.delta = [
        GammaPosterior(d.shape, d.rate * np.exp(rng.standard_normal(K))) for d in state.delta
    ]
    state.omega = GammaPosterior(state.omega.shape, state.omega.rate * rng.uniform(0.5, 2, K))
    if state.learn_loadings and spread:
        A = rng.standard_normal((C, K, K + 2))
        state.V_cov = 0.1 * A @ A.transpose(0, 2, 1) / (K + 2)
        state.b = rng.standard_normal(C)
        state.b_var = rng.uniform(0.05, 0.5, C)
    state.sites = Sites(rng.uniform(0.05, 0.3, (N, C)), rng.normal(0, 0.3, (N, C)))
    absent = np.stack([view.absent for view in data.views], axis=1).any(axis=1)
    state.extra = np.where(absent[:, None], rng.uniform(0.2, 1.0, (N, K)), 0.0)
    start_factors(data, state)
    return state


def literal_parts(data, state):
    """The parts of q as plain arrays, for `slow_reference`; needs the feature side."""
    K = state.n_factors
    return {
        "X": np.array(data.X),
        "w": [np.array(f.w) for f in state.factors],
        "cov": [np.array(f.cov) for f in state.factors],
        "kept": [kept.copy() for kept in state.kept],
        "delta_shape": [d.shape for d in state.delta],
        "delta_rate": [np.array(d.rate) for d in state.delta],
        "gamma_shape": [g.shape for g in state.gamma],
        "gamma_rate": [np.array(g.rate) for g in state.gamma],
        "gamma_prior": data.priors.gamma.shape,
        "omega_shape": state.omega.shape,
        "omega_rate": np.array(state.omega.rate),
        "omega_prior": tuple(data.priors.omega),
        "V": np.array(state.V),
        "V_cov": np.array(state.V_cov),
        "b": np.array(state.b),
        "b_var": np.array(state.b_var),
        "extra": np.broadcast_to(state.extra, (data.n_samples, K)).copy(),
        "intercept_var": 0.0 if state.learn_intercepts else 100.0,
    }
