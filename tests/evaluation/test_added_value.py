"""What a view adds: paired on the same people, decided by intervals, true to hand counts."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from baldur import MultiView
from baldur.evaluation import added_value, make_model, metric_differences, nested_cv
from baldur.evaluation.view_additions import (
    POWER,
    auc_error,
    detectable_increase,
    outcome_of,
    r2_error,
)
from baldur.evaluation.view_sets import view_comparisons
from baldur.exceptions import InputError

pytestmark = pytest.mark.usefixtures("few_resamples")

N = 90
FOLDS = {"outer": 3, "inner": 2}
RIDGE = {"grid": {"C": [0.1]}}


def cohort(seed=0):
    """Three views, of which the second is missing for a quarter."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    views = {"clinical": rng.normal(size=(N, 3)), "mri": rng.normal(size=(N, 4)),
             "genes": rng.normal(size=(N, 5))}  # fmt: skip
    views["clinical"][:, 0] += 0.8 * y
    views["mri"][:, 0] += 1.2 * y
    return MultiView(views, present={"mri": np.arange(N) % 4 > 0}), y


@pytest.fixture(scope="module")
def data():
    return cohort()


@pytest.fixture(scope="module")
def added(data):
    return added_value(
        *data, ["clinical"], model=make_model("Ridge logistic", **RIDGE), repeats=2,
        thresholds=[0.3, 0.5], **FOLDS,
    )  # fmt: skip


def row_of(table, question, view, metric="auc", threshold=None):
    found = table[(table["question"] == question) & (table["view"] == view)]
    found = found[found["metric"] == metric]
    if threshold is not None:
        found = found[found["threshold"] == threshold]
    (index,) = found.index
    return found.loc[index]


def test_every_question_is_answered(added):
    asked = added.table.loc[added.table["metric"] == "auc", ["question", "view"]]
    assert list(asked.itertuples(index=False, name=None)) == [
        ("baseline", "clinical"), ("with", "mri"), ("with", "genes"), ("all", ""),
        ("alone", "mri"), ("alone", "genes"), ("without", "clinical"),
        ("added", "mri"), ("added", "genes"), ("all added", "mri and genes"),
        ("beyond the others", "clinical"), ("beyond the others", "mri"),
        ("beyond the others", "genes"),
    ]  # fmt: skip
    assert added.table["metric"].unique().tolist() == ["auc", "log_loss", "brier", "net_benefit"]


def test_with_two_views_no_comparison_occurs_twice():
    rows = {("a",): "A", ("b",): "B", ("a", "b"): "AB"}
    found = view_comparisons(rows, "ab", ["a"])
    assert [tuple(names.values()) for names, *_ in found] == [
        ("baseline", "a", "A", ""), ("all", "", "AB", ""), ("alone", "b", "B", ""),
        ("added", "b", "AB", "A"), ("beyond the others", "a", "AB", "B"),
    ]  # fmt: skip
    # Without the row of the baseline, such as after a failure, the rest is left.
    del rows["a",]
    assert [names["question"] for names, *_ in view_comparisons(rows, "ab", ["a"])] == [
        "all", "alone", "beyond the others",
    ]  # fmt: skip


def test_differences_are_those_of_the_same_people(added, data):
    """On everyone as `metric_differences`; with a missing view, on the people who have it."""
    mv, _ = data
    result = added.result
    for question, view in (("added", "genes"), ("added", "mri"), ("beyond the others", "mri")):
        row = row_of(added.table, question, view)
        has = mv.view(view).present
        assert row["people"] == has.sum()
        assert row["of_people"] == N
        pair = result.predictions[
            result.predictions["model"].isin([row["model"], row["reference"]])
        ]
        pair = pair[has[pair["sample"].astype(int)]]
        for metric in ("auc", "log_loss", "brier"):
            mine = row_of(added.table, question, view, metric)
            found = metric_differences(pair, metrics=[metric]).iloc[0]
            sign = 1.0 if found["model_a"] == row["model"] else -1.0
            assert mine["difference"] == pytest.approx(sign * found["difference"], abs=1e-12)
            if has.all():
                ends = sorted((sign * found["low"], sign * found["high"]))
                assert [mine["low"], mine["high"]] == pytest.approx(ends, abs=1e-12)
            both = mine["value"] - mine["reference_value"]
            assert both == pytest.approx(mine["difference"], abs=1e-12)


