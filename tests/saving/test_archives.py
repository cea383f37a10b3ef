"""Folders as they were once written: they load with every version, and predict what they did."""

import json

import numpy as np
import pytest

import baldur
from saving.make_archives import ARCHIVES, answers, rows_from_json
from saving.models import manifest_of

EXPECTED = json.loads((ARCHIVES / "expected.json").read_text())


@pytest.mark.filterwarnings("ignore::baldur.exceptions.ShiftWarning")
@pytest.mark.parametrize("name", EXPECTED)
def test_stored_folders_predict_what_they_did(name):
    stored = EXPECTED[name]
    rows = rows_from_json(stored["rows"])
    model = baldur.load(ARCHIVES / name)
    for method, found in answers(model, rows).items():
        np.testing.assert_allclose(found, stored[method], rtol=1e-9, atol=1e-9)
    if hasattr(model, "explain"):
        assert len(model.explain(rows))
        assert str(model.summary())


def test_there_are_folders_of_this_schema_with_every_kind_of_predictor(tmp_path):
    again = baldur.load(next(ARCHIVES / name for name in EXPECTED if "regression" in name))
    schema = manifest_of(baldur.save(again, tmp_path / "model"))["schema"]
    here = [name for name in EXPECTED if name.startswith(f"schema{schema}_")]
    assert {name.removeprefix(f"schema{schema}_") for name in here} >= {
        "binary", "three_classes", "training_rows", "regression", "mean_field", "prepared",
    }  # fmt: skip
    inside = [n for n in here if manifest_of(ARCHIVES / n)["training_rows_inside"]]
    assert inside == [f"schema{schema}_training_rows"]
    assert set(EXPECTED) == {folder.name for folder in ARCHIVES.iterdir() if folder.is_dir()}
