"""Participants of a comparison: their characteristics by outcome, and how many would be needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from baldur.core.types import Array
from baldur.evaluation.clinical.sample_size import (
    minimum_people,
    minimum_people_regression,
    r2_of_auc,
)
from baldur.exceptions import InputError

if TYPE_CHECKING:
    from baldur.evaluation.design import Comparison
    from baldur.views import MultiView

COLUMNS = [
    "view", "feature", "level", "class", "kind", "count", "missing", "mean", "sd", "share",
]  # fmt: skip
HAS = "has_"
"""Begins the columns of the table of samples that say who has which view."""
EVERYBODY = "*"
"""Stands in the column class for all participants, and in the column feature for a whole view."""
WIDEST = 30
"""Features of a view that is described one by one; wider ones are no list of characteristics."""
MOST = 60
"""Features described in all; a table on paper has fewer."""


def participants_frame(data: MultiView, label: Array, classes: Sequence[Any]) -> pd.DataFrame:
    """Describe the participants by outcome: who has each view, and the features of narrow views.

    Shapes: label (n_samples,).
    """
    groups = {EVERYBODY: np.ones(len(data), dtype=bool)}
    groups |= {str(c): np.asarray(label).astype(str) == str(c) for c in classes}
    rows: list[dict[str, Any]] = []
    described = 0
    # Narrow views first: age and sex are seldom in a wide one.
    for name in sorted(data.view_names, key=lambda name: data.n_features[name]):
        view = data.view(name)
        for group, members in groups.items():
            count, size = int(np.sum(view.present & members)), int(members.sum())
            rows.append(
                {"view": name, "feature": EVERYBODY, "level": "", "class": group, "kind": "view",
                 "count": count, "missing": size - count, "share": count / max(size, 1)}
            )  # fmt: skip
        if view.shape[1] > WIDEST or described >= MOST:
            continue
        cells = view.read().astype(float)
        # The level that each column of a category stands for.
        info = view.feature_info
        levels = [""] * view.shape[1]
        if info is not None and "level" in info:
            levels = ["" if pd.isna(level) else str(level) for level in info["level"]]
        for j, feature in enumerate(view.feature_names[: MOST - described].astype(str)):
            for group, members in groups.items():
                names = {"view": name, "feature": feature, "level": levels[j], "class": group}
                rows.append({**names, **_characteristics(cells[:, j], members)})
        described += view.shape[1]
    return pd.DataFrame(rows, columns=COLUMNS)


def _characteristics(values: Array, members: Array) -> dict[str, Any]:
    """Return count and share of a yes/no feature, or mean and s.d. of another, in one group."""
    known = np.isfinite(values)
    values_of_group = values[known & members]
    size = len(values_of_group)
    missing = int(members.sum()) - size
    if known.any() and np.isin(values[known], (0.0, 1.0)).all():
        count = int(np.sum(values_of_group == 1))
        return {"missing": missing, "kind": "share", "count": count, "share": count / max(size, 1)}
    mean = float(values_of_group.mean()) if size else np.nan
    sd = float(values_of_group.std(ddof=1)) if size > 1 else np.nan
    return {"missing": missing, "kind": "number", "count": size, "mean": mean, "sd": sd}


def people_needed(comparison: Comparison, table: pd.DataFrame) -> pd.DataFrame:
    """Return the closed-form minimum numbers of people for each model in the table of a comparison.

    They are for a regression without penalty that discriminates as well as the model did, on all
    candidate columns, and on as many as the model selected (which is fewer than it chose from, so
    that this number is too low). Where no such regression can be fitted, a note says so.
    """
    rows = []
    for record in table[table["failure"] == ""].to_dict("records"):
        model = comparison.model(str(record["model"]))
        width = sum(comparison.n_features[v] for v in model.views or comparison.data.view_names)
        selected = float(record["features_percent"]) / 100 * width
        sizes = {"all": float(width)}
        if np.isfinite(selected) and selected < width:
            sizes["selected"] = selected
        for name, count in sizes.items():
            row: dict[Any, Any] = {"model": record["model"], "candidates": name, "note": ""}
            if count < 1:
                rows.append({**row, "note": "the model selects no features"})
                continue
            row["parameters"] = int(np.ceil(count))
            try:
                criteria = _criteria(comparison, record, row["parameters"])
                rows += [{**row, **criterion} for criterion in criteria.to_dict("records")]
            except InputError as error:
                rows.append({**row, "note": str(error)})
    columns = ["model", "candidates", "parameters", "criterion", "people", "meaning", "note"]
    return pd.DataFrame(rows, columns=columns).astype({"parameters": "Int64", "people": "Int64"})


def _criteria(comparison: Comparison, record: dict[Any, Any], parameters: int) -> pd.DataFrame:
    """Return the people that a regression needs, by criterion; `record` is a row of the table."""
    people = len(comparison.y)
    if parameters >= people:
        raise InputError(
            f"A regression without penalty cannot be fitted to {parameters:,} features of "
            f"{people:,} people, so that there is no minimum sample size."
        )
    if not comparison.classes:
        return minimum_people_regression(parameters, float(record["r2_pooled"]))
    if len(comparison.classes) > 2:
        raise InputError(
            "Minimum sample sizes can be computed for two classes or a numeric outcome only."
        )
    share = float(np.mean(comparison.y == 1))
    r2 = r2_of_auc(float(record["auc_pooled"]), share)
    return minimum_people(parameters, share, r2)
