"""validate_study: a frozen model on a new cohort, evaluated, compared and recalibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import baldur
from baldur.core.atomic_io import replace_files
from baldur.core.escape import csv_text, one_line
from baldur.core.limits import one_thread
from baldur.core.schema import nearest
from baldur.evaluation import METRICS
from baldur.evaluation.clinical import evaluate_predictions
from baldur.evaluation.clinical.metric_intervals import ALL
from baldur.evaluation.cohort_shift import recalibrate
from baldur.evaluation.design import yes_or_no
from baldur.evaluation.metric_table import fixed, fold_scores
from baldur.evaluation.metrics import NO_YES, default_metrics
from baldur.evaluation.result_files import (
    OUTCOMES,
    RECALIBRATED,
    SUMMARY,
    VALIDATION_FILES,
)
from baldur.evaluation.results import Results
from baldur.evaluation.results_reader import read_result_table
from baldur.exceptions import InputError
from baldur.saving import SavedModel
from baldur.study.config import StudyConfig
from baldur.study.data import has_outcome, subgroup_columns
from baldur.study.predict import (
    predictions_of,
    read_new_samples,
    shift_from_training,
    shift_in_notes,
)
from baldur.study.results_folder import add_to_log, claim_folder, results_folder
from baldur.study.samples import check_column, find_label
from baldur.views import MultiView
from baldur.views.validate import counted

TITLE = "Title: "
"""How the line of ``validation.txt`` begins that has the title of the study file."""

_MEASURES = {
    "ici": "integrated calibration index",
    "brier": "Brier score",
    "miscalibration": "its part by miscalibration",
    "discrimination": "its part by discrimination, which is subtracted",
    "uncertainty": "its part by the outcome itself",
}
"""Names of measures of calibration on the screen."""


def summary(done: Results, model: SavedModel, left_out: Sequence[tuple[str, str]]) -> str:
    """Return the main results as text; `left_out` are impossible ways of recalibration, and why."""
    name = done.table("predictions")["model"].iloc[0]
    lines = [f"{TITLE}{one_line(done.record['title'])}", ""] if done.record["title"] else []
    development = {row["metric"]: row for _, row in done.table("development").iterrows()}
    lines += [
        f"{name}, trained on {model.details.get('samples')} samples, unchanged, on "
        f"{counted(len(done.table('predictions')), 'new one')}.",
        "",
        "Figures with 95 % intervals:",
        *_figures(done.of_model("intervals", name), development),
    ]
    if len(done.table("calibration")):
        lines += ["", "Calibration (intercept 0 and slope 1 are right):"]
        lines += _calibration(done.table("calibration"), development)
    if len(done.table("shift_views")):
        lines += ["", "Predictors against training (shift in training s.d.):"]
        for _, row in done.table("shift_views").iterrows():
            worst = (
                f"worst {row['worst']}, {fixed(row['worst_shift'], sign=True)}"
                if row["worst"]
                else "the model uses none"
            )
            lines.append(
                f"  {row['view']}: median shift {row['mean_shift']:.2f}, spread x "
                f"{row['spread_ratio']:.2f}, {row['outside']:.1%} of cells outside the range, "
                f"{row['far']} of {row['features']} columns far ({worst}), "
                f"{row['absent']:.0%} of samples without it"
            )
    if len(done.table("recalibration")):
        lines += ["", "Recalibrated on this cohort (cross-validated; a different model):"]
        for _, row in done.table("recalibration").iterrows():
            lines.append(
                f"  {row['version']}: log odds = {fixed(row['intercept'], 3)} + "
                f"{fixed(row['slope'], 3)} x "
                "log odds of the model"
            )
            version = f"{name} (recalibrated: {row['version']})"
            figures = _figures(done.of_model(f"{RECALIBRATED}intervals", version), {})
            lines += [f"  {line}" for line in figures]
    lines += [f"Not recalibrated ({version}): {why}." for version, why in left_out]
    if done.record["notes_on_data"]:
        lines += ["", *(f"Note: {note}." for note in done.record["notes_on_data"])]
    return "\n".join(lines) + "\n"


def _figures(intervals: pd.DataFrame, development: Mapping[str, pd.Series]) -> list[str]:
    """Return a line per metric, beside its value in the development study where that is known."""
    return [
        f"  {METRICS[row['metric']].heading}: {_interval(row, development.get(row['metric']))}"
        for _, row in _all_sites(intervals).iterrows()
    ]


def _all_sites(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table that are about the samples of all sites together."""
    return frame[frame["site"] == ALL] if "site" in frame else frame


