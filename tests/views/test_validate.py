"""Bad input: one error each, naming the view, what was expected, what arrived, what to do."""

import numpy as np
import pandas as pd
import pytest

from baldur import BaldurClassifier, MultiView
from baldur.baselines import BASELINES
from baldur.evaluation import nested_cv
from baldur.exceptions import InputError
from views.backends import Lazy

ONE = np.ones((4, 2))


def fit_on(X, views=None, y=(0, 1, 0, 1)):
    """Fit a model that is quick."""
    return BASELINES["Ridge logistic"].make().set_params(views=views).fit(X, y)


class Liar(Lazy):
    """Returns one row too few."""

    def read(self, rows, cols):
        return super().read(rows, cols)[1:]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: MultiView({}), ["at least one view"]),
        (lambda: MultiView(3), ["dictionary", "int", "from_columns"]),
        (lambda: MultiView({1: ONE}), ["names must be non-empty text", "1", "Rename"]),
        (lambda: MultiView([("a", ONE), ("a", ONE)]), ["unique", "'a'", "Rename"]),
        (
            lambda: MultiView({"a": ONE, "b": ONE[:3], "c": ONE}),
            ["'a' has 4", "'b' has 3", "same samples", "align"],
        ),
        (lambda: MultiView({"a": ONE[:0]}), ["at least one sample", "'a'"]),
        (
            lambda: MultiView({"a": ONE, "b": ONE[:, :0]}),
            ["'b'", "0 feature(s) (shape=(4, 0))", "minimum of 1"],
        ),
        (lambda: MultiView({"a": ONE[0]}), ["'a'", "2-D", "(2,)", "[:, None]"]),
        (lambda: MultiView({"a": np.ones((2, 2, 2))}), ["'a'", "2-D", "(2, 2, 2)"]),
        (lambda: MultiView({"a": ONE.astype(object)}), ["'a'", "numbers", "object", "astype"]),
        (lambda: MultiView({"a": ONE.astype(complex)}), ["'a'", "Complex", "complex128"]),
        (lambda: MultiView({"a": [["x", "y"]]}), ["'a'", "numbers", "<U1"]),
        (lambda: MultiView({"a": [[1, 2], [3]]}), ["'a'", "2-D numeric matrix", "list"]),
        (
            lambda: MultiView(
                {
                    "a": pd.DataFrame({"k": range(60), "sex": map(str, range(60))}).replace(
                        {"sex": {"7": "x"}}
                    )
                }
            ),
            ["'a'", "'sex'", "numbers except for 1 of 60", "astype('category')"],
        ),
        (
            lambda: MultiView({"a": pd.DataFrame({"id": [f"p{i}" for i in range(60)]})}),
            ["'a'", "'id'", "60 different values", "Drop it", "astype('category')"],
        ),
        (lambda: MultiView({"a": ONE}, sample_ids=list("xyzx")), ["unique", "'x'", "Drop"]),
        (lambda: MultiView({"a": ONE}, sample_ids=["x"]), ["expected 4 identifiers", "(1,)"]),
        (lambda: MultiView({"a": ONE}, sample_ids=["x", "y", None, "z"]), ["missing"]),
        (
            lambda: MultiView(
                {
                    "a": pd.DataFrame(ONE, index=list("wxyz")),
                    "b": pd.DataFrame(ONE, index=list("wyxz")),
                }
            ),
            ["'a'", "'b'", "row 1", "'x'", "'y'", "Reorder"],
        ),
        (lambda: MultiView({"a": ONE}, feature_names={"a": ["p"]}), ["'a'", "2 feature", "1"]),
        (lambda: MultiView({"a": ONE}, feature_names={"b": ["p"]}), ["['b']", "['a']"]),
        (lambda: MultiView({"a": ONE}, feature_names=["p"]), ["dictionary", "list"]),
        (
            lambda: MultiView({"a": ONE}, feature_info={"a": pd.DataFrame({"c": [1]})}),
            ["'a'", "2 rows", "1 rows"],
        ),
        (lambda: MultiView({"a": ONE}, present={"a": [1, 0, 1, 1]}), ["'a'", "4 booleans"]),
        (lambda: MultiView({"a": ONE}).view("z"), ["'z'", "['a']"]),
        (lambda: MultiView({"a": ONE})[[4]], ["between -4 and 3", "4 samples"]),
        (lambda: MultiView({"a": ONE})[[0.5]], ["slice", "integers", "float64"]),
        (lambda: MultiView({"a": ONE})[np.array([True])], ["one entry per sample (4)", "1"]),
        (lambda: MultiView({"a": ONE})["a"], ["mv.view('a')"]),
        (lambda: MultiView({"a": ONE})[0, 1], ["rows only", "select"]),
        (lambda: MultiView({"a": ONE}).view("a").read([7]), ["'a'", "between -2 and 1"]),
        (lambda: MultiView({"a": ONE}).view("a").read(["k"]), ["'a'", "columns must be"]),
        (lambda: MultiView({"a": Liar(ONE)}).view("a").read(), ["'a'", "(4, 2)", "(3, 2)"]),
        (lambda: np.asarray(MultiView({"a": ONE})), ["to_frame"]),
        (
            lambda: MultiView({"a": np.broadcast_to(np.int8(0), (100, 10**6))}).to_frame(),
            ["100 x 1,000,000", "select"],
        ),
        (lambda: fit_on([ONE]), ["list", "MultiView.from_dict("]),
        (lambda: fit_on({"a": ONE}), ["dict", "MultiView.from_dict(X)"]),
        (lambda: nested_cv(["Dummy"], ONE[0], [0, 1]), ["2-D", "Reshape your data"]),
        (lambda: fit_on(MultiView({"a": ONE}), {"b": [0]}), ["already has", "['a']"]),
        (lambda: fit_on(ONE, ["a"]), ["dictionary", "list"]),
        (lambda: fit_on(ONE, {"a": [5]}), ["'a'", "between -2 and 1"]),
        (lambda: fit_on(ONE, {"a": ["k"]}), ["'a'", "by name", "DataFrame"]),
        (lambda: fit_on(ONE, {"a": [0, 0]}), ["'a'", "more than once"]),
        (lambda: fit_on(ONE, {"a": [True]}), ["'a'", "one entry per column (2)"]),
        (lambda: fit_on(ONE, {"a": []}), ["'a'", "0 feature(s)"]),
        (lambda: fit_on(ONE, {"a": [0.5]}), ["'a'", "float64"]),
        (
            lambda: fit_on(pd.DataFrame(ONE, columns=["p", "q"]), {"a": ["r"]}),
            ["'a'", "no column 'r'", "'p', 'q'"],
        ),
    ],
)
def test_one_clear_error(build, words):
    with pytest.raises(InputError) as caught:
        build()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, ["6 class labels", "requires y to be passed"]),
        ([0, 1, 0, 1], ["expected 6 labels", "got 4"]),
        ([0, 0, 0, 0, 0, 0], ["at least two classes", "one class only", "6 samples"]),
        ([0, 0, 0, 0, 0, 1], ["at least 2 samples in each class", "1 has 1", "Merge"]),
        ([0, 1, np.nan, 1, 0, 1], ["1 of 6 are missing", "row 2"]),
        (["a", None, "b", "a", "b", "b"], ["missing", "row 1"]),
        ([0, 1, np.inf, np.inf, 0, 1], ["finite"]),
        ([0.5, 1.5, 0.5, 1.5, 2, 2], ["Unknown label type: continuous", "regressor"]),
        (np.zeros((6, 2, 2)), ["1-D", "(6, 2, 2)"]),
    ],
)
def test_labels_that_cannot_be_learned_from(y, words):
    with pytest.raises(InputError) as caught:
        BaldurClassifier().fit(np.arange(12.0).reshape(6, 2), y)
    for word in words:
        assert word in str(caught.value)


def test_good_labels_pass():
    assert fit_on(ONE, y=["a", "b", "a", "b"]).classes_.tolist() == ["a", "b"]
    assert fit_on(ONE, y=np.array([[0], [1], [0], [1]])).classes_.tolist() == [0, 1]
