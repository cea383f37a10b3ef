"""New samples against training: warnings for a batch, flags for each sample.

Only columns that predictions use are looked at. Values are compared as the steps of the preparation
leave them, before they are scaled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from baldur.exceptions import ShiftWarning
from baldur.preparation.covariates import COVARIATE, UnknownLevel
from baldur.preparation.scaling import Scaling
from baldur.views.container import MultiView
from baldur.views.validate import some
from baldur.views.view import View

FLAGS = {
    "out_of_range": "outside the training range",
    "unknown_category": "unknown category",
    "imputed": "imputed",
    "missing_views": "missing view",
}
"""Columns of the table of flags, each a reason to look at a prediction twice, and its words."""

NAMED = 5
"""Features that a flag or a warning names; the others are counted."""

MOST_CELLS = 2_000_000
"""Cells of a view that `warn_of_shift` reads, which takes about 10 ms. In a view with more, columns
are taken at even distances: a view in other units shows in any of them."""
FEWEST_COLUMNS = 20
"""Columns that are read however many samples there are."""

FAR_COLUMN, FAR_CELL = 1.0, 3.0
"""How far outside the training range, in widths of that range, the median of a column or a single
cell is named in a warning. Single cells of skewed columns often lie one width outside: for
log-normal values and 100 training samples 7 in 10,000 do, and 5 in 100,000 lie three widths out."""

CODE_REPEATS, CODE_SHARE = 2, 0.5
"""How often one value occurs among the cells of a column that are far outside, at least and as a
share of them, so that it may be a code for missing values. Measured values seldom repeat there."""

ROUNDING = 1e-6
"""Part of the range by which a value may lie outside because it was stored in float32."""


class _Block(NamedTuple):
    """Cells (n, k) of some columns of a view with the training range of each column."""

    columns: np.ndarray
    cells: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def outside(self, widths: float) -> np.ndarray:
        """Return which cells are further outside the range than so many of its widths."""
        slack = widths * (self.high - self.low)
        with np.errstate(invalid="ignore"):
            return np.asarray((self.cells < self.low - slack) | (self.cells > self.high + slack))

    def text(self, names: np.ndarray, row: int, column: int) -> str:
        """Return one cell beside the training range of its column."""
        return (
            f"{names[column]} = {self.cells[row, column]:.6g} (training: "
            f"{self.low[column]:.6g} to {self.high[column]:.6g})"
        )

    def shifted(self) -> np.ndarray:
        """Return which columns have their median far outside the training range."""
        slack = FAR_COLUMN * (self.high - self.low)
        half = (len(self.cells) - np.isnan(self.cells).sum(axis=0)) / 2.0
        below = (self.cells < self.low - slack).sum(axis=0)
        above = (self.cells > self.high + slack).sum(axis=0)
        return np.asarray((below > half) | (above > half))


def _blocks(scaling: Scaling, view: View, columns: np.ndarray) -> Iterator[_Block]:
    """Yield columns of a view in blocks of at most `MOST_CELLS` cells."""
    step = max(FEWEST_COLUMNS, MOST_CELLS // max(1, view.shape[0]))
    low, high = scaling.minimum_[view.name], scaling.maximum_[view.name]
    for start in range(0, len(columns), step):
        at = columns[start : start + step]
        yield _Block(at, view.read(at), low[at].astype(float), high[at].astype(float))


def _has_range(view: View) -> bool:
    """Return whether the training range is checked; that of genotypes is always 0 to 2."""
    return view.dtype != np.int8


# -- warnings of a batch -------------------------------------------------------------------------


def warn_of_shift(scaling: Scaling, mv: MultiView, unknown: Sequence[UnknownLevel]) -> None:
    """Warn about unknown levels, columns on another scale, and single values far outside.

    A column is on another scale if the median of its new values is further outside the training
    range than that range is wide: other units, another transformation, a code for missing values.
    """
    _warn_of_unknown(_used_levels(unknown, mv, scaling.needed_columns), mv.sample_ids)
    covariates = scaling.covariate_flags(mv)
    if far := covariates.get("out_of_range"):
        first = [f"sample {str(mv.sample_ids[row])!r} has {text}" for row, text in far[:NAMED]]
        listed = _some_values(first, len(far))
        _warn(f"Covariates far from the training mean: {listed}. {_CHECK_CELLS}")
    _warn_of_unknown([level for _, level in covariates.get("unknown_category", ())], mv.sample_ids)
    for name, mask in scaling.needed_columns.items():
        view = mv.view(name)
        columns = np.flatnonzero(mask & ~scaling.constant_[name])
        present = np.flatnonzero(view.present)
        if not _has_range(view) or not len(columns) or not len(present):
            continue
        most = max(FEWEST_COLUMNS, MOST_CELLS // len(present))
        spaced = np.linspace(0, len(columns) - 1, min(len(columns), most)).astype(np.intp)
        (block,) = _blocks(scaling, mv[present].view(name), columns[spaced])  # they fit in one
        names = view.names_of(block.columns)
        shifted = block.shifted()
        at = np.flatnonzero(shifted)
        if len(at):
            d = int(at[0])
            _warn(
                f"View {name!r}: {some(names[at].tolist())} lie far outside the training range; "
                f"the median of the first is {float(np.nanmedian(block.cells[:, d])):.4g}, and "
                f"training had {block.low[d]:.4g} to {block.high[d]:.4g}. Check the units, "
                "the transformation and the code of missing values."
                f"{_suspected_code(names, block, at)}"
            )
        rows, at = np.nonzero(block.outside(FAR_CELL) & ~shifted)
        if len(rows):
            # One cell of each feature first: a code for missing values must not hide an absurd age.
            order = np.argsort(pd.Series(at).groupby(at).cumcount(), kind="stable")[:NAMED]
            ids = mv.sample_ids[present]
            first = [
                f"sample {str(ids[i])!r} has {block.text(names, i, d)}"
                for i, d in zip(rows[order], at[order], strict=True)
            ]
            _warn(
                f"View {name!r}: values far outside the training range: "
                f"{_some_values(first, len(rows))}. "
                f"{_CHECK_CELLS}{_suspected_code(names, block, np.unique(at))}"
            )


_CHECK_CELLS = "Check these cells before you use the predictions for these samples."


def _warn(message: str) -> None:
    warnings.warn(message, ShiftWarning, stacklevel=3)


def _some_values(first: Sequence[str], n: int) -> str:
    """Return the first of `n` values in one text, which says how many more there are."""
    more = f", and {n - len(first):,} more values" if n > len(first) else ""
    return ", ".join(first) + more


def _suspected_code(names: np.ndarray, block: _Block, at: np.ndarray) -> str:
    """Return a sentence about values in columns `at` that may be codes for missing, or ""."""
    outside = block.outside(FAR_COLUMN)
    # Of each code, the columns that have it, and how often it occurs in all of them.
    columns: dict[float, list[str]] = {}
    times: dict[float, int] = {}
    for d in at.tolist():
        values, counts = np.unique(block.cells[outside[:, d], d], return_counts=True)
        most = int(counts.argmax())
        if counts[most] >= max(CODE_REPEATS, CODE_SHARE * counts.sum()):
            code = float(values[most])
            columns.setdefault(code, []).append(str(names[d]))
            times[code] = times.get(code, 0) + int(counts[most])
    return "".join(
        f" The value {code:.6g} occurs {times[code]:,} times in {some(listed)}; if it is a code "
        f'for missing values, read the table with missing = ["{code:.6g}"].'
        for code, listed in columns.items()
    )


def _used_levels(
    levels: Sequence[UnknownLevel], mv: MultiView, needed: Mapping[str, np.ndarray]
) -> list[UnknownLevel]:
    """Return unknown levels of those categories that predictions use."""
    used = set()
    for name in {level.view for level in levels}:
        owners = _owners(mv.view(name))
        used |= set() if owners is None else {(name, str(c)) for c in owners[needed[name]]}
    return [level for level in levels if (level.view, level.column) in used]


def _warn_of_unknown(levels: Sequence[UnknownLevel], sample_ids: np.ndarray) -> None:
    """Warn about categories whose level did not occur in training, with the samples."""
    samples: dict[str, list[str]] = {}
    for level in levels:
        where = "Covariate" if level.view == COVARIATE else f"View {level.view!r}:"
        samples.setdefault(f"{where} {level}", []).append(str(sample_ids[level.row]))
    for what, ids in samples.items():
        _warn(
            f"{what} did not occur in training and counts as missing. Samples: {some(ids)}. "
            "Correct these cells if the level is another spelling of a known one."
        )


# -- flags of every sample -----------------------------------------------------------------------


def flag_table(scaling: Scaling, mv: MultiView, unknown: Sequence[UnknownLevel]) -> pd.DataFrame:
    """Return one row of flags per sample, see `Preparation.flag_samples`."""
    needed = scaling.needed_columns
    # By flag and sample, what is said about it.
    flags: dict[str, list[list[str]]] = {flag: [[] for _ in range(len(mv))] for flag in FLAGS}
    for flag, covariates in scaling.covariate_flags(mv).items():
        for at, what in covariates:
            flags[flag][at].append(f"covariate {what}")
    prefixes = {name: f"{name}: " if len(needed) > 1 else "" for name in needed}
    used = _used_levels(unknown, mv, needed)
    for level in used:
        flags["unknown_category"][level.row].append(f"{prefixes[level.view]}{level}")
    has_unknown = {(level.view, level.column, level.row) for level in used}
    for name, mask in needed.items():
        view, prefix = mv.view(name), prefixes[name]
        columns = np.flatnonzero(mask & ~scaling.constant_[name])
        if not len(columns):
            continue
        for row in np.flatnonzero(~view.present):
            flags["missing_views"][row].append(name)
        owners = _owners(view)
        for block in _blocks(scaling, view, columns):
            names = view.names_of(block.columns)
            missing = np.isnan(block.cells) & view.present[:, None]
            for row, d in zip(*np.nonzero(missing), strict=True):
                owner = str(names[d] if owners is None else owners[block.columns[d]])
                imputed = flags["imputed"][row]
                # A category has several columns.
                if (name, owner, row) not in has_unknown and prefix + owner not in imputed[-1:]:
                    imputed.append(prefix + owner)
            if _has_range(view):
                for row, d in zip(*np.nonzero(block.outside(ROUNDING)), strict=True):
                    flags["out_of_range"][row].append(prefix + block.text(names, row, d))
    table = pd.DataFrame(
        {flag: [_listed(parts) for parts in lists] for flag, lists in flags.items()},
        index=pd.Index(mv.sample_ids, name="sample"),
    )
    table["flags"] = [
        "; ".join(f"{what}: {text}" for what, text in zip(FLAGS.values(), row, strict=True) if text)
        for row in table.itertuples(index=False)
    ]
    return table


def _owners(view: View) -> np.ndarray | None:
    """Return the column of the input that each feature was encoded from, where that is known."""
    info = view.feature_info
    return None if info is None or "column" not in info else info["column"].to_numpy()


def _listed(parts: list[str]) -> str:
    # The first few; the others are counted.
    more = [f"and {len(parts) - NAMED:,} more"] if len(parts) > NAMED else []
    return ", ".join(parts[:NAMED] + more)
