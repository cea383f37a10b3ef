"""The examples of docstrings, which pytest runs beside the tests."""

import pytest

from baldur.inference import inner_folds
from baldur.paper.meanfield import run as mean_field_run


@pytest.fixture(autouse=True)
def quick_examples(request, monkeypatch):
    """Fit examples with one repeat of the folds, or few cycles; what they show is the same."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setattr(inner_folds, "MOST_REPEATS", 1)
        monkeypatch.setattr(mean_field_run, "N_INNER", 3)
