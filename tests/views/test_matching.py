"""Labels follow the samples they are named after, and columns that are no numbers are named."""

import numpy as np
import pandas as pd
import pytest

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.baselines import BASELINES
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.exceptions import InputError

pytestmark = pytest.mark.usefixtures("few_resamples")
IDS = np.array(["a", "b", "c", "d"])
FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}, index=IDS)


def truth(X, y, **how):
    """Return the outcomes of a comparison in the order of its samples."""
    return nested_cv(["Dummy"], X, y, outer=2, **{"task": "regression", **how}).truth.tolist()


def test_same_names_in_another_order_are_reordered():
    y = pd.Series([4, 3, 2, 1], index=["d", "c", "b", "a"])
    assert truth(FRAME, y) == [1, 2, 3, 4]
    numbers = pd.Series([1, 0, 3, 2], index=[7, 5, 11, 9])
    assert truth(FRAME.set_axis([5, 7, 9, 11]), numbers) == [0, 1, 2, 3]
    ids = list("abcdefgh")
    X = pd.DataFrame({"x": np.arange(8.0)}, index=ids)
    table = pd.DataFrame({"p": [0, 1] * 4, "q": [0, 0, 1, 1] * 2}, index=ids[::-1])
    assert truth(X, table, task="classification") == table.to_numpy()[::-1].tolist()


def test_labels_or_data_without_names_are_taken_row_by_row():
    y, rows = pd.Series([1, 2, 3, 4]), [1, 2, 3, 4]
    assert truth(FRAME, y) == rows
    named = pd.Series([1, 2, 3, 4], index=["q", "r", "s", "t"])
    assert truth(np.eye(4), named) == rows
    assert truth(MultiView({"v": np.eye(4)}), named) == rows
    assert truth(FRAME, np.array(rows)) == rows


@pytest.mark.parametrize(
    ("y", "ids"),
    [
        (pd.Series([1, 2, 3, 4], index=["a", "b", "c", "x"]), IDS),
        (pd.Series([1, 2, 3, 4], index=["a", "a", "b", "c"]), IDS),
        # Counted rows beside permuted numbers: either reading could be meant.
        (pd.Series([1, 2, 3, 4]), [3, 1, 0, 2]),
        (pd.Series([1, 2, 3, 4], index=[9, 8, 7, 6]), [3, 1, 0, 2]),
    ],
)
def test_other_names_are_refused(y, ids):
    with pytest.raises(InputError, match="same names"):
        truth(FRAME.set_axis(ids), y)


def test_every_door_matches_labels():
    sim = make_multiview(50, {"a": 5, "b": 8}, random_state=0)
    ids = np.array([f"p{i}" for i in range(50)])
    X = pd.DataFrame(np.hstack([sim.data.view(v).read() for v in ("a", "b")]), index=ids)
    X.columns = [f"x{j}" for j in range(13)]
    mv = MultiView({"a": X.iloc[:, :5], "b": X.iloc[:, 5:]})
    y = pd.Series(sim.target, index=ids)
    score = pd.Series(sim.truth.score, index=ids)
    shuffled = np.random.default_rng(0).permutation(50)
    ridge = BASELINES["Ridge logistic"].make()
    for data in (X, mv):
        right = ridge.fit(data, y).predict_proba(data)
        again = ridge.fit(data, y.iloc[shuffled]).predict_proba(data)
        np.testing.assert_array_equal(again, right)
        with pytest.raises(InputError, match="same names"):
            ridge.fit(data, y.rename({"p3": "q3"}))
    pls = BASELINES["MV-PLS"].make(classification=False)
    right = pls.fit(X, score).predict(X)
    np.testing.assert_array_equal(pls.fit(X, score.iloc[shuffled]).predict(X), right)
    for made, given in ((BaldurClassifier(), y), (BaldurRegressor(), score)):
        # What a fit works on, without the fit.
        right = made._open_training(X, given, None, None)[1]
        again = made._open_training(X, given.iloc[shuffled], None, None)[1]
        np.testing.assert_array_equal(again, right)
        with pytest.raises(InputError, match="same names"):
            made.fit(mv, given.rename({"p3": "q3"}))
    plain = nested_cv({"Ridge logistic": {}}, mv, y, outer=2, inner=2)
    moved = nested_cv({"Ridge logistic": {}}, mv, y.iloc[shuffled], outer=2, inner=2)
    pd.testing.assert_frame_equal(plain.predictions, moved.predictions)


def test_dates_and_complex_numbers_are_named_in_one_error():
    X = pd.DataFrame(
        {
            "age": [60.0, 61.0, 62.0, 63.0],
            "sex": ["f", "m", "f", "m"],
            "visit": pd.to_datetime(["2020-01-01"] * 4),
            "site": pd.Categorical(["a", "b", "a", "b"]),
            "birth": pd.period_range("1960-01", periods=4, freq="M"),
            "phase": np.ones(4) * 1j,
        }
    )
    y = [0, 1, 0, 1]
    for made in (BaldurClassifier(), BaldurRegressor(), BASELINES["RF"].make()):
        with pytest.raises(InputError) as caught:
            made.fit(X, y)
        said = str(caught.value)
        assert said.startswith(f"{type(made).__name__}: expected columns of numbers, truth values")
        assert "3 of 6 are not: dates in 'visit', 'birth'; complex numbers in 'phase'" in said
    with pytest.raises(InputError, match=r"View 'v': .* dates in 'visit', 'birth'"):
        MultiView({"v": X})
