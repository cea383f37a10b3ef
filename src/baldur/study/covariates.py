"""Covariates of the samples table as a view: numbers as they are, categories level by level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from baldur.exceptions import InputError
from baldur.io import encode_text
from baldur.views import MultiView


@dataclass(frozen=True)
class CovariateCoding:
    """Which covariates are numbers and which are categories; saved with a model for new samples.

    Levels are learned on training rows, by the same `CategoryEncoder` as those of views.
    """

    categories: dict[str, bool]  # Columns in order, and whether they are categories

    @classmethod
    def learn(cls, frame: pd.DataFrame, categorical: list[str]) -> CovariateCoding:
        """Return the coding of some columns: which are numbers and which are categories."""
        found = {}
        for name in frame.columns:
            known = frame[name][frame[name] != ""]
            if not len(known):
                raise InputError(f"column {name!r} has no values")
            numeric = pd.to_numeric(known, errors="coerce").notna().all()
            found[str(name)] = name in categorical or not numeric
        return cls(found)

    def view(self, frame: pd.DataFrame, name: str, origin: str) -> MultiView:
        """Return the columns as a view."""
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
