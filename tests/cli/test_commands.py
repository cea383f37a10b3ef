"""The commands, in this process: what they write, say and return."""

import io
import json
import re
import resource
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w
from rich.console import Console
from typer.testing import CliRunner

from baldur.baselines import BASELINES
from baldur.cli import app
from baldur.cli.screen import Screen, _interval, _p
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.evaluation.progress import Progress
from baldur.evaluation.results import Results
from baldur.study import load_study
from cli.conftest import fitting
from pages import write_folder

COMMANDS = ["init", "evaluate", "fit", "predict", "report", "demo", "models", "simulate"]


def test_help_names_every_command_and_option():
    runner = CliRunner()
    found = runner.invoke(app, ["--help"], env={"COLUMNS": "120"})
    assert found.exit_code == 0
    assert all(name in found.output for name in COMMANDS)
    for name in COMMANDS:
        page = runner.invoke(app, [name, "--help"], env={"COLUMNS": "120"})
        assert page.exit_code == 0
        assert "Usage:" in page.output


def test_version(call):
    code, out, _ = call("--version")
    assert code == 0
    assert out.startswith("baldur ")


def test_models_lists_every_row_with_what_it_is(call):
    code, out, _ = call("models")
    assert code == 0
    for name, entry in BASELINES.items():
        line = next(one for one in out.splitlines() if one.startswith(f"{name}  "))
        assert len(line.removeprefix(name).split()) > 1
        assert ("yes" in line) == (entry.regressor is not None)
    assert any(one.startswith("BALDUR  ") and "yes" in one for one in out.splitlines())


