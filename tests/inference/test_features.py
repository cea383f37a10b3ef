"""Columns on either side and Grams give one posterior under equal variances."""

import numpy as np
import pytest

from baldur.inference.features import (
    INTERCEPT_VAR,
    Columns,
    all_features,
    columns_of,
    owners,
    positions,
)
from baldur.inference.grams import Grams
from baldur.inference.new_rows import NewRows, absent_matrix, gather
from baldur.model.likelihood import Sites
from baldur.model.posterior import FeatureSide, SampleSide, sample_side
from inference.problems import make_problem
from model.problems import make_views

N, C, SIZES = 25, 2, (4, 9)
NEW = np.arange(N, N + 6)


@pytest.fixture(scope="module")
def setting():
    """Views of 31 rows, sites of the first 25, and variances per output and view."""
    rng = np.random.default_rng(0)
    views = make_views(N + 6, SIZES, absent=True)
    sites = Sites(rng.uniform(0.05, 0.25, (N, C)), rng.normal(0, 0.4, (N, C)))
    return views, sites, rng.uniform(0.05, 0.5, (C, 2))


class OnSampleSide(Columns):
    """Columns whose posterior is always computed on the sample side."""

    def posterior(self, s, sites):
        h, j = sites
        return [sample_side(K, h[:, c], j[:, c]) for c, K in enumerate(self.kernels(s))]


def kinds(views):
    """The same features four ways: whole, and within the training rows."""
    index = [np.arange(D) for D in SIZES]
    whole = columns_of(views, index)
    grams = Grams([view.weighted_gram() for view in views])
    rows = np.arange(N)
    by_sample = OnSampleSide(whole.X[rows], whole.owner, 2)
    return {
        "feature side": (whole, whole.within(rows)),
        "sample side": (whole, by_sample),
        "Grams": (grams, grams.within(rows)),
    }


def close(got, want, tolerance=1e-8):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["sample side", "Grams"])
def test_the_posterior_is_one(setting, name):
    views, sites, by_view = setting
    found = {}
    for kind, (whole, features) in kinds(views).items():
        s = features.spread(by_view)
        sides = features.posterior(s, sites)
        new = whole.new_rows(np.arange(N), NEW)
        found[kind] = {
            "mean": [side.mean for side in sides],
            "var": [side.var for side in sides],
            "kl": [side.kl for side in sides],
            "alpha": [side.alpha for side in sides],
            "strengths": features.strengths(sides, s),
            "parts": features.parts(sides, s),
            "part variance": features.part_variance(sides, s),
            "predict": features.predict(sides, s, new),
            "scales": features.scales(),
            "predictor variance": features.predictor_variance(s),
            "kernels": features.kernels(s),
        }
        assert all(isinstance(q, FeatureSide) == (kind == "feature side") for q in sides)
    for what, want in found["feature side"].items():
        close(found[name][what], want)


def test_weights_of_columns_are_the_same_on_either_side(setting):
    views, sites, by_view = setting
    made = kinds(views)
    columns, by_sample = made["feature side"][1], made["sample side"][1]
    s = columns.spread(by_view)
    sides = columns.posterior(s, sites)
    kernel_sides = by_sample.posterior(s, sites)
    train = [view.take_rows(np.arange(N)) for view in views]
    new = [view.take_rows(NEW) for view in views]
    want = columns.weights(sides, s)
    close(by_sample.weights(kernel_sides, s), want)
    cells = gather(new, [np.arange(D) for D in SIZES])
    close(by_sample.predict(kernel_sides, s, cells), columns.predict(sides, s, cells))
    # What a mixture hands them of new rows is the same as well.
    rows = NewRows(new)
    close(
        rows.columns([np.arange(D) for D in SIZES]),
        columns_of(views, [np.arange(D) for D in SIZES]).new_rows(np.arange(N), NEW),
    )
    cross, want_cross = rows.cross(train), made["Grams"][0].new_rows(np.arange(N), NEW)
    for got, expected in zip(
        (*cross.grams, *cross.own), (*want_cross.grams, *want_cross.own), strict=True
    ):
        close(got, expected)


def test_predictions_are_the_literal_posterior(setting):
    """Mean and variance of x w + b from the explicit inverse."""
    views, sites, by_view = setting
    whole, features = kinds(views)["Grams"]
    sides = features.posterior(by_view, sites)
    mean, var = features.predict(sides, by_view, whole.new_rows(np.arange(N), NEW))
    X = gather(views, [np.arange(D) for D in SIZES])
    X1 = np.hstack([np.ones((len(X), 1)), X])
    for c in range(C):
        prior = np.concatenate([[INTERCEPT_VAR], np.repeat(by_view[c], SIZES)])
        cov = np.linalg.inv(np.diag(1 / prior) + (X1[:N].T * sites.h[:, c]) @ X1[:N])
        close(mean[:, c], X1[NEW] @ cov @ X1[:N].T @ sites.j[:, c])
        close(var[:, c], np.einsum("nd,de,ne->n", X1[NEW], cov, X1[NEW]))


