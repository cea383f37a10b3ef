"""read_study: the files a study names, as one container with outcome, groups and covariates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluate import Harmonise
from baldur.evaluate.deconfound import CONFOUNDS
from baldur.exceptions import BaldurError, InputError, MissingExtraError
from baldur.guard.confine import is_below
from baldur.guard.escape import check_names
from baldur.io import (
    CategoryEncoder,
    align,
    read_text_table,
    read_view,
    simplify_id,
    view_steps,
)
from baldur.study.checks.labels import variants
from baldur.study.covariates import CovariateCoding
from baldur.study.load import COVARIATES, Study
from baldur.study.schema import nearest
from baldur.study.sites import read_sites
from baldur.views import MultiView

__all__ = ["StudyData", "read_samples", "read_study", "read_views"]

SAMPLES_OPTIONS = ("separator", "decimal", "encoding", "sheet", "missing")
"""Keys of [samples] that are options of the reader."""


@dataclass
class StudyData:
    """What a study works on.

    Attributes
    ----------
    data : MultiView
        Views, included covariates among them.
    y : ndarray
        Labels as text, or numbers.
    positive : str or None
    groups, sites, split : ndarray of str, or None
    confounds : MultiView or None
        Covariates to regress out, as one view.
    harmonise : Harmonise or None
        Sites to be aligned.
    learned_sites : dict or None
        What a fitted model must remember to number the sites of new rows.
    codings : dict of str to CovariateCoding
        Under "include" and "regress_out".
    steps : list of transformers
        To be fitted on training rows before any model.
    notes : list of str
        What a reader of the results should know about the samples.
    lacking : dict of str to list of str
        View to the samples with an outcome that its file does not have.
    subgroups : DataFrame of str, or None
        Columns to report by, one row per sample with its id as index.
    """

    data: MultiView
    y: np.ndarray
    positive: str | None = None
    groups: np.ndarray | None = None
    sites: np.ndarray | None = None
    split: np.ndarray | None = None
    confounds: MultiView | None = None
    harmonise: Harmonise | None = None
    learned_sites: dict[str, Any] | None = None
    codings: dict[str, CovariateCoding] = field(default_factory=dict)
    steps: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lacking: dict[str, list[str]] = field(default_factory=dict)
    subgroups: pd.DataFrame | None = None


def read_samples(study: Study) -> pd.DataFrame:
    """Return the samples table as text, indexed by id, missing cells empty.

    Parameters
    ----------
    study : Study

    Returns
    -------
    DataFrame of str
    """
    path = study.folder / study.samples["file"]
    if not is_below(path, [study.folder, *study.roots], strictly=True):
        raise study.problem(
            "samples.file", f"{path} lies outside the folder of the study",
            "move it there, or name its folder with --data",
        )  # fmt: skip
    options = {k: study.samples[k] for k in SAMPLES_OPTIONS if study.samples[k] is not None}
    try:
        table = read_text_table(path, **options)
        check_names(table.columns, "column name", path.name)
    except MissingExtraError as error:
        raise study.problem(
            "samples.file", str(error).rstrip("."), "or save the table as CSV"
        ) from error
    except BaldurError as error:
        raise study.problem(
            "samples.file", str(error).rstrip("."), "correct or replace the file"
        ) from error
    _check_column(study, "samples.id", study.samples["id"], table)
    ids = table[study.samples["id"]]
    for key, column in (("samples.id", ids.name), ("outcome.column", study.outcome["column"])):
        if column in table.columns:
            _check_cells(study, key, table[column])
    for key, columns in study.covariates.items():
        for column in columns if isinstance(columns, list) else ():
            if column in table.columns:
                _check_cells(study, f"covariates.{key}", table[column])
    if (ids == "").any():
        at = int(np.flatnonzero((ids == "").to_numpy())[0])
        raise study.problem(
            "samples.id", f"row {at + 1} of {path.name} has no id", "fill it in or drop the row"
        )
    if ids.duplicated().any():
        twice = ids[ids.duplicated()].iloc[0]
        raise study.problem(
            "samples.id", f"{twice!r} occurs more than once in column {ids.name!r} of {path.name}",
            "make ids unique; repeated visits need an id each and samples.group",
        )  # fmt: skip
    return table.set_index(pd.Index(ids, name=None))


def _check_cells(study: Study, key: str, cells: pd.Series) -> None:
    """Refuse ids, classes and levels with control characters: they become names in results."""
    try:
        check_names(cells.unique().tolist(), "name", f"column {cells.name!r}")
    except InputError as error:
        raise study.problem(key, str(error).rstrip("."), "correct the table") from None


def _check_column(study: Study, key: str, column: str, table: pd.DataFrame) -> None:
    if column not in table.columns:
        raise study.problem(
            key, f"{study.samples['file']} has no column {column!r}", nearest(column, table.columns)
        )
    if list(table.columns).count(column) > 1:
        raise study.problem(
            key, f"{study.samples['file']} has two columns {column!r}", "rename one of them"
        )


def read_views(study: Study) -> list[MultiView]:
    """Read the file of every view.

    Parameters
    ----------
    study : Study

    Returns
    -------
    list of MultiView
    """
    parts = []
    for name, spec in study.views.items():
        try:
            parts.append(read_view({"name": name, **spec}, study.folder, roots=study.roots))
        except MissingExtraError as error:
            raise study.problem(
                f"views.{name}", str(error).rstrip("."), "or leave the view out"
            ) from error
        except BaldurError as error:
            raise study.problem(
                f"views.{name}", str(error).rstrip("."), "correct this section or its file"
            ) from error
    return parts


def read_study(study: Study) -> StudyData:
    """Read all files of a study and match samples by id.

    Parameters
    ----------
    study : Study

    Returns
    -------
    StudyData

    Raises
    ------
    StudyError
        One line that names the key and the fix.
    """
    table = read_samples(study)
    column = study.outcome["column"]
    _check_column(study, "outcome.column", column, table)
    for key in ("group", "site", "split"):
        if study.samples[key] is not None:
            _check_column(study, f"samples.{key}", study.samples[key], table)
    for key in ("regress_out", "include", "categorical"):
        for name in study.covariates[key]:
            _check_column(study, f"covariates.{key}", name, table)
    if study.harmonise is not None:
        _check_column(study, "harmonise.by", study.harmonise["by"], table)
        for name in study.harmonise["keep"]:
            _check_column(study, "harmonise.keep", name, table)
    for name in study.report["subgroups"]:
        _check_column(study, "report.subgroups", name, table)
    notes = []
    known = table[column] != ""
    if not known.any():
        raise study.problem("outcome.column", f"{column!r} is empty", "name another column")
    if not known.all():
        notes.append(f"{int((~known).sum())} samples have no {column!r} and are left out")
    _check_outcome(study, table.loc[known, column])
    parts = read_views(study)
    for part, name in zip(parts, study.views, strict=True):
        _check_overlap(study, name, part, table.index)
    rows = pd.Series(np.arange(len(table)), index=table.index)[known.to_numpy()]
    try:
        data, kept, report = align(parts, how=study.top["align"], labels=rows)
    except InputError as error:
        raise study.problem(
            "align", str(error).splitlines()[0].rstrip("."), 'use align = "union" or check the ids'
        ) from None
    if kept is None:
        raise TypeError("align returns labels when it is given some")
    lost = int(known.sum()) - len(kept)
    if lost:
        why = "lack a view" if study.top["align"] == "intersection" else "have no view at all"
        notes.append(f"{lost} samples with {column!r} {why} and are left out")
    if len(report.near_misses):
        one = report.near_misses.iloc[0]
        notes.append(
            f"{len(report.near_misses)} pairs of ids differ in writing only, for example "
            f"{one['id']!r} and {one['other_id']!r}; make them equal if they are the same sample"
        )
    # Rows follow the samples table, whatever order the views have.
    order = np.argsort(kept.to_numpy(), kind="stable")
    data, table = data[order], table.iloc[kept.to_numpy().astype(int)[order]]
    _check_outcome(study, table[column])
    found = _gather(study, data, table, notes)
    found.steps += _steps(study, parts)
    where = report.where[report.where["labels"]]
    found.lacking = {
        view: where.index[~where[view]].astype(str).tolist()
        for view in where.columns
        if view != "labels"
    }
    return found


def _steps(study: Study, parts: list[MultiView]) -> list[Any]:
    """What is learned on training rows; a table without categories has nothing to learn."""
    steps = []
    for part, (name, spec) in zip(parts, study.views.items(), strict=True):
        try:
            made = view_steps({"name": name, **spec})
        except BaldurError as error:
            raise study.problem(
                f"views.{name}", str(error).rstrip("."), "correct this section"
            ) from error
        for step in made:
            if isinstance(step, CategoryEncoder) and not _has_levels(part):
                continue
            # A file with several views has one step for all of them.
            steps.append(step.set_params(views=list(part.view_names)))
    return steps


def _has_levels(part: MultiView) -> bool:
    return any(
        "level" in info and info["level"].notna().any() for info in part.feature_info.values()
    )


def _check_outcome(study: Study, cells: pd.Series) -> None:
    if not study.classification:
        numbers = pd.to_numeric(cells, errors="coerce")
        if numbers.isna().any():
            raise study.problem(
                "outcome.column",
                f"{cells.name!r} has {cells[numbers.isna()].iloc[0]!r} for a number",
                'correct it, or use task = "classification"',
            )
        return
    classes = sorted(cells.unique())
    if len(classes) < 2:
        raise study.problem(
            "outcome.column", f"{cells.name!r} has one class only, {classes[0]!r}",
            "two or more are needed; name another column or check the samples",
        )  # fmt: skip
    alone = [c for c in classes if (cells == c).sum() == 1]
    twins = variants("outcome.column", str(cells.name), classes) if alone else []
    if twins:
        raise study.problem(*twins[0])
    if alone and len(classes) <= len(cells) / 4:
        raise study.problem(
            "outcome.column", f"class {alone[0]!r} of {cells.name!r} has one sample only",
            "leave it out (an empty cell does), correct it, or merge classes",
        )  # fmt: skip
    if len(classes) > 20 and len(classes) > len(cells) / 4:
        raise study.problem(
            "outcome.task", f"{cells.name!r} has {len(classes)} different values, not classes",
            'use task = "regression" or name another column',
        )  # fmt: skip
    positive = study.outcome["positive"]
    if positive is not None and find_label(positive, classes) is None:
        raise study.problem(
            "outcome.positive", f"{cells.name!r} has no class {positive!r}",
            f"it has {', '.join(classes[:10])}",
        )  # fmt: skip
    if positive is not None and len(classes) > 2:
        raise study.problem(
            "outcome.positive", f"{cells.name!r} has {len(classes)} classes, not two",
            "leave positive out",
        )  # fmt: skip


def find_label(given: Any, classes: list[str]) -> str | None:
    """Return the class that text, a number or a truth value stands for, or None.

    Parameters
    ----------
    given : str, int, float or bool
        As the study file has it: ``positive = true`` means the class "true", "True" or "TRUE",
        and 1 also the class "1.0".
    classes : list of str
        The classes as they are written in the table.

    Returns
    -------
    str or None
    """
    if isinstance(given, str):
        return given if given in classes else None
    if isinstance(given, bool):
        found = [c for c in classes if c.casefold() == str(given).casefold()]
        # Truth values are often written as 1 and 0.
        return found[0] if found else find_label(int(given), classes)
    numbers = pd.to_numeric(pd.Series(classes, dtype=object), errors="coerce").to_numpy()
    found = [c for c, number in zip(classes, numbers, strict=True) if number == given]
    return found[0] if found else None


def _check_overlap(study: Study, name: str, part: MultiView, ids: pd.Index) -> None:
    have = part.sample_ids.astype(str)
    if np.isin(have, ids.to_numpy(dtype=str)).any():
        return
    simple = {simplify_id(i): i for i in ids}
    alike = next(((i, simple[simplify_id(i)]) for i in have if simplify_id(i) in simple), None)
    fix = "check the id column of both files (option id_column of the view)"
    if alike is not None:
        fix = f"{str(alike[0])!r} and {alike[1]!r} look alike: write ids the same way in both"
    raise study.problem(
        f"views.{name}",
        f"none of its ids ({str(have[0])!r}, ...) is in {study.samples['file']} ({ids[0]!r}, ...)",
        fix,
    )


def _gather(study: Study, data: MultiView, table: pd.DataFrame, notes: list[str]) -> StudyData:
    found = StudyData(data=data, y=np.zeros(0), notes=notes)
    if study.report["subgroups"]:
        found.subgroups = table[study.report["subgroups"]].set_axis(data.sample_ids.astype(str))
    cells = table[study.outcome["column"]]
    found.y = cells.to_numpy(dtype=str) if study.classification else pd.to_numeric(cells).to_numpy()
    if study.outcome["positive"] is not None and study.classification:
        found.positive = find_label(study.outcome["positive"], np.unique(found.y).tolist())
    for key, target in (("group", "groups"), ("site", "sites"), ("split", "split")):
        column = study.samples[key]
        if column is None:
            continue
        values = table[column]
        if (values == "").any():
            raise study.problem(
                f"samples.{key}", f"{column!r} is empty for {values.index[values == ''][0]!r}",
                "fill it in, or leave the sample out of the table",
            )  # fmt: skip
        setattr(found, target, values.to_numpy(dtype=str))
    if found.split is not None:
        other = sorted(set(found.split.tolist()) - {"train", "test"})
        if other:
            raise study.problem(
                "samples.split", f"{study.samples['split']!r} has {other[0]!r}",
                "write 'train' or 'test' for every sample",
            )  # fmt: skip
    for key in ("regress_out", "include"):
        names = study.covariates[key]
        if not names:
            continue
        forced = [c for c in study.covariates["categorical"] if c in names]
        view = COVARIATES if key == "include" else CONFOUNDS
        try:
            coding = CovariateCoding.learn(table[names], forced)
            extra = coding.view(table[names], view, study.samples["file"])
        except InputError as error:
            raise study.problem(
                f"covariates.{key}", str(error).rstrip("."), "correct the column or leave it out"
            ) from None
        found.codings[key] = coding
        if key == "include":
            found.data = add_view(data, extra)
        else:
            found.confounds = extra
        if _has_levels(extra):
            found.steps.append(CategoryEncoder(view))
    sites = read_sites(study, found.data, table)
    if sites is not None:
        found.harmonise, found.learned_sites = sites
    return found


def add_view(data: MultiView, extra: MultiView) -> MultiView:
    """Return the container with one more view over the same samples."""
    joined: Any = align([data, extra], how="union").data
    return joined
