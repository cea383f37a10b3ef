"""Checks of cells: codes for missing values, dates, and decimals read as categories."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import poisson

from baldur.study.checks.finding import Finding, names, option_of
from baldur.views.encode import decimal_commas
from baldur.views.validate import counted

SENTINELS = (-9.0, -99.0, -999.0, 999.0)
"""Numbers that stand for "missing" in PLINK, SPSS and many questionnaires."""
_STEPS = (-2.0, -1.0, 1.0, 2.0)
NEIGHBOURS = tuple(value + step for value in SENTINELS for step in _STEPS)
"""Numbers beside the sentinels, which stand for nothing: how often these stand apart is chance."""
_LEVEL = 0.01  # of the test whether a sentinel stands apart more often than its neighbours

_DATE_NAME = re.compile(r"(?:^|[^a-z])(?:date|datum|dob|birth|visit_?day|timestamp)", re.IGNORECASE)
# Days since 1900, as spreadsheets count: 1955 to 2064.
_SERIAL = (20_000.0, 60_000.0)
# One stray number among dates is a typing mistake, not another kind of column.
_MOST = 0.9


def comma_decimals(key: str, column: str, levels: Sequence[str]) -> list[Finding]:
    """Report a category whose levels look like numbers."""
    if not decimal_commas(levels):
        return []
    return [
        Finding(
            key,
            f"column {column!r} was read as a category of {len(levels)} levels that look like "
            f"numbers ({names(levels, 2)})",
            f"write {option_of(key, 'decimal = ' + chr(34) + ',' + chr(34))}",
        )
    ]


def sentinel_cells(cells: np.ndarray, sentinels: Sequence[float] = SENTINELS) -> dict[float, int]:
    """Return which sentinels a column holds far away from its other values, and how often.

    A sentinel is suspicious below values that are never negative, or where it lies further from
    all other values than these lie from each other.

    Shapes: cells (n_samples,).
    """
    known = cells[np.isfinite(cells)]
    special = np.isin(known, sentinels)
    rest = known[~special]
    if not special.any() or len(rest) < 2:
        return {}
    low, high = float(rest.min()), float(rest.max())
    spread = max(high - low, 1.0)
    found = {}
    for value in sentinels:
        count = int(np.sum(known == value))
        apart = value > high + spread if value > 0 else value < low - spread or low >= 0
        if count and apart:
            found[value] = count
    return found


def beyond_chance(
    found: dict[str, dict[float, int]], near: dict[float, int]
) -> dict[str, dict[float, int]]:
    """Leave out sentinels that stand apart in no more columns than the numbers beside them do.

    Among thousands of columns with negative numbers, -9 is the only negative one in some, and so
    are -8 and -10 in others.
    """
    kept = set()
    for value in SENTINELS:
        columns = sum(value in held for held in found.values())
        expected = float(np.mean([near.get(value + step, 0) for step in _STEPS]))
        if columns and (not expected or poisson.sf(columns - 1, expected) < _LEVEL):
            kept.add(value)
    left = {n: {v: k for v, k in held.items() if v in kept} for n, held in found.items()}
    return {name: held for name, held in left.items() if held}


def missing_option(key: str, codes: Sequence[str], given: Sequence[str] | None) -> str:
    """Return the line of the study file that makes codes mean "missing", and its section."""
    listed = ", ".join(f'"{code}"' for code in dict.fromkeys([*(given or []), *codes]))
    return option_of(key, f"missing = [{listed}]")


def sentinels(
    key: str, found: dict[str, dict[float, int]], given: Sequence[str] | None = None
) -> list[Finding]:
    """Report the columns of a view that hold sentinels."""
    made = []
    codes = [f"{value:.0f}" for value in SENTINELS if any(value in held for held in found.values())]
    for value in SENTINELS:
        columns = [name for name, values in found.items() if value in values]
        if not columns:
            continue
        count = sum(found[name][value] for name in columns)
        made.append(
            Finding(
                key,
                f"{value:.0f} occurs {counted(count, 'time')} in {names(columns)}, away from the "
                "other values",
                f"write {missing_option(key, codes, given)} if it stands for a missing value",
            )
        )
    return made


def dated(cells: np.ndarray, name: str) -> bool:
    """Whether the numbers of a column are dates: 20240131, or a spreadsheet's day count.

    Day counts are recognised only where the name of the column suggests a date.

    Shapes: cells (n_samples,).
    """
    known = cells[np.isfinite(cells)]
    if len(known) < 3 or (known != np.floor(known)).any():
        return False
    if np.mean((known >= 19000101) & (known <= 21001231)) >= _MOST:
        text = pd.Series(known.astype(np.int64).astype(str))
        parsed = pd.to_datetime(text, format="%Y%m%d", errors="coerce")
        return bool(parsed.notna().mean() >= _MOST)
    inside = np.mean((known >= _SERIAL[0]) & (known <= _SERIAL[1])) >= _MOST
    seconds = np.mean((known >= 1e8) & (known <= 5e9)) >= _MOST
    return bool((inside or seconds) and _DATE_NAME.search(name))


def dates(key: str, columns: Sequence[str]) -> list[Finding]:
    """Report the columns of a view that are dates."""
    if not columns:
        return []
    fix = f"write {option_of(key, f'exclude = [{columns[0]!r}]')}, or turn it into an age or a time"
    if key.startswith("covariates"):
        fix = "turn it into an age or a time, or leave the covariate out"
    return [Finding(key, f"{names(columns)}: dates read as numbers", fix)]
