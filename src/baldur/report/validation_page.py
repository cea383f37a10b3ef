"""The page of a validation: a model, unchanged, in a new cohort, beside its development figures."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.held_out import classes_of
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.result_files import SUMMARY, VALIDATION_TABLES
from baldur.evaluation.results import Results, versions
from baldur.evaluation.results_reader import read_tables
from baldur.exceptions import InputError
from baldur.report.checks import Check, Judged, checks_of, codes_of, doubts_of, judge_run
from baldur.report.formatting import (
    ENDS,
    Cell,
    Column,
    Table,
    listed,
    make_table,
    named,
    number,
    percent,
    short,
    sort_key,
    whole,
)
from baldur.report.methods import methods_of_run
from baldur.report.people import check_people, people_of_run
from baldur.report.pictures import validation_plans
from baldur.report.render import Page
from baldur.report.sentences import (
    Interval,
    Sentence,
    calibration_sentence,
    interval_of,
    prediction_of,
    prediction_sentence,
    transport_sentence,
)
from baldur.report.tables import participants_table, subgroup_table, threshold_table
from baldur.views.validate import counted

_FAR = 1.0
"""Standardised shift of a feature's mean, in training s.d., that is named in a check."""
_VERY_FAR = 5.0
"""Shift that makes this check a serious one."""
_QUOTED = r"""(?:'[^']*'|"[^"]*")"""
_HIDDEN = (
    (re.compile(rf"\bsample {_QUOTED}"), "a sample"),
    (re.compile(rf"\bSamples: {_QUOTED}(?:, {_QUOTED})*"), "Samples: not named here"),
)
"""How notes name samples, and what a page without identifiers says instead."""


def is_validation(folder: Path) -> bool:
    """Return whether a folder was written by `baldur validate`."""
    return (folder / SUMMARY).is_file() and not (folder / "table.csv").exists()


def open_validation(folder: Path) -> Results:
    """Return the tables of a validation, with a record as a comparison has it."""
    from baldur.study.validate import TITLE

    tables, problems = read_tables(folder, VALIDATION_TABLES, required=("predictions", "intervals"))
    predictions = tables["predictions"]
    if not len(predictions):
        raise InputError(
            f"{folder / 'predictions.csv'} is missing or has no rows. Run baldur validate again."
        )
    classes = classes_of(predictions)
    metrics = [m for m in dict.fromkeys(tables["intervals"].get("metric", [])) if m in METRICS]
    record: dict[str, Any] = {
        "task": "classification" if classes else "regression",
        "people": int(predictions["sample"].nunique()),
        "classes": classes,
        "models": list(dict.fromkeys(predictions["model"])),
        "metrics": metrics,
        "select_by": "auc" if classes else "r2",
        "folds": 1,
        "repeats": 1,
        "versions": versions(),
        "title": next(iter(_summary_lines(folder, TITLE)), ""),
    }
    once = predictions.drop_duplicates("sample")
    tables["presence"] = once[["sample", "label"]].reset_index(drop=True)
    of_intervals = tables["intervals"].get("people", pd.Series(dtype=float)).max()
    if not np.isnan(of_intervals) and of_intervals != record["people"]:
        problems.append(
            f"predictions.csv has {record['people']:,} people, but the figures in intervals.csv "
            f"rest on {int(of_intervals):,}: one of the files is incomplete."
        )
    run = Results(folder=folder, tables=tables, record=record)
    run.problems = problems
    return run


def validation_page(run: Results, people: str, title: str | None) -> Page:
    """Return the page of a validation."""
    check_people(people)
    main = run.record["models"][0]
    applicable = ("B01", "B02", "B05", "B08", "B14")  # the other checks are of folds or of a fit
    of_run, shifts = judge_run(run, main), _judge_shifts(run)
    judged = {code: of_run[code] for code in applicable if code in of_run} | shifts
    checks_made, checks_not_made = codes_of(judged)
    largest = run.table("shift_views").get("worst_shift", pd.Series(dtype=float)).abs().max()
    checks = checks_of(of_run, shifts, serious={"B19"} if largest >= _VERY_FAR else set())
    n = counted(run.record["people"], "new person", "new people")
    return Page(
        **people_of_run(run, main, people),
        title=title or short(run.record["title"], 400) or f"Validation of {short(main)}",
        lead=f"{short(main)}, unchanged, applied to {n}.",
        main=main,
        classes=run.classes,
        answer=_answer(run, main, checks),
        checks=checks,
        checks_made=checks_made,
        checks_not_made=checks_not_made,
        tables=named(
            _figure_table(run, main), participants_table(run), _drift_table(run),
            _recalibration_table(run), threshold_table(run), subgroup_table(run, main),
        ),
        methods=methods_of_run(run, main, "validation"),
        versions=run.record["versions"],
        repeat=["baldur validate MODEL study.toml --out FOLDER", "baldur report FOLDER"],
        notes=_notes(run, identified=people == "named"),
        plans=validation_plans(run, main),
        validation=True,
    )  # fmt: skip


def _answer(run: Results, main: str, checks: list[Check]) -> list[Sentence]:
    """Return the sentences of the section "Answer" about a model in a new cohort."""
    people = counted(run.record["people"], "person", "people")
    prediction = replace(prediction_of(run, main), how=f"in a new cohort of {people}")
    question, metric = "Does the model predict in the new cohort?", run.record["select_by"]
    new = interval_of(run.of_model("intervals", main), metric=metric, site="*")
    calibrated = calibration_sentence(run, main)
    return [
        prediction_sentence(prediction, doubts_of(checks), question),
        transport_sentence(new, interval_of(run.table("development"), metric=metric), metric),
        *([] if calibrated is None else [calibrated]),
    ]


