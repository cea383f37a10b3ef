"""Tables from elsewhere, subgroups, and all figures in one call."""

from collections import defaultdict
from itertools import product

import numpy as np
import pandas as pd
import pytest

from baldur.datasets import make_multiview
from baldur.evaluation import (
    NestedResult,
    calibration_curves,
    calibration_measures,
    decision_curves,
    evaluate_predictions,
    metric_differences,
    metric_intervals,
    nested_cv,
    subgroup_measures,
    threshold_measures,
)
from baldur.evaluation.clinical.curves import curve_areas, precision_recall_curves, roc_curves
from baldur.evaluation.clinical.held_out import Resampled, read_held_out
from baldur.exceptions import InputError
from evaluation.clinical.cohorts import cohort, table


def test_labels_and_one_column_of_probabilities_are_enough():
    events, p = cohort(90, seed=0)
    full = metric_intervals(table(events, p))
    short = metric_intervals(
        pd.DataFrame({"label": np.where(events, "case", "control"), "p_case": p})
    )
    columns = ["metric", "estimate", "low", "high"]
    pd.testing.assert_frame_equal(short[columns], full[columns])


@pytest.mark.parametrize("lacking", ["p_control", "p_case"])
def test_of_two_classes_that_are_given_one_column_is_enough(lacking):
    events, p = cohort(90, seed=0)
    full = table(events, p, 0.2 + 0.6 * p)
    how = {"classes": ["control", "case"], "resamples": 100}
    want = evaluate_predictions(full, **how).frames()
    found = evaluate_predictions(full.drop(columns=lacking), **how).frames()
    assert list(found) == list(want)
    for name, frame in found.items():
        pd.testing.assert_frame_equal(frame, want[name])


def test_of_three_classes_every_column_is_needed():
    frame = pd.DataFrame({"label": list("abcabc"), "p_a": 0.2, "p_c": 0.3})
    with pytest.raises(InputError, match="each of 3 classes, but has no 'p_b'"):
        evaluate_predictions(frame, classes=list("abc"))


def test_a_class_that_is_given_without_probabilities_needs_scores():
    events, p = cohort(90, seed=0)
    frame = pd.DataFrame({"label": np.where(events, "case", "control"), "score": p - 0.5})
    found = metric_intervals(frame, classes=["case"], resamples=100)
    want = metric_intervals(frame, classes=["control", "case"], resamples=100)
    pd.testing.assert_frame_equal(found, want)


def test_margins_alone_give_what_they_can():
    events, p = cohort(90, seed=0)
    label = np.where(events, "case", "control")
    frame = pd.DataFrame({"label": label, "score": p - 0.5})
    found = evaluate_predictions(frame, classes=["control", "case"])
    by = found.intervals.set_index("metric")
    whole = metric_intervals(table(events, p)).set_index("metric")
    for metric in ("accuracy", "auc", "f1"):
        assert by.loc[metric, "estimate"] == whole.loc[metric, "estimate"]
    assert "probabilities" in by.loc["brier", "note"]
    assert set(found.left_out["figure"]) == {"calibration", "decision curve", "thresholds"}
    assert len(found.decision) == 0


def test_three_classes_and_numbers_leave_out_with_a_reason():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    proba = rng.dirichlet(np.ones(3), 60)
    frame = pd.DataFrame({"label": np.array(list("abc"))[truth]})
    for c, name in enumerate("abc"):
        frame[f"p_{name}"] = proba[:, c]
    found = evaluate_predictions(frame, resamples=100)
    assert "two classes" in found.left_out["reason"].iloc[0]
    assert set(found.frames()) == {
        "intervals.csv", "calibration.csv", "calibration_curve.csv", "left_out.csv",
    }  # fmt: skip
    numbers = pd.DataFrame({"label": rng.normal(size=60), "predicted": rng.normal(size=60)})
    found = evaluate_predictions(numbers, resamples=100)
    assert found.intervals["metric"].tolist() == ["r2", "rmse", "mae", "correlation"]
    assert "Brier" in found.left_out["reason"].iloc[-1]


def test_a_table_that_is_none_is_refused():
    events, p = cohort(20)
    good = table(events, p)
    for bad, match in (
        (good.drop(columns="label"), "label"),
        (good.iloc[:0], "no rows"),
        (good.assign(p_case=2.0), "between 0 and 1"),
        (good.drop(columns="p_control").assign(label=list("abcd") * 5), "one other class"),
        (pd.concat([good, good.assign(label="case")]), "different labels"),
        (good[["label", "sample"]], "predicted"),
        (good.assign(label="other"), "no column"),
        (good.assign(p_case=good["p_case"].where(good.index > 3)), "no probabilities for 4 of 20"),
    ):
        with pytest.raises(InputError, match=match):
            read_held_out(bad)


