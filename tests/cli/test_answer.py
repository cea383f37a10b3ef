"""`baldur fit` says what it found, and `baldur predict --explain` why."""

import numpy as np
import pandas as pd
import pytest

from baldur.study.toml_file import toml_text


@pytest.mark.usefixtures("one_repeat")
def test_fit_tells_what_it_found_and_predict_why(call, quick, tmp_path):
    source = quick[0].parent
    parts = {
        "samples": {"file": "samples.csv", "id": "sample"},
        "outcome": {"column": "diagnosis", "positive": "patient"},
        "views": {view: {"file": f"{view}.csv"} for view in ("blood", "brain")},
    }
    study = source / "answer.toml"
    study.write_text(toml_text({**parts, "models": [{"name": "BALDUR"}]}))
    code, _, said = call("fit", study, "--out", tmp_path / "model")
    assert code == 0, said
    assert "features selected" in said
    assert "Loss on held-out rows: " in said
    assert "{}" not in said
    table = pd.read_csv(tmp_path / "model" / "features.csv")
    assert {"view", "feature", "weight", "weight_scaled", "lower", "upper"} <= set(table.columns)
    assert set(table["output"]) == {"patient"}
    new = source / "new.toml"
    new.write_text(toml_text({"samples": parts["samples"], "views": parts["views"]}))
    why = tmp_path / "why.csv"
    code, _, said = call(
        "predict", tmp_path / "model", new, "--out", tmp_path / "p.csv", "--explain", why
    )
    assert code == 0, said
    table = pd.read_csv(tmp_path / "p.csv").set_index("sample")
    assert list(table.columns) == [
        "predicted", "p_control", "p_control_lower", "p_control_upper", "p_patient",
        "p_patient_lower", "p_patient_upper", "views_used", "flags",
    ]  # fmt: skip
    assert (table["p_patient_lower"] < table["p_patient_upper"]).all()
    np.testing.assert_allclose(table["p_control_lower"], 1 - table["p_patient_upper"], atol=1e-12)
    assert set("; ".join(table["views_used"]).split("; ")) <= {"blood", "brain"}
    predicted = table["p_patient"]
    reasons = pd.read_csv(why)
    assert set(reasons["output"]) == {"patient"}
    total = reasons.groupby("sample")["contribution"].sum()
    odds = np.log(predicted) - np.log1p(-predicted)
    np.testing.assert_allclose(total.reindex(predicted.index), odds, atol=1e-9)
