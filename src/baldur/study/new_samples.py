"""read_new_samples: the samples of a study file in the form that a fitted model needs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from baldur.exceptions import BaldurError
from baldur.io import align
from baldur.preparation import CategoryEncoder, Preparation, SiteHarmoniser
from baldur.preparation.new_samples import ALLELE_COLUMNS as ALLELES
from baldur.preparation.new_samples import UnknownLevel
from baldur.saving import SavedModel
from baldur.study.config import COVARIATES, StudyConfig
from baldur.study.data import CovariateCoding, add_view, align_to_table, read_views
from baldur.study.samples import read_samples
from baldur.views import MultiView, View
from baldur.views.sources import ColumnSource
from baldur.views.validate import counted, rename_hint, some


class NewSamples(NamedTuple):
    """New samples in the form that a fitted model needs."""

    data: MultiView  # The views of the model
    table: pd.DataFrame  # The samples table, in the same order
    notes: list[str]  # What was done to the files so that they fit the model
    unknown: list[UnknownLevel]


def read_new_samples(
    model: SavedModel, config: StudyConfig, *, missing: str = "error"
) -> NewSamples:
    """Read the samples of a study file in the form a fitted model wants them."""
    notes: list[str] = []
    unknown: dict[str, list[UnknownLevel]] = {}
    table = read_samples(config)
    parts = []
    included = model.details.get("included") is not None
    wanted = [v for v in model.n_features if not (included and v == COVARIATES)]
    columns = {view: _columns_of(model, view) for view in wanted}
    for part in read_views(config, table.index, columns):
        for view in part.view_names:
            if view not in wanted:
                notes.append(f"view {view!r} is not one of the model's and is left out")
                continue
            one = part.select(view)
            told = _unknown_levels(model, one, view)
            for found in told:
                unknown.setdefault(str(one.sample_ids[found.row]), []).append(found)
            # Samples with these levels are named when they are scored.
            named = {f"{found.column}={found.level}" for found in told}
            parts.append(_fitting(model, config, one, view, missing, notes, named))
    if not parts:
        raise config.problem(
            "views",
            f"no view of the file is a view of the model, which are {', '.join(wanted)}",
            "name the views as in fit",
        )
    n_listed = len(table)
    try:
        data, table, _ = align_to_table(parts, table, "union")
    except BaldurError:
        raise config.problem(
            "samples.id", "no sample of the table is in any view", "check the ids of both"
        ) from None
    if len(table) < n_listed:
        notes.append(
            counted(
                n_listed - len(table),
                "sample is in no view and gets no prediction",
                "samples are in no view and get no prediction",
            )
        )
    data = _with_absent(model, data, [v for v in wanted if v not in data.view_names], notes)
    data = _with_covariates(model, config, data, table, notes)
    preparation = getattr(model.estimator, "preparation_", None)
    if preparation is not None:
        data = _with_samples(preparation, config, data, table, notes)
    levels = [
        found._replace(row=row)
        for row, sample in enumerate(data.sample_ids)
        for found in unknown.get(str(sample), [])
    ]
    return NewSamples(data.select(list(model.n_features)), table, notes, levels)


def _levels_of(model: SavedModel, view: str) -> dict[str, str]:
    """Return the category of every feature of a view that is a level."""
    preparation = getattr(model.estimator, "preparation_", None)
    return {} if preparation is None else preparation.level_columns.get(view, {})


def _columns_of(model: SavedModel, view: str) -> list[str] | None:
    """Return the columns of a file that a model was fitted with; None where they had no names."""
    names = model.features[view]
    if names is None:
        return None
    levels = _levels_of(model, view)
    return list(dict.fromkeys(levels.get(str(name), str(name)) for name in names))


def _unknown_levels(model: SavedModel, part: MultiView, view: str) -> list[UnknownLevel]:
    """Return levels of categories in one view that did not occur in training."""
    preparation = getattr(model.estimator, "preparation_", None)
    encoders = [] if preparation is None else preparation.steps_
    return [
        found
        for step in encoders
        if isinstance(step, CategoryEncoder) and view in step.levels_
        for found in step.unknown_levels(part)
    ]


def _with_samples(
    preparation: Preparation,
    config: StudyConfig,
    data: MultiView,
    table: pd.DataFrame,
    notes: list[str],
) -> MultiView:
    """Return the rows with the columns of samples that the preparation needs."""
    data = data.with_samples(_columns_about_samples(preparation, config, table, notes))
    with config.errors_at("samples.file", "correct the cell"):
        preparation.check_samples(data)
    return data


def _fitting(
    model: SavedModel,
    config: StudyConfig,
    part: MultiView,
    view: str,
    missing: str,
    notes: list[str],
    named: Collection[str] = (),
) -> MultiView:
    """Return the columns of one view in the order that the model was fitted with.

    `named` are unknown levels that need no note here.
    """
    names, width = model.features[view], model.n_features[view]
    have = part.view(view)
    if names is None:
        if have.shape[1] != width:
            raise config.problem(
                f"views.{view}",
                f"has {have.shape[1]} columns, but the model has {width} columns without names",
                "give the same columns in the same order",
            )  # fmt: skip
        return MultiView(
            {view: have.source}, sample_ids=part.sample_ids, present={view: have.present}
        )
    index = pd.Index(have.feature_names)
    found = index.get_indexer(pd.Index(names))
    extra = index.difference(pd.Index(names))
    # A level of a category that new rows do not have is a column of zeros.
    levels = _levels_of(model, view)
    info = have.feature_info
    new, new_levels = _new_columns(have, extra, set(levels.values()))
    new_levels = [level for level in new_levels if level not in named]
    if new_levels:
        notes.append(
            f"view {view!r}: levels that the model does not know count as missing: "
            f"{some(new_levels)}"
        )
    has = set(have.feature_names) | set([] if info is None else info.get("column", []))
    zero = np.array(
        [f < 0 and levels.get(str(n)) in has for f, n in zip(found, names, strict=True)]
    )
    wanted = [levels.get(str(name), str(name)) for name in names]
    absent = (found < 0) & ~zero
    lacking = list(dict.fromkeys(w for w, gone in zip(wanted, absent, strict=True) if gone))
    if lacking and missing != "impute":
        unknown = f"; columns of the file that the model does not know: {some(new)}" if new else ""
        raise config.problem(
            f"views.{view}",
            f"does not have {len(lacking)} of the model's {len(set(wanted))} columns: "
            f"{some(lacking)}{unknown}",
            "add or rename columns, or give --missing impute to use their training means."
            + rename_hint(new, lacking),
        )
    if lacking:
        notes.append(
            f"view {view!r}: columns that the file does not have take their training means: "
            f"{some(lacking)}"
        )
    if new:
        notes.append(
            f"view {view!r}: columns that the model does not know are left out: {some(new)}"
        )
    unclear = _unclear(have, names, levels)
    if (found >= 0).all() and not unclear:
        source: Any = have.source if len(extra) == 0 and (found == np.arange(width)).all() else None
        if source is None:
            source = ColumnSource(have.source, found)
        present = None if have.declared_present is None else {view: have.declared_present}
    else:
        source = np.full((have.shape[0], width), np.nan)
        source[:, found >= 0] = have.read(found[found >= 0])
        source[:, zero] = 0.0
        for rows, columns in unclear:
            source[np.ix_(rows, columns)] = np.nan
        present = {view: have.present}
    return MultiView(
        {view: source},
        sample_ids=part.sample_ids,
        feature_names={view: names},
        feature_info=_alleles(have, view, found),
        present=present,
    )


def _new_columns(have: View, extra: pd.Index, categories: set[str]) -> tuple[list[str], list[str]]:
    """Return columns of the file, and levels of known categories, that the model does not know."""
    info = have.feature_info
    columns: dict[str, None] = {}
    levels = []
    owner = have.feature_names if info is None or "column" not in info else info["column"]
    owners = dict(zip(have.feature_names.tolist(), owner, strict=True)) if len(extra) else {}
    for name in extra.tolist():
        column = str(owners[name])
        if column in categories and column != name:
            levels.append(str(name))
        else:
            columns[column] = None
    return list(columns), levels


def _alleles(have: View, view: str, found: np.ndarray) -> dict[str, pd.DataFrame] | None:
    """Return the alleles of variants, to recognise swapped ones; unknown for missing columns."""
    info = have.feature_info
    if info is None or not set(ALLELES) <= set(info.columns):
        return None
    known = info[list(ALLELES)].astype(object).reset_index(drop=True)
    return {view: known.reindex(found).fillna("0").reset_index(drop=True)}


def _unclear(
    have: View, names: np.ndarray, levels: dict[str, str]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rows and columns of categories whose level is missing or unknown to the model."""
    info = have.feature_info
    owner = np.array([levels.get(str(n), "") for n in names], dtype=object)
    made = []
    for column in dict.fromkeys(c for c in owner if c):
        of_it = have.feature_names == column
        if info is not None and "column" in info:
            of_it = of_it | (info["column"].to_numpy() == column)
        at = np.flatnonzero(of_it)
        if not len(at):
            continue
        cells = have.read(at)
        new = ~np.isin(have.feature_names[at], names)
        rows = np.isnan(cells).all(axis=1) | np.nan_to_num(cells[:, new]).any(axis=1)
        if rows.any() and (new.any() or len(at) < (owner == column).sum()):
            made.append((np.flatnonzero(rows), np.flatnonzero(owner == column)))
    return made


