"""Each update is the maximum of the bound over its own parameters, and the bound rises with it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from baldur.paper.bound import bound
from baldur.paper.pruning import without_features
from baldur.paper.state import GammaPosterior
from baldur.paper.updates import MODEL_UPDATES
from baldur.paper.weights import weight_moments
from paper.literal_dual import use_literal_dual
from paper.meanfield.problems import VIEW_UPDATES, cells, make_problem, random_state

K, C, N = 2, 2, 6


def unpack_cov(x, size):
    """Covariance from its Cholesky factor, log diagonal first."""
    L = np.zeros((size, size))
    L[np.diag_indices(size)] = np.exp(x[:size])
    L[np.tril_indices(size, -1)] = x[size : size * (size + 1) // 2]
    return L @ L.T


def n_cov(size):
    return size * (size + 1) // 2


def gamma_from(x):
    """Common log shape, then log rates."""
    return GammaPosterior(float(np.exp(x[0])), np.exp(x[1:]))


def maximum(rebuild, data, size, start=None):
    """Best bound over ``rebuild(x)``, from a small random x."""
    x0 = 0.1 * np.random.default_rng(0).standard_normal(size) if start is None else start

    def objective(x):
        return -bound(rebuild(x), data)

    x = x0
    for _ in range(3):  # restarts reset BFGS after its line search gives up on rounding
        found = minimize(objective, x, method="BFGS", options={"gtol": 1e-6, "maxiter": 3000})
        x = found.x
    return -found.fun


def model_rebuilders(state, data):
    """Update name -> (rebuild, number of parameters)."""

    def z(x):
        return replace(state, Z=x[: N * K].reshape(N, K), Z_cov=unpack_cov(x[N * K :], K))

    def v(x):
        return replace(state, V=x[: C * K].reshape(C, K), V_cov=unpack_cov(x[C * K :], K))

    def b(x):
        return replace(state, b=x[:C], b_var=float(np.exp(x[C])))

    def y(x):
        return replace(state, Y=x[: N * C].reshape(N, C), Y_var=np.exp(x[N * C :]).reshape(N, C))

    return {
        "Z": (z, N * K + n_cov(K)),
        "V": (v, C * K + n_cov(K)),
        "b": (b, C + 1),
        "Y": (y, 2 * N * C),
        "xi": (lambda x: replace(state, xi=np.exp(x).reshape(N, C)), N * C),
        "tau": (lambda x: replace(state, tau=gamma_from(x)), 2),
        "psi": (lambda x: replace(state, psi=gamma_from(x)), 2),
        "omega": (lambda x: replace(state, omega=gamma_from(x)), 1 + K),
    }


@pytest.mark.parametrize("name", sorted(MODEL_UPDATES))
def test_model_updates(name):
    data = make_problem(N=N, sizes=(2, 8), C=C, weight=np.linspace(0.5, 1.5, N))
    state = random_state(data, K, seed=2)
    rebuild, size = model_rebuilders(state, data)[name]
    best = maximum(rebuild, data, size)
    updated = bound(MODEL_UPDATES[name](state, data), data)
    assert updated == pytest.approx(best, abs=1e-5)
    assert updated > bound(state, data)


@pytest.mark.parametrize("name", ["V", "b", "psi", "Z"])
def test_model_updates_in_regression(name):
    data = make_problem("regression", N=N, sizes=(2, 8), C=C)
    state = random_state(data, K, seed=2)
    rebuild, size = model_rebuilders(state, data)[name]
    best = maximum(rebuild, data, size)
    assert bound(MODEL_UPDATES[name](state, data), data) == pytest.approx(best, abs=1e-5)


def test_labels_by_quadrature():
    data = make_problem(N=N, sizes=(2, 8), C=C, bound_kind="quadrature")
    state = random_state(data, K, seed=2)
    rebuild, size = model_rebuilders(state, data)["Y"]
    best = maximum(rebuild, data, size)
    for _ in range(10):
        state = MODEL_UPDATES["Y"](state, data)
    assert bound(state, data) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("m", [0, 1], ids=["narrow", "wide"])
def test_exact_weights(m):
    data = make_problem(N=4, sizes=(2, 6), C=1)
    state = random_state(data, 1, seed=2)
    view, X = state.views[m], cells(data.views[m])
    D = X.shape[1]

    def rebuild(x):
        mean, cov = x[:D], unpack_cov(x[D:], D)
        w2 = np.array([(mean**2 + np.diag(cov)) @ view.gamma.mean])
        q = replace(
            view.q,
            H=(X @ mean)[:, None],
            trace=np.array([np.trace(X @ cov @ X.T)]),
            logdet=np.array([np.linalg.slogdet(cov)[1]]),
        )
        return state.with_view(m, replace(view, q=replace(q, gamma_w2=w2)))

    best = maximum(rebuild, data, D + n_cov(D))
    assert bound(VIEW_UPDATES["W"](state, data, m), data) == pytest.approx(best, abs=1e-5)


def test_literal_dual_weights(monkeypatch):
    use_literal_dual(monkeypatch)
    rows = np.array([0, 2, 3])
    data = make_problem(N=5, sizes=(2, 6), C=1, spaces="dual", relevance=[rows, rows])
    state = random_state(data, 1, seed=2)
    view, X = state.views[1], cells(data.views[1])
    Xs, r = X[rows], 3

    def rebuild(x):
        mean, cov = x[:r], unpack_cov(x[r:], r)
        w, w_cov = Xs.T @ mean, Xs.T @ cov @ Xs
        q = replace(
            view.q,
            H=(X @ w)[:, None],
            trace=np.array([np.trace(X @ w_cov @ X.T)]),
            logdet=np.array([np.linalg.slogdet(cov)[1]]),
        )
        w2 = np.array([(w**2 + np.diag(w_cov)) @ view.gamma.mean])
        return state.with_view(1, replace(view, q=replace(q, gamma_w2=w2)))

    best = maximum(rebuild, data, r + n_cov(r))
    assert bound(VIEW_UPDATES["W"](state, data, 1), data) == pytest.approx(best, abs=1e-5)


def test_dual_weights_keep_their_prior_variance_outside_the_relevance_vectors():
    """Free: mean and covariance of a; fixed: the prior's part outside the span of X~."""
    rows = np.array([0, 2, 3])
    data = make_problem(N=5, sizes=(2, 6), C=1, spaces="dual", relevance=[rows, rows])
    state = random_state(data, 1, seed=2)
    view, X = state.views[1], cells(data.views[1])
    r, delta, prior = 3, view.delta.mean[0], np.diag(1 / view.gamma.mean)
    span = prior @ X[rows].T
    outside = (prior - span @ np.linalg.solve(X[rows] @ span, span.T)) / delta

    def rebuild(x):
        mean, cov = span @ x[:r], span @ unpack_cov(x[r:], r) @ span.T + outside
        q = replace(
            view.q,
            H=(X @ mean)[:, None],
            trace=np.array([np.trace(X @ cov @ X.T)]),
            logdet=np.array([np.linalg.slogdet(cov)[1]]),
        )
        w2 = np.array([(mean**2 + np.diag(cov)) @ view.gamma.mean])
        return state.with_view(1, replace(view, q=replace(q, gamma_w2=w2)))

    best = maximum(rebuild, data, r + n_cov(r))
    assert bound(VIEW_UPDATES["W"](state, data, 1), data) == pytest.approx(best, abs=1e-5)


