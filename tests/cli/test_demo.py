"""The demonstration, from nothing to its table, within two minutes."""

import time

import pandas as pd
import pytest


@pytest.mark.slow
def test_demo_takes_less_than_two_minutes(run, tmp_path):
    started = time.monotonic()
    done = run("demo", "--out", tmp_path / "demo", "--jobs", "2")
    seconds = time.monotonic() - started
    assert done.returncode == 0, done.stderr
    print(f"demo: {seconds:.0f} s\n{done.stdout}")
    assert seconds < 120
    table = pd.read_csv(tmp_path / "demo" / "results" / "table.csv").set_index("model")
    assert len(table) == 5
    assert table.loc["BALDUR", "auc"] > 0.8
    assert str(tmp_path / "demo" / "results") in done.stdout
    answer = done.stdout.split("BALDUR on all 215 rows: ")[1].splitlines()
    assert "features selected" in answer[0]
    assert any(line.startswith("Loss on held-out rows") for line in answer)
    assert sum("sleep" in line for line in answer) >= 5
    again = run("demo", "--out", tmp_path / "demo", "--jobs", "1")
    assert again.stdout == done.stdout


def test_demo_study_is_well_formed(tmp_path):
    from baldur.study import load_study
    from baldur.study.data import read_study
    from baldur.study.examples import write_demo

    study = load_study(write_demo(tmp_path / "demo"))
    assert [m.name for m in study.models][-1] == "BALDUR"
    assert len(study.models) == 5
    found = read_study(study)
    assert found.data.shape[0] == 215
    assert found.positive == "PD"
