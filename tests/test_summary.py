"""`summary` and `explain`: one tidy table of what was found, and why this person."""

import numpy as np
import pandas as pd
import pytest

from baldur import BaldurClassifier, BaldurRegressor, MeanFieldClassifier, MultiView
from baldur.datasets import make_multiview
from baldur.exceptions import NoSignalWarning


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
        assert row.probability == model.inclusion_probability_[row.view][d]
    assert (np.diff(table["weight_scaled"].abs()) <= 0).all()
    assert len(model.summary(everything=True)) == 38


def test_summary_prints_the_answer_in_words(binary):
    model, _ = binary
    text = str(model.summary())
    assert "features kept" in text
    assert "show a signal" in text
    strongest = model.summary().iloc[0]
    assert strongest["feature"] in text
    assert isinstance(model.summary()[["view", "feature"]].copy(), pd.DataFrame)


def test_no_signal_is_said_first():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 5)), np.arange(60) % 2
    with pytest.warns(NoSignalWarning, match="no signal was shown"):
        model = BaldurClassifier().fit(X, y)
    assert "NO SIGNAL WAS SHOWN" in str(model.summary())


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
    model = MeanFieldClassifier().fit(sim.data[:100], sim.target[:100])
    assert "features kept" in str(model.summary())
    adds_up(model, sim.data[100:], model.decision_function(sim.data[100:]))
