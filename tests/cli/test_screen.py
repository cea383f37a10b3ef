"""What the screen shows of results: the same of those in memory and of their folder."""

import io

import pytest
from rich.console import Console

from baldur.cli.screen import Screen
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.evaluation.results import Results
from baldur.study.results_folder import write_results


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
    text = shown(write_results(several, tmp_path))
    assert "Mean AUC of Ridge logistic minus that of the others" in text
    assert "label 1: Ridge logistic" in text
    assert shown(Results.read(tmp_path)) == text
