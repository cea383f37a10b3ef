"""The ONNX graph predicts what the estimator does, in float64."""

import json

import numpy as np
import pytest

from baldur.exceptions import InputError
from baldur.model.likelihood import logistic_rates
from baldur.saving.printed_model import onnx_bytes, printable
from saving.models import MODELS, fitted, rows_for

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def open_session(content):
    """Return a runtime that has read an ONNX file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def answer(content, rows):
    """Return what a runtime predicts for the rows of a container."""
    session = open_session(content)
    notes = session.get_modelmeta().custom_metadata_map
    features, views = json.loads(notes["features"]), json.loads(notes["views"])
    cells = {v: rows.view(v).read().astype(float) for v in views}
    at = {v: {str(n): i for i, n in enumerate(rows.view(v).feature_names)} for v in views}
    x = np.empty((len(rows), len(features)))
    for j, (view, name) in enumerate(features):
        x[:, j] = cells[view][:, at[view][name]]
    absent = np.column_stack([~rows.view(v).present for v in views]).astype(float)
    return session.run(None, {"x": x, "absent": absent})


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_agrees_with_the_estimator(name):
    model, rows = fitted(name), rows_for(name)
    found = answer(model.to_onnx(), rows)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found[0], model.predict_proba(rows), rtol=0, atol=1e-9)
        return
    mean, std = model.predict(rows, return_std=True)
    np.testing.assert_allclose(found[0][:, 0], mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[1][:, 0], std, rtol=0, atol=1e-9)


def test_it_is_written_where_told_and_refused_where_it_is_too_large(tmp_path, constants):
    model = fitted("dense, Grams")
    path = model.to_onnx(tmp_path / "model.onnx")
    assert path == tmp_path / "model.onnx"
    assert path.read_bytes() == model.to_onnx()
    constants(MAX_NUMBERS=100)
    with pytest.raises(InputError, match=r"cannot be exported to ONNX\. A model of 93 features"):
        model.to_onnx()


def test_probabilities_of_any_mean_and_variance():
    """The normal distribution function of the graph is exact to 1e-12 over its whole range."""
    printed = printable(fitted("dense, columns"))
    column = {**printed["features"][0], "mean": 0.0, "factor": 1.0, "lower": None, "upper": None}
    model = {**printed, "features": [column], "mean": [[0.0, 1.0]]}
    mean = np.linspace(-60.0, 60.0, 2001)
    for var in (0.0, 1.0, 1600.0):
        session = open_session(onnx_bytes({**model, "cov": [[[var, 0.0], [0.0, 0.0]]]}))
        given = {"x": mean[:, None], "absent": np.zeros((len(mean), 2))}
        found = session.run(None, given)[0][:, 1]
        np.testing.assert_allclose(found, logistic_rates(mean, var)[0], rtol=0, atol=1e-12)
