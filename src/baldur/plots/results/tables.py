"""The tables of a comparison, from a `NestedResult` or its folder, by the names of the files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.evaluation import Evaluation
from baldur.evaluation.clinical.held_out import classes_of
from baldur.evaluation.result import NestedResult
from baldur.exceptions import InputError
from baldur.safety.spreadsheet import unescape_frame

__all__ = ["Results", "one_model"]

# Columns that hold names. Read as text: a feature may be called 12, 007 or NA.
_TEXT = (
    "model", "model_a", "model_b", "view", "feature", "class", "sample", "metric", "kind", "site",
    "view_a", "feature_a", "view_b", "feature_b", "chromosome", "folds", "measure", "note",
    "failure", "figure", "reason", "output", "step",
)  # fmt: skip
_EVALUATED = tuple(field.name for field in fields(Evaluation))


class Results:
    """Tables of a comparison of models, read or computed when they are asked for.

    Parameters
    ----------
    source : NestedResult, or path of a results folder
        What `nested_cv` returned, or where ``baldur evaluate`` wrote its files.

    Attributes
    ----------
    classes : list of str
        The positive one last; empty in regression.
    """

    def __init__(self, source: NestedResult | str | os.PathLike[str] | Results) -> None:
        self._kept: dict[str, pd.DataFrame] = {}
        self.result: NestedResult | None = None
        self.folder: Path | None = None
        if isinstance(source, Results):
            self._kept, self.result, self.folder = source._kept, source.result, source.folder
        elif isinstance(source, (str, os.PathLike)):
            self.folder = Path(source)
            if not self.folder.is_dir():
                raise InputError(f"{self.folder}: there is no such folder of results.")
        elif isinstance(source, NestedResult):
            self.result = source
        else:
            raise InputError(
                "Expected what nested_cv returned, or the path of a results folder, but got "
                f"{type(source).__name__}."
            )

    @property
    def classes(self) -> list[str]:
        """Classes, the positive one last; empty in regression."""
        if self.result is not None:
            return [str(c) for c in self.result.classes]
        return classes_of(self.frame("predictions"))

    def frame(self, name: str) -> pd.DataFrame:
        """Return a table by the name of its file without ending; no rows where there is none."""
        if name not in self._kept:
            self._kept[name] = self._made(name) if self.folder is None else self._read(name)
        return self._kept[name]

    def grids(self) -> dict[str, dict[str, Any]]:
        """Return shape and affine of every view made of images."""
        if self.result is not None:
            return self.result.grids()
        file = None if self.folder is None else self.folder / "grids.json"
        if file is None or not file.is_file():
            return {}
        try:
            return dict(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot be read as the grids of images: {error}.") from error

    def _made(self, name: str) -> pd.DataFrame:
        result = self.result
        if result is None:
            raise TypeError("either a result or a folder")
        makers: dict[str, Callable[[], pd.DataFrame]] = {
            "predictions": lambda: result.predictions,
            "selection": lambda: result.selection,
            "table": result.table,
            "weights": result.weights,
            "folds": result.scores,
            "comparisons": result.compare,
            "stability": lambda: result.stability().index,
            "views": lambda: result.stability().views,
            "view_shares": result.view_shares,
            "presence": result.presence,
            "correlations": result.correlations,
            "places": result.places,
            "settings": lambda: result.settings,
            "permutation": result.permutation_test,
        }
        if name in makers:
            return makers[name]()
        if name in _EVALUATED and len(result.predictions):
            # Once for all of them, those without rows too.
            for table, frame in vars(result.evaluation()).items():
                self._kept.setdefault(table, frame if len(frame) else pd.DataFrame())
        return self._kept.get(name, pd.DataFrame())

    def _read(self, name: str) -> pd.DataFrame:
        if self.folder is None:
            raise TypeError("a folder to read from")
        file = self.folder / f"{name}.csv"
        if not file.is_file():
            return pd.DataFrame()
        try:
            heading = pd.read_csv(file, nrows=0).columns
            texts = [c for c in heading if c in _TEXT]
            if name == "predictions":
                # The outcome of a regression is a number.
                classes = any(c.startswith(("p_", "'p_")) for c in heading)
                texts += ["group", "label", "predicted"] if classes else ["group"]
            if name == "presence":
                texts.append("label")
            read = pd.read_csv(
                file,
                dtype={c: str for c in texts if c in heading},
                keep_default_na=False,
                na_values={c: [""] for c in heading if c not in texts},
                float_precision="round_trip",
            )
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot be read as a table of results: {error}.") from error
        return unescape_frame(read)


def one_model(table: pd.DataFrame, model: str | None, what: str) -> str:
    """Return the model to show: the one asked for, or the first of the table."""
    names = list(dict.fromkeys(table["model"].astype(str))) if "model" in table else []
    if model is None:
        if not names:
            raise InputError(f"There is no finished model with {what} in these results.")
        return str(names[0])
    if model not in names:
        raise InputError(f"There are no {what} of a model {model!r}; those with some are {names}.")
    return model


def fold_names(table: pd.DataFrame) -> np.ndarray:
    """Return how each row's fold is called: "3", or "2.3" where there are repeats."""
    repeats = table["repeat"].astype(int)
    folds = table["fold"].astype(int).astype(str)
    if repeats.nunique() <= 1:
        return folds.to_numpy(dtype=str)
    return (repeats.astype(str) + "." + folds).to_numpy(dtype=str)
