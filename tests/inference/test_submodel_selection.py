"""Selection: paired and weighted gaps, scores, the smallest submodel shown not to be worse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from sklearn.metrics import r2_score, roc_auc_score

from baldur.estimators.summary import against_base_rate
from baldur.inference.credible_sets import credible_sets
from baldur.inference.ensemble import fit_ensemble
from baldur.inference.inner_folds import Problem
from baldur.inference.submodel_selection import (
    A_LITTLE,
    CONFIDENT,
    NEAR,
    RESAMPLES,
    accuracies,
    accuracy_interval,
    auc,
    in_errors,
    mean_losses,
    paired_gap,
    r2,
    score_submodels,
    select_smallest,
)
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.posterior import INTERCEPT_VAR
from baldur.model.predictions import integrate_left_out, score_and_slopes
from inference.problems import as_view, on_all_rows

N = 200
ONES = np.ones(N)


def difference(mean, error, seed=0):
    """Row by row differences with exactly this mean and standard error."""
    noise = np.random.default_rng(seed).standard_normal(N)
    noise = (noise - noise.mean()) / noise.std()
    return mean + error * np.sqrt(N) * noise


def test_gaps_are_paired_and_weighted():
    loss, other = np.random.default_rng(0).random((2, 50))
    weight = np.linspace(0.5, 1.5, 50)
    found, error = paired_gap(loss, other, weight)
    share = weight / weight.sum()
    mean = sum(p * (a - b) for p, a, b in zip(share, loss, other, strict=True))
    var = sum(p**2 * (a - b - mean) ** 2 for p, a, b in zip(share, loss, other, strict=True))
    assert (found, error) == pytest.approx((mean, np.sqrt(var)))
    _, plain = paired_gap(loss, other, np.ones(50))
    assert plain == pytest.approx((loss - other).std() / np.sqrt(50))
    assert paired_gap(loss, other, 3.0 * weight) == pytest.approx((mean, error))  # relative
    assert paired_gap(other, loss, weight) == pytest.approx((-mean, error))


def upper_bound(loss, other, weight):
    mean, error = paired_gap(loss, other, weight)
    return mean + CONFIDENT * error


def test_one_sided_bounds_have_95_percent():
    rng = np.random.default_rng(0)
    none, equal = np.zeros(100), np.ones(100)
    bounds = [upper_bound(rng.normal(0.3, 2.0, 100), none, equal) for _ in range(4000)]
    assert np.mean(np.array(bounds) > 0.3) == pytest.approx(0.95, abs=0.015)
    assert in_errors(1.0, 0.5) == 2.0


def test_no_difference_is_no_standard_error_away():
    assert paired_gap(ONES, ONES, ONES) == (0.0, 0.0)
    assert in_errors(0.0, 0.0) == 0.0
    assert in_errors(*paired_gap(ONES + 1.0, ONES, ONES)) == np.inf


def test_the_base_rate_may_be_better():
    assert against_base_rate(2.04) == "2.0 standard errors better than the base rate"
    assert against_base_rate(-1.26) == "1.3 standard errors worse than the base rate"


def select(gaps, allowed):
    """Select among submodels whose losses exceed the ensemble's by given gaps."""
    reference = np.random.default_rng(9).random(N)
    losses = np.stack([reference + gap for gap in gaps] + [reference])
    return select_smallest(losses, reference, allowed, ONES)


def test_a_candidate_is_shown_not_to_be_worse():
    """Mean + 1.645 standard errors within what is allowed, and not a hair above."""
    for mean, error, allowed in ((0.01, 0.02, None), (-0.02, 0.02, None), (0.0, 0.1, None)):
        upper = mean + 1.645 * error
        for edge, shown in ((1e-6, True), (-1e-6, False)):
            allowed = upper + edge
            _, candidate = select([difference(mean, error)], allowed)
            assert candidate.tolist() == [shown, True]


