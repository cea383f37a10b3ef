"""How few features are enough, and what tests cost: tables of one fit, and their printed form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

FEW = (1, 2, 3, 5, 10, 20)
"""Numbers of features whose held-out figures are shown."""
PRINTED = 10
"""Rows of the table of costs that are printed."""
NAMED = 3
"""Features named in a printed row."""
_HEADINGS = {"auc": "AUC", "r2": "R2"}


def few_features_table(model: Any) -> pd.DataFrame:
    """Return held-out figures of 1, 2, 3, 5, 10, 20 features and all, on the inner folds."""
    path = getattr(model, "sparsity_path_", None)
    metric = None if path is None else next((m for m in _HEADINGS if m in path), None)
    if path is None or metric is None:
        return pd.DataFrame()
    figures = [f"{name}{end}" for name in (metric, "loss") for end in ("", "_lower", "_upper")]
    whole = path[path["step"] == "views"].iloc[-1]
    rows: list[dict[str, Any]] = []
    names: list[str] = []
    for _, step in path[path["step"] == "features"].iterrows():
        names += split_names(step["enters"], model.view_names_)
        if step["n_features"] in FEW and step["n_features"] < whole["n_features"]:
            rows.append({"n_features": int(step["n_features"]), **step[figures], "enters": names})
            names = []
    rows.append({"n_features": int(whole["n_features"]), **whole[figures], "enters": []})
    return pd.DataFrame(rows)


def few_features_text(model: Any) -> str:
    """Return the table of few features as it is printed, empty where there is none."""
    table = few_features_table(model)
    if not len(table):
        return ""
    metric = next(m for m in _HEADINGS if m in table)
    last = len(table) - 1
    rows = [
        (
            f"{row['n_features']:,}" + (" (all)" if place == last else ""),
            _interval(row, metric),
            _interval(row, "loss"),
            _shortened(row["enters"]),
        )
        for place, row in enumerate(table.to_dict("records"))
    ]
    heading = ("features", _HEADINGS[metric], "loss", "which enter")
    order = ", which enter by gain per cost" if len(getattr(model, "cost_path_", ())) else ""
    title = (
        f"How few features are enough{order}, on held-out rows with 95 % intervals (see submodel):"
    )
    return title + "\n" + _aligned([heading, *rows])


def cost_text(model: Any) -> str:
    """Return the table of costs as it is printed, empty where there are no costs."""
    table = getattr(model, "cost_path_", pd.DataFrame())
    if not len(table):
        return ""
    metric = next(m for m in _HEADINGS if m in table)
    rows = [
        (
            f"{row['cost']:g}",
            _interval(row, metric),
            _interval(row, "loss"),
            f"{row['n_features']:,}",
            _shortened(split_names(row["orders"], model.view_names_)) or unpaid(row["n_features"]),
        )
        for row in table.head(PRINTED).to_dict("records")
    ]
    heading = ("cost", _HEADINGS[metric], "loss", "features", "ordered")
    title = "Which tests give which accuracy, in a greedy order by gain per cost:"
    more = len(table) - len(rows)
    rest = f"\n... and {more:,} more rows of cost_path_." if more else ""
    return title + "\n" + _aligned([heading, *rows]) + rest


def split_names(text: str, views: Sequence[str]) -> list[str]:
    """Return the names in a cell of `enters` or `orders`; a name may have commas itself.

    Examples
    --------
    >>> from baldur.estimators.few_features import split_names
    >>> split_names("mri, blood:HDL, fasting, blood:age", ["mri", "blood"])
    ['mri', 'blood:HDL, fasting', 'blood:age']
    """
    begins = "|".join(map(re.escape, views))
    return [name for name in re.split(rf", (?=(?:{begins})(?::|, |$))", str(text)) if name]


def unpaid(n_features: int) -> str:
    """Return in words what is measured where nothing is paid for."""
    return "what costs nothing" if n_features else "nothing"


def _interval(row: dict[Any, Any], name: str) -> str:
    return f"{row[name]:.2f} [{row[f'{name}_lower']:.2f}, {row[f'{name}_upper']:.2f}]"


def _shortened(names: list[str]) -> str:
    text = ", ".join(names[:NAMED])
    return text if len(names) <= NAMED else f"{text} and {len(names) - NAMED:,} more"


def _aligned(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
