"""Fit a case, predict, and judge: finite answers that sum to one, or one of our errors."""

import signal
import time
import traceback
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from baldur.exceptions import BaldurError, NoSignalWarning, NotConvergedWarning

SECONDS = 20
OURS = (NoSignalWarning, NotConvergedWarning, UserWarning)


class Hang(BaseException):
    """A fit took more processor time than it may; no estimator can catch it by mistake."""


@dataclass
class Outcome:
    """How a case went.

    Attributes
    ----------
    verdict : str
        "answer" or "refused", which are fine, or what is wrong: "silent NaN", "foreign
        exception", "hang", "differing repeat", "foreign warning".
    said : str
        Message, or where it went wrong.
    seconds : float
        Processor time of the first run.
    """

    verdict: str
    said: str
    seconds: float

    @property
    def fine(self):
        return self.verdict in ("answer", "refused")


def run_case(case, seconds=SECONDS):
    """Run a case twice and compare.

    Parameters
    ----------
    case : Case
    seconds : float
        Processor time one run may take.
    """
    started = time.process_time()
    first = _once(case, seconds)
    used = time.process_time() - started
    if isinstance(first, Outcome):
        first.seconds = used
        if not first.fine:
            return first
    again = _once(case, seconds)
    if isinstance(first, Outcome) or isinstance(again, Outcome):
        same = (
            isinstance(again, Outcome) and isinstance(first, Outcome) and again.said == first.said
        )
        return first if same else Outcome("differing repeat", f"{first} and {again}", used)
    for what, value in first.items():
        if not np.array_equal(value, again[what]):
            return Outcome("differing repeat", what, used)
    return Outcome("answer", "", used)


def _once(case, seconds):
    """Return the answers by name, or an outcome without answers."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            answers = _limited(case, seconds)
        except Hang:
            return Outcome("hang", f"more than {seconds} s", seconds)
        except BaldurError as error:
            return Outcome("refused", f"{type(error).__name__}: {error}", 0.0)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.filename.rsplit('/src/')[-1]}:{where.lineno}"
            return Outcome("foreign exception", f"{type(error).__name__}: {error} ({place})", 0.0)
    wrong = _wrong(answers, sums=np.ndim(case.y) == 1)
    if wrong:
        return Outcome("silent NaN", wrong, 0.0)
    foreign = [w for w in heard if not issubclass(w.category, OURS)]
    if foreign:
        w = foreign[0]
        place = f"{w.filename.rsplit('/src/')[-1]}:{w.lineno}"
        return Outcome("foreign warning", f"{w.category.__name__}: {w.message} ({place})", 0.0)
    return answers


def _wrong(answers, sums):
    """Say what is wrong with some answers; nothing, for none."""
    for what, value in answers.items():
        if not np.isfinite(value).all():
            return f"{what} is not finite"
        if what.startswith("proba") and (value.min() < 0 or value.max() > 1):
            return f"{what} outside of 0 and 1"
        if what.startswith("proba") and sums and np.abs(value.sum(axis=1) - 1).max() > 1e-9:
            return f"{what} does not sum to one"
        if ("std" in what or "width" in what) and value.min() < 0:
            return f"{what} is negative"
    return ""


def _limited(case, seconds):
    """Fit and predict, within a limit of processor time."""

    def stop(*_):
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        model = clone(case.estimator).fit(case.X, case.y, **case.fit)
        return _answers(model, case)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _answers(model, case):
    answers = {"intercept_": model.intercept_, "transform": model.transform(case.X)}
    for what in ("coef_", "coef_std_", "coef_scaled_", "coef_scaled_std_"):
        for view, value in getattr(model, what, {}).items():
            answers[f"{what} {view}"] = value
    answers["view_relevance_"] = np.array(list(model.view_relevance_.values()))
    for rows, X in (("", case.X), (" of new rows", case.new)):
        if hasattr(model, "predict_proba"):
            answers["proba" + rows] = model.predict_proba(X)
            answers["odds" + rows] = model.decision_function(X)
        else:
            answers["mean" + rows], answers["std" + rows] = model.predict(X, return_std=True)
        low, high = model.predict_interval(X)
        answers["lower end" + rows], answers["width" + rows] = low, high - low
    model.summary()
    answers["explained"] = model.explain(case.new)["contribution"].to_numpy()
    return answers
