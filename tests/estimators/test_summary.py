"""`summary` and `explain`: one tidy table of what was found, and why this person."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.datasets import make_multiview
from baldur.estimators.summary import (
    BOTH,
    Summary,
    _credible_set_texts,
    n_usable_features,
    named_outputs,
    path_sentence,
    uncertain_weights,
)
from baldur.exceptions import InputError, NoSignalWarning
from baldur.paper import PaperClassifier

pytestmark = pytest.mark.usefixtures("one_repeat")


@pytest.fixture(scope="module")
def binary():
    sim = make_multiview(
        230, {"clinic": 8, "genes": 30}, informative={"clinic": 3, "genes": 2}, random_state=0
    )
    model = BaldurClassifier().fit(sim.data[:180], sim.target[:180])
    return model, sim.data[180:]


def test_summary_is_the_fitted_attributes_in_one_table(binary):
    model, _ = binary
    table = model.summary()
    assert len(table) == sum(mask.sum() for mask in model.selected_features_.values())
    for row in table.itertuples():
        d = list(model.feature_names_[row.view]).index(row.feature)
        assert row.weight == model.coef_[row.view][0, d]
        assert row.weight_scaled == model.coef_scaled_[row.view][0, d]
        assert row.lower < row.weight_scaled < row.upper
        assert row.inclusion_probability == model.inclusion_probability_[row.view][d]
    assert (np.diff(table["weight_scaled"].abs()) <= 0).all()
    assert len(model.summary(everything=True)) == 38


def test_summary_prints_the_answer_in_words(binary):
    model, _ = binary
    text = str(model.summary())
    assert "features selected" in text
    assert "evidence of signal" in text
    strongest = model.summary().iloc[0]
    assert strongest["feature"] in text
    assert isinstance(model.summary()[["view", "feature"]].copy(), pd.DataFrame)


def test_the_path_is_told_in_words(binary):
    model, _ = binary
    sentence = path_sentence(model)
    path = model.sparsity_path_
    kept = path[path["selected"]].iloc[0]
    assert sentence in str(model.summary())
    assert f"{path['loss'].iloc[0]:.3f} at the base rate" in sentence
    assert f"{kept['loss']:.3f} with the {kept['n_features']} features selected" in sentence
    whole = path[path["step"] == "views"].iloc[-1]
    assert f"{whole['loss']:.3f} with all 38 features of 2 views" in sentence


def test_everything_kept_has_words_of_its_own():
    path = pd.DataFrame(
        {
            "step": ["nothing", "views", "views", "features", "features"],
            "n_views": [0, 1, 2, 2, 2],
            "n_features": [0, 8, 38, 4, 38],
            "loss": [0.7, 0.5, 0.4, 0.41, 0.4],
            "selected": [False, False, False, False, True],
        }
    )
    said = "no smaller set was shown to have as low a loss, so all are selected."
    assert path_sentence(SimpleNamespace(sparsity_path_=path)).endswith(said)


def test_one_view_alone_may_be_kept_whole():
    path = pd.DataFrame(
        {
            "step": ["nothing", "views", "views", "features"],
            "n_views": [0, 1, 2, 1],
            "n_features": [0, 1, 38, 1],
            "loss": [0.7, 0.5, 0.4, 0.5],
            "selected": [False, False, False, True],
        }
    )
    sentence = path_sentence(SimpleNamespace(sparsity_path_=path))
    said = "0.500 with 1 view alone, of which all features are selected (1 feature)."
    assert sentence.endswith(said)


def test_classes_take_the_place_of_their_codes(binary):
    model, _ = binary
    table = named_outputs(model, model.summary(), ["well", "ill"])
    assert set(table["output"]) == {"ill"}
    assert str(table).startswith(str(model.summary()).splitlines()[0])


def test_every_probability_has_an_interval(binary):
    model, new = binary
    low, high = model.predict_interval(new)
    p = model.predict_proba(new)
    assert low.shape == high.shape == p.shape
    assert ((low < p) & (p < high)).mean() > 0.95  # a mean may lie outside where tails are long
    np.testing.assert_allclose(low[:, 0], 1.0 - high[:, 1])
    narrow = model.predict_interval(new, level=0.5)
    assert (narrow[0] > low).all()
    assert (narrow[1] < high).all()
    with pytest.raises(InputError, match="level must be a probability"):
        model.predict_interval(new, level=95)


def test_a_missing_view_is_not_used_and_widens_the_interval(binary):
    model, new = binary
    assert all(mask.any() for mask in model.selected_features_.values())
    cells = {name: np.array(new.view(name).read(), dtype=float) for name in new.view_names}
    cells["clinic"][:10] = np.nan
    gaps = MultiView(cells, feature_names={n: new.feature_names[n] for n in cells})
    used = model.views_used(gaps)
    assert used["clinic"].tolist() == [False] * 10 + [True] * 40
    assert used["genes"].all()
    wide = [np.subtract(*m.predict_interval(X)[::-1])[:10, 1] for m, X in
            ((model, gaps), (model, new))]  # fmt: skip
    assert wide[0].mean() > wide[1].mean()


def test_no_signal_is_said_first():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 2
    with pytest.warns(NoSignalWarning, match="no evidence of signal"):
        model = BaldurClassifier().fit(X, y)
    assert "NO EVIDENCE OF SIGNAL" in str(model.summary())


def test_feature_info_travels_into_the_summary():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    info = pd.DataFrame({"chromosome": list("112233"), "position": range(6)})
    y = (X[:, 2] + 0.5 * rng.standard_normal(120) > 0).astype(int)
    mv = MultiView({"snps": X}, feature_info={"snps": info})
    table = BaldurClassifier().fit(mv, y).summary()
    assert table.loc[0, "feature"] == "snps_2"
    assert (table.loc[0, "chromosome"], table.loc[0, "position"]) == ("2", 2)


def adds_up(model, X, total):
    table = model.explain(X)
    sums = table.groupby(["sample", "output"], sort=False)["contribution"].sum().to_numpy()
    np.testing.assert_allclose(sums, np.ravel(total), rtol=0, atol=1e-10)
    terms = table[table["feature"] != "(uncertainty)"].groupby(["sample", "output"], sort=False)
    linear = terms["linear_predictor"].first().to_numpy()
    np.testing.assert_allclose(terms["contribution"].sum().to_numpy(), linear, rtol=0, atol=1e-10)
    return table


def test_contributions_add_up_for_two_classes(binary):
    model, new = binary
    adds_up(model, new, model.decision_function(new))


def test_contributions_add_up_with_missing_views_and_extreme_cells(binary):
    model, new = binary
    cells = {name: np.array(new.view(name).read(), dtype=float) for name in new.view_names}
    cells["clinic"][::2] = np.nan
    cells["genes"][1] *= 1000.0  # far beyond the clip
    extreme = MultiView(cells, feature_names={n: new.feature_names[n] for n in cells})
    table = adds_up(model, extreme, model.decision_function(extreme))
    lacking = table[(table["sample"] == extreme.sample_ids[0]) & (table["view"] == "clinic")]
    assert (lacking["contribution"] == 0.0).all()


def test_contributions_add_up_for_three_classes():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((120, 6))
    y = np.digitize(X[:, 0] + 0.7 * rng.standard_normal(120), [-0.5, 0.5])
    model = BaldurClassifier().fit(X[:100], y[:100])
    adds_up(model, X[100:], model.decision_function(X[100:]))
    low, high = model.predict_interval(X[100:])
    p = model.predict_proba(X[100:])
    assert low.shape == p.shape
    assert ((low < p) & (p < high)).mean() > 0.95


def test_contributions_add_up_to_the_prediction_in_regression():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100, 5))
    Y = 10.0 + 3.0 * X[:, :2] + rng.standard_normal((100, 2))
    model = BaldurRegressor().fit(X[:80], Y[:80])
    table = adds_up(model, X[80:], model.predict(X[80:]))
    assert "(uncertainty)" not in set(table["feature"])


def test_other_features_are_one_row(binary):
    model, new = binary
    full = model.explain(new[:3])
    short = model.explain(new[:3], most=1)
    assert len(short) < len(full)
    assert "(other features)" in set(short["feature"])
    for name in ("clinic", "genes"):
        a, b = (t[t["view"] == name].groupby("sample")["contribution"].sum() for t in (full, short))
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_the_mean_field_posterior_is_summarised_and_explained_too():
    sim = make_multiview(130, {"clinic": 6}, informative={"clinic": 3}, random_state=0)
    model = PaperClassifier(bound="jaakkola", max_iter=40).fit(sim.data[:100], sim.target[:100])
    assert "features selected" in str(model.summary())
    adds_up(model, sim.data[100:], model.decision_function(sim.data[100:]))


@pytest.mark.parametrize(
    ("correlation", "size", "said"),
    [(0.7, 2, "x1 (0.30)"), (0.5, 2, "x1 (0.30)"), (0.49, 2, "not identified (2 candidates)"),
     (0.02, 234, "not identified (234 candidates)"), (1.0, 1, "")],
)  # fmt: skip
def test_a_credible_set_is_listed_only_where_it_informs(correlation, size, said):
    sets = pd.DataFrame(
        {"view": "a", "feature": "x0", "member_view": "a",
         "member_feature": [f"x{i}" for i in range(size)], "min_abs_correlation": correlation,
         "probability": [0.7] + [0.3] * (size - 1)}
    )  # fmt: skip
    assert _credible_set_texts(sets) == {("a", "x0"): said}


def test_inclusion_probabilities_are_listed_only_where_they_are_learned(binary):
    model, rows = binary
    assert "inclusion_probability" in model.summary()
    dense = BaldurClassifier(members=("pooled",)).fit(rows, model.predict(rows))
    assert "inclusion_probability" not in dense.summary()


def test_reference_levels_are_not_counted_as_features():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=60), "kind": rng.choice(list("abc"), 60)})
    model = BaldurClassifier(members=("pooled",)).fit(X, (X["age"] > 0).astype(int))
    whole = model.sparsity_path_["n_features"].max()
    assert n_usable_features(model) == 3 == whole
    assert f"of {whole} features selected." in str(model.summary())


def test_a_probable_feature_with_an_interval_around_zero_is_explained():
    table = pd.DataFrame(
        {"view": "a", "feature": ["x0", "x1", "x2"], "output": "y",
         "weight_scaled": [1.0, 0.5, 0.1], "lower": [0.5, -0.1, -0.1], "upper": [1.5, 1.1, 0.3],
         "inclusion_probability": [0.99, 0.99, 0.5]}
    )  # fmt: skip
    assert uncertain_weights(table) == ["x1"]
    assert BOTH in str(Summary(table))
    assert BOTH not in str(Summary(table.iloc[[0, 2]]))
