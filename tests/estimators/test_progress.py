"""Lines that a fit prints with verbose=1: what is done, and how long it will take."""

import numpy as np
import pytest

from baldur import BaldurClassifier
from baldur.estimators import default_fit
from baldur.estimators.default_fit import duration, progress


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose only entry is the time; every line is shown."""
    now = [0.0]
    monkeypatch.setattr(default_fit.time, "monotonic", lambda: now[0])
    return now


def test_time_left_is_extrapolated_from_the_part_that_is_done(clock, capsys):
    with progress(1, "Model") as watch:
        clock[0] = 10.0
        watch({"event": "2 of 8 batches are fitted", "done": 0.25})
        clock[0] = 40.0
        watch({"bound": -12.3, "features": [3, 40]})
    assert capsys.readouterr().err.splitlines() == [
        "Model: 2 of 8 batches are fitted, about 30 s left",
        "Model: iteration 2, 43 features in the model",
        "Model: finished in 40 s",
    ]


def test_many_short_steps_are_a_few_lines(clock, capsys):
    with progress(1, "Model") as watch:
        for step in range(100):
            clock[0] = 0.05 * step
            watch({"event": "a step"})
    assert len(capsys.readouterr().err.splitlines()) == 4


def test_nothing_is_printed_unless_asked_for_or_after_an_error(capsys):
    with progress(0, "Model") as watch:
        watch({"event": "a step"})
    with pytest.raises(KeyboardInterrupt), progress(1, "Model"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == ""


def test_durations_in_words():
    assert [duration(s) for s in (0.1, 59, 200, 7500)] == ["1 s", "59 s", "3 min", "2 h 05 min"]


@pytest.mark.usefixtures("one_repeat")
def test_a_fit_prints_what_a_person_understands(constants, capsys):
    constants(EVERY=0.0)
    X = np.random.default_rng(0).normal(size=(60, 6))
    BaldurClassifier(members=("pooled",), verbose=1).fit(X, X[:, 0] > 0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("BaldurClassifier: the ensemble is fitted on all samples, about ")
    assert "1 of 1 batches of inner folds are fitted, about" in lines[1]
    assert lines[-1].startswith("BaldurClassifier: finished in ")
    assert not any("nan" in line or "None" in line for line in lines)