def _calibration(frame: pd.DataFrame, development: Mapping[str, pd.Series]) -> list[str]:
    """Return the measures of calibration, of every class where there are more than two."""
    several = "class" in frame and frame["class"].nunique() > 1
    lines = []
    for _, row in frame.iterrows():
        measure = row["measure"]
        compared = not several and measure not in METRICS  # metrics are compared above
        interval = _interval(row, development.get(measure) if compared else None)
        what = _MEASURES.get(measure, measure)
        lines.append(
            f"  {row['class']}, {what}: {interval}" if several else f"  {what}: {interval}"
        )
    return lines


def _interval(row: pd.Series, development: pd.Series | None = None) -> str:
    """Return an estimate with its interval, and beside it that of the development study."""
    text = fixed(row["estimate"], 3)
    if np.isfinite(row["low"]) and np.isfinite(row["high"]):
        text += f" ({fixed(row['low'], 3)} to {fixed(row['high'], 3)})"
    return text if development is None else f"{text}; in development {_interval(development)}"


_DEVELOPMENT = ["metric", "estimate", "low", "high"]


def validate_study(
    model: SavedModel,
    config: StudyConfig,
    *,
    missing: str = "error",
    output: str | Path | None = None,
    fresh: bool = False,
    development: str | Path | None = None,
) -> Results:
    """Apply a frozen model to the cohort of a study file and write the results.

    Nothing of the model is changed. Recalibrated versions are reported beside it, in files of their
    own, with predictions by cross-validation inside the new cohort.

    Parameters
    ----------
    model : SavedModel
        As `load` returns it.
    config : StudyConfig
        Read with ``load_study(file, predicting=True)``; needs an outcome.
    missing : {"error", "impute"}, default="error"
        A column of the model that a view does not have is refused, or imputed by its training mean.
    output : str or Path, optional
        Folder for the files, instead of the study's own.
    fresh : bool, default=False
        Replace the results of another study there.
    development : str or Path, optional
        Results folder of the study in which the model was developed, to compare with.

    Returns
    -------
    Results
        The written tables by name, each by the name of its file without ending: predictions and
        scores of the frozen model, intervals, calibration, usefulness and subgroups, shift_views
        and shift_features (how the predictors differ from training), development (the model in its
        development study), recalibration and recalibrated_*. A table that was not written has no
        rows. `record` has the title and the notes.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import fit_study, load_study, simulate_study, validate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> old = simulate_study("biofind", f"{folder.name}/old", scale=1e-5, models=["Dummy"])
    >>> new = simulate_study("biofind", f"{folder.name}/new", scale=1e-5, seed=1)
    >>> model, _ = fit_study(load_study(old))
    >>> done = validate_study(model, load_study(new, predicting=True))
    >>> len(done.table("predictions")), sorted(path.name for path in done.folder.glob("sh*.csv"))
    (215, ['shift_features.csv', 'shift_views.csv'])
    >>> folder.cleanup()
    """
    if config.outcome.columns:
        fix = "name one of them as outcome.column, and validate them one after another"
        raise config.problem("outcome.columns", "a validation is about one outcome", fix)
    if not config.outcome.column:
        raise config.problem("outcome", "missing", "add [outcome] with column, to compare with")
    if model.outcomes and config.outcome.column not in model.outcomes:
        what = f"the model does not predict {config.outcome.column!r}"
        raise config.problem("outcome.column", what, nearest(config.outcome.column, model.outcomes))
    data, table, notes, labels = _read_cohort(model, config, missing)
    name = str(model.details.get("model", "model"))
    in_development = pd.DataFrame() if development is None else _development(development, name)
    folder = results_folder(config, output)
    claim_folder(config, folder, VALIDATION_FILES, fresh=fresh)
    classes = _classes(model)
    metrics = config.report.metrics or default_metrics(bool(classes))
    options: dict[str, Any] = {"classes": classes, "metrics": metrics}
    options |= config.report.clinical_options()
    options["subgroups"] = subgroup_columns(config, table, data)
    with one_thread():
        with shift_in_notes(notes):
            predictions = _predictions(model, config, data, table, labels)
        tables = _evaluated(predictions, options)
        if len(in_development):
            tables["development"] = in_development
        if model.training:
            shifts = shift_from_training(model, data)
            tables["shift_views"], tables["shift_features"] = shifts
        else:
            notes.append("the model does not remember its training predictors; fit it again")
        parameters, recalibrated, left_out = recalibrate(predictions, classes)
        if len(recalibrated):
            tables["recalibration"] = parameters
            evaluated = _evaluated(recalibrated, options)
            tables |= {f"{RECALIBRATED}{name}": table for name, table in evaluated.items()}
    record = {"title": config.title, "classes": classes, "models": [name], "notes_on_data": notes}
    done = Results(folder=folder, tables=tables, record=record)
    contents = {f"{name}.csv": csv_text(table).encode() for name, table in tables.items()}
    contents[SUMMARY] = summary(done, model, left_out).encode()
    replace_files(folder, contents, VALIDATION_FILES)
    add_to_log(
        folder,
        f"baldur {baldur.__version__}: {model.details.get('model')} on {config.file.resolve()}",
    )
    for note in notes:
        add_to_log(folder, f"note: {note}")
    return done


