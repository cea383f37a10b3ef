"""Fixtures shared by all tests."""

import os
from functools import partial
from pathlib import Path

import pytest

from baldur.evaluation.clinical.bootstrap_intervals import Bootstrap
from constants import constants as with_constants
from constants import set_constants

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real data sets; tests that need it are skipped where it is absent."""
    named = os.environ.get("BALDUR_SHARED_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(
            f"no shared data folder at {folder}; set BALDUR_SHARED_DATA to its path to run this"
        )
    return folder


@pytest.fixture
def constants(monkeypatch):
    """Return a function that sets constants of the package by name, for this test."""
    return partial(set_constants, monkeypatch)


@pytest.fixture(scope="module")
def one_repeat():
    """Deal rows to the inner folds of the default as rarely as it ever does.

    For tests that would say the same whatever the folds are: a fit then takes a tenth of the time.
    """
    with with_constants(MOST_REPEATS=1):
        yield


@pytest.fixture(scope="module")
def few_resamples():
    """Draw people for intervals as rarely as is allowed.

    For tests that would say the same of any intervals: half of the time that a small study takes
    goes into two thousand resamples of its people.
    """
    whole = Bootstrap.__init__

    def few(self, units, resamples=100, level=0.95, random_state=0):
        whole(self, units, min(resamples, 100), level, random_state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bootstrap, "__init__", few)
        yield


@pytest.fixture(scope="module")
def few_cycles():
    """Let the mean-field fit take few cycles for each step of gamma.

    For tests that would say the same of any fit: it then takes a fifth of the time.
    """
    with with_constants(N_INNER=3):
        yield