def test_commands_start_within_a_second(run):
    """Only what a command needs is imported; the clock of a busy machine is no judge of that."""
    code = (
        "import sys; from baldur.cli import app; from typer.testing import CliRunner; "
        "r = CliRunner(); "
        "assert all(r.invoke(app, a).exit_code == 0 for a in "
        "(['--help'], ['--version'], ['models'], ['evaluate', '--help'], ['fit', '--help'])); "
        "print(sorted({'numpy', 'pandas', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    best = min(_seconds(run, "models") for _ in range(3))
    assert best < 1.0


def _seconds(run, *arguments):
    """Processor time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run(*arguments).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_init_writes_a_file_that_loads(call, tmp_path):
    file = tmp_path / "study.toml"
    assert call("init", file)[0] == 0
    study = load_study(file)
    assert [m.name for m in study.models] == ["BALDUR", "LSVM-l1", "RF"]
    code, _, err = call("init", file)
    assert code == 2
    assert "--force" in err
    assert call("init", file, "--force")[0] == 0
    assert call("init", tmp_path / "no" / "study.toml")[0] == 2


def test_init_gives_editors_a_schema(call, tmp_path):
    assert call("init", tmp_path / "mine.toml")[0] == 0
    first, *_ = (tmp_path / "mine.toml").read_text().splitlines()
    assert first == "#:schema mine.schema.json"
    schema = json.loads((tmp_path / "mine.schema.json").read_text())
    code, out, _ = call("init", "--schema")
    assert code == 0
    assert json.loads(out) == schema
    assert set(tomllib.loads((tmp_path / "mine.toml").read_text())) <= set(schema["properties"])


def test_the_documentation_names_every_key_of_a_study_file(call):
    text = (Path(__file__).parents[2] / "docs" / "howto" / "study.md").read_text()
    schema = json.loads(call("init", "--schema")[1])
    sections = [schema, *(part for name, part in schema["$defs"].items() if "View" not in name)]
    keys = {key for section in sections for key in section["properties"]}
    assert [key for key in sorted(keys) if f"`{key}`" not in text and f"[{key}" not in text] == []


def test_evaluate_prints_the_table_and_where_results_lie(call, study):
    code, out, err = call("evaluate", study, "--jobs", "1")
    assert code == 0
    assert "% Features selected" in out
    assert "LSVM-l1" in out
    assert str(study.parent / "results") in out
    assert "215 samples: 119 PD (positive), 96 control" in err  # what --check says comes first
    assert "corrected t-test" in err
    found = pd.read_csv(study.parent / "results" / "differences.csv").query("metric == 'auc'")
    said = [
        text
        for d, low, high in found[["difference", "low", "high"]].to_numpy()
        for text in (f"{d:+.3f} [{low:.3f}, {high:.3f}]", f"{-d:+.3f} [{-high:.3f}, {-low:.3f}]")
    ]
    assert sum(text in err for text in said) == err.count(", p ") > 0
    code, out, err = call("evaluate", study, "--quiet")
    assert code == 0
    assert err == ""


def test_check_reads_without_running(call, study):
    code, _, err = call("evaluate", study, "--check")
    assert code == 0
    assert "in order" in err
    assert "215 samples: 119 PD (positive), 96 control" in err
    assert "jobs" in err
    assert not (study.parent / "results" / "jobs").exists()


def test_check_warns_and_strict_refuses(call, tmp_path):
    wrong = Path(__file__).parents[1] / "study" / "wrong_data" / "duplicated_rows" / "study.toml"
    code, _, err = call("evaluate", wrong, "--check")
    assert code == 0
    assert [line for line in err.splitlines() if line.startswith("Warning: ")] == [
        "Warning: " + (wrong.parent / "expected.txt").read_text().strip()
    ]
    code, _, err = call("evaluate", wrong, "--check", "--strict")
    assert code == 2
    assert "Error: study.toml: views.blood: samples 'p03/p20'" in err
    code, _, err = call("evaluate", wrong, "--strict", "--out", tmp_path / "out")
    assert code == 2


def test_wrong_input_leaves_with_two_and_one_line(call, study, tmp_path):
    for arguments in (
        ("evaluate", tmp_path / "no.toml"),
        ("evaluate", study, "--jobs", "0"),
        ("fit", study, "--model", "XYZ", "--out", tmp_path / "m"),
        ("predict", tmp_path, study, "--out", "-"),
        ("predict", tmp_path, study, "--out", "-", "--missing", "guess"),
        ("simulate", "mars", "--out", tmp_path / "s"),
        ("simulate", "biofind", "--out", study.parent),
    ):
        code, out, err = call(*arguments)
        assert code == 2, arguments
        assert out == ""
        assert err.startswith("Error: ")
        assert len(err.strip().splitlines()) == 1
    assert call("evaluate")[0] == 2
    assert call("nonsense")[0] == 2


def test_fit_of_a_baseline_says_how_to_save_it(call, study, tmp_path):
    for arguments in ((), ("--model", "MV-PLS")):
        code, _, err = call("fit", study, *arguments, "--out", tmp_path / "model")
        assert code == 2
        assert "cannot be saved" in err
        assert "--model" in err
        assert "skops" in err
    assert not (tmp_path / "model").exists()


def test_a_failing_model_leaves_with_one_and_a_table(call, study):
    text = study.read_text()
    study.write_text(text + '\n[[models]]\nname = "bad"\nestimator = "sklearn.svm.NuSVC"\n'
                     "settings = { nu = 0.99 }\n")  # fmt: skip
    code, out, _ = call("evaluate", study, "--quiet")
    assert code == 1
    assert "bad failed: ValueError" in out
    assert "LSVM-l1" in out


@pytest.mark.usefixtures("one_repeat")
def test_fit_then_predict(call, study, tmp_path):
    model = tmp_path / "model"
    study = fitting(study)
    assert call("fit", study, "--model", "BALDUR", "--out", model)[0] == 0
    assert json.loads((model / "manifest.json").read_text())["details"]["model"] == "BALDUR"
    code, _, err = call("fit", study, "--out", model)
    assert code == 2
    assert "--force" in err
    assert call("fit", study, "--out", model, "--force")[0] == 0
    new = study.parent / "new.toml"
    new.write_text(
        tomli_w.dumps(
            {
                "samples": {"file": "samples.csv", "id": "sample"},
                "views": {"sleep": {"file": "sleep.csv"}, "genetic": {"file": "genetic.csv"}},
            }
        )
    )
    code, out, err = call("predict", model, new, "--out", tmp_path / "p.csv")
    assert code == 0
    assert "Predictions of 215 samples" in out
    assert "'demographical' is absent" in err
    frame = pd.read_csv(tmp_path / "p.csv")
    assert list(frame.columns) == [
        "sample",
        "predicted",
        *("p_control", "p_control_lower", "p_control_upper"),
        *("p_PD", "p_PD_lower", "p_PD_upper"),
        "views_used",
        "flags",
    ]
    code, out, _ = call("predict", model, new, "--out", "-")
    assert code == 0
    assert out == (tmp_path / "p.csv").read_text()


def test_simulated_studies_are_the_same_for_one_seed(call, tmp_path):
    for name in ("a", "b"):
        assert call("simulate", "multiview", "--out", tmp_path / name, "--seed", "4")[0] == 0
    files = sorted(f.name for f in (tmp_path / "a").iterdir())
    assert files == ["samples.csv", "study.toml", "truth.csv", "view0.csv", "view1.csv"]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_last_line_of_progress_is_shown_once(capsys):
    with Screen().progress() as show:
        for done in (1, 2, 2):
            show(Progress(total=2, done=done))
    assert capsys.readouterr().err.count("2 of 2 jobs, done") == 1


def test_one_is_not_a_plural(call, tmp_path):
    (tmp_path / "samples.csv").write_text(
        "id,y\n" + "".join(f"p{k},{'ab'[k % 2]}\n" for k in range(40)) + "p40,\n"
    )
    values = [-9, *(5 + (k * 7 % 11) / 3 for k in range(1, 39))]
    (tmp_path / "blood.csv").write_text(
        "id,iron\n" + "".join(f"p{k},{value:.2f}\n" for k, value in enumerate(values))
    )
    study = tmp_path / "study.toml"
    study.write_text(
        'models = ["Dummy"]\n[samples]\nfile = "samples.csv"\nid = "id"\n[outcome]\n'
        'column = "y"\n[views.blood]\nfile = "blood.csv"\n'
    )
    _, _, shown = call("evaluate", study, "--check")
    assert "1 sample has no 'y' and is left out" in shown
    assert "1 sample with 'y' has a missing view and is left out" in shown
    assert "-9 occurs 1 time in 'iron'" in shown
    assert "look at the warning first" in shown
    assert not re.search(r"\b1 (samples|warnings|features|models|times)\b", shown)


@pytest.mark.parametrize(
    ("p", "said"),
    [(0.0, ", p < 0.001"), (0.00049, ", p < 0.001"), (0.0005, ", p = 0.001"), (1.0, ", p = 1.000"),
     (float("nan"), "")],
)  # fmt: skip
def test_a_p_value_is_never_0(p, said):
    assert _p(p) == said


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((0.03, 0.01, 0.05), "+0.030 [0.010, 0.050]"),
        ((-0.03, -0.05, -0.01), "-0.030 [-0.050, -0.010]"),
        ((0.0001, -0.02, 0.02), "0.000 [-0.020, 0.020]"),
        ((-0.0001, -0.02, 0.02), "0.000 [-0.020, 0.020]"),
        ((0.03, 0.0002, 0.05), "+0.0300 [0.0002, 0.0500]"),
        ((0.03, float("nan"), 0.05), "+0.030"),
    ],
)
def test_differences_show_on_which_side_of_0_they_lie(ends, said):
    assert _interval(*ends, digits=3, sign=True) == said


@pytest.mark.usefixtures("one_repeat")
def test_fit_tells_what_it_found_and_predict_why(call, quick, tmp_path):
    source = quick[0].parent
    parts = {
        "samples": {"file": "samples.csv", "id": "sample"},
        "outcome": {"column": "diagnosis", "positive": "patient"},
        "views": {view: {"file": f"{view}.csv"} for view in ("blood", "brain")},
    }
    study = source / "answer.toml"
    study.write_text(tomli_w.dumps({**parts, "models": [{"name": "BALDUR"}]}))
    code, _, said = call("fit", study, "--out", tmp_path / "model")
    assert code == 0, said
    assert "features selected" in said
    assert "Loss on held-out rows: " in said
    assert "{}" not in said
    table = pd.read_csv(tmp_path / "model" / "features.csv")
    assert {"view", "feature", "weight", "weight_scaled", "lower", "upper"} <= set(table.columns)
    assert set(table["output"]) == {"patient"}
    new = source / "new.toml"
    new.write_text(tomli_w.dumps({"samples": parts["samples"], "views": parts["views"]}))
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


@pytest.fixture(scope="module")
def several(few_resamples):
    sim = make_multiview(60, {"a": 3}, random_state=0)
    labels = sim.target[:, None].repeat(2, axis=1)
    labels[:9, 1] = 1 - labels[:9, 1]
    return nested_cv(["Ridge logistic", "Dummy"], sim.data, labels, outer=2, inner=2)


def shown(results):
    stream = io.StringIO()
    screen = Screen()
    screen.out = screen.notice = Console(file=stream, width=200)
    screen.study(results)
    return stream.getvalue()


def test_the_mean_and_every_outcome_are_shown(several, tmp_path):
    text = shown(write_folder(several, tmp_path))
    assert "Mean AUC of Ridge logistic minus that of the others" in text
    assert "label 1: Ridge logistic" in text
    assert shown(Results.read(tmp_path)) == text


# -- The demonstration, from nothing to its table, within two minutes -----------------------------


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
    from baldur.study.simulate import write_demo

    study = load_study(write_demo(tmp_path / "demo"))
    assert [m.name for m in study.models][-1] == "BALDUR"
    assert len(study.models) == 5
    found = read_study(study)
    assert found.data.shape[0] == 215
    assert found.positive == "PD"