def test_the_test_over_folds_is_that_of_the_comparison(added):
    row = row_of(added.table, "added", "genes")
    pairs = added.result.compare(["auc"])
    names = {row["model"], row["reference"]}
    (p,) = pairs.loc[pairs[["model_a", "model_b"]].apply(set, axis=1) == names, "p"]
    assert row["p"] == pytest.approx(p, abs=1e-12)
    auc = added.table[(added.table["metric"] == "auc") & added.table["p"].notna()]
    assert (auc["p_holm"] >= auc["p"]).all()


def test_reclassification_is_a_count(added, data):
    _, y = data
    wide = added.result.predictions.pivot_table(
        index=["repeat", "sample"], columns="model", values="p_1"
    )
    truth = y[wide.index.get_level_values("sample").astype(int)]
    moved = added.reclassification
    part = moved[(moved["question"] == "added") & (moved["view"] == "genes")]
    assert len(part) == 4
    for row in part.to_dict("records"):
        chosen = truth == int(row["class"])
        new = wide[row["model"]].to_numpy() >= row["threshold"]
        old = wide[row["reference"]].to_numpy() >= row["threshold"]
        assert row["up"] == pytest.approx((new & ~old)[chosen].sum() / 2)
        assert row["down"] == pytest.approx((old & ~new)[chosen].sum() / 2)
        assert row["up"] + row["down"] + row["unchanged"] == pytest.approx(row["people"])
        assert row["low"] <= row["net"] <= row["high"]


def test_net_benefit_follows_from_reclassification(added):
    moved = added.reclassification.set_index(["question", "view", "threshold", "class"])
    for question, view in (("added", "mri"), ("all added", "mri and genes")):
        for threshold in (0.3, 0.5):
            case, control = (moved.loc[question, view, threshold, c] for c in ("1", "0"))
            n = case["people"] + control["people"]
            gain = case["net"] * case["people"] / n
            gain += control["net"] * control["people"] / n * threshold / (1 - threshold)
            found = row_of(added.table, question, view, "net_benefit", threshold)
            assert found["difference"] == pytest.approx(gain, abs=1e-9)


def test_summary_and_figure(added):
    lines = added.summary().splitlines()
    assert len(lines) == 6 + 2
    assert "there are 6 comparisons" in lines[-2].lower()
    assert lines[-1].startswith("Shares in the predictions of Ridge logistic")
    assert str(added) == added.summary()
    assert np.isclose(added.shares["share"].sum(), 1.0)
    figure = pytest.importorskip("matplotlib") and added.plot()
    assert len(figure.table) == 9


