"""Covariates of the samples table as numbers: categories become columns of 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError

__all__ = ["CovariateCoding"]

_LEVELS_LIMIT = 50


@dataclass(frozen=True)
class CovariateCoding:
    """How columns of text become numbers; kept with a fitted model, so that new rows follow it.

    Attributes
    ----------
    levels : dict of str to list of str, or None for numbers
        Columns in order.
    drop_first : bool
        Leave the first level out, for covariates that are regressed out with an intercept.
    """

    levels: dict[str, list[str] | None]
    drop_first: bool = False

    @classmethod
    def learn(
        cls, frame: pd.DataFrame, categorical: list[str], drop_first: bool = False
    ) -> CovariateCoding:
        """Decide which columns are numbers and which levels the others have.

        Parameters
        ----------
        frame : DataFrame of str
            Cells as text, missing ones empty.
        categorical : list of str
            Columns that are categories although written as numbers.
        drop_first : bool, default=False
            Leave the first level out.

        Returns
        -------
        CovariateCoding
        """
        levels: dict[str, list[str] | None] = {}
        for name in frame.columns:
            cells = frame[name]
            known = cells[cells != ""]
            if not len(known):
                raise InputError(f"column {name!r} is empty")
            if name not in categorical and pd.to_numeric(known, errors="coerce").notna().all():
                levels[name] = None
                continue
            found = sorted(known.unique())
            if len(found) > _LEVELS_LIMIT:
                raise InputError(
                    f"column {name!r} is text with {len(found)} different values, which is hardly "
                    "a category"
                )
            levels[name] = found
        return cls(levels, drop_first)

    @property
    def names(self) -> list[str]:
        """Names of the columns of numbers."""
        names = []
        for name, levels in self.levels.items():
            names += [name] if levels is None else [f"{name}={v}" for v in self._kept(levels)]
        return names

    def _kept(self, levels: list[str]) -> list[str]:
        return levels[1:] if self.drop_first else levels

    def numbers(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the cells as numbers, NaN where missing.

        Parameters
        ----------
        frame : DataFrame of str
            With the columns of `levels`; a level not seen before is 0 in all its columns.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
        """
        parts = []
        for name, levels in self.levels.items():
            cells = frame[name]
            if levels is None:
                numbers = pd.to_numeric(cells.where(cells != "", None), errors="coerce")
                wrong = numbers.isna() & (cells != "")
                if wrong.any():
                    raise InputError(f"column {name!r} has {cells[wrong].iloc[0]!r} for a number")
                parts.append(numbers.to_numpy(dtype=float)[:, None])
                continue
            kept = self._kept(levels)
            coded = (cells.to_numpy()[:, None] == np.array(kept, dtype=object)).astype(float)
            coded[(cells == "").to_numpy()] = np.nan
            parts.append(coded)
        return np.hstack(parts) if parts else np.zeros((len(frame), 0))

    def to_json(self) -> dict[str, Any]:
        """Return it in a form JSON holds."""
        return {"levels": self.levels, "drop_first": self.drop_first}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CovariateCoding:
        """Build it from what `to_json` returned."""
        return cls(dict(data["levels"]), bool(data["drop_first"]))
