"""Held-out losses: literal refits of every fold, and weights that never saw what they judge."""

import numpy as np
import pytest
from baldur.inference.held_out import (
    base_losses,
    first_views,
    fit_stacks,
    loss_of,
    make_path,
    member_moments,
    path_moments,
    score,
    view_moments,
    view_order,
)
from baldur.inference.kept import projected, whole
from baldur.inference.mixture import Explicit, Implicit, Mixture
from baldur.inference.new_rows import absent_matrix
from baldur.inference.reference import MEMBERS, NEGLIGIBLE, fit_reference, noise_variance
from baldur.inference.stack import Stack
from scipy.special import expit
from scipy.stats import norm

from baldur.inference.predictive import averaged_over, mixture_moments, shrinkage
from baldur.inference.screening import Problem
from baldur.model.quadrature import logistic_moments
from inference.problems import as_candidates, make_problem

STACK = Stack(np.array([0.2, 0.2, 0.3, 0.3]), 1.4, 0.04)
TASKS = ["binary", "multiclass", "regression"]
FITS = {}


def folded(task, by_grams):
    """A problem with a view that some rows lack, its first fold, and the reference there."""
    key = (task, by_grams)
    if key not in FITS:
        problem, T, folds = make_problem(task, N=42, sizes=(4, 8), absent=True)
        rows, _ = folds[0]
        likelihood = problem.likelihood.rows(rows)
        reference = fit_reference(as_candidates(problem, by_grams), rows, likelihood)
        FITS[key] = problem, T, folds, reference
    return FITS[key]


def literal(problem, rows, by_grams):
    """The reference of a problem that never had the other rows."""
    views = [view.take_rows(rows) for view in problem.views]
    small = Problem(views, problem.likelihood.rows(rows), problem.task)
    return small, fit_reference(
        as_candidates(small, by_grams), np.arange(len(rows)), small.likelihood
    )


def moments_of(mixture, views):
    """Moments of the linear predictors with the noise in the variance."""
    ((mean, var),) = mixture.moments(views)
    return mean, var + mixture.noise


def implicit(q, small):
    noise = noise_variance(q.noise) * np.ones(small.likelihood.n_outputs)
    index = [np.arange(view.shape[1]) for view in small.views]
    return Implicit(q.features, q.s, q.sides, index, small.views, noise, q.signal(), q.lacking())


