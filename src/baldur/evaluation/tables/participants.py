"""Who took part: counts and characteristics of the participants by outcome (a "Table 1")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from baldur.types import Array
from baldur.views import MultiView

COLUMNS = [
    "view", "feature", "level", "class", "kind", "count", "missing", "mean", "sd", "share",
]  # fmt: skip
EVERYBODY = "*"
"""Stands in the column class for all participants, and in the column feature for a whole view."""
WIDEST = 30
"""Features of a view that is described one by one; wider ones are no list of characteristics."""
MOST = 60
"""Features described in all; a table on paper has fewer."""


def participants_frame(data: MultiView, label: Array, classes: Sequence[Any]) -> pd.DataFrame:
    """Describe the participants by outcome.

    Shapes: label (n_samples,).
    """
    parts = [(EVERYBODY, np.ones(len(data), dtype=bool))]
    parts += [(str(c), np.asarray(label).astype(str) == str(c)) for c in classes]
    rows: list[dict[str, Any]] = []
    described = 0
    # Narrow views first: age and sex are seldom in a wide one.
    for name in sorted(data.view_names, key=lambda name: data.n_features[name]):
        view = data.view(name)
        present = view.present
        for group, who in parts:
            count = int(np.sum(present & who))
            rows.append(
                {"view": name, "feature": EVERYBODY, "level": "", "class": group, "kind": "view",
                 "count": count, "missing": int(who.sum()) - count,
                 "share": count / max(int(who.sum()), 1)}
            )  # fmt: skip
        if view.shape[1] > WIDEST or described >= MOST:
            continue
        cells = view.read().astype(float)
        levels = _levels(view.feature_info, view.shape[1])
        for j, feature in enumerate(view.feature_names[: MOST - described].astype(str)):
            level = levels[j]
            for group, who in parts:
                shown = {"view": name, "feature": feature, "level": level, "class": group}
                rows.append({**shown, **_described(cells[:, j], who)})
        described += view.shape[1]
    return pd.DataFrame(rows, columns=COLUMNS)


def _levels(info: pd.DataFrame | None, width: int) -> list[str]:
    """Return the level that each column of a category stands for; "" for other features."""
    if info is None or "level" not in info:
        return [""] * width
    return ["" if pd.isna(level) else str(level) for level in info["level"]]


def _described(values: Array, who: Array) -> dict[str, Any]:
    known = np.isfinite(values)
    binary = bool(known.any()) and bool(np.isin(values[known], (0.0, 1.0)).all())
    mine = values[known & who]
    found: dict[str, Any] = {"missing": int(who.sum()) - len(mine)}
    if binary:
        count = int(np.sum(mine == 1))
        return {**found, "kind": "share", "count": count, "share": count / max(len(mine), 1)}
    return {
        **found,
        "kind": "number",
        "count": len(mine),
        "mean": float(mine.mean()) if len(mine) else np.nan,
        "sd": float(mine.std(ddof=1)) if len(mine) > 1 else np.nan,
    }
