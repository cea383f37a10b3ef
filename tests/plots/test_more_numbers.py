"""The tables of figures of folds, data, genomes, brains and fits; no pixels."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from baldur import BaldurClassifier, MultiView
from baldur.baselines import BASELINES
from baldur.evaluation import learning_curve
from baldur.exceptions import InputError
from baldur.plots import (
    AddedValueDisplay,
    CorrelationDisplay,
    FoldHeatmapDisplay,
    FoldWeightsDisplay,
    HistoryDisplay,
    LatentDisplay,
    LearningCurveDisplay,
    ManhattanDisplay,
    MissingViewsDisplay,
)
from plots.conftest import fitted

RNG = np.random.default_rng(0)


# -- folds -----------------------------------------------------------------------------------


def test_fold_weights_are_those_of_the_result(result, run):
    display = FoldWeightsDisplay.from_result(result, "elastic net")
    weights = result.weights()
    mine = weights[weights["model"] == "elastic net"]
    assert len(display.table) == len(mine)
    keys = ["fold", "view", "feature"]
    there = mine.assign(fold=mine["fold"].astype(str)).set_index(keys)["weight"]
    here = display.table.set_index(keys)
    assert here["weight"].to_dict() == pytest.approx(there.to_dict())
    assert (here["absolute"] == here["weight"].abs()).all()
    by_feature = mine.groupby(["view", "feature"]).size()
    assert set(display.common) == set(by_feature[by_feature == 3].index)
    assert display.folds == ["1", "2", "3"]
    assert_frame_equal(display.table, FoldWeightsDisplay.from_result(run, "elastic net").table)


def test_the_heat_map_is_open_where_a_fold_does_not_select(result):
    display = FoldHeatmapDisplay.from_result(result, "elastic net")
    wide = display.wide()
    assert wide.notna().sum().sum() == len(display.table)
    frequency = wide.notna().mean(axis=1)
    assert (np.diff(frequency.to_numpy()) <= 1e-12).all()
    for row in display.table.to_dict("records"):
        assert wide.loc[(row["view"], row["feature"]), row["fold"]] == row["weight"]


def test_a_model_that_selects_nothing_has_no_rows(result):
    display = FoldWeightsDisplay.from_result(result, "prior")
    assert not len(display.table)
    assert "none of 3 folds" in display.alt_text
    assert "No fold" in display.plot().ax_.texts[0].get_text()
    assert "none of 3 folds" in FoldHeatmapDisplay.from_result(result, "prior").plot().alt_text


# -- correlations ----------------------------------------------------------------------------


def test_selected_features_come_with_interchangeable_ones(cohort):
    summary = pd.DataFrame({"view": ["clinic", "genes"], "feature": ["clinic_1", "genes_2"]})
    sets = pd.DataFrame(
        [("clinic", "clinic_1", "clinic", "clinic_1", 0.6),
         ("clinic", "clinic_1", "genes", "genes_7", 0.3),
         ("clinic", "clinic_1", "clinic", "clinic_3", 0.01),
         ("genes", "genes_2", "genes", "genes_2", 0.99)],
        columns=["view", "feature", "member_view", "member_feature", "probability"],
    )  # fmt: skip
    model = fitted(BaldurClassifier(members=("pooled",)), cohort.data, cohort.target)
    model.credible_sets_ = sets
    model.summary = lambda: summary
    display = CorrelationDisplay.from_estimator(model, cohort.data)
    assert display.features == [("clinic", "clinic_1"), ("genes", "genes_7"), ("genes", "genes_2")]
    assert display.groups == [[0, 1]]
    assert "1 credible set " in display.alt_text
    drawn = display.plot()
    assert len(drawn.ax_.patches) == 1
    assert drawn.ax_.get_yticklabels()[1].get_text().startswith("~ ")


def test_correlations_of_a_result_are_of_what_half_the_folds_select(result, run):
    display = CorrelationDisplay.from_result(result, "elastic net")
    selection = result.selection
    often = selection[
        (selection["model"] == "elastic net")
        & (selection["feature"] != "*")
        & (selection["frequency"] >= 0.5)
    ]
    assert set(display.features) == set(zip(often["view"], often["feature"], strict=True))
    read = CorrelationDisplay.from_result(run, "elastic net")
    assert read.features == display.features
    assert read.matrix() == pytest.approx(display.matrix())


# -- people ----------------------------------------------------------------------------------


def test_latent_factors_are_those_of_the_model(model, ten_classes, regressor, cohort):
    display = LatentDisplay.from_estimator(model, cohort.data, cohort.target)
    Z = model.transform(cohort.data)
    assert display.table["factor0"].to_numpy() == pytest.approx(Z[:, 0])
    means = [Z[cohort.target == c, 0].mean() for c in (0, 1)]
    share = np.var(np.where(cohort.target == 1, means[1], means[0])) / np.var(Z[:, 0])
    assert display.separation()["factor0"] == pytest.approx(share)
    many = LatentDisplay.from_estimator(ten_classes, cohort.data)
    assert len(many.factors) == ten_classes.n_factors_
    y = regressor.predict(cohort.data)
    number = LatentDisplay.from_estimator(regressor, cohort.data, y)
    assert number.continuous
    assert number.separation().iloc[0] == pytest.approx(1.0)
    with pytest.raises(InputError, match="labels"):
        LatentDisplay.from_estimator(model, cohort.data, [1, 2])
    with pytest.raises(InputError, match="factor9"):
        display.plot(factors=["factor9"])


def test_without_labels_nothing_is_said_of_the_outcome(model, regressor, ten_classes, cohort):
    for one, factors in ((model, 1), (regressor, 1), (ten_classes, ten_classes.n_factors_)):
        display = LatentDisplay.from_estimator(one, cohort.data).plot()
        noun = "factor" if factors == 1 else "factors"
        assert display.alt_text == f"70 samples in {factors} latent {noun}."
        assert "label" not in display.table
        assert display.classes == []
        drawn = [display.ax_.get_xlabel(), display.ax_.get_ylabel()]
        assert not any("utcome" in text for text in drawn)
        assert sum(len(line.get_xdata()) for line in display.ax_.lines) >= 70
        assert not display.figure_.legends


def test_patterns_of_views_count_everybody_once():
    n = 40
    has = RNG.random((n, 3)) < 0.7
    y = np.where(RNG.random(n) < 0.5, "ill", "well")
    data = MultiView(
        {v: RNG.normal(size=(n, 2)) for v in "abc"},
        present={v: has[:, i] for i, v in enumerate("abc")},
    )
    display = MissingViewsDisplay.from_data(data, y)
    table = display.table
    assert display.people == n
    assert (table[["n_ill", "n_well"]].sum(axis=1) == table["people"]).all()
    for i, view in enumerate("abc"):
        assert display.present(view) == has[:, i].sum()
    for row in table.to_dict("records"):
        pattern = [row[f"has_{v}"] for v in "abc"]
        assert row["people"] == (has == np.array(pattern, bool)).all(axis=1).sum()
    assert len(MissingViewsDisplay.from_data(data[:0]).table) == 0


def test_patterns_of_a_result(result, run):
    display = MissingViewsDisplay.from_result(result)
    assert display.alt_text == "Of 70 samples, 70 have all 2 views."
    assert_frame_equal(display.table, MissingViewsDisplay.from_result(run).table, check_dtype=False)


def test_learning_curve_shows_its_table(cohort, result, run):
    models = {"ridge": BASELINES["Ridge logistic"].make(), "prior": BASELINES["Dummy"].make()}
    table = learning_curve(models, cohort.data, cohort.target, outer=2, inner=2, shares=(0.5, 0.75))
    display = LearningCurveDisplay.from_result(table)
    assert_frame_equal(display.table, table)
    assert display.metric == "AUC"
    assert "ridge from" in display.alt_text
    one = LearningCurveDisplay.from_result(table, ["ridge"]).plot()
    assert set(one.table["model"]) == {"ridge"}
    assert one.ax_.lines
    assert "did not ask for one" in LearningCurveDisplay.from_result(run).plot().alt_text


# -- genomes ---------------------------------------------------------------------------------


def variants(n, seed=0):
    rng = np.random.default_rng(seed)
    chromosome = np.sort(rng.integers(1, 24, n)).astype(str)
    chromosome[chromosome == "23"] = "X"
    position = rng.integers(1, 10**8, n)
    value = rng.beta(0.1, 4, n)
    return pd.DataFrame(
        {"feature": [f"rs{k}" for k in range(n)], "chromosome": chromosome, "position": position,
         "value": value, "selected": rng.random(n) < 5 / n}
    )  # fmt: skip


def test_thinning_keeps_what_is_selected_and_what_is_highest():
    table = variants(60_000)
    display = ManhattanDisplay(table)
    shown = display.table
    assert len(shown) < 40_000
    assert display.total == 60_000
    assert set(table.loc[table["selected"], "feature"]) <= set(shown["feature"])
    highest = table.loc[table.groupby("chromosome")["value"].idxmax()]
    assert set(highest["feature"]) <= set(shown["feature"])
    merged = shown.merge(table, on="feature", suffixes=("", "_was"))
    assert (merged["value"] == merged["value_was"]).all()


def test_chromosomes_follow_each_other_and_positions_rise():
    display = ManhattanDisplay(variants(500))
    names = [name for name, _, _ in display.bounds]
    assert names == [*(str(k) for k in range(1, 23)), "X"]
    ends = [edge for _, start, end in display.bounds for edge in (start, end)]
    assert ends == sorted(ends)
    for name, start, end in display.bounds:
        mine = display.table[display.table["chromosome"] == name].sort_values("position")
        assert mine["place"].between(start, end).all()
        assert mine["place"].is_monotonic_increasing


def test_manhattan_of_a_model_shows_inclusion_or_weights():
    table = variants(300, 1)
    info = table[["chromosome", "position"]]
    weights = RNG.normal(size=(1, 300)) * table["selected"].to_numpy()
    model = SimpleNamespace(
        view_names_=["clinic", "snps"],
        feature_info_={"snps": info},
        feature_names_={"snps": table["feature"].to_numpy()},
        selected_features_={"snps": table["selected"].to_numpy()},
        coef_scaled_={"snps": weights},
        inclusion_probability_={"snps": table["value"].to_numpy()},
    )
    display = ManhattanDisplay.from_estimator(model)
    assert display.view == "snps"
    there = table.set_index("feature")["value"]
    assert display.table.set_index("feature")["value"].to_dict() == (
        there.loc[display.table["feature"]].to_dict()
    )
    heavy = ManhattanDisplay.from_estimator(model, weights=True)
    assert heavy.table["value"].max() == np.abs(weights).max()
    assert heavy.value.startswith("|weight|")
    model.feature_info_ = {}
    with pytest.raises(InputError, match="chromosome"):
        ManhattanDisplay.from_estimator(model)
    plain = ManhattanDisplay.from_estimator(model, "snps").plot()
    assert plain.ax_.get_xlabel() == "Feature"


def test_a_view_of_full_width_is_thinned_and_drawn():
    n = 841_685
    value = np.zeros(n)
    value[[5, n // 2]] = 0.9
    table = pd.DataFrame(
        {"feature": np.arange(n), "chromosome": np.arange(n) * 22 // n, "value": value,
         "selected": value > 0}
    )  # fmt: skip
    display = ManhattanDisplay(table).plot()
    assert len(display.table) < 2000
    assert "841,685 variants" in display.alt_text


# -- fits ------------------------------------------------------------------------------------


def test_history_of_a_stack_has_one_run_per_member(model):
    display = HistoryDisplay.from_estimator(model)
    assert len(display.table) == len(model.history_)
    assert display.measure == "change"
    assert set(display.table["run"]) == {record["event"] for record in model.history_}
    for _, part in display.table.groupby("run"):
        assert part["step"].tolist() == list(range(1, len(part) + 1))
    counted = display.table.dropna(subset=["active_features"])
    views = counted[["active_clinic", "active_genes"]].sum(axis=1)
    assert (views == counted["active_features"]).all()


def test_history_of_a_mean_field_has_its_bound(nothing):
    display = HistoryDisplay.from_estimator(nothing)
    assert display.measure == "bound"
    assert display.table["bound"].to_list() == [r["bound"] for r in nothing.history_]
    assert display.table["active_features"].iloc[-1] == 0
    assert display.alt_text.endswith("converged.")
    again = HistoryDisplay(display.table)
    assert_frame_equal(again.table, display.table)
    with pytest.raises(InputError, match="no record"):
        HistoryDisplay.from_estimator(object())


def test_the_figure_of_view_sets_shows_the_numbers_of_the_table(view_sets):
    table = view_sets.added_value().table
    auc = table[table["metric"] == "auc"].set_index("question")
    display = AddedValueDisplay(table)
    rows = display.table.set_index("views")
    assert list(rows.index) == ["clinic (baseline)", "all views", "genes alone"]
    columns = ["value", "value_low", "value_high"]
    for name, question in (("clinic (baseline)", "baseline"), ("all views", "all")):
        assert rows.loc[name, columns].tolist() == auc.loc[question, columns].tolist()
    added, beyond = auc.loc["added"], auc.loc["beyond the others"]
    assert rows.loc["all views", "compared_with"] == "clinic"
    assert rows.loc["all views", "low"] == added["low"]
    # Without a view, the difference is what all views lose.
    assert rows.loc["genes alone", "compared_with"] == "all views"
    assert rows.loc["genes alone", "difference"] == -beyond["difference"]
    assert rows.loc["genes alone", "low"] == -beyond["high"]