def test_parts_add_up_to_the_linear_predictor(setting):
    views, sites, by_view = setting
    for whole, features in kinds(views).values():
        s = features.spread(by_view)
        sides = features.posterior(s, sites)
        level = np.array([INTERCEPT_VAR * side.alpha.sum() for side in sides])
        mean = np.stack([side.mean for side in sides], axis=1)
        close(features.parts(sides, s).sum(axis=0) + level, mean, 1e-7)
        assert whole.n_views == features.n_views == 2


def test_strengths_are_sums_over_weights(setting):
    """sum_d <w_d>^2/s_d and sum_d (1 - Var w_d/s_d), by view."""
    views, sites, by_view = setting
    _, columns = kinds(views)["feature side"]
    s = columns.spread(by_view)
    sides = columns.posterior(s, sites)
    w, var = columns.weights(sides, s)
    power, used = columns.strengths(sides, s)
    for m in range(2):
        here = columns.owner == m
        close(power[:, m], (w**2 / s)[:, here].sum(axis=1))
        close(used[:, m], (1 - var / s)[:, here].sum(axis=1))


@pytest.mark.parametrize("factor", [1.0, 0.3, 7.0, np.array([[0.5], [4.0]])])
def test_kernels_of_a_multiple_are_fresh_ones(setting, factor):
    views, _, _ = setting
    _, columns = kinds(views)["sample side"]
    rng = np.random.default_rng(0)
    s = rng.uniform(0.0, 1.0, (C, sum(SIZES))) * (rng.random(sum(SIZES)) < 0.7)
    columns.kernels(s)
    kept = columns._kernels[1]
    again = columns.kernels(factor * s)
    assert columns._kernels[1] is kept  # nothing was made anew
    fresh = Columns(columns.X, columns.owner, 2).kernels(factor * s)
    for got, want, row in zip(again, fresh, factor * s, strict=True):
        close(got, want, 1e-10)
        close(got, (columns.X * row) @ columns.X.T + INTERCEPT_VAR, 1e-10)


def test_kernels_of_other_variances_are_made_anew(setting):
    views, _, _ = setting
    _, columns = kinds(views)["sample side"]
    rng = np.random.default_rng(0)
    first, second = rng.uniform(0.1, 1.0, (2, C, sum(SIZES)))
    nearly = first.copy()
    nearly[1, 3] *= 1.001
    zero = np.zeros_like(first)
    for s in (first, second, first, nearly, zero, second):
        for got, row in zip(columns.kernels(s), s, strict=True):
            close(got, (columns.X * row) @ columns.X.T + INTERCEPT_VAR, 1e-10)


def test_some_of_the_columns(setting):
    views, _, _ = setting
    whole, _ = kinds(views)["feature side"]
    keep = np.arange(sum(SIZES)) % 3 == 0
    for part in (whole.only(keep), whole.only(np.flatnonzero(keep))):
        np.testing.assert_array_equal(part.X, whole.X[:, keep])
        np.testing.assert_array_equal(part.owner, whole.owner[keep])
        assert part.n_views == 2


def test_what_has_fewer_columns_than_rows_is_gathered():
    problem, _, _ = make_problem(N=48, sizes=(5, 20))
    assert isinstance(all_features(problem.views), Columns)
    wide, _, _ = make_problem(N=24, sizes=(5, 20))
    assert isinstance(all_features(wide.views), Grams)
    sides = all_features(wide.views).posterior(
        np.ones((1, 2)), Sites(np.ones((24, 1)), np.ones((24, 1)))
    )
    assert isinstance(sides[0], SampleSide)


def test_where_columns_come_from():
    views = make_views(10, (3, 6), absent=True)
    index = [np.array([2]), np.array([0, 4])]
    np.testing.assert_array_equal(owners(index), [0, 1, 1])
    X = gather(views, index)
    np.testing.assert_array_equal(X[:, 0], views[0].dense()[:, 2])
    np.testing.assert_array_equal(X[:, 1:], views[1].dense()[:, [0, 4]])
    np.testing.assert_array_equal(absent_matrix(views)[:, 1], np.arange(10) % 5 == 2)
    union = [np.array([1, 4, 6]), np.array([0, 2, 9])]
    np.testing.assert_array_equal(positions(union, [np.array([4]), np.array([0, 9])]), [1, 3, 5])