def test_of_the_candidates_the_smallest_that_is_about_as_good_as_the_best():
    """In most resamples of the rows, so that the selection does not depend on a few of them."""
    # A middle one is the best and beats the reference; smaller ones are compared with it.
    middle = difference(-0.1, 0.01, seed=1)
    for mean, kept in ((0.001, 0), (0.02, 1)):
        small = middle + difference(mean, 0.01, seed=2)
        place, candidate = select([small, middle], allowed=0.05)
        assert candidate.all()  # both are better than the reference
        assert place == kept


def test_a_large_margin_gives_a_little_away_however_small_the_standard_error():
    middle = difference(-0.1, 0.001, seed=1)
    small = middle + difference(0.01, 0.001, seed=2)
    assert select([small, middle], allowed=0.05)[0] == 1
    assert select([small, middle], allowed=0.5)[0] == 0


def test_without_a_margin_the_best_is_kept():
    middle = difference(-0.1, 0.01, seed=1)
    small = middle + difference(0.03, 0.01, seed=2)
    assert select([small, middle], allowed=0.0)[0] == 1


def test_a_better_small_model_is_kept_and_a_worse_one_is_not():
    assert select([difference(-0.1, 0.01)], 0.0)[0] == 0
    assert select([difference(0.1, 0.01)], 0.0)[0] == 1
    assert select([difference(0.1, 0.01)], 0.05)[0] == 1


def test_what_is_not_shown_is_not_kept():
    """As good on average, but few rows: with no margin nothing smaller is shown to be as good."""
    assert select([difference(0.0, 0.05)], 0.0)[0] == 1
    assert select([difference(0.0, 0.05)], 0.2)[0] == 0


def test_the_last_is_always_a_candidate():
    reference = np.zeros(N)
    losses = np.stack([difference(1.0, 0.01), difference(0.9, 0.01)])
    place, candidate = select_smallest(losses, reference, 0.0, ONES)
    assert candidate.tolist() == [False, True]
    assert place == 1


def test_equal_losses_keep_the_smallest():
    loss = np.random.default_rng(0).random(N)
    assert select_smallest(np.stack([loss] * 4), loss, 0.0, ONES)[0] == 0


losses_of_models = arrays(float, (5, 12), elements=st.floats(0.0, 3.0, width=32))


@settings(max_examples=50, deadline=None)
@given(losses_of_models, st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_larger_margins_never_keep_more(losses, small, large):
    weight = np.ones(12)
    small, large = sorted((small, large))
    kept, few = select_smallest(losses, losses[-1], small, weight)
    kept_large, many = select_smallest(losses, losses[-1], large, weight)
    assert not (few & ~many).any()
    assert kept_large <= kept


def literal_selection(losses, reference, allowed, weight):
    """The rule spelled out: every resample of the rows has its say, and the mean is kept."""
    K, n = losses.shape
    ranked = np.argsort(reference, kind="stable")  # assigned by loss rank, so order does not matter
    votes = []
    for count in np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), size=RESAMPLES):
        rows = np.repeat(ranked, count)
        some, w = losses[:, rows], weight[rows]
        best = int(np.argmin(some @ w))
        vote = K - 1
        for place in range(K - 1):
            over_reference = upper_bound(some[place], reference[rows], w)
            over_best, error = paired_gap(some[place], some[best], w)
            behind = max(NEAR * error, A_LITTLE * allowed)
            if over_reference <= allowed and over_best <= behind:
                vote = place
                break
        votes.append(vote)
    usual = round(np.mean(votes))
    shown = [upper_bound(loss, reference, weight) <= allowed for loss in losses[:-1]]
    candidates = [*np.flatnonzero(shown), K - 1]
    return min(place for place in candidates if place >= usual), np.array([*shown, True])