def _with_absent(
    model: SavedModel, data: MultiView, views: list[str], notes: list[str]
) -> MultiView:
    nobody = np.zeros(len(data), dtype=bool)
    for view in views:
        notes.append(f"view {view!r} is absent for every sample")
        names = model.features[view]
        extra = MultiView(
            {view: np.zeros((len(data), model.n_features[view]), dtype=np.int8)},
            sample_ids=data.sample_ids,
            feature_names=None if names is None else {view: names},
            present={view: nobody},
        )
        data = align([data, extra], how="union").data
    return data


def _with_covariates(
    model: SavedModel, config: StudyConfig, data: MultiView, table: pd.DataFrame, notes: list[str]
) -> MultiView:
    if model.details.get("included") is None:
        return data
    coding = CovariateCoding.from_json(model.details["included"])
    lacking = [c for c in coding.categories if c not in table.columns]
    if lacking:
        raise config.problem(
            "samples.file", f"has no column {lacking[0]!r}, a covariate of the model",
            "add it; single cells may be empty",
        )  # fmt: skip
    with config.errors_at("samples.file", "correct the cell"):
        part = coding.view(table, COVARIATES, config.samples.file)
    return add_view(data, _fitting(model, config, part, COVARIATES, "error", notes))


def _columns_about_samples(
    preparation: Preparation, config: StudyConfig, table: pd.DataFrame, notes: list[str]
) -> pd.DataFrame | None:
    """Return the columns of the samples table that a fitted preparation needs."""
    if not preparation.sample_columns:
        return None
    sites = {s.by: s for s in preparation.steps_ if isinstance(s, SiteHarmoniser)}
    made = {}
    for name in preparation.sample_columns:
        if name in table.columns:
            made[name] = table[name].astype(object).where(table[name] != "", None)
        elif name in sites:
            made[name] = pd.Series([None] * len(table), index=table.index, dtype=object)
            notes.append(
                f"there is no column {name!r}; every sample counts as from a site new to the model"
            )
        else:
            raise config.problem(
                "samples.file", f"has no column {name!r}, a covariate of the model",
                "add it; single cells may be empty",
            )  # fmt: skip
    for name, step in sites.items():
        known = {*step.sites_, *step.small_sites_}
        new = sorted({str(v) for v in made[name] if v is not None} - known)
        if new:
            found = counted(len(new), "site is", "sites are")
            notes.append(f"{found} new to the model ({', '.join(new[:5])})")
    return pd.DataFrame(made).reset_index(drop=True)
