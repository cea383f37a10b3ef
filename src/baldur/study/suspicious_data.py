"""What looks wrong in a study's data: values, ids, equal rows, copies of the outcome, sites."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from baldur.views import View
from baldur.views.table_encoding import decimal_commas
from baldur.views.validate import counted


class Finding(NamedTuple):
    """One suspicious property of the data, with what to do about it."""

    key: str  # Where in the study file
    what: str  # What was seen
    fix: str  # What to do

    def __str__(self) -> str:
        return f"{self.key}: {self.what}; {self.fix}."


def names(items: Sequence[Any], limit: int = 3) -> str:
    """List the first few items, and say how many more there are."""
    shown = ", ".join(repr(str(item)) for item in items[:limit])
    more = len(items) - limit
    return f"{shown} and {more} more" if more > 0 else shown


def _section(key: str) -> str:
    """Return the section of the study file with the options of the reader of a column."""
    return "samples" if key.startswith(("covariates", "outcome", "samples")) else key


SENTINELS = (-9.0, -99.0, -999.0, 999.0)
"""Numbers that stand for "missing" in PLINK, SPSS and many questionnaires."""
_STEPS = (-2.0, -1.0, 1.0, 2.0)
_NEIGHBOURS = tuple(value + step for value in SENTINELS for step in _STEPS)
"""Numbers beside the sentinels, which stand for nothing: how often these stand apart is chance."""
_LEVEL = 0.01  # of the test whether a sentinel stands apart more often than its neighbours

_DATE_NAME = re.compile(r"(?:^|[^a-z])(?:date|datum|dob|birth|visit_?day|timestamp)", re.IGNORECASE)
# Days since 1900, as spreadsheets count: 1955 to 2064.
_SERIAL = (20_000.0, 60_000.0)
# One stray number among dates is a typing mistake, not another kind of column.
_MOST = 0.9


LIMIT = 0.99
"""AUC of a single column (or its correlation with a number) above which it is suspicious."""

_LEAVE_OUT = (
    "leave such columns out (exclude = [{first!r}] in [{section}])",
    "leave such covariates out",
)

_COLUMN_FINDINGS = {
    "dates": (
        "{columns}: dates read as numbers",
        ("write exclude = [{first!r}] in [{section}], or turn it into an age or a time",
         "turn it into an age or a time, or leave the covariate out"),
        "",
    ),
    "copies": (
        "{columns} {alone} {outcome!r} almost without error (above {limit})",
        _LEAVE_OUT,
        " if they were derived from the outcome or measured after it",
    ),
    "missing copies": (
        "whether {columns} {are} missing tells {outcome!r} almost without error (above {limit})",
        _LEAVE_OUT,
        " if they were measured in one class only or after the outcome",
    ),
    "constant in site": (
        "{columns} {are} constant {where} and not elsewhere",
        ("check how the site measured, or leave such columns out: they tell the site",) * 2,
        "",
    ),
}  # fmt: skip
"""What is wrong with columns; what to do, in a view and among covariates; and on what condition."""


def column_finding(kind: str, key: str, columns: Sequence[str], **words: str) -> list[Finding]:
    """Report columns of a view or of the covariates as one finding of a kind; nothing for none."""
    if not columns:
        return []
    what, advice, condition = _COLUMN_FINDINGS[kind]
    one = len(columns) == 1
    values = {
        "section": _section(key),
        "columns": names(columns),
        "first": columns[0],
        "are": "is" if one else "are",
        "alone": "alone tells" if one else "each alone tell",
        "limit": LIMIT,
        **words,
    }
    in_view, among_covariates = advice
    fix = (among_covariates if key.startswith("covariates") else in_view) + condition
    return [Finding(key, what.format(**values), fix.format(**values))]


def category_findings(key: str, column: str, levels: Sequence[str]) -> list[Finding]:
    """Report levels that are the same, and those that look like numbers."""
    findings = variants(key, column, levels)
    if decimal_commas(levels):
        what = (
            f"column {column!r} was read as a category of {len(levels)} levels that look like "
            f"numbers ({names(levels, 2)})"
        )
        findings.append(Finding(key, what, f'write decimal = "," in [{_section(key)}]'))
    return findings


def number_findings(
    key: str, column: str, cells: np.ndarray, given: Sequence[str] | None
) -> list[Finding]:
    """Report sentinels and dates in a column; `given` are codes of missing cells known already.

    Shapes: cells (n_samples,).
    """
    counts = {value: {column: count} for value, count in sentinel_cells(cells).items()}
    dates = [column] if dated(cells, column) else []
    return sentinels(key, counts, given) + column_finding("dates", key, dates)


def sentinel_cells(cells: np.ndarray, sentinels: Sequence[float] = SENTINELS) -> dict[float, int]:
    """Return which sentinels a column holds far away from its other values, and how often.

    A sentinel is suspicious below values that are never negative, or where it lies further from
    all other values than these lie from each other.

    Shapes: cells (n_samples,).
    """
    values = cells[np.isfinite(cells)]
    is_sentinel = np.isin(values, sentinels)
    others = values[~is_sentinel]
    if not is_sentinel.any() or len(others) < 2:
        return {}
    low, high = float(others.min()), float(others.max())
    spread = max(high - low, 1.0)
    counts = {}
    for sentinel in sentinels:
        count = int(np.sum(values == sentinel))
        apart = sentinel > high + spread if sentinel > 0 else sentinel < low - spread or low >= 0
        if count and apart:
            counts[sentinel] = count
    return counts


def beyond_chance(
    counts: Mapping[float, dict[str, int]], view: View
) -> dict[float, dict[str, int]]:
    """Leave out sentinels that stand apart in no more columns than the numbers beside them do.

    `counts` has for each sentinel the columns with it, and how often they have it. Among thousands
    of columns with negative numbers, -9 is the only negative one in some, and so are -8 and -10 in
    others. The view is read once more if there are any.
    """
    if not counts:
        return {}
    from scipy.stats import poisson

    # Number of columns in which each number beside a sentinel stands apart.
    near: Counter[float] = Counter()
    for _, block in view.iter_blocks():
        for j in np.flatnonzero(np.isin(block, _NEIGHBOURS).any(axis=0)).tolist():
            near.update(sentinel_cells(block[:, j], _NEIGHBOURS).keys())
    expected = {value: float(np.mean([near[value + step] for step in _STEPS])) for value in counts}
    return {
        value: columns
        for value, columns in counts.items()
        if not expected[value] or poisson.sf(len(columns) - 1, expected[value]) < _LEVEL
    }


def missing_option(key: str, codes: Sequence[str], given: Sequence[str] | None) -> str:
    """Return the line of the study file that makes codes mean "missing", and its section."""
    listed = ", ".join(f'"{code}"' for code in dict.fromkeys([*(given or []), *codes]))
    return f"missing = [{listed}] in [{_section(key)}]"


def sentinels(
    key: str, counts: Mapping[float, dict[str, int]], given: Sequence[str] | None = None
) -> list[Finding]:
    """Report sentinels; `counts` has for each the columns that hold it, and how often they do."""
    codes = {f"{value:.0f}": counts[value] for value in SENTINELS if value in counts}
    return [
        Finding(
            key,
            f"{code} occurs {counted(sum(columns.values()), 'time')} in {names(list(columns))}, "
            "away from the other values",
            f"write {missing_option(key, list(codes), given)} if it stands for a missing value",
        )
        for code, columns in codes.items()
    ]


def dated(cells: np.ndarray, name: str) -> bool:
    """Whether the numbers of a column are dates: 20240131, or a spreadsheet's day count.

    Day counts are recognised only where the name of the column suggests a date.

    Shapes: cells (n_samples,).
    """
    values = cells[np.isfinite(cells)]
    if len(values) < 3 or (values != np.floor(values)).any():
        return False
    if np.mean((values >= 19000101) & (values <= 21001231)) >= _MOST:
        text = pd.Series(values.astype(np.int64).astype(str))
        parsed = pd.to_datetime(text, format="%Y%m%d", errors="coerce")
        return bool(parsed.notna().mean() >= _MOST)
    days = np.mean((values >= _SERIAL[0]) & (values <= _SERIAL[1])) >= _MOST
    # Seconds since 1970, from 1973 to 2128.
    seconds = np.mean((values >= 1e8) & (values <= 5e9)) >= _MOST
    return bool((days or seconds) and _DATE_NAME.search(name))


_POWER = re.compile(r"[+-]?\d+(?:[.,]\d+)?[eE][+-]?\d+")
_POINT_ZERO = re.compile(r"\d+\.0+")
# Above this many digits most whole numbers are not floats.
_EXACT_DIGITS = 17


def variants(key: str, column: str, labels: Iterable[str]) -> list[Finding]:
    """Report labels that are the same apart from blanks and case."""
    spellings: dict[str, list[str]] = {}  # by the label without blanks and case
    for label in map(str, labels):
        spellings.setdefault("".join(label.split()).casefold(), []).append(label)
    twins = [sorted(forms) for forms in spellings.values() if len(forms) > 1]
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
    texts = list(map(str, ids))
    powers = [text for text in texts if _POWER.fullmatch(text)]
    long = [text for text in texts if text.isdigit() and len(text) >= _EXACT_DIGITS]
    if powers:
        what = f"{len(powers)} ids such as {powers[0]!r} are rounded numbers"
    elif texts and all(map(_POINT_ZERO.fullmatch, texts)):
        what = f"all ids are whole numbers with a point, such as {texts[0]!r}"
    # One of many such numbers may be a float by chance; all of several are not.
    elif len(long) >= 3 and all(int(float(text)) == int(text) for text in long):
        what = f"{len(long)} long ids such as {long[0]!r} lost their last digits"
    else:
        return []
    fix = "save the column of ids as text in the program that wrote the file"
    return [Finding("samples.id", what, fix)]


# Columns looked at to judge how likely equal rows are by chance; more make it less likely still.
_COLUMNS = 1000
# Expected number of equal pairs above which equal rows say nothing (a few yes-or-no questions).
_BY_CHANCE = 0.01


class RowHashes:
    """Finds equal rows of a view that is read block by block.

    Shapes: present (n_samples,).
    """

    def __init__(self, present: np.ndarray) -> None:
        self.present = present
        self._hashes = [hashlib.blake2b(digest_size=16) for _ in present]
        self._log_agree = 0.0  # log of the probability that two rows agree by chance
        self._seen = 0  # columns so far

    def add(self, block: np.ndarray) -> None:
        """Add the next columns to the hash of every row.

        Shapes: block (n_samples, b).
        """
        # Minus zero and every NaN get one form each, so that equal cells are equal bytes.
        cells = np.ascontiguousarray(np.where(np.isnan(block), np.nan, block + 0.0))
        for i in np.flatnonzero(self.present):
            self._hashes[i].update(cells[i].tobytes())
        for j in range(min(block.shape[1], max(_COLUMNS - self._seen, 0))):
            counts = np.unique(block[self.present, j], return_counts=True)[1]
            share = counts / max(counts.sum(), 1)
            # Two independent cells are equal with the sum of the squared shares.
            self._log_agree += float(np.log(max((share**2).sum(), 1e-300)))
        self._seen += block.shape[1]

    def pairs(self) -> list[tuple[int, int]]:
        """Return pairs of equal rows as row numbers, unless these are expected by chance."""
        n = int(self.present.sum())
        if n < 2 or np.log(n * (n - 1) / 2) + self._log_agree > np.log(_BY_CHANCE):
            return []
        first_row: dict[bytes, int] = {}
        pairs = []
        for i in np.flatnonzero(self.present).tolist():
            first = first_row.setdefault(self._hashes[i].digest(), i)
            if first != i:
                pairs.append((first, i))
        return pairs


def repeats(
    by_view: dict[str, list[tuple[int, int]]], ids: np.ndarray, folds: Sequence[Any]
) -> list[Finding]:
    """Report equal rows (pairs by view) of which some fold has one in training and one in test.

    Shapes: ids (n_samples,).
    """
    sides = np.zeros((len(folds), len(ids)), dtype=np.int8)
    for side, fold in zip(sides, folds, strict=True):
        side[fold.train] = 1
        side[fold.test] = 2
    # The sum is 3 where one row of a pair is in training and the other in test.
    apart = {
        view: [f"{ids[a]}/{ids[b]}" for a, b in pairs if (sides[:, a] + sides[:, b] == 3).any()]
        for view, pairs in by_view.items()
    }
    return [
        Finding(
            view,
            f"samples {names(pairs)} have the same values and lie in training and test rows",
            "drop one of each pair, or give both the same samples.group",
        )
        for view, pairs in apart.items()
        if pairs
    ]


# Where chance alone would produce one such column in more than one of a hundred views, none of
# them means anything: few rows, many columns.
_COPIES_BY_CHANCE = 0.01


def copying_classes(block: np.ndarray, codes: np.ndarray, n_columns: int) -> np.ndarray:
    """Return the columns that separate the classes with an AUC above `LIMIT`.

    With more than two classes the mean over pairs of classes counts, so that a column has to
    order all of them; a column of 0 and 1 may also stand for one class alone.

    Shapes: block (n_samples, b) of a view of `n_columns`, codes (n_samples,); returns (b,).
    """
    classes = np.unique(codes)
    parts = {c: block[codes == c] for c in classes}
    pairs = [
        (a, b) for a, b in combinations(classes, 2) if not _lucky(parts[a], parts[b], n_columns)
    ]
    copying = np.zeros(block.shape[1], dtype=bool)
    if len(pairs) == len(classes) * (len(classes) - 1) // 2:
        total = np.zeros(block.shape[1])
        for a, b in pairs:
            # No single pair may be far below the limit, or the mean cannot reach it.
            total += _separation(parts[a], parts[b], floor=1 - len(pairs) * (1 - LIMIT))
        copying = total > LIMIT * len(pairs)
    if len(classes) > 2:
        for c in classes:
            rest = block[codes != c]
            if not _lucky(parts[c], rest, n_columns):
                copying |= _is_indicator(parts[c], rest)
    return copying


def _lucky(a: np.ndarray, b: np.ndarray, n_columns: int) -> bool:
    """Whether some column of noise may well separate these groups of rows without error."""
    return 2 * n_columns / comb(len(a) + len(b), len(a)) > _COPIES_BY_CHANCE


def _is_indicator(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Whether a column has one value in a class and another one everywhere else."""
    with np.errstate(invalid="ignore"):
        constant = (inside == inside[0]).all(axis=0) & (outside == outside[0]).all(axis=0)
    return constant & (inside[0] != outside[0])