@pytest.mark.parametrize("allowed", [0.0, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_the_selection_is_literal(seed, allowed):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2.0, 60)
    reference = rng.random(60)
    noise = rng.standard_normal((5, 60))
    losses = reference + np.array([[0.3], [0.05], [0.02], [0.0], [0.0]]) * (1 + 5 * noise)
    kept, candidate = select_smallest(losses, losses[-1], allowed, weight)
    want, shown = literal_selection(losses, losses[-1], allowed, weight)
    assert kept == want
    np.testing.assert_array_equal(candidate, shown)


def test_order_of_rows_does_not_matter():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        weight, reference = rng.uniform(0.5, 2.0, 60), rng.random(60)
        losses = reference + 0.05 * rng.standard_normal((5, 60)) + [[0.02], [0.01], [0], [0], [0]]
        rows = rng.permutation(60)
        kept, candidate = select_smallest(losses, reference, 0.01, weight)
        again, same = select_smallest(losses[:, rows], reference[rows], 0.01, weight[rows])
        assert again == kept
        np.testing.assert_array_equal(same, candidate)


@settings(max_examples=50, deadline=None)
@given(losses_of_models, st.floats(0.0, 2.0))
def test_the_kept_model_is_a_candidate(losses, allowed):
    weight = np.linspace(0.5, 2.0, 12)
    kept, candidate = select_smallest(losses, losses[-1], allowed, weight)
    assert candidate[kept]
    assert candidate[-1]
    upper = [upper_bound(loss, losses[-1], weight) for loss in losses[:-1]]
    unclear = np.abs(np.array(upper) - allowed) < 1e-9
    assert (candidate[:-1] == (np.array(upper) <= allowed))[~unclear].all()


# -- scores of submodels -------------------------------------------------------------------------


def predicted(C=1, R=60, V=3, seed=0, task="binary"):
    """Moments of V submodels and of the ensemble for R predictions of 40 rows."""
    rng = np.random.default_rng(seed)
    row = np.concatenate([np.arange(40), rng.permutation(40)[: R - 40]])
    T = rng.integers(0, 2, (40, C)).astype(float)
    if task == "multiclass":
        T = np.eye(C)[rng.integers(0, C, 40)]
    whole_mean = rng.standard_normal((R, C)) + T[row] - 0.5
    whole_var = rng.gamma(2.0, 0.3, (R, C))
    mean = whole_mean + rng.standard_normal((V, R, C)) * np.array([1.0, 0.3, 0.0])[:, None, None]
    var = whole_var * np.array([0.4, 0.8, 1.0])[:, None, None]
    return mean, var, whole_mean, whole_var, row, T, rng.uniform(0.5, 2.0, 40)


@pytest.mark.parametrize(("task", "C"), [("binary", 1), ("multiclass", 3), ("regression", 2)])
@pytest.mark.parametrize("slope", [0.5, 1.0, 1.4, 50.0])
def test_what_a_submodel_leaves_out_is_how_far_it_is_and_how_much_less_it_varies(slope, task, C):
    mean, var, whole_mean, whole_var, row, T, weight = predicted(C, task=task)
    found = score_submodels(
        mean, var, whole_mean, whole_var, slope=slope, row=row, T=T, weight=weight, task=task
    )
    share = weight[row] / weight[row].sum()
    for v, c in np.ndindex(3, C):
        own, theirs = share @ var[v, :, c], share @ whole_var[:, c]
        stretch = 1.0 if task == "regression" else min(slope**2, max(theirs / own, 1.0))
        apart = share @ (mean[v] - whole_mean)[:, c] ** 2
        assert found[v].stretch[c] == pytest.approx(stretch)
        left = max(apart + theirs - stretch * own, 0.0)
        assert found[v].left_out[c] == pytest.approx(left, abs=1e-12)
    for v in range(3):
        small = integrate_left_out(mean[v], found[v].stretch * var[v], found[v].left_out, task)
        want = mean_losses(*small, row, T, task)
        np.testing.assert_allclose(found[v].losses, want, rtol=1e-10)
    if slope >= 1.0:  # the ensemble leaves nothing out of itself
        np.testing.assert_allclose(found[2].left_out, 0.0, atol=1e-12)
        want = mean_losses(whole_mean, whole_var, row, T, task)
        np.testing.assert_allclose(found[2].losses, want, rtol=1e-10)


def test_losses_are_means_over_the_folds_that_held_a_row_out():
    mean, var, _, _, row, T, _ = predicted()
    found = mean_losses(mean, var, row, T, "binary")
    assert found.shape == (3, 40)
    for v, n in ((0, 0), (1, 7), (2, 39)):
        at = row == n
        each = -score_and_slopes(mean[v, at], var[v, at], T[row[at]], "binary")[0]
        assert found[v, n] == pytest.approx(each.mean(), rel=1e-12)
    order = np.random.default_rng(1).permutation(len(row))
    again = mean_losses(mean[:, order], var[:, order], row[order], T, "binary")
    np.testing.assert_allclose(again, found, rtol=1e-12)


# -- credible sets: two copies of a feature share a set, strong features have one of their own ----


TASKS = ["binary", "regression"]


def fitted(blocks, eta, task="binary", seed=0):
    """Data and ensemble of all rows, outcomes drawn from eta."""
    rng = np.random.default_rng(seed)
    N = len(eta)
    if task == "regression":
        T = (eta + 0.5 * rng.standard_normal(N))[:, None]
    else:
        T = (eta + rng.logistic(size=N) > 0).astype(float)[:, None]
    views = [as_view((X - X.mean(0)) / X.std(0)) for X in blocks]
    data, batch = on_all_rows(Problem(views, T, np.ones(N), task))
    names = ("spike_slab", "spike_slab_wide")
    return data, fit_ensemble(batch, members=names)


def sets_of(blocks, eta, selected, task="binary", **options):
    """Credible sets of selected features (view, feature)."""
    _data, ensemble = fitted(blocks, eta, task)
    index = [np.arange(X.shape[1]) for X in blocks]
    start = np.cumsum([0, *[X.shape[1] for X in blocks]])
    places = np.array([start[m] + d for m, d in selected])
    return credible_sets(ensemble, places, index, **options)


def members(found):
    return [(int(view), int(column)) for view, column in found["members"]]


@pytest.fixture(scope="module")
def blocks():
    """Eight and six independent columns of 120 rows."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((120, 8)), rng.standard_normal((120, 6))


@pytest.mark.parametrize("task", TASKS)
def test_two_copies_share_one_set(blocks, task):
    """A copy in the same view has the same probability, one half each."""
    A, B = blocks
    A = A.copy()
    A[:, 5] = 3.0 * A[:, 1] + 1.0
    (found,) = sets_of([A, B], 2.5 * A[:, 1], [(0, 1)], task)
    assert found["feature"] == (0, 1)
    assert sorted(members(found)) == [(0, 1), (0, 5)]
    np.testing.assert_allclose(found["probability"], 0.5, atol=1e-4)
    assert found["min_abs_correlation"] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("task", TASKS)
def test_a_copy_in_another_view_is_in_the_set(blocks, task):
    """Views differ in the share of features that are in, so the halves are not equal."""
    A, B = blocks
    B = B.copy()
    B[:, 2] = A[:, 1]
    (found,) = sets_of([A, B], 2.5 * A[:, 1], [(0, 1)], task)
    assert sorted(members(found)) == [(0, 1), (1, 2)]
    assert found["probability"].sum() > 0.99
    assert found["probability"].min() > 0.1
    (other,) = sets_of([A, B], 2.5 * A[:, 1], [(1, 2)], task)
    assert other["feature"] == (1, 2)
    assert sorted(members(other)) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("task", TASKS)
def test_independent_strong_features_have_sets_of_their_own(blocks, task):
    A, B = blocks
    found = sets_of([A, B], 2.5 * A[:, 1] - 2.5 * B[:, 4], [(0, 1), (1, 4)], task)
    assert [members(each) for each in found] == [[(0, 1)], [(1, 4)]]
    for each in found:
        assert each["probability"][0] > 0.95
        assert each["min_abs_correlation"] == 1.0


def test_a_set_is_the_smallest_that_holds_its_probability(blocks):
    """A weak effect and a correlated neighbour: sets grow with the probability asked for."""
    A, B = blocks
    A = A.copy()
    A[:, 2] = A[:, 1] + 0.4 * A[:, 2]
    sizes = []
    for credible in (0.5, 0.8, 0.95, 0.999):
        (found,) = sets_of([A, B], 1.2 * A[:, 1], [(0, 1)], credible=credible)
        total = found["probability"].sum()
        assert total >= credible - 1e-9
        assert total - found["probability"][-1] < credible
        assert (np.diff(found["probability"]) <= 1e-12).all()
        sizes.append(len(found["probability"]))
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]


def test_the_smallest_correlation_is_literal(blocks):
    A, B = blocks
    A = A.copy()
    A[:, 2] = A[:, 1] + 0.1 * A[:, 2]
    A[:, 3] = -A[:, 1] + 0.1 * A[:, 3]
    (found,) = sets_of([A, B], 2.5 * A[:, 1], [(0, 1)])
    assert len(found["members"]) > 1
    X = np.column_stack([(A, B)[m][:, d] for m, d in members(found)])
    assert found["min_abs_correlation"] == pytest.approx(np.abs(np.corrcoef(X.T)).min(), rel=1e-9)


def test_selected_features_are_not_in_the_sets_of_others(blocks):
    A, B = blocks
    A = A.copy()
    A[:, 2] = A[:, 1] + 0.5 * A[:, 2]
    found = sets_of([A, B], 2.0 * A[:, 1], [(0, 1), (0, 2)])
    assert (0, 2) not in members(found[0])
    assert (0, 1) not in members(found[1])
    for each in found:
        assert each["feature"] in [(0, 1), (0, 2)]


def test_order_of_columns_does_not_matter(blocks):
    A, B = blocks
    A = A.copy()
    A[:, 2] = A[:, 1] + 0.3 * A[:, 2]
    (one,) = sets_of([A, B], 2.0 * A[:, 1], [(0, 1)])
    order = np.random.default_rng(0).permutation(8)
    back = np.argsort(order)
    (other,) = sets_of([A[:, order], B], 2.0 * A[:, 1], [(0, int(back[1]))])
    named = {(m, int(order[d]) if m == 0 else d) for m, d in members(other)}
    assert named == set(members(one))
    np.testing.assert_allclose(
        np.sort(other["probability"]), np.sort(one["probability"]), atol=1e-5
    )


def test_probabilities_are_literal(blocks):
    """P(l) ~ pi_l BF_l in the place of j, from explicit matrices at the sites of the selection."""
    A, B = blocks
    data, ensemble = fitted([A, B], 1.5 * A[:, 1] - B[:, 4])
    selected = np.array([1, 12])
    index = [np.arange(8), np.arange(6)]
    found = credible_sets(ensemble, selected, index, credible=1.0 - 1e-12)
    learned = [member.spike_slab for member in ensemble.members.values()]
    slab = np.mean([each.slab[0, 0] for each in learned], axis=0)[data.owner]
    pi = np.mean([each.pi[0] for each in learned], axis=0)[data.owner]
    X, t, N = data.columns, data.problem.T[:, 0], len(A)
    design = ensemble.batch.candidate_design(held=False).columns(selected[None], np.ones((1, 2)))
    q = WeightPosterior.start(design, ensemble.batch.likelihood(), slab[selected][None, None])
    q.optimise_sites()
    h, j = q.sites.h[0, 0], q.sites.j[0, 0]
    assert len(t) == N
    for position, each in enumerate(found):
        rest = selected[1 - position]
        C = slab[rest] * np.outer(X[:, rest], X[:, rest]) + INTERCEPT_VAR + np.diag(1 / h)
        inverse = np.linalg.inv(C)
        size = slab[selected[position]]
        logs = []
        for d in range(14):
            S, Q = X[:, d] @ inverse @ X[:, d], X[:, d] @ inverse @ (j / h)
            gain = 0.5 * (Q**2 * size / (1 + size * S) - np.log(1 + size * S))
            logs.append(np.log(pi[d]) + gain if d != rest else -np.inf)
        p = np.exp(logs - np.max(logs))
        p /= p.sum()
        place = [(0, 8)[view] + column for view, column in each["members"]]
        np.testing.assert_allclose(each["probability"], p[place], rtol=1e-6, atol=1e-12)


def test_without_a_selecting_member_or_a_selected_feature_there_are_no_sets(blocks):
    _data, ensemble = fitted(blocks, blocks[0][:, 1])
    index = [np.arange(8), np.arange(6)]
    assert credible_sets(ensemble, np.zeros(0, dtype=int), index) == []
    dense = fit_ensemble(ensemble.batch, members=("pooled",))
    assert credible_sets(dense, np.array([1]), index) == []


# -- AUC and R2 on held-out rows are those of scikit-learn; their errors those of a bootstrap -----


RNG = np.random.default_rng(0)
PEOPLE = 150
T = RNG.integers(0, 2, PEOPLE).astype(float)
SCORE = np.round(RNG.standard_normal(PEOPLE) + T, 1)  # with ties
WEIGHT = RNG.random(PEOPLE) + 0.2
MEASURES = {"binary": (auc, roc_auc_score), "regression": (r2, r2_score)}


@pytest.mark.parametrize("task", MEASURES)
def test_the_measures_are_those_of_scikit_learn(task):
    own, theirs = MEASURES[task]
    y = T if task == "binary" else SCORE + T
    value, influence = own(SCORE, y, WEIGHT / WEIGHT.sum())
    assert value == pytest.approx(theirs(y, SCORE, sample_weight=WEIGHT))
    assert WEIGHT @ influence == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("task", MEASURES)
def test_the_standard_error_is_that_of_a_bootstrap(task):
    y = T if task == "binary" else SCORE + T
    row = np.arange(PEOPLE)
    mean = SCORE[None, :, None]
    found, error = accuracies(mean, np.zeros_like(mean), row, y[:, None], np.ones(PEOPLE), task)
    draws = np.random.default_rng(1).integers(0, PEOPLE, (800, PEOPLE))
    drawn = [MEASURES[task][1](y[rows], SCORE[rows]) for rows in draws]
    assert error[0] == pytest.approx(np.std(drawn), rel=0.12)
    low, high = accuracy_interval(float(found[0]), float(error[0]), task)
    assert low < found[0] < high
    assert_allclose([low, high], np.quantile(drawn, [0.025, 0.975]), atol=0.03)


def test_repeats_are_averaged_before_and_outputs_after():
    mean = RNG.standard_normal((3, 2 * PEOPLE, 2))
    row = np.concatenate([np.arange(PEOPLE), np.arange(PEOPLE)[::-1]])
    outcomes = np.stack([T, 1.0 - T], axis=1)
    found, _ = accuracies(mean, np.zeros_like(mean), row, outcomes, WEIGHT, "multilabel")
    rows = (mean[:, :PEOPLE] + mean[:, PEOPLE:][:, ::-1]) / 2
    for v in range(3):
        each = [roc_auc_score(outcomes[:, c], rows[v, :, c], sample_weight=WEIGHT) for c in (0, 1)]
        assert found[v] == pytest.approx(np.mean(each))


def test_without_two_classes_or_variance_nothing_is_known():
    flat, share = np.ones(PEOPLE), np.full(PEOPLE, 1 / PEOPLE)
    assert auc(SCORE, flat, share)[0] == 0.5
    assert r2(SCORE, flat, share)[0] == 0.0
    assert accuracy_interval(1.0, 0.0, "binary") == (1.0, 1.0)
