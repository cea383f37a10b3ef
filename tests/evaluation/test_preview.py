"""Estimates of time: trials that cost little, and times that follow from what was measured."""

import sys

import numpy as np
import pytest

from baldur import BaldurClassifier
from baldur.baselines import BASELINES
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.evaluation.design import open_comparison
from baldur.evaluation.preview import _at_width, _relative_cost, preview
from baldur.exceptions import InputError

RIDGE = type(BASELINES["Ridge logistic"].make())


@pytest.fixture
def fits(monkeypatch):
    """Shapes of the data that the model is fitted on."""
    shapes = []
    fit = RIDGE.fit

    def watched(self, X, y):
        shapes.append(X.shape)
        return fit(self, X, y)

    monkeypatch.setattr(RIDGE, "fit", watched)
    return shapes


def opened(n, width):
    sim = make_multiview(n, {"a": 5, "b": width}, random_state=1)
    return open_comparison({"Ridge logistic": {}}, sim.data, sim.target, outer=2, inner=2)


def test_wide_views_are_tried_on_some_columns_before_all(fits):
    plan = preview(opened(40, 900), trial=True)
    assert plan.seconds["Ridge logistic"] > 0
    assert list(dict.fromkeys(width for _, width in fits)) == [303, 905]


def test_all_columns_are_not_tried_where_that_may_take_long(fits, constants):
    constants(_LONG_TRIAL=0.0)
    preview(opened(40, 5000), trial=True)
    assert max(width for _, width in fits) < 920


def test_half_of_many_rows_are_tried(fits):
    preview(opened(400, 20), trial=True)
    (rows,) = {rows for rows, _ in fits}
    assert 45 <= rows <= 55


def test_short_trials_are_repeated_and_long_ones_are_not(fits, constants):
    counts = []
    for limit in (0.0, 1e9):
        constants(_SHORT_TRIAL=limit)
        fits.clear()
        preview(opened(40, 20), trial=True)
        counts.append(len(fits))
    assert counts[1] == 2 * counts[0]


def test_both_ends_of_a_grid_are_tried(monkeypatch):
    module = sys.modules["baldur.evaluation.preview"]
    tried = []

    def once(comparison, estimator, *rows):
        tried.append(estimator.get_params()["C"])
        return 10.0 * tried[-1]

    monkeypatch.setattr(module, "_time", once)
    sim = make_multiview(40, {"a": 5}, random_state=1)
    models = {"Ridge logistic": {"C": [0.1, 1.0, 10.0]}}
    plan = preview(open_comparison(models, sim.data, sim.target, outer=2, inner=2), trial=True)
    assert set(tried) == {0.1, 10.0}
    assert plan.seconds["Ridge logistic"] == pytest.approx(10)


@pytest.mark.parametrize(
    "time_of",
    [lambda w: 1.0 + 0.002 * w, lambda w: 0.1 * w**0.5, lambda w: 0.01 * w, lambda w: 2.0 + 0 * w],
)
@pytest.mark.parametrize("width", [900, 5000, 20_000])
def test_lines_and_roots_are_extrapolated_within_a_factor_two(time_of, width):
    found = _at_width([300, 900], [time_of(300), time_of(900)], width)
    assert 0.5 < found / time_of(width) < 2


def test_the_default_fit_repeats_its_folds_less_often_on_many_rows():
    model = BaldurClassifier()
    assert _relative_cost(model, 400) > _relative_cost(model, 1000)
    assert _relative_cost(RIDGE(), 400) < _relative_cost(RIDGE(), 1000)


def test_the_jobs_of_several_outcomes_are_counted_before_they_are_run():
    sim = make_multiview(90, {"a": 4}, random_state=1)
    Y = np.random.default_rng(0).integers(0, 2, (90, 3))
    models = {
        "BALDUR": BaldurClassifier(members=("pooled",)),
        "ridge": (BASELINES["Ridge logistic"].make(), {"C": [0.1, 1.0]}),
        "prior": BASELINES["Dummy"].make(),
    }
    comparison = open_comparison(models, sim.data, Y, outer=3, inner=2)
    plan = preview(comparison, trial=True)
    assert plan.jobs["BALDUR"] == 3
    assert plan.jobs["ridge"] == 3 * 3 * (2 + 1)
    assert set(plan.seconds) >= {"BALDUR", "ridge", "prior"}


def test_jobs_are_counted_as_they_are_run():
    sim = make_multiview(40, {"a": 4, "b": 3}, random_state=1)
    models = {"Ridge logistic": {"C": [0.1, 1.0, 10.0]}, "Dummy": None}
    keywords = {"outer": 3, "inner": 2, "repeats": 2, "permutations": 1}
    seen = []
    nested_cv(models, sim.data, sim.target, progress=lambda s: seen.append(s.total), **keywords)
    plan = preview(open_comparison(models, sim.data, sim.target, **keywords))
    assert sum(plan.jobs.values()) == seen[-1]
    assert len(plan.folds) == 6


def test_refused_before_counting():
    sim = make_multiview(20, {"a": 3}, random_state=0)
    with pytest.raises(InputError, match="rows of each class"):
        preview(open_comparison(["Dummy"], sim.data, sim.target, outer=15))
