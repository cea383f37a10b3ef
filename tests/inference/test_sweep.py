"""The bound rises after every single update, in every setting, and is the one reported."""

import numpy as np
import pytest

from baldur.inference.run import iterate
from baldur.inference.shapes import starting_loadings
from baldur.inference.starts import flat_state, screened_gamma
from baldur.inference.sweep import guarded, start_factors, sweep
from baldur.model.likelihood import QuadratureLogistic
from baldur.model.structured.bound import bound
from baldur.model.structured.updates import proposed_loadings
from model.structured.problems import make_data, random_state

# name: (task, learned factors or None for V = I)
MODELS = {
    "binary": ("binary", None),
    "multi-class, V = I": ("multiclass", None),
    "multi-class, K < C": ("multiclass", 2),
    "multi-label, V = I": ("multilabel", None),
    "multi-label, K < C": ("multilabel", 1),
    "regression": ("regression", None),
    "regression, K < C": ("regression", 1),
}

CASES = [
    (name, likelihood)
    for name, (task, _) in MODELS.items()
    for likelihood in (["quadrature"] if task == "regression" else ["quadrature", "jaakkola"])
]


def is_quadrature(data):
    return isinstance(data.likelihood, QuadratureLogistic)


def start(data, K, kind):
    if kind == "random":
        # A point estimate has no entropy, so quadrature, which keeps V a point, starts at one.
        return random_state(data, K, seed=5, spread=not is_quadrature(data))
    rng = np.random.default_rng(0)
    V = None if K is None else rng.standard_normal((data.likelihood.n_outputs, K))
    gamma = screened_gamma(data, 4) if kind == "screened" else None
    state = flat_state(data, V, gamma)
    absent = np.stack([view.absent for view in data.views], axis=1).any(axis=1)
    state.extra = 0.5 * np.repeat(absent[:, None], state.n_factors, axis=1)
    start_factors(data, state)
    return state


def rising_trace(data, state, n_sweeps):
    """Sweep, checking each update; return the names of the updates that gained something."""
    value = bound(data, state)
    gained = set()

    def trace(name, after):
        nonlocal value
        assert np.isfinite(after), name
        assert after >= value - 1e-8 * abs(value), (name, after - value)
        assert bound(data, state) == pytest.approx(after, rel=1e-8), name
        if after > value + 1e-6:
            gained.add(name)
        value = after

    for _ in range(n_sweeps):
        sweep(data, state, value, trace=trace)
    return gained


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("flat", 0.5), ("flat", np.inf), ("random", 0.5), ("random", np.inf), ("screened", 1e-6)],
)
@pytest.mark.parametrize("side", ["sample", "feature"])
@pytest.mark.parametrize(("model", "likelihood"), CASES)
def test_every_update_raises_the_bound(model, likelihood, side, shape, kind):
    task, K = MODELS[model]
    data = make_data(task, side, shape, likelihood, N=20, sizes=(3, 12), absent=True, weighted=True)
    state = start(data, K, kind)
    gained = rising_trace(data, state, 3)
    expected = {"sites and weights", "delta and weights"}
    if task == "regression":
        expected.add("psi")
    if K is not None:
        expected |= {"intercepts", "loadings"}
    if np.isfinite(shape):
        expected.add("gamma and weights")
    assert expected <= gained


@pytest.mark.parametrize("sizes", [(3, 5), (4, 60)], ids=["narrow", "wide"])
@pytest.mark.parametrize("shape", [1e-6, 0.5, np.inf])
@pytest.mark.parametrize("likelihood", ["quadrature", "jaakkola"])
def test_separable_data_do_not_break_the_bound(likelihood, shape, sizes):
    """Weights want to grow without end; the prior holds them, and every update still gains."""
    side = "feature" if sum(sizes) < 40 else "sample"
    data = make_data("binary", side, shape, likelihood, N=40, sizes=sizes, separable=True)
    for kind in ("flat", "screened", "random"):
        state = start(data, None, kind)
        rising_trace(data, state, 15)
        mean, var = state.latent()
        assert np.isfinite(mean).all()
        assert np.isfinite(var).all()
        assert ((mean > 0) == (data.likelihood.T > 0.5)).mean() > 0.8


@pytest.mark.parametrize("task", ["multilabel", "multiclass", "regression"])
@pytest.mark.parametrize("N", [60, 300])
def test_good_loadings_are_still_learned(task, N):
    """From a start so good that only the spread of V is left to find, V has its posterior."""
    data = make_data(task, "feature", np.inf, "jaakkola", N=N)
    rough = iterate(data, flat_state(data), max_iter=10, tol=1e-3).state
    K = data.likelihood.n_outputs - 1
    V = starting_loadings(rough.latent()[0] @ rough.V.T, K)
    state = flat_state(data, V)
    iterate(data, state, max_iter=30, tol=1e-8)
    assert np.abs(state.V - V).max() > 1e-3
    target, cov = proposed_loadings(data, state)
    np.testing.assert_allclose(state.V_cov, cov, rtol=0.1)
    np.testing.assert_allclose(state.V, target, atol=0.05)


def test_a_refused_step_leaves_the_state_as_it_was():
    data = make_data("binary", "feature", 0.5, "quadrature")
    state = start(data, None, "flat")
    before = bound(data, state)
    parts = state.snapshot()

    def worse(length):
        state.V = state.V * (1 + 50 * length)

    assert guarded(data, state, before, worse) == before
    assert bound(data, state) == before
    for name, value in parts.items():
        assert getattr(state, name) is value or getattr(state, name) == value


def test_two_runs_give_the_same_bits():
    results = []
    for _ in range(2):
        data = make_data("multiclass", "sample", 0.5, sizes=(4, 60))
        run = iterate(data, start(data, None, "screened"), max_iter=8, tol=0.0)
        results.append((run.elbo, run.state.factors[0].alpha.tobytes()))
    assert results[0] == results[1]


def test_both_sides_reach_the_same_posterior():
    values, means = [], []
    for side in ("sample", "feature"):
        data = make_data("multiclass", side, 0.5, sizes=(4, 20), absent=True)
        run = iterate(data, start(data, None, "flat"), max_iter=20, tol=0.0)
        values.append(run.elbo)
        means.append(run.state.latent()[0])
    assert values[0] == pytest.approx(values[1], rel=1e-8)
    np.testing.assert_allclose(*means, atol=1e-6)