def _separation(a: np.ndarray, b: np.ndarray, floor: float) -> np.ndarray:
    """AUC of each column between two groups of rows, at least 0.5; 0 where it is below `floor`.

    Half the rows of ``a`` lie at or below their median, and a tie counts half, so an AUC of 1 - e
    lets at most a share of 4 e of ``b`` lie at or above it. Only columns that pass are ranked.

    Shapes: a (rows of one group, b), b (rows of the other, b); returns (b,).
    """
    values = np.zeros(a.shape[1])
    a_sorted = np.sort(a, axis=0)
    n_a = np.isfinite(a).sum(axis=0)
    usable = np.flatnonzero((n_a > 0) & np.isfinite(b).any(axis=0))
    # The two middle values of each column, as its number of finite values may be even.
    lower = a_sorted[np.maximum(n_a - 1, 0) // 2, np.arange(a.shape[1])]
    upper = a_sorted[np.minimum(n_a // 2, len(a) - 1), np.arange(a.shape[1])]
    with np.errstate(invalid="ignore"):
        n_b = np.maximum(np.isfinite(b).sum(axis=0), 1)
        above = (b >= upper).sum(axis=0) / n_b
        below = (b <= lower).sum(axis=0) / n_b
    slack = 4 * (1 - floor) + 1e-12
    for j in usable[(np.minimum(above, below) <= slack)[usable]]:
        x, z = a[:, j][np.isfinite(a[:, j])], np.sort(b[:, j][np.isfinite(b[:, j])])
        # Of each x, twice the number of z below it, where a tie counts half.
        wins = np.searchsorted(z, x, "left") + np.searchsorted(z, x, "right")
        auc = float(wins.mean() / (2 * len(z)))
        values[j] = max(auc, 1 - auc)
    return values


def copying_numbers(block: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the columns whose absolute correlation with a numeric outcome is above `LIMIT`.

    Shapes: block (n_samples, b), y (n_samples,); returns (b,).
    """
    known = np.isfinite(block)
    count = known.sum(axis=0)
    x = np.where(known, block, 0.0).astype(np.float64)
    target = np.where(known, y[:, None], 0.0)
    divisor = np.maximum(count, 1)
    x = np.where(known, x - x.sum(axis=0) / divisor, 0.0)
    target = np.where(known, target - target.sum(axis=0) / divisor, 0.0)
    scale = np.sqrt((x**2).sum(axis=0) * (target**2).sum(axis=0))
    r = np.abs((x * target).sum(axis=0)) / np.where(scale > 0, scale, 1.0)
    # Two or three points lie on a line by chance.
    return (count >= 10) & (scale > 0) & (r > LIMIT)


# At a site with fewer rows many columns are constant, and little can be said about the outcome.
_LEAST_ROWS = 5
# Expected number of such columns by chance, above which they say nothing (rare variants).
_CONSTANT_BY_CHANCE = 0.01
# Cramer's V, or the root of the explained share of variance: a medium association.
_MEDIUM = 0.3
_SIGNIFICANT = 0.001


def constant_columns(block: np.ndarray, sites: np.ndarray, n_columns: int) -> list[tuple[int, str]]:
    """Return columns that have one value at a site, and several elsewhere.

    Shapes: block (n_samples, b), sites (n_samples,); returns (column in the block, site).
    """
    known = np.isfinite(block)
    # Without the missing cells, which are never the smallest or the largest.
    low, high = np.where(known, block, np.inf), np.where(known, block, -np.inf)
    varies = low.min(axis=0) < high.max(axis=0)
    constant = []
    for site in np.unique(sites):
        here = sites == site
        count = known[here].sum(axis=0)
        same = (low[here].min(axis=0) == high[here].max(axis=0)) & varies & (count >= _LEAST_ROWS)
        for j in np.flatnonzero(same).tolist():
            counts = np.unique(block[known[:, j], j], return_counts=True)[1]
            share = counts / counts.sum()
            # All cells of the site agree by chance with the sum of the powers of the shares.
            if n_columns * float((share ** count[j]).sum()) <= _CONSTANT_BY_CHANCE:
                constant.append((j, str(site)))
    return constant


def site_predicts(sites: np.ndarray, y: np.ndarray, outcome: str, classification: bool,
                  scheme: str) -> list[Finding]:  # fmt: skip
    """Report an outcome that depends at least moderately on the site; `scheme` decides the advice.

    Shapes: sites (n_samples,), y (n_samples,).
    """
    counts = pd.Series(sites).value_counts()
    large = counts.index[counts >= _LEAST_ROWS]
    keep = np.isin(sites, large)
    if len(large) < 2:
        return []
    if classification:
        table = pd.crosstab(sites[keep], y[keep])
        if table.shape[1] < 2:
            return []
        from scipy.stats import chi2_contingency

        test = chi2_contingency(table)
        size = float(np.sqrt(test.statistic / keep.sum() / (min(table.shape) - 1)))  # Cramer's V
        shares = table.to_numpy() / table.to_numpy().sum(axis=1, keepdims=True)  # (sites, classes)
        # The class whose share differs most between sites, and the two sites.
        at = int(np.argmax(np.ptp(shares, axis=0)))
        low, high = int(np.argmin(shares[:, at])), int(np.argmax(shares[:, at]))
        seen = (
            f"{table.columns[at]!r} is {100 * shares[low, at]:.0f} % at site "
            f"{table.index[low]!r} and {100 * shares[high, at]:.0f} % at {table.index[high]!r}"
        )
        p = float(test.pvalue)
    else:
        from scipy.stats import f_oneway

        groups = [y[sites == s] for s in large]
        p = float(f_oneway(*groups).pvalue)
        mean = float(y[keep].mean())
        between = sum(len(g) * (g.mean() - mean) ** 2 for g in groups)
        size = float(np.sqrt(between / max(((y[keep] - mean) ** 2).sum(), 1e-300)))
        means = {str(s): float(g.mean()) for s, g in zip(large, groups, strict=True)}
        least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        seen = f"mean {means[least]:.3g} at site {least!r} and {means[most]:.3g} at {most!r}"
    if not (p < _SIGNIFICANT and size >= _MEDIUM):
        return []
    fix = 'regress the site out, or use scheme = "leave-one-site-out"'
    if scheme == "leave-one-site-out":
        fix = "expect figures below those of studies that mix sites, or regress the site out"
    return [Finding("samples.site", f"the site predicts {outcome!r}: {seen}", fix)]
