"""Nogueira's index equals its definition on dense masks, and its interval covers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur import MultiView
from baldur.evaluation import nested_cv
from baldur.evaluation.results import record_of
from baldur.evaluation.selected_features import feature_correlations, nogueira
from baldur.exceptions import InputError
from baldur.plots import CorrelationDisplay
from baldur.preparation import CategoryEncoder, Preparation


def literal(Z):
    """The index from a dense (M, d) 0/1 matrix, by its formula."""
    m, d = Z.shape
    p = Z.mean(axis=0)
    k = Z.sum(axis=1).mean()
    s2 = m / (m - 1) * p * (1 - p)
    return 1 - s2.mean() / (k / d * (1 - k / d))


def as_sets(Z):
    return [np.flatnonzero(row) for row in Z]


@given(
    m=st.integers(2, 8), d=st.integers(3, 40), rate=st.floats(0.1, 0.9), seed=st.integers(0, 999)
)
@settings(max_examples=60, deadline=None)
def test_index_equals_its_definition(m, d, rate, seed):
    Z = (np.random.default_rng(seed).random((m, d)) < rate).astype(int)
    value, error, low, high = nogueira(as_sets(Z), d)
    if Z.sum() in (0, Z.size):
        assert np.isnan(value)
    else:
        assert value == pytest.approx(literal(Z), abs=1e-12)
        if m == 2:
            assert np.isnan([error, low, high]).all()
        else:
            assert -1 <= low <= value <= high <= 1 or value < -1 + 1e-9


def test_equal_selections_are_perfectly_stable():
    assert nogueira([np.array([1, 4, 7])] * 5, 1000) == (1.0, 0.0, 1.0, 1.0)


def test_random_selections_have_mean_zero():
    rng = np.random.default_rng(0)
    values = [
        nogueira([rng.choice(100, 10, replace=False) for _ in range(5)], 100)[0] for _ in range(300)
    ]
    assert abs(np.mean(values)) < 0.01


def test_standard_error_matches_the_spread_of_the_index():
    rng = np.random.default_rng(1)
    p = np.where(np.arange(60) < 8, 0.8, 0.05)
    drawn = [nogueira(as_sets(rng.random((100, 60)) < p), 60) for _ in range(300)]
    values, errors, lows, highs = np.transpose(drawn)
    assert errors.mean() == pytest.approx(np.std(values), rel=0.1)
    q = p.mean()
    truth = 1 - np.mean(p * (1 - p)) / (q * (1 - q))
    covered = np.mean((lows <= truth) & (truth <= highs))
    print(f"coverage of the 95% interval over 300 draws: {covered:.3f}")
    assert 0.91 <= covered <= 0.98


def test_one_selection_says_nothing_about_stability():
    assert np.isnan(nogueira([np.array([0])], 5)).all()


def test_a_model_that_uses_everything_uses_all_features_of_categories():
    """Reference levels are not counted: sex is one feature, and a site of three levels two."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=60) + y,
            "sex": rng.choice(["f", "m"], 60),
            "site": rng.choice(["a", "b", "c"], 60),
        }
    )
    X = MultiView.from_dict({"clinic": frame, "lab": rng.normal(size=(60, 4))})
    models = {"Ridge logistic": {"C": [0.1]}, "Dummy": None}
    result = nested_cv(models, X, y, outer=3, inner=3)
    assert result.n_features == {"clinic": 4, "lab": 4}
    table = result.table().set_index("model")
    assert table["features_percent"].to_dict() == {"Ridge logistic": 100.0, "Dummy": 0.0}
    whole = result.selection[result.selection["feature"] == "*"]
    assert set(whole["n_features"]) == {4}
    assert [view["features"] for view in record_of(result)["views"]] == [4, 4]
    steps = [CategoryEncoder("clinic", drop=None)]
    every = nested_cv(
        {"Ridge logistic": {"C": [0.1]}}, X, y, outer=3, preparation=Preparation(steps=steps)
    )
    assert every.n_features == {"clinic": 6, "lab": 4}
    assert every.table()["features_percent"].tolist() == [100.0]


def test_correlations_are_pearsons_over_people_who_have_both():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 1))
    x[:5, 0] = np.nan
    data = MultiView({"a": x, "b": y}, present={"b": np.arange(30) >= 3})
    pairs = [("a", "a_0"), ("b", "b_0"), ("a", "a_1")]
    table = feature_correlations(data, pairs)
    wide = table.pivot(
        index=["view_a", "feature_a"], columns=["view_b", "feature_b"], values="correlation"
    )
    assert wide.loc[("a", "a_0"), ("b", "b_0")] == pytest.approx(
        np.corrcoef(x[5:, 0], y[5:, 0])[0, 1]
    )
    assert wide.loc[("b", "b_0"), ("a", "a_1")] == pytest.approx(
        np.corrcoef(x[3:, 1], y[3:, 0])[0, 1]
    )
    assert np.allclose(CorrelationDisplay(table).matrix().diagonal(), 1.0)
    assert CorrelationDisplay(table).features == pairs
    assert not len(feature_correlations(data, []))
    with pytest.raises(InputError, match="no view"):
        feature_correlations(data, [("c", "c_0")])
    with pytest.raises(InputError, match="no feature"):
        feature_correlations(data, [("a", "a_9")])
