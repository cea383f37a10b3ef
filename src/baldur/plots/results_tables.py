"""Results for figures: from a comparison in memory, or from the path of a results folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.multilabel import MultilabelResult
from baldur.evaluation.result import NestedResult
from baldur.evaluation.results import Results
from baldur.exceptions import InputError


def results_of(source: Any) -> Results:
    """Return the tables of a `NestedResult`, of the path of a results folder, or of `Results`."""
    if isinstance(source, Results):
        return source
    if isinstance(source, (str, os.PathLike)):
        folder = Path(source)
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder of results.")
        return Results(folder=folder)
    if isinstance(source, NestedResult):
        return Results(source)
    if isinstance(source, MultilabelResult):
        raise InputError(
            "The result has several outcomes; give that of one, such as "
            f"result[{source.outcomes[0]!r}], or draw them all with OutcomesDisplay."
        )
    raise InputError(
        "Expected what nested_cv returned, or the path of a results folder, but got "
        f"{type(source).__name__}."
    )


def one_model(table: pd.DataFrame, model: str | None, what: str) -> str:
    """Return the model to show: the given one, or the first of the table."""
    names = list(dict.fromkeys(table["model"].astype(str))) if "model" in table else []
    if model is None:
        if not names:
            raise InputError(f"There is no finished model with {what} in these results.")
        return str(names[0])
    if model not in names:
        raise InputError(f"Model {model!r} has no {what}; models that have some: {names}.")
    return model


def fold_names(table: pd.DataFrame) -> np.ndarray:
    """Return the name of the fold of each row: "3", or "2.3" where there are repeats."""
    repeats = table["repeat"].astype(int)
    folds = table["fold"].astype(int).astype(str)
    if repeats.nunique() <= 1:
        return folds.to_numpy(dtype=str)
    return (repeats.astype(str) + "." + folds).to_numpy(dtype=str)
