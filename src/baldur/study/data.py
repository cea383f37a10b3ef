"""read_study: the files a study names, as one container with outcome, groups and covariates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.schema import nearest
from baldur.exceptions import InputError
from baldur.io import align
from baldur.io.align import AlignReport
from baldur.io.view_sections import read_view, view_steps
from baldur.preparation import Preparation, SiteHarmoniser, Step
from baldur.preparation.categories import CategoryEncoder, level_columns
from baldur.study.config import COVARIATES, StudyConfig
from baldur.study.samples import (
    check_column,
    check_orientation,
    check_overlap,
    read_outcome,
    read_samples,
)
from baldur.views import MultiView
from baldur.views.table_encoding import encode_text
from baldur.views.validate import counted


def learn_coding(frame: pd.DataFrame, categorical: list[str]) -> dict[str, bool]:
    """Return the names of covariates in order, each with whether it is a category or a number.

    Levels are learned on training rows, by the same `CategoryEncoder` as those of views.
    """
    coding = {}
    for name in frame.columns:
        cells = frame[name][frame[name] != ""]
        if not len(cells):
            raise InputError(f"column {name!r} has no values")
        numeric = pd.to_numeric(cells, errors="coerce").notna().all()
        coding[str(name)] = name in categorical or not numeric
    return coding


def covariate_view(coding: dict[str, bool], table: pd.DataFrame, origin: str) -> MultiView:
    """Return covariates of the samples table as a view, coded as `learn_coding` says."""
    categories = [column for column, is_category in coding.items() if is_category]
    view = encode_text(table[list(coding)], COVARIATES, categorical=categories, origin=origin)
    return MultiView.from_views([view], table.index.to_numpy(dtype=str))


@dataclass
class StudyData:
    """The data of a study.

    Attributes
    ----------
    data : MultiView
        Views, included covariates among them; covariates to regress out and sites to align are in
        its table about the samples.
    y : ndarray or DataFrame
        Labels as text, or numbers; of several outcomes 0 and 1, a column for each.
    positive : str or None
        The positive class as the samples table writes it.
    groups, sites, split : ndarray of str, or None
        Columns of the samples table that decide the folds.
    preparation : Preparation or None
        What every model learns from its training rows before it is fitted; None where columns are
        only scaled.
    coding : dict of str to bool, or None
        Included covariates, and which of them are categories.
    notes : list of str
        What a reader of the results should know about the samples.
    missing_samples : dict of str to list of str
        View to the samples with an outcome that its file does not have.
    subgroups : DataFrame of str, or None
        Columns to report by, one row per sample with its id as index.
    left_out : int
        Samples with an outcome that are left out because of views that they do not have.
    """

    data: MultiView
    y: np.ndarray | pd.DataFrame
    positive: str | None = None
    groups: np.ndarray | None = None
    sites: np.ndarray | None = None
    split: np.ndarray | None = None
    preparation: Preparation | None = None
    coding: dict[str, bool] | None = None
    notes: list[str] = field(default_factory=list)
    missing_samples: dict[str, list[str]] = field(default_factory=dict)
    subgroups: pd.DataFrame | None = None
    left_out: int = 0


def read_views(
    config: StudyConfig,
    ids: pd.Index,
    needed: Mapping[str, Sequence[str] | None] | None = None,
) -> list[MultiView]:
    """Read the file of every view; some files hold several views.

    `ids` are those of the samples table. Of a view in `needed` only these columns are read.
    """
    parts = []
    for name, view in config.views.items():
        section = _named(name, view)
        needed_columns = (needed or {}).get(section.name)
        columns = None if needed_columns is None else list(dict.fromkeys(needed_columns))
        fix = "correct this section or its file"
        with config.errors_at(f"views.{name}", fix, without_extra="or remove the view"):
            try:
                part = read_view(section, config.folder, roots=config.roots, needed=columns)
            except InputError:
                # A table with samples as columns has a clearer error.
                check_orientation(config, name, section, ids)
                raise
        if not np.isin(part.sample_ids.astype(str), ids.to_numpy(dtype=str)).any():
            check_orientation(config, name, section, ids)
        parts.append(part)
    return parts


def has_outcome(
    config: StudyConfig, column: str, table: pd.DataFrame, notes: list[str]
) -> pd.Series:
    """Return which samples have an outcome, and note how many have none; refuse an empty column."""
    given = table[column] != ""
    if not given.any():
        raise config.problem(
            config.outcome.key, f"column {column!r} has no values", "name another column"
        )
    if not given.all():
        left_out = counted(
            int((~given).sum()),
            f"sample has no {column!r} and is left out",
            f"samples have no {column!r} and are left out",
        )
        notes.append(left_out)
    return given


def _named(name: str, view: Any) -> Any:
    """Return the section of a view with its name filled in."""
    return view if view.name is not None else view.model_copy(update={"name": name})


def read_study(config: StudyConfig) -> StudyData:
    """Read all files of a study and match samples by id."""
    table = read_samples(config)
    for key, name in _named_columns(config):
        check_column(config, key, name, table)
    notes: list[str] = []
    has_all = pd.Series(True, table.index)
    for column in config.outcome.names:
        has_all &= has_outcome(config, column, table, notes)
    if not has_all.any():
        what = f"no sample has all of {config.outcome.text}"
        raise config.problem("outcome.columns", what, "leave a column out")
    read_outcome(config, table[has_all])  # refused before the views are read
    parts = read_views(config, table.index)
    for part, name in zip(parts, config.views, strict=True):
        check_overlap(config, name, part, table.index)
    n_with_outcome = int(has_all.sum())
    try:
        data, table, report = align_to_table(parts, table[has_all], config.align)
    except InputError as error:
        raise config.problem(
            "align", str(error).splitlines()[0].rstrip("."), 'use align = "union" or check the ids'
        ) from None
    n_left_out = n_with_outcome - len(table)
    # Samples with an outcome by views: whether the file of the view has them.
    where = report.where[report.where["labels"]]
    if n_left_out:
        notes.append(_left_out_note(config, n_left_out, n_with_outcome - where.sum()))
    if len(report.near_misses):
        pair = report.near_misses.iloc[0]
        notes.append(
            f"{len(report.near_misses)} pairs of ids differ in writing only, for example "
            f"{pair['id']!r} and {pair['other_id']!r}; make them equal if they are the same sample"
        )
    y, positive = read_outcome(config, table)
    coding = None
    if config.covariates.include:
        included = table[config.covariates.include]
        with config.errors_at("covariates.include", "correct the column or leave it out"):
            coding = learn_coding(included, config.covariates.categorical)
            data = add_view(data, covariate_view(coding, table, config.samples.file))
    preparation = _preparation(config, data, _steps(config, parts))
    if preparation is not None and preparation.sample_columns:
        data = data.with_samples(_samples(config, table, preparation))
    return StudyData(
        data,
        y.set_axis(data.sample_ids) if isinstance(y, pd.DataFrame) else y,
        positive,
        groups=_fold_column(config, "group", table),
        sites=_fold_column(config, "site", table),
        split=_fold_column(config, "split", table),
        preparation=preparation,
        coding=coding,
        notes=notes,
        missing_samples={
            view: where.index[~where[view]].astype(str).tolist()
            for view in where.columns
            if view != "labels"
        },
        subgroups=subgroup_columns(config, table, data),
        left_out=n_left_out,
    )


def subgroup_columns(
    config: StudyConfig, table: pd.DataFrame, data: MultiView
) -> pd.DataFrame | None:
    """Return the columns to report by, with the ids of the samples as index; None without any."""
    names = config.report.subgroups
    return table[names].set_axis(data.sample_ids.astype(str)) if names else None


def align_to_table(
    parts: list[MultiView], table: pd.DataFrame, how: str
) -> tuple[MultiView, pd.DataFrame, AlignReport]:
    """Match views and samples table by id; both are returned in the order of the table.

    `how` says which samples stay: those in every view ("intersection"), or in any ("union").
    """
    # The labels are row numbers of the table, which say where each sample was.
    data, kept, report = align(parts, how=how, labels=pd.Series(np.arange(len(table)), table.index))
    assert kept is not None  # labels were given
    order = np.argsort(kept.to_numpy(), kind="stable")
    return data[order], table.iloc[kept.to_numpy().astype(int)[order]], report


def _left_out_note(config: StudyConfig, n_left_out: int, without: pd.Series) -> str:
    """Return the note about samples that are left out; `without` counts them for each view."""
    why = "a missing view" if config.align == "intersection" else "no view at all"
    note = counted(
        n_left_out,
        f"sample with {config.outcome.text} has {why} and is left out",
        f"samples with {config.outcome.text} have {why} and are left out",
    )
    if config.align != "intersection":
        return note
    cost = [f"{v} is missing for {n}" for v, n in without.items() if v != "labels" and n]
    return (
        f'{note} ({", ".join(cost)}); write align = "union" at the top of the study file to keep '
        "samples that have at least one view"
    )


def _named_columns(config: StudyConfig) -> list[tuple[str, str]]:
    """Return the columns of the samples table that a study names, each with its key."""
    samples, covariates, harmonise = config.samples, config.covariates, config.harmonise
    named: list[tuple[str, list[str | None] | list[str]]] = [
        (config.outcome.key, config.outcome.names),
        ("samples.group", [samples.group]),
        ("samples.site", [samples.site]),
        ("samples.split", [samples.split]),
        ("covariates.regress_out", covariates.regress_out),
        ("covariates.include", covariates.include),
        ("covariates.categorical", covariates.categorical),
        ("harmonise.by", [] if harmonise is None else [harmonise.by]),
        ("harmonise.keep", [] if harmonise is None else harmonise.keep),
        ("report.subgroups", config.report.subgroups),
    ]
    return [(key, name) for key, names in named for name in names if name is not None]


def _preparation(config: StudyConfig, data: MultiView, steps: list[Step]) -> Preparation | None:
    """Return the template of the preparation, or None where columns are only scaled."""
    steps = [*steps, *_site_steps(config, data)]
    regress_out = config.covariates.regress_out
    return Preparation(steps=steps, regress_out=regress_out) if steps or regress_out else None


def _site_steps(config: StudyConfig, data: MultiView) -> list[Step]:
    """Return the unfitted step that aligns sites; none where the study does not align any.

    Included covariates are a view of the data too, but they are not harmonised.
    """
    section = config.harmonise
    if section is None or section.by is None:
        return []
    possible = [v for v in data.view_names if v != COVARIATES and data.view(v).dtype != np.int8]
    wanted = possible if section.views is None else section.views
    for view in wanted:
        if view not in possible:
            known = view in data.view_names
            what = "has no location and scale to harmonise" if known else "is not a view"
            raise config.problem("harmonise.views", f"{view!r} {what}", nearest(view, possible))
    if not wanted:
        raise config.problem(
            "harmonise", "there is no view to harmonise (genotypes are not harmonised)",
            "remove the section",
        )  # fmt: skip
    options = section.model_dump(include={"keep", "new_sites", "estimates"})
    return [SiteHarmoniser(section.by, list(wanted), **options)]


def _samples(config: StudyConfig, table: pd.DataFrame, preparation: Preparation) -> pd.DataFrame:
    """Return the columns that a preparation reads: numbers, and categories as they are written."""
    categories = [*config.covariates.categorical]
    if config.harmonise is not None:
        categories.append(str(config.harmonise.by))
    columns = {}
    for name in preparation.sample_columns:
        cells = table[name].astype(object).where(table[name] != "", None)
        if not cells.notna().any():
            regressed = name in preparation.regress_out
            key = "covariates.regress_out" if regressed else "harmonise.keep"
            raise config.problem(key, f"column {name!r} has no values", "leave it out")
        numbers = pd.to_numeric(cells, errors="coerce")
        is_category = name in categories or (numbers.isna() & cells.notna()).any()
        columns[name] = cells.astype("category") if is_category else numbers.astype(float)
    return pd.DataFrame(columns).reset_index(drop=True)


def _steps(config: StudyConfig, parts: list[MultiView]) -> list[Step]:
    """Return the steps to fit on training rows; none for a table without categories."""
    steps: list[Step] = []
    for part, (name, view) in zip(parts, config.views.items(), strict=True):
        with config.errors_at(f"views.{name}", "correct this section"):
            steps_of_view = view_steps(_named(name, view))
        for step in steps_of_view:
            has_categories = any(level_columns(part.view(view)) for view in part.view_names)
            if isinstance(step, CategoryEncoder) and not has_categories:
                continue
            # A file with several views has one step for all of them.
            steps.append(step.set_params(views=list(part.view_names)))
    return steps


def _fold_column(config: StudyConfig, key: str, table: pd.DataFrame) -> np.ndarray | None:
    """Return a column that decides the folds, which has to be filled for every sample."""
    column = getattr(config.samples, key)
    if column is None:
        return None
    values = table[column]
    if (values == "").any():
        raise config.problem(
            f"samples.{key}", f"{column!r} is empty for {values.index[values == ''][0]!r}",
            "fill it in, or remove the sample from the table",
        )  # fmt: skip
    other = sorted(set(values) - {"train", "test"})
    if key == "split" and other:
        raise config.problem(
            "samples.split", f"{column!r} has {other[0]!r}",
            "write 'train' or 'test' for every sample",
        )  # fmt: skip
    return values.to_numpy(dtype=str)


def add_view(data: MultiView, extra: MultiView) -> MultiView:
    """Return the container with one more view over the same samples."""
    joined: Any = align([data, extra], how="union").data
    return joined