def _evaluated(predictions: pd.DataFrame, options: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return predictions, their scores, and the tables about them that have rows, by name."""
    evaluation = vars(evaluate_predictions(predictions, **options))
    return {
        "predictions": predictions,
        "scores": fold_scores(predictions, options["metrics"], options["classes"]),
        **{name: table for name, table in evaluation.items() if len(table)},
    }


def _development(folder: str | Path, model: str) -> pd.DataFrame:
    """Return the metrics and the calibration of a model in the study it was developed in."""
    parts = []
    for table, column in (("intervals", "metric"), ("calibration", "measure")):
        frame = read_result_table(folder, table)
        if not len(frame):
            continue
        if "outcome" in frame:
            raise InputError(
                f"{folder} has the results of several outcomes. Give the folder of one, below "
                f"{Path(folder) / OUTCOMES}."
            )
        frame = _all_sites(frame[frame["model"] == model])
        if table == "calibration" and frame["class"].nunique() > 1:
            continue  # one line for each class; the comparison is of the whole
        parts.append(frame[[column, "estimate", "low", "high"]].set_axis(_DEVELOPMENT, axis=1))
    measures = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_DEVELOPMENT)
    if not len(measures):
        raise InputError(
            f"{folder} has no intervals of a model {model!r}. Give the results folder of the study "
            "in which the model was developed."
        )
    return measures


def _read_cohort(
    model: SavedModel, config: StudyConfig, missing: str
) -> tuple[MultiView, pd.DataFrame, list[str], np.ndarray]:
    """Return views, table, notes and outcome (in the model's words) of samples that have one."""
    data, table, notes = read_new_samples(model, config, missing=missing)
    column = config.outcome.column
    named = [("outcome.column", column)]
    named += [(f"samples.{key}", name) for key, name in _groups_and_sites(config).items()]
    named += [("report.subgroups", name) for name in config.report.subgroups]
    for key, name in named:
        check_column(config, key, name, table)
    with_outcome = has_outcome(config, column, table, notes)
    if not with_outcome.all():
        data, table = data[np.flatnonzero(with_outcome)], table[with_outcome]
    cells = table[column]
    if model.outcomes:
        positive = config.outcome.positive
        if positive is not None:
            positive = find_label(positive, sorted(cells.unique()))
        with config.errors_at("outcome.column"):  # the message says what to do
            labels = np.array(NO_YES)[yes_or_no(cells, column, positive)]
        return data, table, notes, labels
    if not model.classes:
        numbers = pd.to_numeric(cells, errors="coerce")
        if numbers.isna().any():
            raise config.problem(
                "outcome.column",
                f"column {column!r} contains text",
                "write numbers, which is what the model predicts",
            )
        return data, table, notes, numbers.to_numpy()
    classes = _classes(model)
    other = sorted(set(cells) - set(classes))
    if other:
        raise config.problem(
            "outcome.column",
            f"{column!r} has {other[0]!r}, which is not a class of the model",
            f"write {' or '.join(classes)}, as in training",
        )
    lacking = [c for c in classes if c not in set(cells)]
    if lacking:
        notes.append(f"no sample has the class {lacking[0]!r}; figures that need it are missing")
    return data, table, notes, cells.to_numpy(dtype=str)


def _classes(model: SavedModel) -> list[str]:
    """Return the classes that are predicted; of a model of several outcomes those of each."""
    return list(NO_YES) if model.outcomes else [str(c) for c in model.classes]


def _groups_and_sites(config: StudyConfig) -> dict[str, str]:
    """Return the columns of groups and of sites, where the study names them."""
    return config.samples.model_dump(include={"group", "site"}, exclude_none=True)


def _predictions(
    model: SavedModel,
    config: StudyConfig,
    data: MultiView,
    table: pd.DataFrame,
    labels: np.ndarray,
) -> pd.DataFrame:
    """Return predictions in the columns that a study's ``predictions.csv`` has."""
    outcome = config.outcome.column if model.outcomes else None
    frame = predictions_of(model, data, bare=True, outcome=outcome)
    columns: dict[str, Any] = {
        "model": str(model.details.get("model", "model")), "repeat": 1, "fold": 1,
        "sample": frame.pop("sample"),
    }  # fmt: skip
    for key, name in _groups_and_sites(config).items():
        columns[key] = table[name].to_numpy(dtype=str)
    columns |= {"label": labels} | {str(c): frame[c] for c in frame}
    # Evaluation expects the columns of probabilities, also of a model that gives scores only.
    if model.classes and not any(c.startswith("p_") for c in columns):
        columns |= {f"p_{c}": np.nan for c in model.classes}
    return pd.DataFrame(columns)
