"""The bound rises after every single update, in every setting, and is the one reported."""

import numpy as np
import pytest

from baldur.inference.starts import flat_state, screened_gamma
from baldur.inference.sweep import start_factors, sweep
from baldur.model.structured.bound import bound
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


def start(data, K, kind):
    if kind == "random":
        # A point estimate has no entropy, so quadrature, which keeps V a point, starts at one.
        return random_state(data, K, seed=5, spread=not hasattr(data.likelihood, "T"))
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


@pytest.mark.parametrize("kind", ["flat", "random", "screened"])
@pytest.mark.parametrize("shape", [1e-6, 0.5, np.inf])
@pytest.mark.parametrize("side", ["sample", "feature"])
@pytest.mark.parametrize("likelihood", ["quadrature", "jaakkola"])
@pytest.mark.parametrize("model", MODELS)
def test_every_update_raises_the_bound(model, likelihood, side, shape, kind):
    task, K = MODELS[model]
    if task == "regression" and likelihood == "jaakkola":
        pytest.skip("Gaussian outputs have no bound to choose")
    data = make_data(task, side, shape, likelihood, N=20, sizes=(3, 12), absent=True, weighted=True)
    state = start(data, K, kind)
    gained = rising_trace(data, state, 6)
    expected = {"sites and weights", "delta and weights"}
    if task == "regression":
        expected.add("psi")
    if K is not None:
        expected |= {"intercepts", "loadings"}
    if np.isfinite(shape):
        expected.add("gamma and weights")
    assert expected <= gained
