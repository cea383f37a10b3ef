"""One bootstrap for several tables: the same figures as a bootstrap for each."""

import numpy as np
import pandas as pd
import pytest

from baldur.evaluation import (
    calibration_curves,
    calibration_measures,
    decision_curves,
    evaluate_predictions,
    metric_differences,
    metric_intervals,
    subgroup_measures,
    threshold_measures,
)
from baldur.evaluation.clinical.curves import curve_areas, precision_recall_curves, roc_curves
from baldur.evaluation.clinical.held_out import Resampled
from baldur.exceptions import InputError

BOOTSTRAP = {"resamples": 150, "level": 0.9, "random_state": 3}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    people = [f"p{i}" for i in range(60)]
    proba = rng.uniform(0.05, 0.95, 60)
    label = np.where(rng.uniform(size=60) < proba, "case", "control")
    other = np.clip(proba + rng.normal(0, 0.2, 60), 0.01, 0.99)
    return pd.concat(
        pd.DataFrame({"model": name, "sample": people, "label": label, "p_case": p})
        for name, p in (("a", proba), ("b", other))
    )


@pytest.mark.parametrize(
    "compute",
    [
        metric_intervals, metric_differences, calibration_measures, calibration_curves,
        decision_curves, threshold_measures, roc_curves, precision_recall_curves, curve_areas,
    ],
)  # fmt: skip
def test_shared_resamples_give_the_figures_of_own_resamples(rows, compute):
    sample = Resampled(rows, **BOOTSTRAP)
    pd.testing.assert_frame_equal(compute(sample), compute(rows, **BOOTSTRAP))


def test_all_tables_and_subgroups_of_shared_resamples(rows):
    sample = Resampled(rows, **BOOTSTRAP)
    sex = pd.DataFrame({"sex": ["f", "m"] * 30}, index=rows["sample"].unique())
    with_sex = rows.assign(sex=sex["sex"].reindex(rows["sample"]).to_numpy())
    own = subgroup_measures(with_sex, ["sex"], **BOOTSTRAP)
    pd.testing.assert_frame_equal(subgroup_measures(sample, sex), own)
    shared = evaluate_predictions(sample, thresholds=[0.3], subgroups=sex).frames()
    alone = evaluate_predictions(rows, thresholds=[0.3], subgroups=sex, **BOOTSTRAP).frames()
    assert list(shared) == list(alone)
    for name, frame in shared.items():
        pd.testing.assert_frame_equal(frame, alone[name])


def test_resamples_that_are_drawn_cannot_be_drawn_otherwise(rows):
    sample = Resampled(rows, **BOOTSTRAP)
    with pytest.raises(InputError, match="level: the resamples have been drawn already"):
        metric_intervals(sample, level=0.5)
    with pytest.raises(InputError, match="subgroups as a table"):
        subgroup_measures(sample, ["sex"])
