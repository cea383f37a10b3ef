"""The examples of docstrings, which pytest runs beside the tests."""

import pytest

from baldur import inner_folds


@pytest.fixture(autouse=True)
def quick_examples(request, monkeypatch):
    """Deal rows to the inner folds once in an example; what it shows is the same of any folds."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setattr(inner_folds, "MOST_REPEATS", 1)