def test_delta():
    data = make_problem(N=N, sizes=(2, 8), C=C)
    state = random_state(data, K, seed=2)
    view = state.views[1]

    def rebuild(x):
        return state.with_view(1, replace(view, delta=gamma_from(x)))

    best = maximum(rebuild, data, 1 + K)
    assert bound(VIEW_UPDATES["delta"](state, data, 1), data) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("a", [1e-6, 0.5])
def test_gamma(a):
    data = make_problem(N=N, sizes=(2, 8), C=C, a_gamma=a)
    state = random_state(data, K, seed=2)
    view = state.views[1]
    mean, var = weight_moments(data.views[1], view.q)

    def rebuild(x):
        gamma = gamma_from(x)
        q = replace(view.q, gamma_w2=(mean**2 + var) @ gamma.mean)
        return state.with_view(1, replace(view, q=q, gamma=gamma))

    best = maximum(rebuild, data, 1 + 8)
    assert bound(VIEW_UPDATES["gamma"](state, data, 1), data) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("name", ["delta", "dropped"])
def test_dropped_features_and_their_precisions(name):
    """Free: the variances of dropped weights, with delta or with their gamma."""
    weight = np.linspace(0.5, 1.5, N)  # so that the two dropped features differ
    data = make_problem(N=N, sizes=(2, 8), C=C, a_gamma=0.1, weight=weight)
    out = np.array([1, 4])
    state = without_features(random_state(data, K, seed=2), data, 1, out)
    view = state.views[1]
    used = np.flatnonzero(view.dropped.count)
    norms, count = view.dropped.norms[used], view.dropped.count[used]
    size = K * used.size

    def rebuild(x):
        var = np.exp(x[:size]).reshape(K, used.size)
        new = view
        if name == "delta":
            new = replace(new, delta=GammaPosterior(new.delta.shape, np.exp(x[size:])))
        gamma = new.dropped.gamma
        if name == "dropped":
            rate = gamma.rate.copy()
            rate[used] = np.exp(x[size:])
            gamma = GammaPosterior(gamma.shape, rate)
        dropped = replace(
            new.dropped,
            gamma=gamma,
            trace=var @ (count * norms),
            w2=var @ (count * gamma.mean[used]),
            logdet=np.log(var) @ count,
        )
        return state.with_view(1, replace(new, dropped=dropped))

    best = maximum(rebuild, data, size + (K if name == "delta" else used.size))
    assert bound(VIEW_UPDATES[name](state, data, 1), data) == pytest.approx(best, abs=1e-5)


