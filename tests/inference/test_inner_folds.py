"""Inner folds: every row once per repeat, balanced strata, repeats orthogonal to each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur.exceptions import InputError
from baldur.inference import inner_folds as module
from baldur.inference.inner_folds import (
    balanced_folds,
    best_everywhere,
    best_features,
    candidates,
    inner_folds,
    strongest,
    with_their_groups,
)
from inference.problems import make_problem

some = settings(max_examples=30, deadline=None)


def labels_of(task, n=53, seed=0):
    rng = np.random.default_rng(seed)
    if task == "binary":
        return (rng.random(n) < 0.4).astype(int)
    if task == "multiclass":
        return np.arange(n) % 3
    return rng.standard_normal((n, 2))


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression"])
@pytest.mark.parametrize("groups", [None, np.arange(53) // 3], ids=["alone", "grouped"])
def test_every_repeat_holds_every_row_out_once(task, groups):
    n = 53
    folds = inner_folds(labels_of(task), task, groups, 0)
    assert len(folds) % 5 == 0
    assert len(folds) > 5
    for at in range(0, len(folds), 5):
        repeat = folds[at : at + 5]
        np.testing.assert_array_equal(
            np.sort(np.concatenate([held for _, held in repeat])), np.arange(n)
        )
    for train, held in folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, held])), np.arange(n))
        assert (np.diff(train) > 0).all()
        assert groups is None or not set(groups[train]) & set(groups[held])


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_every_fold_has_its_share_of_every_class(task):
    labels = labels_of(task)
    for _, held in inner_folds(labels, task, None, 0):
        for label in np.unique(labels):
            share = (labels == label).sum() / 5
            assert abs((labels[held] == label).sum() - share) < 1.0 + 1e-9


def test_the_seed_decides_alone():
    labels = labels_of("binary")
    one, same, other = (inner_folds(labels, "binary", None, seed) for seed in (0, 0, 1))
    for (a, b), (c, d) in zip(one, same, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)
    assert any(not np.array_equal(a, c) for (a, _), (c, _) in zip(one, other, strict=True))


@pytest.mark.parametrize("p", [2, 3, 5])
def test_repeats_are_orthogonal(p):
    """Any fold of one repeat has an equal share of the rows of any fold of another."""
    n = p**3 if p > 2 else 16
    repeats = min(p * p, 9)
    random = np.random.RandomState(0)
    found = balanced_folds(np.zeros(n, dtype=int), p, repeats, random)
    assert len(found) == repeats
    for r in range(repeats):
        assert np.bincount(found[r], minlength=p).tolist() == [n // p] * p
        for other in found[:r]:
            table = np.zeros((p, p), dtype=int)
            np.add.at(table, (found[r], other), 1)
            assert (table == n // p**2).all()


@some
@given(
    st.integers(0, 1000),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.sampled_from([2, 3, 5]),
    st.integers(1, 12),
)
def test_strata_are_spread_over_the_folds(seed, sizes, p, repeats):
    strata = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    found = balanced_folds(strata, p, repeats, np.random.RandomState(seed))
    assert len(found) == repeats
    for fold in found:
        for k, size in enumerate(sizes):
            counts = np.bincount(fold[strata == k], minlength=p)
            assert counts.sum() == size
            assert np.ptp(counts) <= 1


def test_pairs_of_rows_are_held_out_together_about_equally_often():
    """More evenly than folds that are drawn anew, which is what the balance is for."""
    found = balanced_folds(np.zeros(125, dtype=int), 5, 8, np.random.RandomState(0))
    together = sum((fold[:, None] == fold).astype(int) for fold in found)
    pairs = together[np.triu_indices(125, 1)]
    rng = np.random.default_rng(0)
    drawn = sum(
        (fold[:, None] == fold).astype(int)
        for fold in (rng.permutation(np.arange(125) % 5) for _ in range(8))
    )[np.triu_indices(125, 1)]
    assert pairs.mean() == pytest.approx(drawn.mean(), rel=0.02)
    assert pairs.var() < drawn.var()


def test_small_classes_have_fewer_folds():
    labels = np.array([0] * 20 + [1] * 3)
    folds = inner_folds(labels, "binary", None, 0)
    assert len(folds) % 3 == 0
    for train, held in folds:
        assert set(labels[train]) == set(labels[held]) == {0, 1}


def test_large_samples_have_fewer_repeats(constants):
    many, few = (len(inner_folds(np.zeros(n), "regression", None, 0)) for n in (120, 2000))
    assert many == 5 * module.MOST_REPEATS
    assert few == module.FEWER_FOLDS
    assert len(inner_folds(np.arange(90) % 2, "binary", None, 0)) == 5 * 12  # small samples
    constants(MOST_REPEATS=1)
    assert len(inner_folds(np.zeros(120), "regression", None, 0)) == 5


def test_groups_that_do_not_fit_are_refused():
    labels = labels_of("binary")
    with pytest.raises(InputError, match="at least two groups"):
        inner_folds(labels, "binary", np.zeros(53), 0)


# -- screening: literal scores, and the best of all views -----------------------------------------


TASKS = ["binary", "multiclass", "multilabel", "regression"]


@pytest.mark.parametrize("task", TASKS)
def test_candidates_have_the_largest_literal_projections(constants, task):
    """Of every set of training rows, in one pass, from these rows alone."""
    constants(CANDIDATES=9, PER_VIEW=0)
    problem, folds = make_problem(task, N=18, absent=True)
    T = problem.T
    fits = [rows for rows, _ in folds]
    chosen, grams = candidates(problem, fits)
    for view, gram in zip(problem.views, grams, strict=True):
        np.testing.assert_array_equal(gram, view.weighted_gram())
    for rows, index in zip(fits, chosen, strict=True):
        residual = T[rows] - T[rows].mean(axis=0)
        scores = []
        for view in problem.views:
            X = view.dense()[rows]
            scores.append([max(abs(x @ r) / np.linalg.norm(r) for r in residual.T) for x in X.T])
        inside = np.concatenate([np.array(s)[i] for s, i in zip(scores, index, strict=True)])
        outside = np.concatenate([np.delete(s, i) for s, i in zip(scores, index, strict=True)])
        assert len(inside) == 9
        assert inside.min() > outside.max() - 1e-9


def test_all_features_are_candidates_where_they_are_few(constants):
    problem, folds = make_problem(N=48, sizes=(5, 20))
    for limit in (25, 3):  # no more than the limit; or no more than the samples
        constants(CANDIDATES=limit)
        for index in candidates(problem, [rows for rows, _ in folds])[0]:
            assert [i.tolist() for i in index] == [list(range(5)), list(range(20))]


def test_the_best_are_those_of_all_views():
    rng = np.random.default_rng(0)
    scores = [rng.random(30), rng.random(50), rng.random(5)]
    for limit in (1, 10, 84, 85, 1000):
        index = best_features(scores, limit)
        inside = np.concatenate([s[i] for s, i in zip(scores, index, strict=True)])
        outside = np.concatenate([np.delete(s, i) for s, i in zip(scores, index, strict=True)])
        assert len(inside) == min(limit, 85)
        assert not len(outside) or inside.min() > outside.max()


def test_every_view_has_its_best():
    scores = [np.array([0.1, 0.3, 0.2]), np.array([0.9, 0.8, 0.7, 0.0, 0.6])]
    assert [i.tolist() for i in best_everywhere(scores, 3, 1)] == [[1], [0, 1, 2]]
    assert [i.tolist() for i in best_everywhere(scores, 1, 2)] == [[1, 2], [0, 1]]
    assert [i.tolist() for i in best_everywhere(scores, 4, 0)] == [[], [0, 1, 2, 4]]


def test_the_size_of_a_problem():
    problem, _ = make_problem(N=30, sizes=(4, 6))
    assert problem.n_samples == len(problem.T) == 30
    assert problem.widths == [4, 6]
    assert problem.group_numbers([np.arange(4), np.arange(6)]).tolist() == list(range(10))


@pytest.mark.parametrize("count", [1, 3, 7, 100])
def test_the_strongest_are_those_of_all_projections(count):
    """Block by block as at once, for fits of one and of two columns."""
    problem, _ = make_problem(N=30, sizes=(40, 6))
    A = np.random.default_rng(0).standard_normal((30, 3))
    first = np.array([0, 1])
    for view in problem.views:
        all_of_them = np.abs(view.project(A))
        literal = np.column_stack([all_of_them[:, 0], all_of_them[:, 1:].max(axis=1)])
        places, scores = strongest(view, A, first, count)
        assert len(places) == min(count, view.shape[1])
        for f in range(2):
            assert (np.diff(places[:, f]) > 0).all()
            np.testing.assert_allclose(scores[:, f], literal[places[:, f], f], rtol=1e-12)
            rest = np.delete(literal[:, f], places[:, f])
            assert not len(rest) or scores[:, f].min() >= rest.max()


def test_candidates_come_with_their_groups():
    groups = [np.array([0, 1, 1, 2]), np.array([0, 1, 2])]
    found = with_their_groups([np.array([2]), np.array([0, 2])], groups)
    assert [columns.tolist() for columns in found] == [[1, 2], [0, 2]]


def test_groups_of_different_views_have_different_numbers():
    problem, _ = make_problem(N=30, sizes=(4, 3))
    problem.groups = [np.array([0, 1, 1, 2]), np.array([0, 0, 1])]
    numbers = problem.group_numbers([np.arange(4), np.array([0, 1, 2])])
    assert numbers.tolist() == [0, 1, 1, 2, 3, 3, 4]
    assert problem.group_numbers([np.array([2]), np.array([0, 2])]).tolist() == [1, 3, 4]
