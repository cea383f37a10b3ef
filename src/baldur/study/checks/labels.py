"""Checks of labels that differ only in case or blanks, and of ids damaged by a float type."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from baldur.study.checks.finding import Finding

_POWER = re.compile(r"[+-]?\d+(?:[.,]\d+)?[eE][+-]?\d+")
_POINT_ZERO = re.compile(r"\d+\.0+")
# Above this many digits most whole numbers are not floats.
_EXACT_DIGITS = 17


def variants(key: str, column: str, labels: Iterable[str]) -> list[Finding]:
    """Report labels that are the same apart from blanks and case."""
    written: dict[str, list[str]] = {}
    for label in map(str, labels):
        written.setdefault("".join(label.split()).casefold(), []).append(label)
    twins = [sorted(forms) for forms in written.values() if len(forms) > 1]
    return [
        Finding(
            key,
            f"{column!r} has {' and '.join(map(repr, forms))}, which differ by blanks or case only",
            "write them in one way if they mean the same",
        )
        for forms in twins
    ]


def lost_ids(ids: np.ndarray) -> list[Finding]:
    """Report ids that were stored as floating-point numbers and may have lost digits."""
    key, text = "samples.id", [str(one) for one in ids]
    fix = "save the column of ids as text in the program that wrote the file"
    power = [one for one in text if _POWER.fullmatch(one)]
    if power:
        return [Finding(key, f"{len(power)} ids such as {power[0]!r} are rounded numbers", fix)]
    point = [one for one in text if _POINT_ZERO.fullmatch(one)]
    if point and len(point) == len(text):
        return [Finding(key, f"all ids are whole numbers with a point, such as {point[0]!r}", fix)]
    long = [one for one in text if one.isdigit() and len(one) >= _EXACT_DIGITS]
    # One of many such numbers may be a float by chance; all of several are not.
    if len(long) >= 3 and all(int(float(one)) == int(one) for one in long):
        what = f"{len(long)} long ids such as {long[0]!r} lost their last digits"
        return [Finding(key, what, fix)]
    return []