# -- The bound rises after every single update, from random states, in every setting --------------


FEW = np.array([0, 2, 3, 7, 8, 11])
SETTINGS = {
    "binary": ({}, 1),
    "binary, dual wide view": ({"spaces": ["primal", "dual"]}, 1),
    "binary, both dual, few relevance vectors": ({"spaces": "dual", "relevance": FEW}, 2),
    "binary, literal dual wide view": ({"spaces": ["primal", "dual"]}, 1),
    "binary, literal dual, few relevance vectors": ({"spaces": "dual", "relevance": FEW}, 2),
    "binary, quadrature": ({"bound_kind": "quadrature"}, 1),
    "binary, weights": ({"weight": np.linspace(0, 2, 14)}, 2),
    "binary, a = 0.5": ({"a_gamma": 0.5}, 2),
    "binary, a = inf": ({"a_gamma": np.inf}, 2),
    "multi-label": ({"C": 3}, 2),
    "multi-label, dual": ({"C": 3, "spaces": ["primal", "dual"], "relevance": FEW}, 3),
    "regression": ({"task": "regression"}, 1),
    "regression, several outputs, dual": (
        {"task": "regression", "C": 2, "spaces": "dual", "relevance": FEW},
        2,
    ),
}


def all_updates(n_views):
    names = [(name, m) for name in VIEW_UPDATES for m in range(n_views)]
    return names + [(name, None) for name in MODEL_UPDATES]


def apply_update(state, data, name, m):
    if m is None:
        return MODEL_UPDATES[name](state, data)
    return VIEW_UPDATES[name](state, data, m)


@pytest.mark.parametrize("drop", [False, True], ids=["all kept", "some dropped"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_every_update_raises_the_bound(setting, drop, monkeypatch):
    if "literal" in setting:
        use_literal_dual(monkeypatch)
    options, K = SETTINGS[setting]
    data = make_problem(**options)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        state = random_state(data, K, seed)
        if drop:
            state = without_features(state, data, 1, np.array([3, 5, 7]))
        updates = all_updates(len(data.views))
        value = bound(state, data)
        for _ in range(6):
            for i in rng.permutation(len(updates)):
                new = apply_update(state, data, *updates[i])
                new_value = bound(new, data)
                assert new_value >= value - 1e-8 * abs(value), (setting, updates[i])
                state, value = new, new_value


@pytest.mark.parametrize("setting", SETTINGS)
def test_an_update_repeated_changes_nothing(setting, monkeypatch):
    if "literal" in setting:
        use_literal_dual(monkeypatch)
    options, K = SETTINGS[setting]
    data = make_problem(**options)
    state = random_state(data, K, 1)
    for name, m in all_updates(len(data.views)):
        if options.get("bound_kind") == "quadrature" and name == "Y":
            continue  # a few Newton steps, not the optimum in one go
        once = apply_update(state, data, name, m)
        twice = apply_update(once, data, name, m)
        assert bound(twice, data) == pytest.approx(bound(once, data), rel=1e-12), name
