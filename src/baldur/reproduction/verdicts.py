"""Verdicts: the outcomes that a claim may have, and the rules that decide them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baldur.report.formatting import count, in_words, number
from baldur.reproduction.evidence import Difference, Evidence

__all__ = [
    "FAILS", "HOLDS", "IN_PART", "OPEN", "UNTESTED", "Claim", "Verdict", "by_folds", "decided",
    "gap_text", "no_row",
]  # fmt: skip

HOLDS, IN_PART, OPEN, FAILS, UNTESTED = (
    "reproduced", "reproduced in part", "not decided", "not reproduced", "not tested",
)  # fmt: skip
"""Verdicts. "Not decided": the 95 % interval of the difference includes 0."""


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in a run, and the figures that decide it."""

    outcome: str
    figures: str
    why: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper in our words, with the verdict of the run."""

    text: str
    verdict: Verdict


def decided(evidence: Evidence, model: str, among: list[str], metric: str, name: str) -> Verdict:
    """Decide whether a model is better than the best of some others, by the paired bootstrap.

    Parameters
    ----------
    evidence : Evidence
        The figures.
    model : str
        The model that is claimed to be first.
    among : list of str
        The others.
    metric : str
        What is compared.
    name : str
        What the model is called in a sentence.

    Returns
    -------
    Verdict
        "Not decided" where the interval of the difference includes 0.
    """
    best = evidence.best(metric, among)
    gap = evidence.difference(model, best, metric)
    ours, theirs = (in_words(*evidence.pooled(m, metric)) for m in (model, best))
    figures = (
        f"{name[0].upper()}{name[1:]} {ours}; best baseline, {best}, {theirs}; {gap_text(gap)}."
    )
    if not gap.known:
        return Verdict(UNTESTED, figures, "The difference could not be estimated with an interval.")
    if gap.low > 0:
        return Verdict(HOLDS, figures)
    if gap.high < 0:
        return Verdict(FAILS, figures, f"{best} is better here.")
    ahead = name if gap.value > 0 else best
    return Verdict(
        OPEN, figures, f"The point estimate of {ahead} is higher, but both may be equal."
    )


def gap_text(gap: Difference) -> str:
    """Return a difference with its interval, as a part of a sentence.

    Parameters
    ----------
    gap : Difference

    Returns
    -------
    str
    """
    return f"difference {number(gap.value, sign=True)} " + (
        f"(95 % interval {number(gap.low, sign=True)} to {number(gap.high, sign=True)})"
    )


def by_folds(holds: np.ndarray, what: str, more: str) -> Verdict:
    """Decide a claim by the folds in which it holds: in all of them, in some, or in none.

    Parameters
    ----------
    holds : ndarray of bool
        One value per fold.
    what, more : str
        What holds, and a further sentence.

    Returns
    -------
    Verdict
    """
    figures = f"{what} in {int(holds.sum())} of {count(len(holds), 'fold')}. {more}".strip()
    return Verdict(HOLDS if holds.all() else IN_PART if holds.any() else FAILS, figures)


def no_row() -> Verdict:
    """Return the verdict on a model that was not run.

    Returns
    -------
    Verdict
    """
    return Verdict(UNTESTED, "The row was not run.")
