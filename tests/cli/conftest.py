"""The command as a process of its own, and a small study for it."""

import contextlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w

from baldur.cli import main
from baldur.datasets import make_multiview
from baldur.study import evaluate_study, load_study, simulate_study
from cli.places import copy_of, disk, results  # noqa: F401 disk is a fixture

SOURCE = Path(__file__).resolve().parents[2] / "src"
# A shell starts its background jobs with Ctrl-C ignored, and so would every process below them.
CODE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from baldur.cli import main; main()"
)

MODELS = [
    {"name": "Ridge logistic", "grid": {"C": [0.1, 1.0]}},
    {"name": "LSVM-l1", "grid": {"c_ratio": [3.0, 10.0]}},
    {"name": "MV-PLS", "grid": {"n_components": [1, 2]}},
]


QUICK = {"name": "BALDUR", "settings": {"members": ["pooled"], "margin": 0.0}}
"""A model that can be saved."""


def fitting(study):
    """Write a study of the quick model beside another study, and return its file."""
    file = study.with_name("fitting.toml")
    file.write_text(tomli_w.dumps({**tomllib.loads(study.read_text()), "models": [QUICK]}))
    return file


def without_page(arguments):
    """Return the arguments; the page, which takes seconds, has tests of its own."""
    return [*map(str, arguments), *(["--no-report"] if arguments[:1] == ("evaluate",) else [])]


def command(*arguments):
    return [sys.executable, "-c", CODE, *without_page(arguments)]


def environment():
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


@pytest.fixture(scope="module", autouse=True)
def quick_intervals(few_resamples):
    """No test of a command is about the width of an interval."""


@pytest.fixture
def run():
    """Run the command to its end."""

    def run_command(*arguments, **keywords):
        return subprocess.run(
            command(*arguments),
            env=environment(), text=True, timeout=900, check=False,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **keywords},
        )  # fmt: skip

    return run_command


@pytest.fixture
def start():
    """Start the command in a session of its own; what is left of it is ended afterwards."""
    started = []

    def start_command(*arguments):
        process = subprocess.Popen(
            command(*arguments),
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start_command
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.communicate()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A study file with three quick models."""
    folder = tmp_path_factory.mktemp("simulated")
    return simulate_study(
        "biofind", folder / "study", scale=0.0005, models=MODELS, folds={"outer": 2, "inner": 2}
    )


@pytest.fixture
def study(simulated, tmp_path):
    """A copy of it, to change."""
    return copy_of(simulated, tmp_path / "study")


def small_study(folder, models, folds):
    """Write a study of 40 people; returns its file and the results of one undisturbed run."""
    sim = make_multiview(40, {"blood": 3, "brain": 6}, random_state=0)
    ids = [f"p{i:02d}" for i in range(40)]
    samples = {"sample": ids, "diagnosis": np.array(["control", "patient"])[sim.target]}
    pd.DataFrame(samples).to_csv(folder / "samples.csv", index=False)
    for view in sim.data.view_names:
        frame = pd.DataFrame(sim.data.view(view).read(), index=pd.Index(ids, name="sample"))
        frame.add_prefix("x").to_csv(folder / f"{view}.csv")
    file = folder / "study.toml"
    file.write_text(tomli_w.dumps({
        "samples": {"file": "samples.csv", "id": "sample"},
        "outcome": {"column": "diagnosis", "positive": "patient"},
        "views": {view: {"file": f"{view}.csv"} for view in sim.data.view_names},
        "folds": folds,
        "models": models,
    }))  # fmt: skip
    return file, results(evaluate_study(load_study(file), output=folder / "whole").folder)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A study of a dozen jobs that take no time, and its results."""
    models = [{"name": "Ridge logistic", "grid": {"C": [0.1, 1.0]}},
              {"name": "MV-PLS", "grid": {"n_components": [1, 2]}}]  # fmt: skip
    return small_study(tmp_path_factory.mktemp("quick"), models, {"outer": 2, "inner": 2})


@pytest.fixture(scope="module")
def steady(tmp_path_factory):
    """A study of 24 jobs, half of which take a moment, and its results."""
    forest = {"n_estimators": 50}
    models = [{"name": "Ridge logistic", "grid": {"C": [0.1, 1.0]}},
              {"name": "RF", "settings": forest, "grid": {"max_features": ["sqrt", 0.5]}},
              ]  # fmt: skip
    return small_study(tmp_path_factory.mktemp("steady"), models, {"outer": 4, "inner": 3})


@pytest.fixture
def call(monkeypatch, capsys):
    """Call `main` as the shell does; returns exit code, output and errors."""

    def call_main(*arguments):
        monkeypatch.setattr("sys.argv", ["baldur", *without_page(arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return left.value.code or 0, said.out, said.err

    return call_main
