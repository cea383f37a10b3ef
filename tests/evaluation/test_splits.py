"""Folds partition the rows, keep groups together on both levels, and depend on the seed alone."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur.evaluation.splits import FoldPlan, label_strata
from baldur.exceptions import InputError


def rows_of(folds):
    return [np.concatenate([f.train, f.test]) for f in folds]


@given(
    n=st.integers(40, 90),
    outer=st.integers(2, 5),
    repeats=st.integers(1, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=30, deadline=None)
def test_each_row_is_tested_once_per_repeat(n, outer, repeats, seed):
    y = np.arange(n) % 2
    folds = FoldPlan(outer=outer, repeats=repeats, seed=seed).outer_folds(y)
    assert len(folds) == outer * repeats
    for r in range(repeats):
        tested = np.concatenate([f.test for f in folds if f.repeat == r])
        assert sorted(tested) == list(range(n))
    for f in folds:
        assert not set(f.train) & set(f.test)
        shares = [np.mean(y[f.test] == 1), np.mean(y[f.train] == 1)]
        assert abs(shares[0] - shares[1]) < 0.2


@given(n_groups=st.integers(12, 25), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_groups_are_whole_in_outer_and_inner_folds(n_groups, seed):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_groups), 4)).astype(str)
    y = rng.permutation(np.arange(len(groups)) % 2)
    plan = FoldPlan(scheme="grouped", outer=3, inner=3, groups=groups, seed=seed)
    for fold in plan.outer_folds(y):
        assert not set(groups[fold.train]) & set(groups[fold.test])
        for train, test in plan.inner_folds(y, fold):
            assert not set(groups[train]) & set(groups[test])
            assert set(np.concatenate([train, test])) == set(fold.train)


def test_one_site_is_left_out_and_inner_folds_leave_sites_out_too():
    sites = np.repeat(["a", "b", "c", "d"], 20)
    y = np.arange(80) % 2
    plan = FoldPlan(scheme="leave-one-site-out", sites=sites)
    folds = plan.outer_folds(y)
    assert [set(sites[f.test]) for f in folds] == [{"a"}, {"b"}, {"c"}, {"d"}]
    for train, test in plan.inner_folds(y, folds[0]):
        assert not set(sites[train]) & set(sites[test])


def test_a_fixed_split_is_taken_as_it_is():
    split = np.array(["train", "test"] * 30)
    (fold,) = FoldPlan(scheme="fixed", split=split).outer_folds(np.repeat([0, 1], 30))
    assert (split[fold.train] == "train").all()
    assert (split[fold.test] == "test").all()


def test_repeats_differ_and_the_seed_decides():
    y = np.arange(60) % 3
    first, again, other = (FoldPlan(repeats=2, seed=s).outer_folds(y) for s in (1, 1, 2))
    assert all((a.test == b.test).all() for a, b in zip(first, again, strict=True))
    assert any(not np.array_equal(a.test, b.test) for a, b in zip(first, other, strict=True))
    assert not np.array_equal(first[0].test, first[5].test)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scheme": "grouped"}, "needs groups"),
        ({"scheme": "loso"}, "must be one of"),
        ({"outer": 1}, "at least 2"),
        ({"scheme": "stratified", "groups": np.arange(20)}, "would split groups"),
    ],
)
def test_impossible_plans_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        FoldPlan(**options)


@pytest.mark.parametrize(
    ("plan", "y", "said"),
    [
        (FoldPlan(outer=5), np.repeat([0, 1], [20, 3]), "smallest has 3"),
        (
            FoldPlan(scheme="fixed", split=np.array(["train"] * 20)),
            np.arange(20) % 2,
            "both present",
        ),
        (
            FoldPlan(scheme="leave-one-site-out", sites=np.repeat(["a", "b"], 10)),
            np.arange(20) % 2,
            "at least 3 sites",
        ),
        (
            FoldPlan(
                scheme="leave-one-site-out",
                sites=np.repeat(["a", "b", "c", "d"], 5),
                groups=np.array(["f"] * 20),
            ),
            np.arange(20) % 2,
            "at 4 sites",
        ),
        (
            FoldPlan(scheme="leave-one-site-out", sites=np.repeat(["a", "b", "c"], 10)),
            np.repeat([0, 0, 1], 10),
            "training rows of one class only",
        ),
    ],
)
def test_rows_that_cannot_be_split_are_explained(plan, y, said):
    with pytest.raises(InputError, match=said):
        plan.outer_folds(y)


@pytest.mark.parametrize(
    "plan",
    [
        FoldPlan("leave-one-site-out", sites=np.arange(30_000)),
        FoldPlan(outer=10_000, repeats=1_000),
        FoldPlan("grouped", outer=10_000, groups=np.arange(30_000)),
    ],
)
def test_more_folds_than_there_is_memory_for_are_refused_at_once(plan):
    y = np.tile([0, 1], 15_000)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"outer folds of 30,000 rows each do not fit"):
            plan.outer_folds(y)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 5))
def test_folds_have_labels_in_equal_shares(seed, n_labels, k):
    """Folds have equal sizes and the rarest label is spread evenly over them."""
    rng = np.random.default_rng(seed)
    Y = (rng.uniform(size=(60, n_labels)) < rng.uniform(0.15, 0.85, n_labels)).astype(int)
    least = np.minimum(Y.sum(axis=0), 60 - Y.sum(axis=0)).min()
    if least < k:
        with pytest.raises(InputError, match="rows with and without each label"):
            FoldPlan(outer=k).outer_folds(Y)
        return
    folds = FoldPlan(outer=k).outer_folds(Y)
    assert sorted(np.concatenate([f.test for f in folds])) == list(range(60))
    sizes = [len(f.test) for f in folds]
    assert max(sizes) - min(sizes) <= 1
    # The rarest value of any label is dealt with first, so that it is spread evenly.
    rare = np.where(2 * Y.sum(axis=0) <= len(Y), Y, 1 - Y)
    counts = [rare[f.test].sum(axis=0) for f in folds]
    rarest = rare.sum(axis=0).argmin()
    assert np.ptp([c[rarest] for c in counts]) <= 1


def test_strata_are_combinations_and_rare_ones_their_rarest_label():
    Y = np.array([[0, 0]] * 4 + [[1, 0]] * 4 + [[1, 1]] + [[0, 1]])
    strata = label_strata(Y, 3)
    assert len(set(strata[:4])) == len(set(strata[4:8])) == 1
    assert strata[8] == strata[9]
    assert not label_strata(Y, 99).any()


def test_a_fold_without_cases_of_a_label_is_refused():
    Y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)
    sites = np.array(["a"] * 8 + ["b"] * 6 + ["c"] * 6)
    Y[8:, 1] = 0
    with pytest.raises(InputError, match="one value of label 2 only"):
        FoldPlan("leave-one-site-out", sites=sites).outer_folds(Y)
