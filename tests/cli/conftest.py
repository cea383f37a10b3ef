"""The command as a process of its own, and a small study for it."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from baldur.study import simulate_study

SOURCE = Path(__file__).resolve().parents[2] / "src"
# A shell starts its background jobs with Ctrl-C ignored, and so would every process below them.
CODE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from baldur.cli import main; main()"
)

MODELS = [
    {"name": "Ridge logistic", "grid": {"C": [0.1, 1.0, 10.0]}},
    {"name": "LSVM-l1", "grid": {"c_ratio": [3.0, 10.0]}},
    {"name": "MV-PLS", "grid": {"n_components": [1, 2, 3]}},
    {"name": "RF", "settings": {"n_estimators": 20}, "grid": {"max_features": ["sqrt", 0.1]}},
]


def command(*arguments):
    return [sys.executable, "-c", CODE, *map(str, arguments)]


def environment():
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


@pytest.fixture
def run():
    """Run the command to its end."""

    def run_command(*arguments, **keywords):
        return subprocess.run(
            command(*arguments),
            env=environment(), capture_output=True, text=True, timeout=300, check=False, **keywords,
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


@pytest.fixture
def study(tmp_path):
    """A study file with four quick models."""
    return simulate_study(
        "biofind", tmp_path / "study", scale=0.0005, models=MODELS, folds={"outer": 4, "inner": 3}
    )
