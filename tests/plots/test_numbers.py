"""The table of each figure is what the model or the result says; no pixels."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from scipy.special import expit

from baldur.evaluation.clinical import metric_intervals
from baldur.exceptions import InputError
from baldur.plots import (
    CalibrationDisplay,
    ComparisonDisplay,
    ContributionsDisplay,
    DecisionDisplay,
    ForestDisplay,
    PathDisplay,
    PrecisionRecallDisplay,
    RocDisplay,
    ViewShareDisplay,
)

RESAMPLES = 200


def test_forest_shows_the_summary(model, regressor):
    for one in (model, regressor):
        display = ForestDisplay.from_estimator(one)
        assert_frame_equal(display.table, pd.DataFrame(one.summary()), check_names=False)
        assert display.total == 12


def test_forest_of_a_result_has_means_and_ranges_over_folds(result, run):
    display = ForestDisplay.from_result(result, "elastic net")
    weights = result.weights()
    mine = weights[weights["model"] == "elastic net"].groupby(["view", "feature"])["weight"]
    rows = display.table.set_index(["view", "feature"])
    for key, values in mine:
        row = rows.loc[key]
        assert row["weight_scaled"] == pytest.approx(values.mean())
        assert (row["lower"], row["upper"]) == (values.min(), values.max())
        assert row["inclusion_probability"] == pytest.approx(len(values) / 3)
    assert_frame_equal(display.table, ForestDisplay.from_result(run, "elastic net").table)


def test_path_is_that_of_the_model_and_its_bound_follows(model):
    display = PathDisplay.from_estimator(model)
    assert_frame_equal(display.table, model.sparsity_path_)
    gain = model.sparsity_path_.set_index("step").loc["nothing", "loss_difference"]
    assert display.allowed == pytest.approx(model.margin * max(gain, 0))
    assert int(display.selected["n_features"]) == sum(
        m.sum() for m in model.selected_features_.values()
    )
    # What is allowed decides who is a candidate, but for the largest step of a kind.
    steps = display.table[display.table["step"] != "nothing"]
    for _, part in steps.groupby("step"):
        assert (part["candidate"] == (part["upper"] <= display.allowed))[:-1].all()


def test_a_model_without_a_path_says_so(nothing):
    with pytest.raises(InputError, match="no submodel path"):
        PathDisplay.from_estimator(nothing)


def test_view_shares_of_a_model_and_its_factors(model, ten_classes):
    one = ViewShareDisplay.from_estimator(model).table
    assert dict(zip(one["view"], one["share"], strict=True)) == model.view_relevance_
    many = ViewShareDisplay.from_estimator(ten_classes).table
    assert many["group"].nunique() == 1 + len(ten_classes.factor_relevance_)
    each = many[many["group"] == "factor3"].set_index("view")["share"]
    assert each.to_dict() == pytest.approx(ten_classes.factor_relevance_.loc["factor3"].to_dict())


def test_view_shares_of_a_result_add_up_and_average(result, run):
    display = ViewShareDisplay.from_result(result, "ridge")
    wide = display.table.pivot(index="group", columns="view", values="share")
    assert wide.sum(axis=1).to_numpy() == pytest.approx(1.0)
    assert wide.loc["all"].to_numpy() == pytest.approx(wide.drop("all").mean().to_numpy())
    views = result.stability().views.set_index(["model", "view"])["variance_share"]
    assert wide.loc["all", "genes"] == pytest.approx(views["ridge", "genes"])
    assert_frame_equal(display.table, ViewShareDisplay.from_result(run, "ridge").table)


def test_contributions_lead_to_the_probability(model, cohort):
    for row in range(60, 64):
        X = cohort.data[row : row + 1]
        display = ContributionsDisplay.from_estimator(model, X)
        table = display.table
        assert table["probability"].iloc[-1] == pytest.approx(model.predict_proba(X)[0, 1])
        assert expit(display.value) == pytest.approx(model.predict_proba(X)[0, 1])
        ends = table["end"].to_numpy()
        assert table["start"].to_numpy()[1:-1] == pytest.approx(ends[:-2])
        assert table["contribution"].iloc[:-1].sum() == pytest.approx(display.value)
        for most in (1, 2, 3):
            shown = display._shown(most)
            assert shown["end"].iloc[-1] == pytest.approx(display.value)
            assert len(shown) <= most + 3


def test_contributions_of_one_of_many_classes_and_of_a_number(ten_classes, regressor, cohort):
    X = cohort.data[3:5]
    display = ContributionsDisplay.from_estimator(ten_classes, X, X.sample_ids[1], "c7")
    p = ten_classes.predict_proba(X)[1, list(ten_classes.classes_).index("c7")]
    assert expit(display.value) == pytest.approx(p)
    number = ContributionsDisplay.from_estimator(regressor, X[:1])
    assert number.value == pytest.approx(regressor.predict(X)[0])
    assert "probability" not in number.table
    with pytest.raises(InputError, match="no sample"):
        ContributionsDisplay.from_explanation(ten_classes.explain(X), "nobody")
    with pytest.raises(InputError, match="no output"):
        ContributionsDisplay.from_explanation(ten_classes.explain(X[:1]), output="c99")


def test_contributions_ask_which_of_several_samples(model, cohort):
    X = cohort.data[60:63]
    listed = ", ".join(repr(str(one)) for one in X.sample_ids)
    for make in (
        lambda: ContributionsDisplay.from_estimator(model, X),
        lambda: ContributionsDisplay.from_explanation(model.explain(X)),
    ):
        with pytest.raises(InputError, match=r"one sample, but there are 3.*sample=") as said:
            make()
        assert listed in str(said.value)
    one = ContributionsDisplay.from_estimator(model, X, sample=X.sample_ids[2])
    assert expit(one.value) == pytest.approx(model.predict_proba(X)[2, 1])
    alone = ContributionsDisplay.from_estimator(model, X[2:])
    assert_frame_equal(alone.table, one.table)


def test_comparison_has_the_pooled_figures_of_the_table(result, run):
    display = ComparisonDisplay.from_result(result)
    table = result.table().set_index("model")
    for row in display.table.to_dict("records"):
        for mine, theirs in (("estimate", "pooled"), ("low", "low"), ("high", "high")):
            assert row[mine] == pytest.approx(table.loc[row["model"], f"{row['metric']}_{theirs}"])
    assert list(display.failures) == ["broken"]
    assert display.models[-1] == "broken"
    assert "1 failed" in display.alt_text
    read = ComparisonDisplay.from_result(run)
    assert read.failures == display.failures
    assert_frame_equal(read.table[["model", "metric"]], display.table[["model", "metric"]])
    assert read.table["low"].to_numpy() == pytest.approx(display.table["low"].to_numpy())
    with pytest.raises(InputError, match="no metric"):
        ComparisonDisplay.from_result(result, ["r2"])


def test_roc_and_its_area_follow_from_predictions(result, run):
    display = RocDisplay.from_result(result, resamples=RESAMPLES)
    read = RocDisplay.from_result(run, resamples=RESAMPLES)
    assert_frame_equal(display.table, read.table)
    assert set(display.table["model"]) == {"elastic net", "ridge", "prior"}
    intervals = metric_intervals(result.predictions, metrics=["auc"], resamples=RESAMPLES)
    areas = display.areas[display.areas["measure"] == "auc"]
    for column in ("estimate", "low", "high"):
        assert areas[column].to_numpy() == pytest.approx(intervals[column].to_numpy())
    bands = display.table.dropna()
    assert (bands["low"] <= bands["sensitivity"] + 1e-9).all()
    assert (bands["sensitivity"] <= bands["high"] + 1e-9).all()
    ends = display.table[display.table["false_positive_rate"] == 1.0]["sensitivity"]
    assert (ends == 1.0).all()


@pytest.mark.parametrize("display", [RocDisplay, PrecisionRecallDisplay])
def test_curves_of_two_classes_need_one_column(result, display):
    negative, positive = map(str, result.classes)
    full = result.predictions
    short = full[["model", "repeat", "fold", "sample", "label", f"p_{positive}"]]
    how = {"classes": [negative, positive], "resamples": RESAMPLES}
    want, found = (display.from_predictions(one, **how) for one in (full, short))
    assert len(found.table)
    assert_frame_equal(found.table, want.table)
    assert_frame_equal(found.areas, want.areas)


@pytest.mark.parametrize("classes", [None, ["a", "b", "c"]])
def test_curves_of_several_classes_are_those_of_the_first_model(classes):
    one = pd.DataFrame(np.eye(3)[[0, 1, 2, 1] * 5], columns=["p_a", "p_b", "p_c"])
    one["label"] = ["a", "b", "c", "a"] * 5
    both = pd.concat([one.assign(model=name, sample=one.index) for name in ("first", "other")])
    found = RocDisplay.from_predictions(both, classes=classes, resamples=RESAMPLES)
    assert set(found.table["model"]) == {"first"}
    assert list(found.table["class"].unique()) == ["a", "b", "c"]
    with pytest.raises(InputError, match="say the classes"):
        RocDisplay.from_predictions(both[["model", "sample", "label"]], resamples=RESAMPLES)


def test_precision_ends_at_the_prevalence(result):
    display = PrecisionRecallDisplay.from_result(result, ["ridge"], resamples=RESAMPLES)
    last = display.table[display.table["sensitivity"] == 1.0].iloc[0]
    assert last["precision"] >= last["prevalence"]
    assert last["prevalence"] == pytest.approx(np.mean(result.truth == 1))
    with pytest.raises(InputError, match="no Precision-recall curve"):
        PrecisionRecallDisplay.from_result(result, ["broken"])


def test_calibration_and_decision_show_the_tables_of_the_evaluation(result, run):
    made = result.evaluation()
    curve = CalibrationDisplay.from_result(result)
    assert_frame_equal(curve.table, made.calibration_curve)
    people = curve.spread.groupby("model")["people"].sum()
    assert people.to_numpy() == pytest.approx(70)
    assert_frame_equal(
        CalibrationDisplay.from_result(run).table, curve.table, check_exact=False, rtol=1e-9
    )
    benefit = DecisionDisplay.from_result(result)
    assert_frame_equal(benefit.table, made.decision)
    some = DecisionDisplay.from_result(run, ["ridge"])
    assert set(some.table["model"]) == {"treat all", "treat none", "ridge"}


def test_results_of_something_else_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        ForestDisplay.from_result(tmp_path / "none")
    with pytest.raises(InputError, match="nested_cv"):
        ForestDisplay.from_result(3)