def test_models_over_different_people_are_not_compared():
    events, p = cohort(60)
    frame = table(events, p, p**2)
    found = evaluate_predictions(frame.iloc[:-10], resamples=100)
    assert found.intervals.groupby("model")["people"].first().tolist() == [60, 50]
    assert found.differences["difference"].isna().all()
    assert found.differences["note"].str.contains("different people").all()


def test_subgroups_are_measured_alone_and_against_the_others():
    events, p = cohort(240, seed=1)
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 240)
    age = rng.normal(60, 10, 240).round(1)
    rare = np.where(np.arange(240) < 12, "yes", "")
    frame = table(events, p)
    members = pd.DataFrame({"sex": sex, "age": age, "rare": rare}, index=frame["sample"])
    found = subgroup_measures(frame, members)
    sexes = found[found["subgroup"] == "sex"].set_index(["level", "measure"])
    alone = metric_intervals(table(events[sex == "f"], p[sex == "f"])).set_index("metric")
    for metric in ("auc", "brier"):
        assert sexes.loc[("f", metric), "estimate"] == alone.loc[metric, "estimate"]
        gap = sexes.loc[("f", metric), "estimate"] - sexes.loc[("m", metric), "estimate"]
        assert sexes.loc[("f", metric), "difference"] == pytest.approx(gap)
        assert sexes.loc[("m", metric), "difference"] == pytest.approx(-gap)
    assert sexes["people"].groupby("level").first().sum() == 240
    ages = found[found["subgroup"] == "age"]
    assert ages["level"].unique().tolist() == [
        f"up to {np.median(age):g}",
        f"above {np.median(age):g}",
    ]
    small = found[(found["subgroup"] == "rare") & (found["level"] == "yes")]
    assert len(small) == 1
    assert small["people"].item() == 12
    assert np.isnan(small["estimate"].item())
    assert "fewer than 10" in small["note"].item()
    missing = found[(found["subgroup"] == "rare") & (found["level"] == "(missing)")]
    assert missing["note"].str.contains("too few others").all()


def test_subgroups_may_be_columns_and_must_be_complete():
    events, p = cohort(100)
    sex = np.array(["f", "m"] * 50)
    frame = table(events, p, sex=sex)
    found = subgroup_measures(frame, ["sex"], resamples=100)
    assert set(found["level"]) == {"f", "m"}
    with pytest.raises(InputError, match="height"):
        subgroup_measures(frame, ["height"])
    with pytest.raises(InputError, match="s99"):
        subgroup_measures(frame, pd.DataFrame({"sex": sex[:-1]}, index=frame["sample"][:-1]))


# -- One bootstrap for several tables: the same figures as a bootstrap for each -------------------


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


def test_every_metric_is_bootstrapped_once(monkeypatch):
    """Table, intervals, differences and printed forms come from the same draws."""
    sim = make_multiview(60, {"a": 4}, random_state=0)
    models = {"Dummy": None, "Ridge logistic": {"C": [1.0]}}
    result = nested_cv(models, sim.data, sim.target, outer=3)
    drawn = defaultdict(dict)
    real = Resampled.draw

    def watched(resampled, statistic):
        draws = real(resampled, statistic)
        if statistic.key in result.metrics:
            drawn[statistic.held.model, statistic.key][id(draws)] = draws
        return draws

    monkeypatch.setattr(Resampled, "draw", watched)
    fresh = NestedResult(result.comparison, result.jobs)
    table, first = fresh.table(), fresh.evaluation()
    fresh.format("markdown")
    second = fresh.evaluation()
    assert set(drawn) == set(product(result.finished(), result.metrics))
    assert {len(draws) for draws in drawn.values()} == {1}
    pooled = first.intervals.set_index(["model", "metric"])
    for model in result.finished():
        row = table.set_index("model").loc[model]
        for metric in result.metrics:
            ends = pooled.loc[(model, metric), ["estimate", "low", "high"]].to_numpy(float)
            given = row[[f"{metric}_{e}" for e in ("pooled", "low", "high")]].to_numpy(float)
            np.testing.assert_array_equal(ends, given)
    # The same figures as from the predictions alone, and tables that callers may change.
    alone = evaluate_predictions(fresh.predictions, classes=[str(c) for c in result.classes])
    for name, frame in alone.frames().items():
        pd.testing.assert_frame_equal(frame, second.frames()[name])
    first.intervals["estimate"] = 0.0
    pd.testing.assert_frame_equal(fresh.evaluation().intervals, second.intervals)
