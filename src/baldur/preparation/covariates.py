"""Covariates: columns of the sample table as numbers, and their regression out of a view.

With the design C = [1, covariates] of the training samples that have the view and X its
standardised cells, B = C^+ X (q x D). Every row, old or new, becomes x - c B; for training rows
this is (I - H) X with H = C C^+. Only B is stored, and c B is subtracted tile by tile inside the
products, so a wide view is never copied. Missing cells count as the training mean while B is
learned and are 0 afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

from baldur.core.state import ByName, Names, Numbers, Sizes, need, stored
from baldur.exceptions import InputError
from baldur.views.container import MultiView
from baldur.views.standardised_blocks import FARTHEST, Standardised
from baldur.views.table_encoding import encode_frame, level_text
from baldur.views.validate import some

# A column whose residual spread is below this share of its own is explained by the covariates.
_EXPLAINED = 1e-4
# A covariate of text with more levels is an identifier or free text.
_MOST_LEVELS = 50


def sample_column(mv: MultiView, name: str, who: str) -> pd.Series:
    """Return a column of the sample table, or raise an error if it is missing."""
    table = mv.samples
    if table is None or name not in table.columns:
        have = "X has no table about its samples"
        if table is not None:
            have = f"the table about the samples of X has the columns {some(list(table.columns))}"
        raise InputError(
            f"{who} needs the column {name!r} of every sample, in training and in prediction, but "
            f"{have}. Give it with MultiView(..., samples=DataFrame) or mv.with_samples(...). In a "
            "DataFrame X it may be a column that no view of views= names. Single cells may be "
            "missing."
        )
    column: pd.Series = table[name]
    return column


FAR_DEVIATIONS = 10.0
"""Training standard deviations from the mean at which a number is flagged, as an age of 540 is. Of
a log-normal covariate 1 value in 1,000 is that far away, of a normal one none."""


COVARIATE = ""
"""The view of a category that is a covariate, a column of the table about samples."""


class UnknownLevel(NamedTuple):
    """A category of one sample whose level did not occur in training."""

    row: int
    view: str
    column: str
    level: str
    known: Sequence[str]

    def __str__(self) -> str:
        return f"{self.column} = {self.level!r} (known levels: {some(self.known, 20)})"


@dataclass(frozen=True)
class Covariates:
    """Covariates as numbers, learned on training rows.

    A number stays a number, a truth value becomes 0 or 1, and a category has one column of 0 and 1
    for each level of the training rows but the first in alphabetical order. A missing cell, and a
    level that did not occur in training, takes the training mean of its columns. All columns are
    then standardised.
    """

    kind: ClassVar[str] = "covariates"

    names: list[str] = stored(Names())  # Columns of the sample table
    levels: dict[str, list[str]] = stored(ByName(Names()))
    fill: np.ndarray = stored(Numbers("q", largest=np.inf))  # Mean of the known training cells
    mean: np.ndarray = stored(Numbers("q", largest=np.inf))
    scale: np.ndarray = stored(Numbers("q", largest=np.inf, above=0.0))

    @classmethod
    def fit(
        cls,
        mv: MultiView,
        names: Sequence[str],
        who: str,
        weight: np.ndarray | None = None,
    ) -> Covariates:
        """Learn levels, means and scales of the columns `names` of the sample table.

        A missing cell takes the mean of the others. `who` names the asking object in messages, and
        `weight` says how much each training row counts. Shapes: weight (n_samples,).
        """
        levels: dict[str, list[str]] = {}
        for name in names:
            column = sample_column(mv, name, who)
            if not column.notna().any():
                raise InputError(
                    f"{who}: the column {name!r} of the samples is empty in all {len(mv)} training "
                    "rows. Leave it out."
                )
            declared = [name] if isinstance(column.dtype, pd.CategoricalDtype) else []
            info = encode_frame(
                column.to_frame(name),
                "samples",
                origin="samples",
                categorical=declared,
                max_levels=_MOST_LEVELS,
            ).feature_info
            if info is not None and info["level"].notna().any():
                levels[name] = info["level"].tolist()
        # Its levels turn columns into numbers; fill, mean and scale are then learned from these.
        none = np.zeros(0)
        coding = cls(list(names), levels, none, none, none)
        cells = coding._cells(mv, who)
        if np.isinf(cells).any():
            raise InputError(f"{who}: the covariates have infinite cells. Replace them by NaN.")
        observed = np.isfinite(cells)
        counted = observed if weight is None else observed * weight[:, None]
        fill = np.where(observed, cells * counted, 0.0).sum(axis=0)
        fill /= np.where(counted.any(axis=0), counted.sum(axis=0), 1.0)
        cells = np.where(observed, cells, fill)
        share = np.full(len(cells), 1.0 / len(cells)) if weight is None else weight / weight.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            mean = share @ cells
            scale = np.sqrt(share @ (cells - mean) ** 2)
        if not np.isfinite(scale).all():
            raise InputError(
                f"{who}: some covariates hold numbers too large to be squared in float64. Rescale "
                "them before fitting."
            )
        # A constant column, but for rounding, is divided by 1.
        scale[scale <= 1e-12 * np.maximum(1, np.abs(cells).max(axis=0, initial=0))] = 1.0
        return replace(coding, fill=fill, mean=mean, scale=scale)

    @property
    def features(self) -> list[str]:
        """Names of the columns of numbers: a covariate, or ``covariate=level``."""
        # A number counts as a category of two levels without a name: one column.
        return [
            f"{name}={level}" if level else name
            for name in self.names
            for level in self.levels.get(name, ["", ""])[1:]
        ]

    def design(self, mv: MultiView, who: str) -> np.ndarray:
        """Return [1, standardised covariates] of shape (n_samples, 1 + q) for any rows."""
        cells = self._cells(mv, who)
        cells = np.where(np.isfinite(cells), cells, self.fill)
        with np.errstate(over="ignore"):
            scaled = (cells - self.mean) / self.scale
        return np.column_stack([np.ones(len(mv)), np.clip(scaled, -FARTHEST, FARTHEST)])

    def _cells(self, mv: MultiView, who: str) -> np.ndarray:
        """Return the numbers of every row, NaN where a cell is missing or a level is unknown.

        A category has a column of 0 and 1 for each level but the first. Shapes: (n_samples, q).
        """
        parts = []
        for name in self.names:
            column = sample_column(mv, name, who)
            levels = self.levels.get(name)
            if levels is None:
                parts.append(_numbers(column, name, who)[:, None])
                continue
            number: dict[str | None, int] = {level: at for at, level in enumerate(levels)}
            level_of_row = np.array([number.get(text, -1) for text in level_texts(column)])
            coded = (level_of_row[:, None] == np.arange(1, len(levels))).astype(np.float64)
            coded[level_of_row < 0] = np.nan
            parts.append(coded)
        return np.hstack(parts) if parts else np.zeros((len(mv), 0))

    def flags(self, mv: MultiView, who: str) -> dict[str, list[tuple[int, Any]]]:
        """Return for each flag of `FLAGS` covariates that differ from training: (row, what)."""
        far: list[tuple[int, str]] = []
        unknown: list[tuple[int, UnknownLevel]] = []
        imputed: list[tuple[int, str]] = []
        at = {name: k for k, name in enumerate(self.features)}
        for name in self.names:
            column, levels = sample_column(mv, name, who), self.levels.get(name)
            if levels is not None:
                for row, text in enumerate(level_texts(column)):
                    if not text:
                        imputed.append((row, name))
                    elif text not in levels:
                        unknown.append((row, UnknownLevel(row, COVARIATE, name, text, levels)))
                continue
            values = _numbers(column, name, who)
            imputed += [(int(row), name) for row in np.flatnonzero(np.isnan(values))]
            mean, scale = self.mean[at[name]], self.scale[at[name]]
            with np.errstate(invalid="ignore", over="ignore"):
                rows = np.flatnonzero(np.abs(values - mean) > FAR_DEVIATIONS * scale)
            learned = f"training: mean {mean:.4g}, standard deviation {scale:.4g}"
            far += [(int(row), f"{name} = {values[row]:.6g} ({learned})") for row in rows]
        return {"out_of_range": far, "unknown_category": unknown, "imputed": imputed}

    def check_state(self, sizes: Sizes) -> None:
        """Refuse a stored object with levels of other covariates or statistics of other columns."""
        need(set(self.levels) <= set(self.names), "expected levels of covariates", "levels")
        need(all(self.levels.values()), "expected at least one level", "levels")
        fits = len(self.features) == len(self.fill)
        need(fits, f"expected {len(self.features)} numbers", "fill")


def level_texts(column: pd.Series) -> list[str | None]:
    """Return the levels of a category as text, None where a cell is missing."""
    observed = column.notna().to_numpy()
    return [level_text(v) if o else None for v, o in zip(column, observed, strict=True)]


def _numbers(column: pd.Series, name: str, who: str) -> np.ndarray:
    """Return one column as floats, NaN where missing; refuse text that is not a number."""
    if types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    cells = column.astype(object).where(column.notna() & (column.astype(str) != ""), None)
    truth = {"true": 1.0, "false": 0.0}
    cells = cells.map(lambda v: truth.get(str(v).lower(), v) if v is not None else v)
    numbers = pd.to_numeric(cells, errors="coerce").astype(float)
    wrong = numbers.isna() & cells.notna()
    if wrong.any():
        raise InputError(
            f"{who}: the covariate {name!r} is a number in the training rows, but a sample has "
            f"{cells[wrong].iloc[0]!r}. Correct the cell, or leave it empty."
        )
    return numbers.to_numpy(dtype=np.float64)


def learn_regression(
    cells: Standardised, design: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Regress covariates out of standardised cells by weighted least squares, in two passes.

    Return the coefficients B and the spread of each column after `design` B is subtracted; 0 for
    a column that the covariates explain. Absent samples have no weight.

    Shapes: design (n_samples, q), weight (n_samples,); returns coef (q, n_features), spread
    (n_features,).
    """
    n, d = cells.shape
    mass = np.where(cells.absent, 0.0, 1.0 if weight is None else weight)
    root = np.sqrt(mass)
    solve = np.linalg.pinv(root[:, None] * design) * root  # (q, n_samples): B = solve X
    coef, spread = np.empty((design.shape[1], d)), np.empty(d)
    exact = cells.exact()
    width = exact.width(n)
    for cols, tile in exact.tiles(width):
        coef[:, cols] = solve @ tile
    residuals = replace(exact, design=design, confound_coef=coef)
    for cols, tile in residuals.tiles(width):
        spread[cols] = np.sqrt(mass @ tile**2 / mass.sum())
    spread[spread < _EXPLAINED] = 0
    return coef, spread
