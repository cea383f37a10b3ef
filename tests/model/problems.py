"""Small problems, and states of the double ARD prior, for tests."""

from dataclasses import replace

import numpy as np

from baldur.inference.double_ard import ArdFit
from baldur.inference.entries import Entries
from baldur.inference.grams import Grams
from baldur.inference.new_rows import absent_matrix
from baldur.inference.screening import Problem
from baldur.model.ard import GammaPosterior
from baldur.model.likelihood import GaussianOutputs, JaakkolaLogistic, QuadratureLogistic, Sites
from baldur.model.loadings import FactorLikelihood
from baldur.model.posterior import INTERCEPT_VAR
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


def make_small(
    task="binary",
    bound="quadrature",
    *,
    N=30,
    sizes=(3, 5),
    seed=0,
    absent=False,
    separable=False,
    weighted=False,
):
    """Return a `Problem`."""
    views = make_views(N, sizes, seed, absent)
    T = make_outputs(views, task, seed, separable)
    rng = np.random.default_rng(seed + 2)
    weight = rng.uniform(0.5, 2.0, (N, 1)) if weighted else np.ones((N, 1))
    kind = GaussianOutputs if task == "regression" else LIKELIHOODS[bound]
    return Problem(views, kind(T, weight * np.ones(T.shape[1])), task)


class OnSamples(Entries):
    """Entries whose algebra is done on the side of the samples, however few they are."""

    def scaled(self, gamma):
        L, N = len(self.place), len(self.X)
        grams = [np.zeros((N, N)) for _ in self.widths]
        for d, m in enumerate(self.column_owner):
            grams[m] += np.outer(self.X[:, d], self.X[:, d]) / gamma[d]
        for m, gram, own in zip(self.rest_owner, self.grams, gamma[L:], strict=True):
            grams[m] += gram / own
        return Grams(grams, self.intercept_var)


def start_fit(problem, shape=0.5, *, V=None, side=None, watch=None):
    """Return an `ArdFit` at its start; V (C, K) loadings to learn, or V = I for None."""
    likelihood, intercept_var = problem.likelihood, INTERCEPT_VAR
    if V is not None:
        likelihood, intercept_var = FactorLikelihood(likelihood, V), 0.0
    entries = Entries.screen(problem, intercept_var)
    if side == "sample":
        entries = OnSamples(**vars(entries))
    absent = absent_matrix(problem.views)
    return ArdFit.start(entries, shape, likelihood, absent, problem.views, watch)


def random_fit(problem, shape=0.5, *, K=None, side=None, seed=0, spread=True):
    """Return an `ArdFit` with every posterior drawn at random; K learned factors, or V = I."""
    rng = np.random.default_rng(seed)
    C, N = problem.likelihood.n_outputs, problem.n_samples
    fit = start_fit(problem, shape, V=None if K is None else rng.standard_normal((C, K)), side=side)
    K = fit.prior.n_factors
    gamma, delta = fit.prior.gamma, fit.prior.delta
    prior = replace(
        fit.prior,
        gamma=GammaPosterior(
            gamma.shape, gamma.shape * np.exp(rng.standard_normal(gamma.rate.size))
        ),
        delta=[GammaPosterior(d.shape, d.rate * np.exp(rng.standard_normal(K))) for d in delta],
    )
    q = fit.q
    if isinstance(q.likelihood, FactorLikelihood):
        at, omega = q.noise.loadings, q.noise.omega
        if spread:
            A = rng.standard_normal((C, K, K + 2))
            at = replace(at, V_cov=0.1 * A @ A.transpose(0, 2, 1) / (K + 2))
        at = replace(at, b=rng.standard_normal(C), b_var=rng.uniform(0.05, 0.5, C))
        omega = GammaPosterior(omega.shape, omega.rate * rng.uniform(0.5, 2, K))
        q.noise = replace(q.noise, loadings=at, omega=omega)
    q.sites = Sites(rng.uniform(0.05, 0.3, (N, K)), rng.normal(0, 0.3, (N, K)))
    q.extra = np.where(q.absent.any(axis=1)[:, None], rng.uniform(0.2, 1.0, (N, K)), 0.0)
    return fit.under(prior)


def literal_parts(fit):
    """The parts of q as plain arrays, for `literal_bound`; needs the feature side.

    The fit works with features over the root of gamma; here weights are those of the features.
    """
    prior, q = fit.prior, fit.q
    K, M = prior.n_factors, len(prior.widths)
    root = np.concatenate([[1.0], 1.0 / np.sqrt(prior.gamma.mean)])
    own = [prior.owner == m for m in range(M)]
    learned = isinstance(q.likelihood, FactorLikelihood)
    C = q.likelihood.outputs.n_outputs if learned else K
    parts = {
        "X": np.array(fit.entries.X),
        "w": [root * side.w for side in q.sides],
        "cov": [root[:, None] * side.cov * root for side in q.sides],
        "widths": [int(D) for D in prior.widths],
        "delta_shape": [d.shape for d in prior.delta],
        "delta_rate": [np.array(d.rate) for d in prior.delta],
        "gamma_shape": [prior.gamma.shape] * M,
        "gamma_rate": [prior.gamma.rate[here] for here in own],
        "gamma_prior": prior.a,
        "V": np.eye(C),
        "V_cov": np.zeros((C, K, K)),
        "b": np.zeros(C),
        "b_var": np.zeros(C),
        "extra": np.array(q.extra),
        "intercept_var": fit.entries.intercept_var,
    }
    if learned:
        at = q.noise.loadings
        parts |= {"V": at.V, "V_cov": at.V_cov, "b": at.b, "b_var": at.b_var}
        parts |= {"omega_shape": q.noise.omega.shape, "omega_rate": q.noise.omega.rate}
        parts |= {"omega_prior": (0.5, 0.5)}
    psi = q.noise.noise if learned else q.noise
    if psi is not None:
        parts |= {"psi_shape": psi.shape, "psi_rate": psi.rate}
    return parts
