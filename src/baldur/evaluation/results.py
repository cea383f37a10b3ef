"""Results: the tables and the record of a comparison, from a run to its files, figures and page."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import baldur
from baldur.core.limits import one_thread
from baldur.evaluation.clinical.held_out import Resampled, classes_of
from baldur.evaluation.metrics import AVERAGE, METRICS
from baldur.evaluation.result_files import OUTCOMES, SCHEMA, TABLES
from baldur.evaluation.results_reader import read_grids, read_result_table, read_results
from baldur.exceptions import InputError

if TYPE_CHECKING:
    from baldur.evaluation.nested_result import NestedResult
    from baldur.evaluation.view_additions import AddedValue

_LONGEST_NAME = 60
"""Characters of a folder; file systems allow 255 bytes."""


class Results:
    """Tables of a comparison by name, each computed or read when it is first needed.

    They come from a run in memory, from a results folder, or are given. Of several outcomes the
    tables are those of the mean over them, and `outcomes` has the results of each.
    """

    def __init__(
        self,
        run: NestedResult | None = None,
        *,
        folder: str | Path | None = None,
        tables: Mapping[str, pd.DataFrame] | None = None,
        record: Mapping[str, Any] | None = None,
        evaluation: Mapping[str, Any] | None = None,
        added_value: Mapping[str, Any] | None = None,
    ) -> None:
        self.run: Any = run  # In memory; None of tables that were read or given
        self.folder = None if folder is None else Path(folder)  # Where the files are, if anywhere
        self.problems: list[str] = []  # Files that are missing, damaged or changed
        self.outcomes: dict[str, Results] = {}  # Of each, where there are several
        self._tables = dict(tables or {})
        self._facts = dict(record or {})  # Entries of the record besides those of the run
        self._evaluation = dict(evaluation or {})  # Arguments of `NestedResult.evaluation`
        self._added_value = dict(added_value or {})  # Arguments of `NestedResult.added_value`
        for name, result in ({} if run is None else run.results).items():
            facts = {**self._facts, "outcome": name}
            if "title" in facts:
                facts["title"] = ": ".join(part for part in (facts["title"], name) if part)
            self.outcomes[name] = Results(
                result, record=facts, evaluation=evaluation, added_value=added_value
            )

    @classmethod
    def read(cls, folder: str | Path) -> Results:
        """Read a results folder; nothing in it is run or unpickled.

        A folder without ``run.json`` or ``table.csv``, or with damaged ones, is refused. Other
        files that are missing or damaged are listed in `problems` and left out.
        """
        place = Path(folder)
        record, tables, grids, problems = read_results(place)
        results = cls(folder=place, tables=tables, record=record)
        results.grids, results.problems = grids, problems
        if list(results.table("table")["model"]) != record["models"]:
            raise InputError(
                f"{place}: table.csv and run.json name different models, so they are not of one "
                "study. Run the study again, or restore the files."
            )
        # Names of folders follow from those of the outcomes; none is taken from the file.
        for name, subfolder in outcome_folders(record.get("outcomes", [])).items():
            results.outcomes[name] = cls.read(place / OUTCOMES / subfolder)
        return results

    @cached_property
    def record(self) -> dict[str, Any]:
        """Content of ``run.json``: people, classes, views, models, folds and versions."""
        return self._facts if self.run is None else {**record_of(self.run), **self._facts}

    def table(self, name: str, *, every_outcome: bool = False) -> pd.DataFrame:
        """Return a table by the name of its file without ending; no rows where there is none.

        Of several outcomes it has the rows of their mean, or of the mean and every outcome.
        """
        if name not in self._tables:
            self._tables[name] = self._make(name)
        frame = self._tables[name]
        # In other tables a column of this name is something else.
        by_outcome = name in TABLES and "outcome" in TABLES[name].optional and "outcome" in frame
        if every_outcome or not by_outcome:
            return frame
        mean = frame[frame["outcome"].astype(str) == AVERAGE]
        return mean.drop(columns="outcome").reset_index(drop=True)

    def _make(self, name: str) -> pd.DataFrame:
        """Compute a table from the run, or read it; no rows where there is none."""
        if self.run is None:
            if self.folder is None or self._facts:  # with the record all tables were read
                return pd.DataFrame()
            return read_result_table(self.folder, name)
        file = TABLES.get(name)
        if file is None or file.make is None or (self.outcomes and not file.of_mean):
            return pd.DataFrame()
        frame = file.make(self)
        return pd.DataFrame() if frame is None else frame

    def of_model(self, name: str, model: str) -> pd.DataFrame:
        """Return the rows of a table that belong to a model."""
        table = self.table(name)
        if "model" not in table:
            return table.iloc[:0]
        return table[table["model"] == model].reset_index(drop=True)

    @cached_property
    def grids(self) -> dict[str, dict[str, Any]]:
        """Shape and affine of every view made of images."""
        grids: dict[str, dict[str, Any]] = {}
        if self.run is not None and not self.outcomes:
            grids = self.run.grids()
        elif self.folder is not None:
            grids = read_grids(self.folder)
        return grids

    # -- from a run, once for several tables ------------------------------------------------

    @cached_property
    def resampled(self) -> Resampled:
        """Held-out predictions with the bootstrap resamples that tables and figures share."""
        if self.run is not None:
            resampled: Resampled = self.run.resampled
            return resampled
        with one_thread():
            return Resampled(self.table("predictions"), self.classes)

    @cached_property
    def evaluation(self) -> dict[str, pd.DataFrame]:
        """Intervals, calibration, usefulness and subgroups, by the name of their file."""
        if not len(self.run.predictions):
            return {}
        frames: dict[str, pd.DataFrame] = self.run.evaluation(**self._evaluation).frames()
        return frames

    @cached_property
    def added(self) -> AddedValue | None:
        """What each view adds; None where it was not asked for, or nothing can be compared.

        The record says why (`added_value_missing`).
        """
        if self.run is None or not self.run.has_added_value:
            return None
        added: AddedValue = self.run.added_value(**self._added_value)
        return added

    # -- people, classes and models ---------------------------------------------------------

    @cached_property
    def people(self) -> pd.DataFrame:
        """One row per person: sample, label, site where known, and ``has_<view>``."""
        people = self.table("presence")
        predicted = self.table("predictions")
        if "site" in predicted and "sample" in people:
            sites = predicted.drop_duplicates("sample").set_index("sample")["site"]
            people = people.assign(site=people["sample"].map(sites).fillna("").astype(str))
        if "label" in people and not self.classes:
            people = people.assign(label=pd.to_numeric(people["label"], errors="coerce"))
        return people

    @property
    def classes(self) -> list[str]:
        """Classes, the positive one last; empty in regression."""
        if "classes" in self.record:
            return [str(c) for c in self.record["classes"]]
        return classes_of(self.table("predictions"))

    @property
    def finished(self) -> list[str]:
        """Names of the models that finished every fold."""
        failed = self.record.get("failures", {})
        return [m for m in self.record.get("models", []) if m not in failed]

    @property
    def with_all_views(self) -> list[str]:
        """Those of the finished models that get all views."""
        with_some_views = self.record.get("view_sets", {})
        return [m for m in self.finished if m not in with_some_views]

    @property
    def ranked(self) -> pd.Series:
        """The metric that settings were selected by, of each model with all views, best first.

        Where no model gets all views, of every finished model; empty without the metric.
        """
        metric, table = str(self.record.get("select_by", "")), self.table("table")
        if f"{metric}_pooled" not in table:
            return pd.Series(dtype=float)
        values = table.drop_duplicates("model").set_index("model")[f"{metric}_pooled"]
        values = values.reindex(self.with_all_views or self.finished).astype(float)
        return values.sort_values(ascending=not METRICS[metric].greater_is_better, kind="stable")


def outcome_folders(outcomes: Sequence[str]) -> dict[str, str]:
    """Return the name of the folder of every outcome, which any file system can have."""
    folders: dict[str, str] = {}
    taken: set[str] = set()
    for number, name in enumerate(outcomes, 1):
        plain = re.sub(r"[^A-Za-z0-9-]+", "_", name).strip("_")[:_LONGEST_NAME] or "outcome"
        while plain.casefold() in taken:
            plain = f"{plain}_{number}"
        taken.add(plain.casefold())
        folders[name] = plain
    return folders


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return {
        "baldur": baldur.__version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": version("scipy"),
        "scikit-learn": version("scikit-learn"),
        "pandas": pd.__version__,
    }


def record_of(result: NestedResult) -> dict[str, Any]:
    """Return samples, classes, folds and models as JSON values, without times."""
    names = [str(c) for c in result.classes]
    repeats = 1 + max((f.repeat for f in result.folds), default=0)
    return {
        "schema": SCHEMA,
        "task": "classification" if names else "regression",
        "people": len(result.data),
        "classes": names,
        "views": [
            {
                "name": view,
                "features": int(width),
                "people": int(np.sum(result.data.view(view).present)),
            }
            for view, width in result.n_features.items()
        ],
        "models": list(result.models),
        "view_sets": {
            model.name: list(model.views)
            for model in result.comparison.models
            if model.views is not None
        },
        "baseline_views": list(result.comparison.baseline_views),
        "added_value_missing": result.added_value_missing,
        "failures": dict(result.failures),
        "notes": {model: list(notes) for model, notes in result.notes.items() if notes},
        "metrics": list(result.metrics),
        "select_by": result.select_by,
        "folds": len(result.folds) // repeats,
        "repeats": repeats,
        "groups": None if result.groups is None else len(np.unique(result.groups)),
        "sites": None if result.sites is None else len(np.unique(result.sites)),
        "versions": versions(),
        **({"outcomes": result.outcomes} if result.outcomes else {}),
    }
