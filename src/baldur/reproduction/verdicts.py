"""Verdicts: the outcomes that a claim may have, and the rules that decide them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from baldur.report.formatting import count, decimals, in_words, listed, number
from baldur.reproduction.differences import Difference
from baldur.reproduction.evidence import Evidence

HOLDS, IN_PART, OPEN, FAILS, UNTESTED = (
    "reproduced", "reproduced in part", "not decided", "not reproduced", "not tested",
)  # fmt: skip
"""Verdicts; "not decided" where intervals leave both open, and "not tested" where a row is missing
that could decide."""


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds in a run, and the figures that decide it."""

    outcome: str
    figures: str
    why: str = ""


NO_ROW = Verdict(UNTESTED, "The rows that the claim is about were not run.")


@dataclass(frozen=True)
class Claim:
    """A claim of the paper in our words, with the verdict of the run."""

    text: str
    verdict: Verdict


def decided(evidence: Evidence, model: str, others: list[str], metric: str, name: str) -> Verdict:
    """Decide whether a model is better than each of some others."""
    if model not in evidence.table.index or not others:
        return NO_ROW
    gaps = sorted(evidence.differences(model, others, metric), key=_unknown_last)
    better = [gap for gap in gaps if gap.known and gap.low > 0]
    worse = [gap for gap in gaps if gap.known and gap.high < 0]
    unknown = [gap.other for gap in gaps if not gap.known]
    open_ = len(gaps) - len(unknown) - len(better) - len(worse)
    parts = [f"better than {len(better)} of {count(len(gaps), 'baseline')}"]
    parts += [f"worse than {len(worse)}"] if worse else []
    parts += [f"not decided for {open_}"] if open_ else []
    parts += [f"not tested for {len(unknown)}"] if unknown else []
    figures = (
        f"{name[0].upper()}{name[1:]} {in_words(*evidence.pooled(model, metric))}; "
        f"{', '.join(parts)}."
    )
    if gaps[0].known:
        value, ends = gap_texts(gaps[0])
        figures += (
            f" Smallest difference (simultaneous interval): {gaps[0].other} {value} ({ends})."
        )
    outcome = outcome_of(gaps)
    why = ""
    if outcome == UNTESTED:
        why = f"No figures or no interval: {listed(unknown, most=len(unknown))}."
    if outcome == FAILS:
        why = f"Better here: {listed(gap.other for gap in worse)}."
    if outcome == OPEN:
        first = "the highest" if gaps[0].value > 0 else "not the highest"
        low, other = min((gap.low, gap.other) for gap in gaps)
        most = number(-low, decimals([low]))
        why = (
            f"Its estimate is {first}, and no baseline is shown to be better. By the simultaneous "
            f"intervals a baseline can be better by at most {most} ({other})."
        )
    return Verdict(outcome, figures, why)


def _unknown_last(gap: Difference) -> tuple[bool, float]:
    return not gap.known, gap.value


def outcome_of(gaps: Sequence[Difference]) -> str:
    """Return the verdict on a claim that a model is better than each of some others."""
    if any(gap.known and gap.high < 0 for gap in gaps):
        return FAILS
    if not all(gap.known for gap in gaps):
        return UNTESTED
    return HOLDS if all(gap.low > 0 for gap in gaps) else OPEN


def gap_texts(gap: Difference) -> tuple[str, str]:
    """Return a difference, and the ends of its interval, as text.

    Shapes: returns (str, str).
    """
    digits = decimals((gap.low, gap.high))
    value, low, high = (number(x, digits, sign=True) for x in (gap.value, gap.low, gap.high))
    return value, f"{low} to {high}"


def by_folds(holds: np.ndarray, what: str, more: str) -> Verdict:
    """Decide a claim by the folds in which it holds: in all of them, in some, or in none."""
    figures = f"{what} in {int(holds.sum())} of {count(len(holds), 'fold')}. {more}".strip()
    return Verdict(HOLDS if holds.all() else IN_PART if holds.any() else FAILS, figures)
