"""The ensemble on fewer views: one factorisation gives what a posterior of each number gives."""

import numpy as np
import pytest

from baldur.inference.ensemble import (
    Designs,
    first_views,
    fit_ensemble,
    held_moments,
    moments_by_views,
    restricted,
)
from baldur.model.posterior import leading_squares, triangle_squares
from inference.problems import gathered, make_problem, unequal_folds


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_one_factorisation_serves_all_numbers_of_views(task):
    """Folds of unequal size, whose views come in different orders and have different widths."""
    problem, _ = make_problem(task, N=60, sizes=(4, 2, 7))
    _data, batch = gathered(problem, unequal_folds(60))
    ensemble = fit_ensemble(batch)
    designs = Designs.of(batch)
    order = np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]])
    for point in ensemble.points:
        at = np.arange(len(point.folds))
        found = list(moments_by_views(designs.attach(point, at), order[point.folds], [1, 2], None))
        for count, moments in zip((1, 2), found, strict=True):
            views = first_views(order[point.folds], count)
            q = restricted(designs.attach(point, at), views)
            assert q.design.uses_features
            for got, want in zip(moments, held_moments(q, None), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_leading_squares_are_those_of_leading_triangles():
    rng = np.random.default_rng(0)
    half = np.tril(rng.standard_normal((2, 3, 6, 6)))
    X = rng.standard_normal((2, 6, 5))
    ends = np.array([[2, 1], [4, 6]])
    found = leading_squares(half, X, ends)
    for v, f in np.ndindex(2, 2):
        end = ends[v, f]
        want = triangle_squares(half[f : f + 1, :, :end, :end], X[f : f + 1, :end])
        np.testing.assert_allclose(found[v, f], want[0], rtol=1e-12)
