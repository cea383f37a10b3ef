"""Covariates of the samples table as a view: numbers as they are, categories level by level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from baldur.exceptions import InputError
from baldur.io import encode_text
from baldur.views import MultiView

__all__ = ["CovariateCoding"]


@dataclass(frozen=True)
class CovariateCoding:
    """Which covariates are numbers and which are categories; saved with a model for new samples.

    Levels are learned on training rows, by the same `CategoryEncoder` as those of views.

    Attributes
    ----------
    categories : dict of str to bool
        Columns in order, and whether they are categories.
    """

    categories: dict[str, bool]

    @classmethod
    def learn(cls, frame: pd.DataFrame, categorical: list[str]) -> CovariateCoding:
        """Return the coding of some columns: which are numbers and which are categories.

        Parameters
        ----------
        frame : DataFrame of str
            Cells as text, missing ones empty.
        categorical : list of str
            Columns that are categories although written as numbers.

        Returns
        -------
        CovariateCoding
        """
        found = {}
        for name in frame.columns:
            known = frame[name][frame[name] != ""]
            if not len(known):
                raise InputError(f"column {name!r} has no values")
            numeric = pd.to_numeric(known, errors="coerce").notna().all()
            found[str(name)] = name in categorical or not numeric
        return cls(found)

    def view(self, frame: pd.DataFrame, name: str, origin: str) -> MultiView:
        """Return the columns as a view.

        Parameters
        ----------
        frame : DataFrame of str
            With the columns of `categories`, ids as its index.
        name : str
            Of the view.
        origin : str
            File, for messages.

        Returns
        -------
        MultiView
            With one column per level of each category.
        """
        chosen = [column for column, is_category in self.categories.items() if is_category]
        made = encode_text(frame[list(self.categories)], categorical=chosen, origin=origin)
        return MultiView(
            {name: made.matrix},
            sample_ids=frame.index.to_numpy(dtype=str),
            feature_names={name: made.names},
            feature_info=None if made.info is None else {name: made.info},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the coding as JSON values."""
        return {"categories": self.categories}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CovariateCoding:
        """Build the coding from what `to_json` returned."""
        return cls({str(k): bool(v) for k, v in data["categories"].items()})