def test_three_classes_regression_groups_and_sites(data):
    mv = data[0].select(["clinical", "genes"])
    score = mv.view("clinical").read()[:, 0] + mv.view("genes").read()[:, 0]
    model = make_model("Ridge logistic", **RIDGE)
    three = added_value(
        mv, np.digitize(score, [-0.7, 0.7]), ["clinical"], model=model, groups=np.arange(N) // 3,
        **FOLDS,
    )  # fmt: skip
    assert three.table["metric"].unique().tolist() == ["auc", "log_loss", "brier"]
    assert len(three.reclassification) == 0
    assert (three.table.loc[three.table["people"] == N, "units"] == N // 3).all()
    assert "AUC" in three.summary()
    sites = np.array(["oslo", "rome", "lima"])[np.arange(N) % 3]
    numbers = added_value(
        mv, score, ["clinical"], model="MV-PLS", task="regression", sites=sites, **FOLDS
    )
    assert numbers.table["metric"].unique().tolist() == ["r2", "rmse"]
    assert "R²" in numbers.summary()
    assert row_of(numbers.table, "added", "genes", "r2")["outcome"] == "better"
    assert row_of(numbers.table, "added", "genes", "rmse")["difference"] < 0


def test_view_sets_can_be_listed_by_hand(data):
    mv, y = data
    models = [make_model("Ridge logistic", views=v, **RIDGE) for v in (None, ["clinical"])]
    result = nested_cv(models, mv, y, **FOLDS)
    found = result.added_value(["clinical"])
    assert found.table["question"].unique().tolist() == ["baseline", "all", "all added"]
    with pytest.raises(InputError, match="no two view sets"):
        nested_cv(models[:1], mv, y, **FOLDS).added_value(["clinical"])
    with pytest.raises(InputError, match="there is no view"):
        result.added_value(["pet"])


@pytest.mark.parametrize(
    ("ends", "up", "said"),
    [
        ((0.1, 1e-12, 0.2), True, "better"), ((0.1, 0.0, 0.2), True, "not shown"),
        ((-0.1, -0.2, 0.0), True, "not shown"), ((-0.1, -0.2, -1e-12), True, "worse"),
        ((0.0, 0.0, 0.0), True, "not shown"), ((0.1, np.nan, 0.2), True, "not known"),
        ((0.1, 1e-12, 0.2), False, "worse"), ((-0.1, -0.2, -1e-12), False, "better"),
        ((-0.1, -0.2, 0.0), False, "not shown"), ((0.1, 0.0, np.inf), False, "not known"),
    ],
)  # fmt: skip
def test_the_interval_decides(ends, up, said):
    assert outcome_of(*ends, greater_is_better=up) == said


# -- what could have been detected ----------------------------------------------------------------


def test_errors_of_two_ideal_rules_agree_with_simulation():
    rng = np.random.default_rng(0)
    auc, increase, n, studies = 0.75, 0.06, 120, 1500
    first, both = 0.9539, 1.2415  # distances with these AUCs
    y = np.arange(n) % 3 == 0
    a = rng.normal(size=(studies, n)) + first * y
    second = np.sqrt(both**2 - first**2)
    b = rng.normal(size=(studies, n)) + second * y

    def aucs(scores):
        return np.mean(scores[:, y, None] > scores[:, None, ~y], axis=(1, 2))

    found = aucs(first * a + second * b) - aucs(a)
    parts = rng.normal(size=(3, studies, n)) * np.sqrt([0.3, 0.1, 0.6])[:, None, None]
    r2 = np.mean((parts[1] + parts[2]) ** 2, axis=1) - np.mean(parts[2] ** 2, axis=1)
    assert np.mean(found) == pytest.approx(increase, abs=0.004)
    assert auc_error(auc, increase, n / 3, 2 * n / 3) == pytest.approx(np.std(found), rel=0.08)
    assert r2_error(0.3, 0.1, n) == pytest.approx(np.std(r2), rel=0.08)


def detectable_auc(auc, case, control, error, n, level):
    ideal = partial(auc_error, auc, n_case=case, n_control=control)
    return detectable_increase(ideal, 1 - auc, error, n, level)


@given(
    st.floats(0.5, 0.98), st.integers(10, 400), st.floats(0.1, 0.9), st.floats(0, 0.2),
)  # fmt: skip
def test_a_detectable_increase_is_so_many_errors(auc, n, share, error):
    case, control = share * n, (1 - share) * n
    found = detectable_auc(auc, case, control, error, n, 0.95)
    factor = student.ppf(0.975, n - 1) + student.ppf(POWER, n - 1)
    if np.isnan(found):
        # Even an AUC of 1 would not be shown with the power.
        nearly = 1 - auc - 1e-6
        assert max(factor * auc_error(auc, nearly, case, control), factor * error) >= nearly
        return
    assert 0 < found <= 1 - auc
    ideal = factor * auc_error(auc, min(found, 1 - auc - 1e-6), case, control)
    assert found == pytest.approx(max(ideal, factor * error), abs=2e-4)
    # More people detect less, and a larger error more.
    assert not detectable_auc(auc, 4 * case, 4 * control, error, n, 0.95) > found + 1e-4


def test_identical_predictions_leave_the_ideal_error():
    assert detectable_auc(0.8, 60, 90, 0.0, 150, 0.95) == pytest.approx(0.086, abs=0.01)
    assert detectable_increase(partial(r2_error, 0.4, people=150), 0.6, 0.0, 150, 0.95) > 0.05
    assert np.isnan(detectable_auc(0.8, 60, 90, np.nan, 150, 0.95))
    assert np.isnan(detectable_auc(0.99, 5, 5, 0.1, 10, 0.95))
    assert np.isnan(detectable_auc(1.0, 50, 50, 0.0, 100, 0.95))


def test_wrong_arguments_are_refused_before_anything_is_fitted(data):
    mv, y = data
    with pytest.raises(InputError, match="but got 'clinical'"):
        added_value(mv, y, "clinical", **FOLDS)
    with pytest.raises(InputError, match="y has 2 outcomes"):
        added_value(mv, np.column_stack([y, 1 - y]), ["clinical"], client="none is asked", **FOLDS)
