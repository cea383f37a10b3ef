"""What a notebook shows of an estimator, and what scikit-learn's selectors take from it."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.feature_selection import SelectFromModel
from sklearn.pipeline import make_pipeline

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.estimators.base import OnnxModel
from baldur.paper import PaperClassifier

pytestmark = pytest.mark.usefixtures("one_repeat")

GETTER = {"importance_getter": "feature_importances_", "threshold": 1e-12}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 6)), columns=[f"<b>{i}</b>" for i in range(6)])
    table["site"] = rng.choice(["Oslo", "Rome", "Lima"], 120)
    return table


@pytest.fixture(scope="module")
def y(frame):
    noise = np.random.default_rng(1).normal(size=len(frame))
    return (2 * frame["<b>3</b>"] - 2 * (frame["site"] == "Rome") + noise > 0).to_numpy()


@pytest.fixture(scope="module")
def model(frame, y):
    views = {"second": ["site", "<b>5</b>", "<b>3</b>"], "first": ["<b>0</b>", "<b>1</b>"]}
    return BaldurClassifier(views, members=("spike_slab",)).fit(frame, y)


def test_results_are_shown_below_the_diagram_and_escaped(model):
    diagram, results = model._repr_html_().split('<div class="baldur-results">')
    assert model._repr_mimebundle_()["text/html"].endswith(results)
    assert "sk-top-container" in diagram
    assert "&lt;b&gt;3&lt;/b&gt;" in results
    assert "<b>" not in results
    assert "second" in results
    assert "held-out" in results


def test_every_listed_attribute_can_be_read(model):
    """Notebooks complete names by reading attributes, and the diagram lists fitted ones."""
    for name in dir(model):
        getattr(model, name)


def test_the_diagram_is_left_alone_before_fit_and_in_text_mode(model):
    assert "baldur-results" not in BaldurClassifier()._repr_html_()
    assert "baldur-results" not in make_pipeline(BaldurClassifier())._repr_html_()
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_the_paper_estimators_show_their_results_too():
    X = np.random.default_rng(0).normal(size=(40, 3))
    shown = PaperClassifier(max_iter=30).fit(X, X[:, 0] > 0)._repr_html_()
    assert "baldur-results" in shown


def test_importances_are_one_value_per_input_column(model, frame):
    found = pd.Series(model.feature_importances_, index=frame.columns)
    assert found.sum() == pytest.approx(1.0)
    # Columns that are in no view, whatever the order of the views.
    assert (found[["<b>2</b>", "<b>4</b>"]] == 0).all()
    assert found["<b>3</b>"] > 0.2
    assert found["site"] > 0.2
    weights = np.abs(model.coef_scaled_["second"]).sum(axis=0)
    levels = model.feature_info_["second"]["column"].to_numpy() == "site"
    total = weights.sum() + np.abs(model.coef_scaled_["first"]).sum()
    assert found["site"] == pytest.approx(weights[levels].sum() / total)


def test_select_from_model_passes_the_selected_columns_on():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    y = 2 * X[:, 6] - 2 * X[:, 1] + rng.normal(size=120)
    model = BaldurRegressor({"a": slice(4, 8), "b": [3, 1, 0]}, members=("spike_slab",))
    selector = SelectFromModel(model, **GETTER).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [1, 6]
    np.testing.assert_array_equal(selector.transform(X), X[:, [1, 6]])


def test_importances_follow_the_views_of_a_container():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(80, 2)), rng.normal(size=(80, 3))
    model = BaldurClassifier(members=("pooled",)).fit(MultiView({"a": a, "b": b}), b[:, 1] > 0)
    assert model.feature_importances_.argmax() == 3
    assert not hasattr(BaldurClassifier(), "feature_importances_")


def test_onnx_is_a_path_or_has_a_short_repr(tmp_path):
    pytest.importorskip("onnx")
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = BaldurClassifier(members=("pooled",)).fit(X, X[:, 0] > 0)
    content = model.to_onnx()
    assert isinstance(content, OnnxModel)
    assert len(repr(content)) < 80
    path = model.to_onnx(tmp_path / "model.onnx")
    assert path == tmp_path / "model.onnx"
    assert path.read_bytes() == content
