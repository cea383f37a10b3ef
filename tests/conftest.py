"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest

from baldur import inner_folds

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


@pytest.fixture(scope="module")
def one_repeat():
    """Deal rows to the inner folds of the default as rarely as it ever does.

    For tests that would say the same whatever the folds are: a fit then takes a tenth of the time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inner_folds, "MOST_REPEATS", 1)
        yield