def _figure_table(run: Results, main: str) -> Table:
    """Return every metric in the new cohort, and in the development study where it is known."""
    rows, development = run.of_model("intervals", main), run.table("development")
    has_development = "metric" in development
    figures = {
        METRICS[metric].heading: (interval_of(rows, metric=metric, site="*"), metric)
        for metric in run.record["metrics"]
    }
    if len(run.classes) <= 2:
        for measure in ("slope", "intercept"):
            new = interval_of(run.of_model("calibration", main), measure=measure)
            estimates = new.estimate, interval_of(development, metric=measure).estimate
            if any(map(math.isfinite, estimates)):
                figures[f"Calibration {measure}"] = (new, measure)
    table = [
        {"measure": name, "new": _cell(new), "old": _cell(interval_of(development, metric=metric))}
        for name, (new, metric) in figures.items()
    ]
    columns = [Column("Measure", "measure"), Column("New cohort", "new", number)]
    if has_development:
        columns.append(Column("Development", "old", number, "cross-validation of the study"))
    note = (
        ""
        if has_development
        else "The figures of the development study are not part of this folder, so they cannot be "
        "compared here."
    )
    caption = "Figures in the new cohort, with 95 % intervals"
    return make_table("figures", caption, table, columns, note)


def _cell(value: Interval) -> Cell:
    return Column("", ENDS).cell(vars(value))


_DRIFT = [
    Column("View", "view"),
    Column("Median shift", "mean_shift", number, "in training s.d."),
    Column("Spread", "spread_ratio", number, "s.d. as a multiple of that in training"),
    Column("Outside range", "outside", partial(percent, digits=1), "share of cells"),
    Column("Shifted columns", "shifted", number),
    Column("Most shifted", "most"),
    Column("Samples without it", "absent", percent),
]


def _drift_table(run: Results) -> Table:
    """Return how the predictors of the new cohort differ from training, one row per view."""
    rows = run.table("shift_views").to_dict("records")
    for row in rows:
        far = f"{whole(row['far'])} of {whole(row['features'])}"
        row["shifted"] = Cell(far, sort_key(row["far"]))
        shift = f"{short(row['worst'], 40)} ({number(row['worst_shift'], sign=True)})"
        row["most"] = shift if np.isfinite(row["worst_shift"]) else "no feature used"
    caption = "Predictors of the new cohort compared with training"
    return make_table("drift", caption, rows, _DRIFT)


def _recalibration_table(run: Results) -> Table:
    """Return intercept, slope and metrics of every recalibrated version of the model."""
    frame, after = run.table("recalibration"), run.table("recalibrated_intervals")
    metrics = [m for m in ("log_loss", "brier", "auc") if m in run.record["metrics"]]
    columns = [
        Column("Version", "version"),
        Column("Intercept", "intercept", number),
        Column("Slope", "slope", number),
        *(Column(METRICS[m].heading, m, number) for m in metrics),
    ]
    rows = []
    for row in frame.to_dict("records"):
        where = {"model": f"{run.record['models'][0]} (recalibrated: {row['version']})"}
        values = {m: interval_of(after, metric=m, site="*", **where) for m in metrics}
        rows.append(row | {m: _cell(value) for m, value in values.items()})
    note = (
        "Log odds of a recalibrated version are the intercept plus the slope times the log odds of "
        "the model. These are other models than the one validated."
    )
    caption = "Recalibrated versions, by cross-validation"
    return make_table("recalibration", caption, rows, columns, note)


def _judge_shifts(run: Results) -> Judged:
    """Return what the checks of the new predictors saw: shifted means, and values unlike training.

    B19 is about means, and B21 about values.
    """
    frame, cells = run.table("shift_views"), run.table("shift_features")
    if "worst_shift" not in frame:
        return {"B19": None, "B21": None}
    far = frame[(frame["far"] > 0) & (frame["worst_shift"].abs() >= _FAR)]
    shifted = [
        f"{short(row['worst'])} in {short(row['view'])} ({number(row['worst_shift'], sign=True)} "
        "s.d.)"
        for row in far.to_dict("records")
    ]
    values: list[str] = []
    ends = ["low_training", "high_training", "low_new", "high_new"]
    if {*ends} <= {*cells}:
        from baldur.evaluation.cohort_shift import far_values

        numbers = cells[ends].apply(pd.to_numeric, errors="coerce")  # the file may be damaged
        values = [short(text, 120) for text in far_values(cells.assign(**numbers))]
    return {
        "B19": [f"Mean shifted from training: {listed(shifted)}."] if shifted else [],
        "B21": [f"{listed(values, 5)}."] if values else [],
    }


def _notes(run: Results, *, identified: bool) -> list[str]:
    """Return the notes that the validation wrote into its summary, with identifiers or without."""
    notes = [] if run.folder is None else _summary_lines(run.folder, "Note: ")
    if not identified:  # before they are cut, which could leave half an identifier
        for identifiers, instead in _HIDDEN:
            notes = [identifiers.sub(instead, note) for note in notes]
    return [short(note, 400) for note in notes]


def _summary_lines(folder: Path, prefix: str) -> list[str]:
    """Return the lines of the summary that begin with a prefix, without it."""
    try:
        with (folder / SUMMARY).open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(100_000)  # a stranger's file may have any size
    except OSError:
        return []
    lines = [line for line in text.splitlines() if line.startswith(prefix)]
    return [line.removeprefix(prefix) for line in lines][:100]
