"""Arguments of the wrong kind: an error of ours, before anything is computed."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from baldur import BaldurClassifier, BaldurRegressor
from baldur.exceptions import InputError
from baldur.paper import PaperClassifier

pytestmark = pytest.mark.usefixtures("one_repeat")

N = 12
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.arange(N) % 2
SCORE = X[:, 0]
ONES = np.ones(N)
NO_FIRST = np.append(0.0, np.ones(N - 1))
DATES = pd.to_datetime(["2020-01-01", "2021-01-01"] * (N // 2))

CASES = {
    "labels of two kinds": (BaldurClassifier(), X, np.array([1, "a"] * (N // 2), dtype=object), {}),
    "labels of unequal length": (BaldurClassifier(), X, [[1, 2], [3]] * (N // 2), {}),
    "no column of labels": (BaldurClassifier(), X, np.zeros((N, 0)), {}),
    "masked labels": (BaldurClassifier(), X, np.ma.masked_equal(Y, 1), {}),
    "no column of numbers": (BaldurRegressor(), X, np.zeros((N, 0)), {}),
    "complex outcomes": (BaldurRegressor(), X, SCORE + 1j, {}),
    "dates as outcomes": (BaldurRegressor(), X, DATES, {}),
    "masked outcomes": (BaldurRegressor(), X, np.ma.masked_less(SCORE, 0), {}),
    "cells of a strange type": (BaldurClassifier(), np.array([[{}] * 3] * N), Y, {}),
    "names of two kinds": (BaldurClassifier(), pd.DataFrame(X, columns=["a", 1, 2]), Y, {}),
    "too few groups": (BaldurClassifier(), X, Y, {"groups": [1, 2], "sample_weight": NO_FIRST}),
    "missing groups": (BaldurClassifier(), X, Y, {"groups": [1, "a", None] * (N // 3)}),
    "complex weights": (BaldurClassifier(), X, Y, {"sample_weight": ONES + 1j}),
    "a word as seed": (BaldurClassifier(random_state="x"), X, Y, {}),
    "a seed with a fraction": (PaperClassifier(random_state=1.5), X, Y, {}),
    "a word for n_jobs": (BaldurClassifier(n_jobs="all"), X, Y, {}),
    "a number for space": (PaperClassifier(space=3), X, Y, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_arguments(name):
    model, data, target, options = CASES[name]
    with pytest.raises(InputError) as caught:
        model.fit(data, target, **options)
    assert "\n" not in str(caught.value)


def test_masked_cells_are_missing():
    hidden = np.ma.masked_array(X, mask=X > 1)
    model = BaldurClassifier(members=("pooled",))
    wanted = model.fit(np.where(X > 1, np.nan, X), Y).coef_["X"].copy()
    assert_array_equal(model.fit(hidden, Y).coef_["X"], wanted)


def test_groups_may_be_of_any_kind():
    model = BaldurClassifier(members=("pooled",))
    wanted = model.fit(X, Y, groups=np.arange(N) // 2).coef_["X"].copy()
    letters = np.array(list("aabbccddeeff"))
    mixed = np.array([i // 2 if i < 8 else f"x{i // 2}" for i in range(N)], dtype=object)
    for groups in (letters, list(letters), mixed):
        assert_array_equal(model.fit(X, Y, groups=groups).coef_["X"], wanted)
