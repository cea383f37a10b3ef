"""Settings of all tests, and the examples of docstrings, which pytest runs beside them."""

import pytest
from hypothesis import settings

from baldur.inference import inner_folds
from baldur.paper import run as mean_field_run

# How long an example takes depends on the machine; no test here is about time.
settings.register_profile("baldur", deadline=None)
settings.load_profile("baldur")


@pytest.fixture(autouse=True)
def quick_examples(request, monkeypatch):
    """Fit examples with one repeat of the folds, or few cycles; what they show is the same."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setattr(inner_folds, "MOST_REPEATS", 1)
        monkeypatch.setattr(mean_field_run, "N_INNER", 3)
