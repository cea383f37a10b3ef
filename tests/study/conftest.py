"""A small study on disk, and ways to change one thing in it."""

import numpy as np
import pandas as pd
import pytest
import tomli_w

from baldur.datasets import make_multiview
from baldur.study import load_study
from baldur.study.data import read_study


@pytest.fixture(scope="module", autouse=True)
def quick_intervals(few_resamples):
    """No test of a study is about the width of an interval."""


QUICK = {"name": "BALDUR", "settings": {"members": ["pooled"], "margin": 0.0}}
"""A model that can be saved."""


def make_parts():
    """Return the study as a dictionary."""
    return {
        "title": "Small",
        "seed": 3,
        "output": "results",
        "samples": {"file": "samples.csv", "id": "sample"},
        "outcome": {"column": "diagnosis", "positive": "patient"},
        "views": {"blood": {"file": "blood.csv"}, "brain": {"file": "brain.csv"}},
        "folds": {"outer": 3, "inner": 3},
        "models": [
            {"name": "Ridge logistic", "grid": {"C": [0.1, 1.0]}},
            {"name": "LSVM-l1", "grid": {"c_ratio": [3.0, 10.0]}},
        ],
    }


def make_tables():
    """Return its tables, as frames."""
    sim = make_multiview(60, {"blood": 4, "brain": 12}, random_state=0)
    ids = [f"p{i:02d}" for i in range(60)]
    rng = np.random.default_rng(0)
    samples = pd.DataFrame(
        {
            "sample": ids,
            "diagnosis": np.array(["control", "patient"])[sim.target],
            "score": sim.truth.score,
            "age": rng.integers(40, 80, 60),
            "sex": rng.choice(["f", "m"], 60),
            "family": np.repeat([f"fam{i}" for i in range(20)], 3),
            "site": np.tile(["oslo", "rome", "lima"], 20),
            "split": np.tile(["train", "train", "test"], 20),
        }
    )
    found = {"samples": samples}
    for view in sim.data.view_names:
        frame = pd.DataFrame(sim.data.view(view).read(), columns=sim.data.feature_names[view])
        frame.insert(0, "sample", ids)
        found[view] = frame
    return found


def write_study(parts, tables, folder):
    """Write a study and its tables into a folder; returns the study file."""
    folder.mkdir(exist_ok=True)
    for name, frame in tables.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    file = folder / "study.toml"
    file.write_text(parts if isinstance(parts, str) else tomli_w.dumps(parts))
    return file


def read_file(file, **how):
    """Read what a study file names: its samples, outcome, views and preparation."""
    return read_study(load_study(file, **how))


@pytest.fixture
def parts():
    """The study, to change."""
    return make_parts()


@pytest.fixture
def tables():
    """Its tables, to change."""
    return make_tables()


@pytest.fixture
def write(tmp_path):
    """`write_study` into the folder of the test, unless another is given."""
    return lambda parts, tables, folder=tmp_path: write_study(parts, tables, folder)