@pytest.mark.parametrize("by_grams", [False, True], ids=["columns", "Grams"])
@pytest.mark.parametrize("task", TASKS)
def test_members_of_a_fold_are_those_of_a_literal_refit(task, by_grams):
    problem, _T, folds, reference = folded(task, by_grams)
    rows, held = folds[0]
    means, variances = member_moments(reference, held)
    small, refit = literal(problem, rows, by_grams)
    assert list(refit.members) == list(reference.members) == list(MEMBERS)
    new = [view.take_rows(held) for view in problem.views]
    for k, member in enumerate(refit.members.values()):
        parts = [implicit(q, small) for q in member.points]
        mixture = Mixture(parts, member.weights, [view.shape[1] for view in new])
        pairs = [
            (mean, var + part.noise)
            for (mean, var), part in zip(mixture.moments(new), parts, strict=True)
        ]
        mean, var = mixture_moments(pairs, member.weights)
        np.testing.assert_allclose(means[:, k], mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(variances[:, k], var, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_losses_of_the_base_rate_are_literal(task):
    _, T, folds, reference = folded(task, False)
    rows, held = folds[0]
    if task == "binary":
        rate = T[rows].mean()
        base = np.where(T[held] > 0, rate, 1 - rate)
    elif task == "multiclass":
        base = (T[held] * T[rows].mean(axis=0)).sum(axis=1, keepdims=True)
    else:
        base = norm.pdf(T[held], T[rows].mean(), T[rows].std())
    found = loss_of(reference.base_moments(len(held)), T[held], task)
    np.testing.assert_allclose(found, -np.log(base).sum(axis=1), rtol=1e-4)


def test_the_base_rate_is_averaged_over_repeats():
    _problem, T, folds, reference = folded("binary", False)
    (rows, held), other = folds[0], np.arange(3)
    pairs = [(rows, held), (rows, np.setdiff1d(np.arange(len(T)), held)), (rows, other)]
    found = base_losses([reference] * 3, pairs, T, "binary")
    want = loss_of(reference.base_moments(len(T)), T, "binary")
    np.testing.assert_allclose(found, want, rtol=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_moments_by_views_are_literal(task):
    _, _, folds, reference = folded(task, False)
    _, held = folds[0]
    mean, var = view_moments(reference, STACK, [1, 2], held)
    # All views: means pooled around the base rate, variances within and between the Gaussians.
    points, weights = reference.mixture(STACK)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    each = reference.moments(points, held)
    centre = sum(w * m for w, (m, _) in zip(weights, each, strict=True))
    spread = sum(w * (v + (m - centre) ** 2) for w, (m, v) in zip(weights, each, strict=True))
    want = reference.level + STACK.slope * (centre - reference.level)
    np.testing.assert_allclose(mean[1], want, rtol=1e-10)
    unsure = STACK.slope_var * (want - reference.level) ** 2
    np.testing.assert_allclose(var[1], spread + unsure, rtol=1e-10)
    # One view: the other has no part in it.
    first = view_order(reference)[0]
    assert first == 0  # where the signal is
    small = reference.restricted(points, first_views(np.array([0, 1]), 1))
    for q in small:
        assert not q.features.parts(q.sides, q.s)[1].any()
    want = reference.pooled(reference.moments(small, held), weights, STACK)
    np.testing.assert_allclose(mean[0], want[0], rtol=1e-10)


@pytest.mark.parametrize("by_grams", [False, True], ids=["columns", "Grams"])
@pytest.mark.parametrize("task", TASKS)
def test_moments_of_the_path_are_literal(task, by_grams):
    """Weights on the first k features and their covariance, spelled out."""
    _, _, folds, reference = folded(task, by_grams)
    rows, held = folds[0]
    path = make_path(reference, STACK, 2, 12, task)
    sizes = [1, 3, len(path.basis.order), 100]
    means, variances = path_moments(path, reference.data, held, sizes)
    np.testing.assert_allclose(means[3], means[2], rtol=1e-12)  # no further than its end
    X = reference.data.columns.X
    absent, owner = reference.data.absent, reference.data.columns.owner
    for row, k in enumerate(sizes[:3]):
        S = path.columns[path.basis.order[:k]]
        w, cov = path.weights_of(k)
        X1 = np.hstack([np.ones((len(held), 1)), X[np.ix_(held, S)]])
        var = np.stack([np.einsum("nd,de,ne->n", X1, each, X1) for each in cov], axis=1)
        lacking = np.zeros((2, len(w)))
        for m in range(2):
            own = np.flatnonzero(owner[S] == m)
            has = rows[absent[rows, m] == 0]
            A = X[np.ix_(has, S[own])]
            for c in range(len(w)):
                part = w[c, 1 + own]
                second = np.outer(part, part) + cov[c][np.ix_(1 + own, 1 + own)]
                lacking[m, c] = np.einsum("nd,de,ne->n", A, second, A).mean()
        var = np.maximum(var, 1e-12) + absent[held] @ lacking + path.noise
        np.testing.assert_allclose(means[row], X1 @ w.T, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(variances[row], var, rtol=1e-6)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_all_features_of_the_path_are_the_reference(task):
    """Where every candidate is on the path and every feature is a candidate, nothing is left."""
    _, _T, folds, reference = folded(task, False)
    _, held = folds[0]
    path = make_path(reference, STACK, 2, 12, task)
    assert len(path.basis.order) == 12
    mean, _ = path_moments(path, reference.data, held, [12])
    want, _ = view_moments(reference, STACK, [2], held)
    has = absent_rows = reference.data.absent[held].any(axis=1)
    np.testing.assert_allclose(mean[0][~has], want[0][~absent_rows], rtol=1e-6, atol=1e-7)


def test_the_path_of_one_view_uses_its_columns_alone():
    _, _, _, reference = folded("binary", False)
    path = make_path(reference, STACK, 1, 12, "binary")
    np.testing.assert_array_equal(path.columns, np.arange(4))
    assert set(path.basis.order.tolist()) <= {0, 1, 2, 3}
    assert path.basis.order[0] in (0, 1)


def scored(task="binary", by_grams=False):
    """All rows at once, as if held out: moments by views and along the path, and their scores."""
    problem, T, _, _ = folded(task, by_grams)
    rows = np.arange(len(T))
    full = fit_reference(as_candidates(problem, by_grams), rows, problem.likelihood)
    path = make_path(full, STACK, 2, 12, task)
    views = view_moments(full, STACK, [1, 2], rows)
    whole_moments = [(views[0][-1], views[1][-1])]
    rest = (whole_moments, STACK.slope, [(rows, rows)], T, np.ones(len(T)), task)
    sizes = [1, 3, 8]
    steps = score([path_moments(path, full.data, rows, sizes)], *rest)
    return problem, T, full, path, sizes, steps, score([views], *rest)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_the_kept_step_of_a_path_predicts_as_it_was_scored(task):
    problem, T, full, path, sizes, steps, _ = scored(task)
    index = [np.arange(view.shape[1]) for view in problem.views]
    for at, size in enumerate(sizes):
        mixture, kept, chosen = projected(full, path, size, steps[at : at + 1], index, [4, 8])
        assert np.concatenate(kept).sum() == len(chosen) == size
        assert np.concatenate(kept)[chosen].all()
        assert isinstance(mixture.components[0], Explicit)
        got = loss_of(moments_of(mixture, problem.views), T, task)
        has = ~absent_matrix(problem.views).any(axis=1)
        np.testing.assert_allclose(got[has], steps.losses[at][has], rtol=1e-6)


@pytest.mark.parametrize("task", ["binary", "regression"])
@pytest.mark.parametrize("by_grams", [False, True], ids=["columns", "Grams"])
def test_whole_views_predict_as_they_were_scored(by_grams, task):
    problem, T, full, _, _, _, by_views = scored(task, by_grams)
    points, weights = full.mixture(STACK)
    index = [np.arange(view.shape[1]) for view in problem.views]
    for at, views in enumerate(([True, False], [True, True])):
        rest = (by_views[at : at + 1], np.array(views), index, problem.views)
        mixture, kept = whole(full, points, weights, STACK, *rest)
        assert [mask.all() for mask in kept] == [mask.any() for mask in kept] == views
        got = loss_of(moments_of(mixture, problem.views), T, task)
        np.testing.assert_allclose(got, by_views.losses[at], rtol=1e-8)
    np.testing.assert_allclose(by_views.left[-1], 0.0, atol=1e-12)


def test_what_is_left_out_is_averaged_over():
    """Probabilities with the shrunk weights are those with what was left out as random."""
    eta = np.linspace(-4.0, 4.0, 33)[:, None]
    for v in (0.0, 0.5, 2.0, 6.0):
        left = np.array([v])
        mean, var = averaged_over(eta, np.zeros_like(eta), left, "binary")
        exact = logistic_moments(eta, np.full_like(eta, v)).rate
        np.testing.assert_allclose(expit(mean), exact, atol=0.02)
        np.testing.assert_allclose(mean, shrinkage(left) * eta)
        mean, var = averaged_over(eta, np.ones_like(eta), left, "regression")
        np.testing.assert_array_equal(mean, eta)
        np.testing.assert_allclose(var, 1.0 + v)


@pytest.mark.parametrize("slope", [0.5, 1.0, 1.4, 50.0])
def test_what_a_model_leaves_out_is_how_far_it_is_and_how_much_less_it_varies(slope):
    _, T, _, reference = folded("binary", False)
    rows = np.arange(len(T))
    (mean, var), weight = view_moments(reference, STACK, [1, 2], rows), np.linspace(0.5, 2, len(T))
    whole_moments = [(mean[1], var[1])]
    found = score([(mean, var)], whole_moments, slope, [(rows, rows)], T, weight, "binary")
    share = weight / weight.sum()
    own, theirs = share @ var[0][:, 0], share @ var[1][:, 0]
    stretch = min(slope**2, max(theirs / own, 1.0))
    left = max(share @ (mean[0] - mean[1])[:, 0] ** 2 + theirs - stretch * own, 0.0)
    np.testing.assert_allclose(found.stretch[:, 0], [stretch, min(slope**2, 1.0)])
    assert found.left[0, 0] == pytest.approx(left)
    small = averaged_over(mean[0], stretch * var[0], found.left[0], "binary")
    np.testing.assert_allclose(found.losses[0], loss_of(small, T, "binary"), rtol=1e-10)
    if slope >= 1.0:  # the reference leaves nothing out of itself
        np.testing.assert_allclose(found.left[1], 0.0, atol=1e-12)
        np.testing.assert_allclose(found.losses[1], loss_of((mean[1], var[1]), T, "binary"))


class Parts:
    """A reference of which only the views' parts are known."""

    def __init__(self, parts):
        self._parts = parts

    def at_first(self):
        return STACK

    def mixture(self, stack):
        return [], np.ones((0, 1))

    def parts(self, points, weights):
        return self._parts


def test_views_by_falling_part():
    parts = np.random.default_rng(0).standard_normal((3, 50, 2)) * [[[1.0]], [[3.0]], [[2.0]]]
    np.testing.assert_array_equal(view_order(Parts(parts)), [1, 2, 0])
    np.testing.assert_array_equal(first_views(np.array([1, 2, 0]), 2), [False, True, True])
    np.testing.assert_array_equal(view_order(Parts(parts + 100.0)), [1, 2, 0])  # not by level


def test_the_order_of_the_path_does_not_hang_on_the_stack():
    _, _, _, reference = folded("binary", False)
    for shares, slope in (([0.7, 0.1, 0.1, 0.1], 0.3), ([0.1, 0.1, 0.1, 0.7], 3.0)):
        path = make_path(reference, Stack(np.array(shares), slope), 2, 12, "binary")
        same = make_path(reference, STACK, 2, 12, "binary")
        np.testing.assert_array_equal(path.basis.order, same.basis.order)


# -- weights of the stack ----------------------------------------------------------------------


class Said:
    """A reference that has said what its members predict for some rows."""

    def __init__(self, mean, var):
        self.mean, self.var, self.level = mean, var, np.zeros(mean.shape[2])


@pytest.fixture
def drawn(monkeypatch):
    """Members that say what they are told to, over repeated folds."""
    monkeypatch.setattr(
        "baldur.inference.held_out.member_moments", lambda said, held: (said.mean, said.var)
    )

    def draw(seed=0, N=30, K=4, repeats=2):
        rng = np.random.default_rng(seed)
        folds = []
        for _ in range(repeats):
            order = rng.permutation(N)
            parts = np.array_split(order, 3)
            folds += [(np.setdiff1d(order, part), np.sort(part)) for part in parts]
        T = rng.integers(0, 2, (N, 1)).astype(float)
        said = [
            Said(T[held][:, None] - 0.5 + rng.standard_normal((len(held), K, 1)),
                 rng.gamma(2.0, 0.2, (len(held), K, 1)))
            for _, held in folds
        ]  # fmt: skip
        return said, folds, T, rng.uniform(0.5, 2.0, N)

    return draw


def test_the_stack_of_a_fold_uses_no_prediction_of_its_rows(drawn):
    """Whatever was predicted for rows that a fold holds out, by any fold, its stack stays."""
    said, folds, T, weight = drawn()
    stack, without = fit_stacks(said, folds, T, weight, "binary")
    rng = np.random.default_rng(1)
    for f, (_, held) in enumerate(folds):
        changed = []
        for one, (_, rows) in zip(said, folds, strict=True):
            mean, hit = one.mean.copy(), np.isin(rows, held)
            mean[hit] = 3.0 * rng.standard_normal(mean[hit].shape)
            changed.append(Said(mean, one.var))
        other, again = fit_stacks(changed, folds, T, weight, "binary")
        np.testing.assert_allclose(again[f].shares, without[f].shares, atol=2e-3)
        assert again[f].slope == pytest.approx(without[f].slope, rel=2e-3)
        assert np.abs(other.shares - stack.shares).max() > 1e-2


def test_repeats_do_not_count_as_rows(drawn):
    """Every repeat of the same predictions leaves the stack where one has it."""
    said, folds, T, weight = drawn(repeats=1)
    stack, without = fit_stacks(said, folds, T, weight, "binary")
    same, again = fit_stacks(said * 3, folds * 3, T, weight, "binary")
    for a, b in zip([same, *again[:3]], [stack, *without], strict=True):
        np.testing.assert_allclose(a.shares, b.shares, atol=1e-5)
        assert a.slope == pytest.approx(b.slope, rel=1e-5)


def test_the_stack_is_made_of_its_members():
    """Pooling all Gaussians is pooling members, but for negligible ones."""
    problem, _T, folds, reference = folded("binary", False)
    _, held = folds[0]
    mean, _ = member_moments(reference, held)
    points, weights = reference.mixture(STACK)
    left_out = sum(len(member.points) for member in reference.members.values()) - len(points)
    got, _ = mixture_moments(reference.moments(points, held), weights)
    gap = np.abs(got - np.einsum("nkc,k->nc", mean, STACK.shares))
    assert gap.max() <= NEGLIGIBLE * left_out * np.abs(mean).max() + 1e-9
    assert absent_matrix(problem.views)[held].any()


def test_a_stack_that_is_nearly_the_base_rate_is_scored_too():
    """On pure noise the slope may be next to nothing; the reference then is the base rate."""
    _, _T, folds, reference = folded("binary", False)
    fold = folds[:1]
    faint = Stack(np.full(4, 0.25), 1e-4)
    views = view_moments(reference, faint, [1, 2], fold[0][1])
    path = make_path(reference, faint, 2, 12, "binary")
    steps = path_moments(path, reference.data, fold[0][1], [1, 2])
    for moments in (views, steps):
        np.testing.assert_allclose(
            moments[0], np.broadcast_to(reference.level, moments[0].shape), atol=5e-3
        )
