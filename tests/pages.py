"""Results folders of comparisons in memory, and pages that are made in no time."""

import itertools
from contextlib import contextmanager

import pytest

from baldur.evaluation.results import Results
from baldur.report import build
from baldur.study.results_folder import write_results


def write_folder(result, folder):
    """Write a comparison as a study writes it; returns its `Results`."""
    return write_results(Results(result), folder)


@contextmanager
def without_figures():
    """Make pages without figures, which take most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("report.render", "reproduction.page"):
            patch.setattr(f"baldur.{module}.draw", lambda plans: ([], []))
        yield


@contextmanager
def numbered_pages():
    """Pages whose making takes no time, each another, to test where they go."""
    number = itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "render", lambda page: f"page {next(number)}" + 90_000 * " ")
        patch.setattr(build, "make_page", lambda *a, **k: None)
        yield
