"""The submodel path: literal projections, literal greedy search, all folds and sizes at once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur.inference import path_search
from baldur.inference.ensemble import MEMBERS, fit_ensemble, over_candidates, view_moments
from baldur.inference.path_search import COLLINEAR, correlation_noise, search, whole_groups
from baldur.inference.stacking import Stacking, mixture
from baldur.inference.submodel_path import (
    make_path,
    view_signals,
)
from baldur.model.likelihood import logistic_rates, take_folds
from baldur.model.posterior import INTERCEPT_VAR
from inference.problems import as_view, gathered, make_problem, unequal_folds

SHRINKAGE = [0.0, 0.4, 1.0]
TASKS = ["binary", "multiclass", "regression"]
N, SIZES = 36, (4, 8)
FORMS = {
    "feature solver": (SIZES, False),
    "sample solver": ((4, 40), False),
    "Grams": (SIZES, True),
}
FITS = {}


def stacking(F=3, slope=1.4, slope_var=0.04, shares=(0.2, 0.1, 0.2, 0.3, 0.2)):
    return Stacking(np.tile(shares, (F, 1)), np.full(F, slope), np.full(F, slope_var))


def correlated(N, L, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, L)) + rng.standard_normal((N, 1)) * rng.uniform(0, 1, L)
    return (X - X.mean(0)) / X.std(0)


def fitted(task="binary", form="feature solver", absent=False):
    """Three unequal folds of a problem with correlated columns, and their ensembles."""
    key = (task, form, absent)
    if key not in FITS:
        sizes, by_grams = FORMS[form]
        X = correlated(N, sum(sizes))
        lacking = np.arange(N) % 6 == 1 if absent else None
        views = [as_view(X[:, : sizes[0]]), as_view(X[:, sizes[0] :], lacking)]
        problem, _ = make_problem(task, views=views, N=N)
        data, batch = gathered(problem, unequal_folds(N), by_grams)
        FITS[key] = data, batch, fit_ensemble(batch, members=MEMBERS[:5])
    return FITS[key]


@pytest.fixture
def shrunk(monkeypatch):
    """Return a function that fixes the share of correlations that is noise."""

    def fix(a):
        monkeypatch.setattr(path_search, "correlation_noise", lambda X, H, real: np.full(len(X), a))

    return fix


# -- literal twins ------------------------------------------------------------------------------


def metric(X, h, a):
    """Sigma, the centred columns, and the weighted means."""
    means = h @ X / h.sum()
    centred = X - means
    plain = (centred.T * h) @ centred
    return (1 - a) * plain + a * np.diag(np.diag(plain)), centred, means


def literal_map(X, h, a, S):
    """The matrix that takes (b, w) to the intercept and weights on features S."""
    Sigma, centred, means = metric(X, h, a)
    D = np.diag(np.diag(Sigma))
    u = ((1 - a) * (centred.T * h) @ X + a * D)[S]
    beta = np.linalg.solve(Sigma[np.ix_(S, S)], u)
    level = means - means[S] @ beta
    return np.block([[np.ones((1, 1)), level[None]], [np.zeros((len(S), 1)), beta]])


def literal_order(X, H, eta, w, a, size):
    """The best next feature, again and again, each set solved afresh; H, eta (C, n), w (C, L)."""
    chosen = []
    for _ in range(size):
        gains = {}
        for d in range(X.shape[1]):
            if d in chosen:
                continue
            S = [*chosen, d]
            total = 0.0
            for c in range(len(H)):
                Sigma, centred, _ = metric(X, H[c], a)
                u = (1 - a) * centred.T @ (H[c] * eta[c]) + a * np.diag(Sigma) * w[c]
                total += u[S] @ np.linalg.solve(Sigma[np.ix_(S, S)], u[S])
            gains[d] = total
        chosen.append(max(gains, key=gains.get))
    return chosen


def literal_gaussians(data, batch, ensemble, f):
    """Mean (C, 1 + D) and covariance of (b, w) of every point in fold f, by explicit inverses."""
    train = batch.rows[f][batch.counted[f] > 0]
    X1 = np.hstack([np.ones((len(train), 1)), data.columns[train]])
    found = {}
    for j, point in enumerate(ensemble.points):
        if f not in point.folds:
            continue
        at = int(np.flatnonzero(point.folds == f)[0])
        s = point.q.s[at]
        if s.shape[1] == data.n_views and data.grams is not None and not point.selects:
            s = s[:, data.owner]
        elif point.columns is not None:
            s = over_candidates(s[None], point.columns[[at]], data.columns.shape[1])[0]
        h, jj = (part[at][:, : len(train)] for part in point.q.sites)
        means, covs = [], []
        for c in range(len(s)):
            prior = np.concatenate([[INTERCEPT_VAR], s[c]])
            root = np.sqrt(prior)
            A = np.eye(len(prior)) + root[:, None] * ((X1.T * h[c]) @ X1) * root
            cov = root[:, None] * np.linalg.inv(A) * root
            covs.append(cov)
            means.append(cov @ X1.T @ jj[c])
        found[j] = np.array(means), np.array(covs)
    return train, found


def literal_fold(data, batch, ensemble, f, task):
    """Training rows, H, eta and w of the first weights, and the Gaussians."""
    train, found = literal_gaussians(data, batch, ensemble, f)
    first = ensemble.first_weights()[:, f]
    n = len(train)
    eta, var = mixture(ensemble.mean[:, f, :, :n], ensemble.var[:, f, :, :n], first[..., None])
    H = np.tile(data.problem.weight[train], (len(eta), 1))
    if task != "regression":
        p = logistic_rates(eta, var)[0]
        H = H * np.maximum(p * (1 - p), 1e-4)
    w = sum(first[j][:, None] * mean[:, 1:] for j, (mean, _) in found.items())
    return train, H, eta, w, found


def literal_weights(data, batch, ensemble, given, f, task, a, S):
    """Mean (C, k + 1) and covariance of the weights on features S of the stacked ensemble."""
    train, H, _, _, found = literal_fold(data, batch, ensemble, f, task)
    X = data.columns[train]
    weights = ensemble.point_weights(given.shares)[:, f]
    means, covs = [], []
    for c in range(len(H)):
        A = literal_map(X, H[c], a, S)
        each = {j: (A @ mean[c], A @ cov[c] @ A.T) for j, (mean, cov) in found.items()}
        centre = sum(weights[j, c] * mean for j, (mean, _) in each.items())
        cov = sum(
            weights[j, c] * (spread + np.outer(mean - centre, mean - centre))
            for j, (mean, spread) in each.items()
        )
        base = np.zeros(len(S) + 1)
        base[0] = ensemble.base_logit[f, c]
        away = given.slope[f] * (centre - base)
        means.append(base + away)
        covs.append(cov + given.slope_var[f] * np.outer(away, away))
    return np.array(means), np.array(covs)


# -- the path -----------------------------------------------------------------------------------


@pytest.mark.parametrize("a", SHRINKAGE)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("task", TASKS)
def test_weights_of_every_size_are_the_literal_projection(shrunk, task, form, a):
    shrunk(a)
    data, batch, ensemble = fitted(task, form)
    given = stacking()
    path = make_path(ensemble, given, 2, 6)
    assert path.length.tolist() == [6, 6, 6]
    for f in range(3):
        for k in (0, 1, 3, 6):
            S = path.order[f, :k]
            mean, cov = path.weights(f, k)
            want = literal_weights(data, batch, ensemble, given, f, task, a, S)
            np.testing.assert_allclose(mean, want[0], rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(cov, want[1], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("a", SHRINKAGE)
@pytest.mark.parametrize("task", TASKS)
def test_the_search_is_the_literal_greedy_one(shrunk, task, a):
    shrunk(a)
    data, batch, ensemble = fitted(task)
    path = make_path(ensemble, stacking(), 2, 5)
    for f in range(3):
        train, H, eta, w, _ = literal_fold(data, batch, ensemble, f, task)
        want = literal_order(data.columns[train], H, eta, w, a, 5)
        assert path.order[f].tolist() == want


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("task", TASKS)
def test_folds_of_a_batch_have_the_paths_of_folds_alone(task, form):
    """Moments of every size too, with a view that some rows lack."""
    data, _, ensemble = fitted(task, form, absent=True)
    given = stacking()
    whole = make_path(ensemble, given, 2, 8)
    mean, var = whole.moments_of_sizes([1, 3, 8])
    candidates = np.arange(data.columns.shape[1])
    for f, fold in enumerate(unequal_folds(N)):
        one = type(ensemble.batch).of(data, [fold], [candidates])
        alone = fit_ensemble(one, members=MEMBERS[:5])
        path = make_path(alone, take_folds(given, slice(f, f + 1)), 2, 8)
        np.testing.assert_array_equal(path.order[0], whole.order[f])
        np.testing.assert_array_equal(path.ends[0], whole.ends[f])
        for size in (1, 4, 8):
            for got, want in zip(whole.weights(f, size), path.weights(0, size), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
        p = len(fold[1])
        for got, want in zip((mean, var), path.moments_of_sizes([1, 3, 8]), strict=True):
            np.testing.assert_allclose(got[:, f, :, :p], want[:, 0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("form", ["feature solver", "Grams"])
@pytest.mark.parametrize("task", TASKS)
def test_moments_of_the_path_are_literal(task, form):
    """Weights on the first k features and their covariance, spelled out, and missing views."""
    data, batch, ensemble = fitted(task, form, absent=True)
    path = make_path(ensemble, stacking(), 2, 12)
    sizes = [1, 3, 12, 100]
    means, variances = path.moments_of_sizes(sizes)
    np.testing.assert_allclose(means[3], means[2], rtol=1e-12)  # no further than its end
    for f, (train, held) in enumerate(unequal_folds(N)):
        p = len(held)
        for i, size in enumerate(sizes[:3]):
            k = min(size, int(path.length[f]))
            S = path.order[f, :k]
            w, cov = path.weights(f, k)
            X1 = np.hstack([np.ones((p, 1)), data.columns[np.ix_(held, S)]])
            var = np.stack([np.einsum("nd,de,ne->n", X1, each, X1) for each in cov])
            lacking = np.zeros((2, len(w)))
            for m in range(2):
                own = np.flatnonzero(data.owner[S] == m)
                has = train[data.absent[train, m] == 0]
                A = data.columns[np.ix_(has, S[own])]
                for c in range(len(w)):
                    part = w[c, 1 + own]
                    second = np.outer(part, part) + cov[c][np.ix_(1 + own, 1 + own)]
                    lacking[m, c] = np.einsum("nd,de,ne->n", A, second, A).mean()
            var = np.maximum(var, 1e-12) + (data.absent[held] @ lacking).T + path.noise[f][:, None]
            np.testing.assert_allclose(means[i, f, :, :p], w @ X1.T, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(variances[i, f, :, :p], var, rtol=1e-6)
            signal, spread = path.signal(f, k)
            np.testing.assert_allclose(spread, lacking, rtol=1e-8)
            assert (signal <= spread + 1e-12).all()
    assert batch.held_counted.sum() == sum(len(held) for _, held in unequal_folds(N))


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_all_features_of_the_path_are_the_ensemble(task):
    """Where every candidate is on the path and every feature is a candidate, nothing is left."""
    _data, batch, ensemble = fitted(task)
    path = make_path(ensemble, stacking(), 2, 12)
    assert path.length.tolist() == [12] * 3
    mean, var = path.moments_of_sizes([12])
    want, want_var = view_moments(ensemble, stacking(), [2])
    real = np.broadcast_to(batch.held_counted[:, None] > 0, mean[0].shape)
    np.testing.assert_allclose(mean[0][real], want[0][real], rtol=1e-6, atol=1e-7)
    # The variance of the slope is that of weights, and so without the base rate's intercept.
    np.testing.assert_allclose(var[0][real], want_var[0][real], rtol=1e-5, atol=1e-7)


def test_the_path_of_one_view_uses_its_columns_alone():
    data, _, ensemble = fitted()
    path = make_path(ensemble, stacking(), 1, 12)
    order = ensemble.view_order()
    for f in range(3):
        k = int(path.length[f])
        assert (data.owner[path.order[f, :k]] == order[f, 0]).all()


def test_the_order_of_the_path_does_not_depend_on_the_stacking_weights():
    _data, _, ensemble = fitted()
    same = make_path(ensemble, stacking(), 2, 12)
    for shares, slope in (([0.6, 0.1, 0.1, 0.1, 0.1], 0.3), ([0.1, 0.1, 0.1, 0.1, 0.6], 3.0)):
        path = make_path(ensemble, stacking(3, slope, 0.1, shares), 2, 12)
        np.testing.assert_array_equal(path.order, same.order)


def test_a_stack_that_is_nearly_the_base_rate_predicts_the_base_rate():
    _data, _, ensemble = fitted()
    path = make_path(ensemble, stacking(3, 1e-4, 0.0), 2, 12)
    mean, _ = path.moments_of_sizes([1, 2])
    base = np.broadcast_to(ensemble.base_logit[..., None], mean.shape)
    np.testing.assert_allclose(mean, base, atol=5e-3)


# -- the search ---------------------------------------------------------------------------------


def searched(X, H, eta, w, size, groups=None, allowed=None):
    """Search one fold: X (n, L), H and eta (C, n), w (C, L)."""
    allowed = np.ones(X.shape[1]) if allowed is None else allowed
    groups = np.arange(X.shape[1]) if groups is None else np.asarray(groups)
    count = np.array([float(len(X))])
    return search(
        X[None],
        H[None],
        eta[None],
        w[None],
        size,
        allowed=allowed[None],
        count=count,
        groups=groups[None],
        **one_view(1, X.shape[1]),
    )


def one_view(F, L):
    """Return arguments of a search in which no column has to enter and all are of one view."""
    return {"always": np.zeros((F, L), dtype=bool), "owner": np.zeros((F, L), dtype=int)}


@pytest.fixture
def setting():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    eta = (X[:, 0] - 0.8 * X[:, 5] + 0.1 * X[:, 9])[None]
    return X, np.full((1, 60), 0.2), eta, np.eye(12)[[0]] - 0.8 * np.eye(12)[[5]]


def test_several_folds_are_searched_as_one_by_one(setting, constants):
    """Also where they do not fit into the working memory together, and paths end early."""
    X, H, eta, w = setting
    rng = np.random.default_rng(1)
    many = np.stack([X, X[rng.permutation(60)], rng.standard_normal((60, 12))])
    allowed = np.ones((3, 12))
    allowed[1, :7] = 0.0
    weight = np.stack([H, H * rng.uniform(0.5, 1.5, 60), H])
    weight[2, :, 50:] = 0.0
    many[2, 50:] = 0.0
    count = np.array([60.0, 60.0, 50.0])
    three = (many, weight, np.stack([eta] * 3), np.stack([w] * 3), 8)
    for memory in (1 << 23, 1):
        constants(SEARCH_BYTES=memory)
        groups = np.tile(np.arange(12), (3, 1))
        basis = search(*three, allowed=allowed, count=count, groups=groups, **one_view(3, 12))
        assert [int(ends[-1]) for ends in basis.ends[:2]] == [8, 5]
        for f in range(3):
            n = int(count[f])
            one = searched(many[f, :n], weight[f, :, :n], eta[:, :n], w, 8, allowed=allowed[f])
            k = int(one.ends[0][-1])
            assert basis.ends[f][-1] == k
            np.testing.assert_array_equal(basis.order[f, :k], one.order[0])
            got = basis.R_inverse[f, :, : k + 1, : k + 1]
            np.testing.assert_allclose(got, one.R_inverse[0], rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(
                basis.forms[f, :, :n, : k + 1], one.forms[0], rtol=1e-8, atol=1e-10
            )


def test_the_factor_is_that_of_the_metric(setting, shrunk):
    """R^T R is the matrix of the projection, intercept first: 1^T H 1, 1^T H X, Sigma + means."""
    shrunk(0.3)
    X, H, eta, w = setting
    basis = searched(X, H, eta, w, 6)
    S = basis.order[0]
    R = np.linalg.inv(basis.R_inverse[0, 0])
    Sigma, _, means = metric(X, H[0], 0.3)
    m = np.concatenate([[1.0], means[S]])
    want = H[0].sum() * np.outer(m, m)
    want[1:, 1:] += Sigma[np.ix_(S, S)]
    np.testing.assert_allclose(R.T @ R, want, rtol=1e-8, atol=1e-9)


def test_order_of_columns_does_not_matter(setting):
    X, H, eta, w = setting
    basis = searched(X, H, eta, w, 8)
    order = np.random.default_rng(0).permutation(12)
    again = searched(X[:, order], H, eta, w[:, order], 8)
    np.testing.assert_array_equal(order[again.order], basis.order)
    np.testing.assert_allclose(again.R_inverse, basis.R_inverse, rtol=1e-8, atol=1e-10)


def test_a_column_that_says_what_others_say_is_left_out(setting, shrunk):
    shrunk(0.0)
    X, H, eta, w = setting
    double = np.hstack([X, X[:, [0]] + 1e-6 * X[:, [1]], np.zeros((60, 1))])
    basis = searched(double, H, eta, np.hstack([w, np.zeros((1, 2))]), 14)
    order = basis.order[0]
    assert len(order) == basis.ends[0][-1] == 12
    assert 13 not in order
    assert len({0, 12} & set(order.tolist())) == 1
    assert np.isfinite(basis.R_inverse).all()
    assert COLLINEAR < 0.01


def test_fewer_features_than_rows_can_tell(shrunk):
    shrunk(0.0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 45))
    w = rng.standard_normal((1, 45))
    basis = searched(X, np.ones((1, 10)), w @ X.T, w, 40)
    assert basis.ends[0][-1] <= 8


@pytest.mark.filterwarnings("error")
def test_only_allowed_columns_are_chosen(setting):
    allowed = np.ones(12)
    allowed[[0, 3]] = 0.0
    basis = searched(*setting, 12, allowed=allowed)
    assert basis.ends[0][-1] == 10
    assert not {0, 3} & set(basis.order[0].tolist())
    none = searched(*setting, 12, allowed=np.zeros(12))
    assert not len(none.ends[0])


def test_among_many_columns_the_most_promising_are_searched(setting, constants):
    """Those that gain most on their own, and those of the largest weights."""
    X, H, eta, w = setting
    full = searched(X, H, eta, w, 12)
    constants(SEARCHED=3)
    few = searched(X, H, eta, w, 12)
    np.testing.assert_array_equal(few.order[0, :2], full.order[0, :2])
    assert few.ends[0][-1] <= 6
    together = searched(X, H, eta, w, 12, GROUPS)  # groups are searched whole
    assert {0, 2, 4, 5, 6} <= set(together.order[0].tolist())


GROUPS = np.array([0, 1, 0, 2, 0, 3, 3, 4, 5, 6, 7, 8])


def test_columns_of_a_group_enter_one_after_the_other(setting):
    basis = searched(*setting, 7, GROUPS)
    order = basis.order[0]
    assert set(order[:3]) == {0, 2, 4}
    assert set(order[3:5]) == {5, 6}
    assert basis.ends[0].tolist() == [3, 5, 6, 7]
    assert [whole_groups(basis.ends[0], size) for size in (1, 3, 4, 6, 9)] == [3, 3, 5, 6, 7]


def test_a_group_that_is_begun_is_completed(setting):
    basis = searched(*setting, 1, GROUPS)
    assert set(basis.order[0]) == {0, 2, 4}
    assert basis.R_inverse.shape == (1, 1, 4, 4)


def test_numbers_of_their_own_change_nothing(setting):
    plain, numbered = searched(*setting, 8), searched(*setting, 8, np.arange(12)[::-1])
    assert plain.order.tolist() == numbered.order.tolist()
    assert plain.ends[0].tolist() == list(range(1, 9))
    np.testing.assert_array_equal(plain.R_inverse, numbered.R_inverse)


def test_a_column_that_says_what_its_group_says_is_left_out(setting, shrunk):
    shrunk(0.0)
    X, H, eta, w = setting
    X[:, 2] = 2.0 * X[:, 0]
    basis = searched(X, H, eta, w, 4, [0, 1, 0, *range(2, 11)])
    assert sum(np.isin(basis.order[0], [0, 2])) == 1


def test_groups_of_several_folds_are_kept_whole():
    """Along the path, where a size would cut a group the next end of one is taken."""
    data, _, ensemble = fitted()
    data = replace(data, groups=np.arange(12) // 2)
    ensemble = replace(ensemble, batch=replace(ensemble.batch, data=data))
    path = make_path(ensemble, stacking(), 2, 5)
    for f in range(3):
        ends = path.ends[f]
        assert (ends % 2 == 0).all()
        for end in ends:
            numbers = data.groups[path.order[f, :end]]
            assert (np.bincount(numbers)[np.unique(numbers)] == 2).all()
    mean, _ = path.moments_of_sizes([1, 2, 3])
    np.testing.assert_array_equal(mean[0], mean[1])
    assert np.abs(mean[2] - mean[1]).max() > 0


def test_parts_of_views_are_literal():
    rng = np.random.default_rng(0)
    X, owner = rng.standard_normal((20, 5)), np.array([0, 2, 0, 2, 2])
    w = rng.standard_normal((2, 5))
    A = rng.standard_normal((2, 5, 7))
    cov = A @ A.swapaxes(1, 2)
    absent = np.zeros((20, 3))
    absent[::4, 2] = 1.0
    signal, both = view_signals(X, owner, w, cov, absent)
    for m in range(3):
        here, rows = owner == m, absent[:, m] == 0
        for c in range(2):
            part = X[rows][:, here]
            mean = (part @ w[c, here]) ** 2
            spread = np.einsum("nd,de,ne->n", part, cov[c][np.ix_(here, here)], part)
            assert signal[m, c] == pytest.approx(mean.mean() if here.any() else 0.0)
            assert both[m, c] == pytest.approx((mean + spread).mean() if here.any() else 0.0)


# -- correlations that are sampling noise -------------------------------------------------------


def noise_of(X, H):
    return float(correlation_noise(X[None], H[None], np.ones((1, X.shape[1])))[0])


def literal_noise(X, H):
    p = H / H.sum()
    Z = (X - p @ X) / np.sqrt(p @ (X - p @ X) ** 2)
    noise = found = 0.0
    for i in range(X.shape[1]):
        for j in range(X.shape[1]):
            if i != j:
                r = (p * Z[:, i] * Z[:, j]).sum()
                noise += (p**2 * Z[:, i] ** 2 * Z[:, j] ** 2).sum() - (p**2).sum() * r**2
                found += r**2
    return min(max(noise / found, 0.0), 1.0)


def test_correlation_noise_is_its_literal_twin():
    """Of several folds at once, with padding rows, and columns that are left out."""
    rng = np.random.default_rng(0)
    X = np.stack([correlated(25, 9, seed) for seed in range(4)])
    H = rng.uniform(0.02, 0.25, (4, 25))
    real = np.ones((4, 9))
    H[1, 20:], X[1, 20:] = 0.0, 0.0
    real[2, 5:] = 0.0
    found = correlation_noise(X, H, real)
    want = [
        literal_noise(X[0], H[0]),
        literal_noise(X[1, :20], H[1, :20]),
        literal_noise(X[2, :, :5], H[2]),
        literal_noise(X[3], H[3]),
    ]
    np.testing.assert_allclose(found, want, rtol=1e-9)


def test_with_equal_weights_it_is_the_variance_of_the_correlations():
    """Var r = sum_n (z_i z_j - r)^2/N^2, as for any mean of N values."""
    X = correlated(40, 6)
    Z = (X - X.mean(0)) / X.std(0)
    noise = found = 0.0
    for i in range(6):
        for j in range(6):
            if i != j:
                product = Z[:, i] * Z[:, j]
                noise += product.var() / 40
                found += product.mean() ** 2
    assert noise_of(X, np.ones(40)) == pytest.approx(noise / found, rel=1e-9)


def test_independent_columns_are_noise_and_correlated_ones_are_not():
    rng = np.random.default_rng(0)
    independent = rng.standard_normal((30, 400))
    assert noise_of(independent, np.ones(30)) > 0.9
    shared = rng.standard_normal((400, 1)) + 0.3 * rng.standard_normal((400, 20))
    assert noise_of(shared, np.ones(400)) < 0.01
    few, many = (noise_of(correlated(N, 20), np.ones(N)) for N in (20, 2000))
    assert many < few


def test_one_column_or_constants_have_no_correlations():
    X = correlated(20, 3)
    assert noise_of(X[:, :1], np.ones(20)) == 0.0
    assert noise_of(X[:, :0], np.ones(20)) == 0.0
    constant_too = np.hstack([X, np.ones((20, 1))])
    assert noise_of(constant_too, np.ones(20)) == pytest.approx(noise_of(X, np.ones(20)), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 40), st.integers(1, 30), st.floats(0.0, 3.0))
def test_correlation_noise_is_a_share(seed, N, L, common):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, L)) + common * rng.standard_normal((N, 1))
    H = rng.uniform(1e-3, 1.0, N)
    a = noise_of(X, H)
    assert 0.0 <= a <= 1.0
    # Units, places and signs of the columns do not matter.
    b = noise_of(X * rng.choice([-7.0, 0.1], L) + rng.normal(0, 3, L), 5.0 * H)
    assert b == pytest.approx(a, abs=1e-6)


def test_columns_without_variance_take_no_place_in_the_search():
    """Nor does padding: rounding leaves an agreement there, which must not look like a gain."""
    rng = np.random.default_rng(0)
    L = 3 * path_search.SEARCHED
    left = np.ones((1, 1, L))
    left[..., : path_search.SEARCHED] = 0.0
    agree = np.where(left > 0, rng.uniform(1, 2, left.shape), 1e-12)
    allowed = np.ones((1, L))
    allowed[:, :100] = 0.0
    with np.errstate(all="raise"):
        nothing, groups = np.zeros_like(left), np.arange(L)[None]
        columns = path_search._Columns(
            *[nothing] * 4, agree, left, nothing, *[allowed] * 2, groups, allowed < 0, groups, None
        )
        chosen, used = path_search._most_promising(columns, allowed, by_view=False)
    gain = agree[0, 0] ** 2 * (left[0, 0] > 0)
    best = np.argsort(-gain)[: path_search.SEARCHED]
    assert set(best) <= set(chosen[0, used[0] > 0])
