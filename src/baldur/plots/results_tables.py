"""The tables of a comparison, computed from a `NestedResult` or read from a results folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.evaluation import Evaluation
from baldur.evaluation.clinical.held_out import classes_of
from baldur.evaluation.label_matrix import AVERAGE
from baldur.evaluation.multilabel import MultilabelResult
from baldur.evaluation.result import NestedResult
from baldur.evaluation.results_reader import read_grids, read_result_table
from baldur.exceptions import InputError

_EVALUATED = tuple(field.name for field in fields(Evaluation))


class Results:
    """Tables of a comparison of models, read or computed when they are first needed.

    Parameters
    ----------
    source : NestedResult, or path of a results folder
        The value that `nested_cv` returned, or the folder that ``baldur evaluate`` wrote.

    Attributes
    ----------
    classes : list of str
        All classes, the positive one last; empty in regression.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> from baldur.plots.results_tables import Results
    >>> made = make_multiview(60, {"clinic": 3, "genes": 6}, random_state=0)
    >>> results = Results(nested_cv(["Dummy"], made.data, made.target, outer=2))
    >>> results.classes
    ['0', '1']
    >>> results.frame("predictions").columns.to_list()
    ['model', 'repeat', 'fold', 'sample', 'label', 'predicted', 'p_0', 'p_1']
    """

    def __init__(self, source: NestedResult | str | os.PathLike[str] | Results) -> None:
        self._kept: dict[str, pd.DataFrame] = {}
        self.result: NestedResult | None = None
        self.folder: Path | None = None
        self._grids: dict[str, dict[str, Any]] = {}
        if isinstance(source, Results):
            self._kept, self.result, self.folder = source._kept, source.result, source.folder
            self._grids = source._grids
        elif isinstance(source, (str, os.PathLike)):
            self.folder = Path(source)
            if not self.folder.is_dir():
                raise InputError(f"{self.folder}: there is no such folder of results.")
        elif isinstance(source, NestedResult):
            self.result = source
        elif isinstance(source, MultilabelResult):
            raise InputError(
                "The result has several outcomes; give that of one, such as "
                f"result[{source.outcomes[0]!r}], or draw them all with OutcomesDisplay."
            )
        else:
            raise InputError(
                "Expected what nested_cv returned, or the path of a results folder, but got "
                f"{type(source).__name__}."
            )

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[str, pd.DataFrame],
        grids: Mapping[str, dict[str, Any]] | None = None,
    ) -> Results:
        """Return results whose tables were computed or read before.

        Parameters
        ----------
        tables : dict of str to DataFrame
            By the names of their files without ending.
        grids : dict of str to dict, optional
            Shape and affine of every view made of images.

        Returns
        -------
        Results
        """
        made = cls.__new__(cls)
        made._kept, made._grids = dict(tables), dict(grids or {})
        made.result = made.folder = None
        return made

    @property
    def classes(self) -> list[str]:
        """Classes, the positive one last; empty in regression."""
        if self.result is not None:
            return [str(c) for c in self.result.classes]
        return classes_of(self.frame("predictions"))

    def frame(self, name: str) -> pd.DataFrame:
        """Return a table by the name of its file without ending; no rows where there is none."""
        if name not in self._kept:
            if self.folder is not None:
                self._kept[name] = _of_the_mean(read_result_table(self.folder, name))
            else:
                self._kept[name] = self._made(name)
        return self._kept[name]

    def grids(self) -> dict[str, dict[str, Any]]:
        """Return shape and affine of every view made of images."""
        if self.result is not None:
            return self.result.grids()
        return self._grids if self.folder is None else read_grids(self.folder)

    def _made(self, name: str) -> pd.DataFrame:
        result = self.result
        if result is None:  # tables that were passed are all there are
            return pd.DataFrame()
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
            "participants": result.participants,
            "correlations": result.correlations,
            "feature_locations": result.feature_locations,
            "settings": lambda: result.settings,
            "few_features": result.few_features,
            "few_names": result.few_names,
            "permutation": result.permutation_test,
        }
        if name in makers:
            return makers[name]()
        if name in ("added_value", "reclassification") and result.has_added_value:
            added = result.added_value()
            self._kept |= {"added_value": added.table, "reclassification": added.reclassification}
        if name in _EVALUATED and len(result.predictions):
            # Once for all of them, those without rows too.
            for table, frame in vars(result.evaluation()).items():
                self._kept.setdefault(table, frame if len(frame) else pd.DataFrame())
        return self._kept.get(name, pd.DataFrame())


def _of_the_mean(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the mean over outcomes, where a folder has several outcomes."""
    if "outcome" not in table:
        return table
    mean = table[table["outcome"].astype(str) == AVERAGE]
    return mean.drop(columns="outcome").reset_index(drop=True)


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
