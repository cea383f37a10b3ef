"""Screening: literal scores, and the best of all views."""

import numpy as np
import pytest

from baldur.inference import inner_folds
from baldur.inference.inner_folds import (
    best_everywhere,
    best_features,
    candidates,
    strongest,
    with_their_groups,
)
from inference.problems import make_problem

TASKS = ["binary", "multiclass", "multilabel", "regression"]


@pytest.mark.parametrize("task", TASKS)
def test_candidates_have_the_largest_literal_projections(monkeypatch, task):
    """Of every set of training rows, in one pass, from these rows alone."""
    monkeypatch.setattr(inner_folds, "CANDIDATES", 9)
    monkeypatch.setattr(inner_folds, "PER_VIEW", 0)
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


def test_all_features_are_candidates_where_they_are_few(monkeypatch):
    problem, folds = make_problem(N=48, sizes=(5, 20))
    for limit in (25, 3):  # no more than the limit; or no more than the samples
        monkeypatch.setattr(inner_folds, "CANDIDATES", limit)
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
    assert problem.group_numbers([np.arange(4), np.arange(6)]) is None


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
