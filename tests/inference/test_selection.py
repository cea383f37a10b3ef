"""Selection: paired and weighted gaps, scores, the smallest submodel shown not to be worse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from baldur.estimators.summary import against_base_rate
from baldur.inference.predictive import integrate_left_out, score_and_slopes
from baldur.inference.selection import (
    A_LITTLE,
    NEAR,
    RESAMPLES,
    Gap,
    Scores,
    mean_losses,
    paired_gap,
    score_submodels,
    select_smallest,
)

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
    gap = paired_gap(loss, other, weight)
    share = weight / weight.sum()
    mean = sum(p * (a - b) for p, a, b in zip(share, loss, other, strict=True))
    var = sum(p**2 * (a - b - mean) ** 2 for p, a, b in zip(share, loss, other, strict=True))
    assert gap.mean == pytest.approx(mean)
    assert gap.error == pytest.approx(np.sqrt(var))
    plain = paired_gap(loss, other, np.ones(50))
    assert plain.error == pytest.approx((loss - other).std() / np.sqrt(50))
    again = paired_gap(loss, other, 3.0 * weight)  # weights are relative
    assert (again.mean, again.error) == pytest.approx((gap.mean, gap.error))
    back = paired_gap(other, loss, weight)
    assert (back.mean, back.error) == pytest.approx((-gap.mean, gap.error))


def test_one_sided_bounds_have_95_percent():
    rng = np.random.default_rng(0)
    gaps = [paired_gap(rng.normal(0.3, 2.0, 100), np.zeros(100), np.ones(100)) for _ in range(4000)]
    assert np.mean([gap.upper > 0.3 for gap in gaps]) == pytest.approx(0.95, abs=0.015)
    assert Gap(1.0, 0.5).in_errors == 2.0


def test_no_difference_is_no_standard_error_away():
    same = paired_gap(ONES, ONES, ONES)
    assert (same.mean, same.error, same.upper) == (0.0, 0.0, 0.0)
    assert same.in_errors == 0.0
    assert paired_gap(ONES + 1.0, ONES, ONES).in_errors == np.inf


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
            over_reference = paired_gap(some[place], reference[rows], w)
            over_best = paired_gap(some[place], some[best], w)
            behind = max(NEAR * over_best.error, A_LITTLE * allowed)
            if over_reference.upper <= allowed and over_best.mean <= behind:
                vote = place
                break
        votes.append(vote)
    usual = round(np.mean(votes))
    shown = [paired_gap(loss, reference, weight).upper <= allowed for loss in losses[:-1]]
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
    upper = [paired_gap(loss, losses[-1], weight).upper for loss in losses[:-1]]
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
        assert found.stretch[v, c] == pytest.approx(stretch)
        left = max(apart + theirs - stretch * own, 0.0)
        assert found.left_out[v, c] == pytest.approx(left, abs=1e-12)
    for v in range(3):
        small = integrate_left_out(mean[v], found.stretch[v] * var[v], found.left_out[v], task)
        want = mean_losses(*small, row, T, task)
        np.testing.assert_allclose(found.losses[v], want, rtol=1e-10)
    if slope >= 1.0:  # the ensemble leaves nothing out of itself
        np.testing.assert_allclose(found.left_out[2], 0.0, atol=1e-12)
        want = mean_losses(whole_mean, whole_var, row, T, task)
        np.testing.assert_allclose(found.losses[2], want, rtol=1e-10)


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


def test_scores_are_cut_and_joined():
    rng = np.random.default_rng(0)
    scores = Scores(*(rng.random(shape) for shape in ((4, 2), (4, 2), (4, 9), 4, 4)))
    joined = scores[:1].followed_by(scores[1:])
    for name in ("stretch", "left_out", "losses"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(scores, name))
