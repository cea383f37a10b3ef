"""The ONNX graph predicts what the estimator does, in float64."""

import json

import numpy as np
import pytest

from baldur.cards import members
from baldur.exceptions import InputError
from saving.models import MODELS, SLOW, fitted, rows_for

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def answer(content, rows):
    """What a runtime says about rows of a container."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    notes = session.get_modelmeta().custom_metadata_map
    features, views = json.loads(notes["features"]), json.loads(notes["views"])
    cells = {v: rows.view(v).read().astype(float) for v in views}
    at = {v: {str(n): i for i, n in enumerate(rows.view(v).feature_names)} for v in views}
    x = np.empty((len(rows), len(features)))
    for j, (view, name) in enumerate(features):
        x[:, j] = cells[view][:, at[view][name]]
    absent = np.column_stack([~rows.view(v).present for v in views]).astype(float)
    return session.run(None, {"x": x, "absent": absent})


@pytest.mark.parametrize("name", [n for n in MODELS if n not in SLOW])
def test_the_graph_agrees_with_the_estimator(name):
    model, rows = fitted(name), rows_for(name)
    found = answer(model.to_onnx(), rows)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found[0], model.predict_proba(rows), rtol=0, atol=1e-9)
        return
    mean, std = model.predict(rows, return_std=True)
    np.testing.assert_allclose(found[0][:, 0], mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[1][:, 0], std, rtol=0, atol=1e-9)


def test_it_is_written_where_told_and_refused_where_it_is_too_large(tmp_path, monkeypatch):
    model = fitted("dense, Grams")
    content = model.to_onnx(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == content
    monkeypatch.setattr(members, "MOST_NUMBERS", 100)
    with pytest.raises(InputError, match=r"no ONNX of this model\. A model of 93 features"):
        model.to_onnx()
