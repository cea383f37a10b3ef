"""The registry of the files of a results folder: content, columns, and how each table is made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import pandas as pd

from baldur.evaluation.clinical.evaluation import Evaluation
from baldur.evaluation.participants import people_needed

INDEX = "README.txt"
REPORT = "report.html"
LOG = "log.txt"
RECORD = "run.json"
"""File that says who was studied and how; the tables do not hold this."""
SCHEMA = 2
"""Of ``run.json``; raised when an older package could not read a newer file."""
GRIDS = "grids.json"
SUMMARY = "validation.txt"
"""File that every validation has and no other folder."""
JOBS = "jobs"
"""Folder of finished jobs."""
OUTCOMES = "outcomes"
"""Folder of the results of every outcome, where a study has several."""

TEXT, NUMBER, SHARE, COUNT, COUNTS, ANY = "text", "number", "share", "count", "counts", "any"
"""Types of columns: names; numbers; numbers from 0 to 1, none missing; whole numbers from 0; such
as ``3;0;2``; whatever is there."""


@dataclass(frozen=True)
class ResultFile:
    """One file of a results folder, and the columns of a table."""

    name: str  # Of the file
    about: str = ""  # What it holds; "" where another line of README.txt says so
    make: Callable[[Any], Any] | None = None  # From the `Results` of a run; None: given or no file
    columns: Mapping[str, str] = field(default_factory=dict)  # Required ones and their types
    optional: Mapping[str, str] = field(default_factory=dict)
    rest: str = NUMBER  # Type of every other column
    of_mean: bool = False  # Whether the mean over several outcomes has it

    @property
    def table(self) -> str:
        """Name of the table: that of the file without its ending."""
        return self.name.removesuffix(".csv")

    def type_of(self, column: str) -> str:
        """Return the type of a column."""
        return self.columns.get(column) or self.optional.get(column) or self.rest


def _columns(text: str = "", number: str = "", count: str = "", **other: str) -> dict[str, str]:
    """Return the type of each column, from names separated by spaces and types of others."""
    types = dict.fromkeys(text.split(), TEXT)
    types |= dict.fromkeys(number.split(), NUMBER)
    return types | dict.fromkeys(count.split(), COUNT) | other


def _with_rows(frame: pd.DataFrame | None) -> pd.DataFrame | None:
    return None if frame is None or not len(frame) else frame


def _evaluated(
    name: str, about: str, columns: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> ResultFile:
    """Return a table of `Evaluation`; the mean over outcomes has two of them."""
    return ResultFile(
        f"{name}.csv", about, lambda results: results.evaluation.get(f"{name}.csv"), columns,
        optional or {}, of_mean=name in ("intervals", "differences"),
    )  # fmt: skip


_FOLD = {"model": TEXT, "repeat": COUNT, "fold": COUNT}
_ENDS = "estimate low high"

FILES = (
    ResultFile(REPORT, "the answer on one page, with figures; opens in any browser, without a "
               "network"),
    ResultFile("table.txt", "the comparison, one line per model; table.csv, .md and .tex hold the "
               "same", lambda r: r.run.format("text"), of_mean=True),
    ResultFile("table.csv", "", lambda r: r.run.table(),
               _columns("model note failure", count="folds"), _columns("outcome"), of_mean=True),
    ResultFile("table.md", "", lambda r: r.run.format("markdown"), of_mean=True),
    ResultFile("table.tex", "", lambda r: r.run.format("latex"), of_mean=True),
    _evaluated("intervals", "every metric with its interval",
               _columns("model site metric note", _ENDS, "people units"), _columns("outcome")),
    _evaluated("differences", "differences between models with their intervals",
               _columns("metric model_a model_b note", "difference low high")),
    ResultFile("comparisons.csv", "tests of every pair of models, adjusted for multiple testing",
               lambda r: r.run.compare(),
               _columns("metric model_a model_b", "difference standard_error t p p_holm", "df"),
               of_mean=True),
    ResultFile("permutation.csv", "tests against permuted labels",
               lambda r: r.run.permutation_test() if any(r.run.permuted.values()) else None,
               _columns("model metric", "score permuted_mean p p_holm", "permutations"),
               of_mean=True),
    ResultFile("selection.csv", "features: how often they are selected, and their weights, one "
               "row per class", lambda r: r.run.selection,
               _columns("model view feature class", "mean_weight mean_raw_weight sign_agreement",
                        "n_features", frequency=SHARE, folds=COUNTS)),
    ResultFile("views.csv", "how often each view is used, and its share of the variance explained",
               lambda r: r.run.stability().views,
               _columns("model view", "frequency percent_of_view share variance_share")),
    ResultFile("view_shares.csv", "the same in every fold", lambda r: r.run.view_shares(),
               {**_FOLD, **_columns("view", "share variance_share", "selected")}),
    ResultFile("stability.csv", "agreement of the folds on the selected features",
               lambda r: r.run.stability().index,
               _columns("model view", "stability error low high")),
    ResultFile("weights.csv", "weight of every selected feature in every fold",
               lambda r: r.run.weights(),
               {**_FOLD, **_columns("view feature class", "weight raw_weight")}),
    ResultFile("correlations.csv", "correlations between the features that half of the folds "
               "select", lambda r: _with_rows(r.run.correlations()),
               _columns("model view_a feature_a view_b feature_b", "correlation")),
    ResultFile("feature_locations.csv", "where selected variants, voxels or regions lie",
               lambda r: _with_rows(r.run.feature_locations()),
               _columns("view feature"), _columns("chromosome"), ANY),
    ResultFile(GRIDS, "the grids of views made of images",
               lambda r: json.dumps(r.grids, indent=1) + "\n" if r.grids else None),
    ResultFile("few_features.csv", "accuracy with 1, 2, 3, 5, 10 and 20 features on the held-out "
               "folds", lambda r: _with_rows(r.run.few_features()),
               _columns("model limit metric", "features_mean features_min features_max "
                        f"{_ENDS} difference difference_low difference_high chance")),
    ResultFile("few_names.csv", "which features these are, and in how many folds",
               lambda r: _with_rows(r.run.few_names()),
               _columns("model limit view feature", count="folds", share=SHARE)),
    ResultFile("predictions.csv", "every held-out prediction; all figures follow from it and "
               "selection.csv", lambda r: r.run.predictions,
               {**_FOLD, **_columns("sample", label=ANY, predicted=ANY)},
               _columns("group site probability flags")),
    ResultFile("presence.csv", "which sample has which view", lambda r: r.run.presence(),
               _columns("sample", label=ANY), rest=COUNT),
    ResultFile("participants.csv", "characteristics of the participants, by outcome",
               lambda r: r.run.participants(),
               _columns("view feature level class kind", "mean sd share", "count missing")),
    ResultFile("added_value.csv", "what each view adds to the baseline and to all others",
               lambda r: None if r.added is None else r.added.table,
               _columns("question view model reference metric outcome note",
                        "threshold value value_low value_high reference_value difference low high "
                        "standard_error detectable p p_holm", "people of_people units")),
    ResultFile("reclassification.csv", "who moves across the thresholds when a view is added",
               lambda r: None if r.added is None else _with_rows(r.added.reclassification),
               _columns("question view model reference class",
                        "threshold people up down unchanged net low high")),
    _evaluated("calibration", "agreement of probabilities with observed frequencies",
               _columns("model class measure note", _ENDS)),
    _evaluated("calibration_curve", "the same, as a curve",
               _columns("model class", "predicted observed low high")),
    _evaluated("decision", "net benefit of decisions based on the predictions",
               _columns("model", "threshold net_benefit low high")),
    _evaluated("thresholds", "sensitivity, specificity and predictive values at thresholds",
               _columns("model rule measure note", f"threshold {_ENDS}")),
    _evaluated("subgroups", "metrics in subgroups of the samples",
               _columns("model subgroup level measure note",
                        f"{_ENDS} difference difference_low difference_high", "people cases")),
    ResultFile("learning_curve.csv", "scores against the number of training samples", None,
               _columns("model metric kind", f"people {_ENDS}")),
    ResultFile("sample_size.csv", "number of samples that a study of this kind needs",
               lambda r: _with_rows(people_needed(r.run.comparison, r.run.table())),
               _columns("model candidates criterion meaning note", "people", "parameters")),
    ResultFile("harmonisation.csv", "what was removed from the measurements of each site",
               lambda r: _with_rows(r.run.harmonisation()), _columns("view", "", "repeat fold"),
               rest=ANY),
    _evaluated("left_out", "figures that are not given, and why", _columns("model figure reason")),
    ResultFile("folds.csv", "scores of every fold", lambda r: r.run.scores(), _FOLD),
    ResultFile("settings.csv", "settings that were selected in every fold",
               lambda r: r.run.settings, {**_FOLD, **_columns("setting value")}),
    ResultFile("table_folds.md", "the comparison as mean and s.d. over folds; table_folds.tex is "
               "the same", lambda r: r.run.format("markdown", "folds"), of_mean=True),
    ResultFile("table_folds.tex", "", lambda r: r.run.format("latex", "folds"), of_mean=True),
    ResultFile("study.toml", "the study as it was run", of_mean=True),
    # Written last, as it lists the others.
    ResultFile(RECORD, "counts, versions, notes and findings, for programs that read this folder"),
)  # fmt: skip
"""Every file that `baldur evaluate` may write, in the order of reading."""

OF_VALIDATION = (
    ResultFile("scores.csv", "scores of the model in the new cohort", columns=_FOLD),
    ResultFile("development.csv", "the figures of the study in which the model was developed",
               columns=_columns("metric", _ENDS)),
    ResultFile("shift_views.csv", "how far predictors lie from those of the training, by view",
               columns=_columns("view worst",
                                "mean_shift spread_ratio outside worst_shift absent",
                                "features far"), rest=ANY),
    ResultFile("shift_features.csv", "the same, by feature", columns=_columns("view feature"),
               rest=ANY),
    ResultFile("recalibration.csv", "intercept and slope of recalibrated versions of the model",
               columns=_columns("version", "intercept slope"), rest=ANY),
)  # fmt: skip
"""Tables that `baldur validate` writes besides those above."""

TABLES = {file.table: file for file in (*FILES, *OF_VALIDATION) if file.name.endswith(".csv")}
"""Every table that a results folder may hold, by its name."""

RESULT_FILES = frozenset({INDEX, *(file.name for file in FILES)})
"""Names that a set of results may have; a new set removes those it does not have."""

RECALIBRATED = "recalibrated_"
"""Begins the names of the tables of a recalibrated model."""
_EVALUATED = ("predictions", "scores", *(f.name for f in fields(Evaluation)))
VALIDATION_TABLES = (
    *_EVALUATED,
    *(f"{RECALIBRATED}{name}" for name in _EVALUATED),
    *(file.table for file in OF_VALIDATION if file.table != "scores"),
)
"""Every table that `baldur validate` may write."""
VALIDATION_FILES = frozenset({SUMMARY, REPORT, *(f"{name}.csv" for name in VALIDATION_TABLES)})
"""All names the files of a validation may have."""


def digest(content: bytes) -> str:
    """Return the SHA-256 digest of a file's content, as ``run.json`` records it."""
    return hashlib.sha256(content).hexdigest()
