"""predict_study: the samples of a study file as a fitted model needs them, and its predictions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from baldur.estimators.summary import named_outputs, views_used
from baldur.evaluation.cohort_shift import predictor_shift
from baldur.evaluation.fitted_model import one_label, predict_rows
from baldur.evaluation.metrics import NO_YES
from baldur.exceptions import BaldurError, ShiftWarning
from baldur.preparation import CategoryEncoder, Preparation, SiteHarmoniser
from baldur.preparation.categories import level_cells
from baldur.preparation.variants import ALLELE_COLUMNS
from baldur.saving import SavedModel
from baldur.study.config import COVARIATES, StudyConfig
from baldur.study.data import add_view, align_to_table, covariate_view, read_views
from baldur.study.samples import read_samples
from baldur.views import MultiView, View
from baldur.views.container import select_columns
from baldur.views.sources import SubsetSource
from baldur.views.validate import counted, rename_hint, some


def predict_study(
    model: SavedModel, config: StudyConfig, *, missing: str = "error"
) -> tuple[pd.DataFrame, list[str]]:
    """Score the samples of a study file with a fitted model.

    Parameters
    ----------
    model : SavedModel
        As `load` returns it.
    config : StudyConfig
        Read with ``load_study(file, predicting=True)``. Views the model knows and the file does
        not have are absent for every sample; columns the model does not know are left out.
    missing : {"error", "impute"}, default="error"
        A column of the model that a view does not have is refused, or imputed by its training mean.

    Returns
    -------
    predictions : DataFrame
        sample, predicted, and for classes p_<class> with the ends of a 95 % interval, or score
        (for several outcomes predicted_<outcome>, and p_<outcome> with its interval);
        for numbers sd and the ends of an interval; and the views that were used. Intervals and
        sd where the model has them.
    notes : list of str

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import fit_study, load_study, predict_study, simulate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"])
    >>> model, _ = fit_study(load_study(file))
    >>> predictions, notes = predict_study(model, load_study(file, predicting=True))
    >>> predictions[["sample", "predicted", "p_PD"]].round(3).head(2)
           sample predicted   p_PD
    0  biofind000        PD  0.553
    1  biofind001        PD  0.553
    >>> folder.cleanup()
    """
    data, _, notes = read_new_samples(model, config, missing=missing)
    return predictions_of(model, data), notes


# -- reading --------------------------------------------------------------------------------------


def read_new_samples(
    model: SavedModel, config: StudyConfig, *, missing: str = "error"
) -> tuple[MultiView, pd.DataFrame, list[str]]:
    """Read the samples of a study file in the form a fitted model wants them.

    Returns the views of the model, the samples table in the same order, and notes about what was
    done to the files so that they fit the model. The columns of a view are those of fit in their
    order; behind them stand columns for the levels of categories that did not occur in training.
    """
    notes: list[str] = []
    preparation: Preparation = model.estimator.preparation_
    table = read_samples(config)
    coding = (model.details.get("included") or {}).get("categories")
    wanted = [view for view in model.n_features if coding is None or view != COVARIATES]
    parts = []
    columns = {view: _table_columns(model, view) for view in wanted}
    for part in read_views(config, table.index, columns):
        for view in part.view_names:
            if view in wanted:
                parts.append(_match_columns(model, config, part, view, missing, notes))
            else:
                notes.append(f"view {view!r} is not one of the model's and is left out")
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
    for view in wanted:
        if view not in data.view_names:
            notes.append(f"view {view!r} is absent for every sample")
            data = add_view(data, _absent_view(model, data, view))
    if coding is not None:
        _check_covariates(config, table, coding)
        with config.errors_at("samples.file", "correct the cell"):
            part = covariate_view(coding, table, config.samples.file)
        part = _match_columns(model, config, part, COVARIATES, "error", notes)
        data = add_view(data, part)
    data = data.with_samples(_columns_about_samples(preparation, config, table, notes))
    with config.errors_at("samples.file", "correct the cell"):
        preparation.check_samples(data)
    return data.select(list(model.n_features)), table, notes


def _categories(model: SavedModel, view: str) -> dict[str, str]:
    """Return the category of every feature of a view that is a level of one."""
    categories: dict[str, str] = model.estimator.preparation_.level_columns.get(view, {})
    return categories


def _table_columns(model: SavedModel, view: str) -> list[str] | None:
    """Return the file's column for every feature (of a level its category); None without names."""
    names, categories = model.features[view], _categories(model, view)
    return None if names is None else [categories.get(str(name), str(name)) for name in names]


def _match_columns(
    model: SavedModel,
    config: StudyConfig,
    part: MultiView,
    view: str,
    missing: str,
    notes: list[str],
) -> MultiView:
    """Return one view of new samples with the columns that the model was fitted with, in order.

    Columns that are missing are NaN, and imputed later; levels of a category that no new row has
    are 0. Behind them stand columns for levels that did not occur in training.
    """
    names, width = model.features[view], model.n_features[view]
    have, owners = part.view(view), _table_columns(model, view)
    if names is None or owners is None:
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
    at = index.get_indexer(pd.Index(names))  # column of the file for each feature, -1 for none
    categories = _categories(model, view)
    column = np.array(owners, dtype=object)
    info = have.feature_info
    has_levels = info is not None and "column" in info
    file_column = (
        have.feature_names if info is None or not has_levels else info["column"].to_numpy()
    )
    # A level of a category that new rows do not have is a column of zeros.
    in_file = {*have.feature_names.tolist(), *file_column.tolist()}
    is_zero = (at < 0) & np.array([categories.get(str(name)) in in_file for name in names])
    lacking = list(dict.fromkeys(column[(at < 0) & ~is_zero]))
    extra = index.get_indexer(index.difference(pd.Index(names)))
    added = dict.fromkeys(str(file_column[j]) for j in extra)
    unused = [name for name in added if name not in set(categories.values())]
    if lacking and missing != "impute":
        what = "columns of the file that the model does not know"
        others = f"; {what}: {some(unused)}" if unused else ""
        raise config.problem(
            f"views.{view}",
            f"does not have {len(lacking)} of the model's {len(set(column))} columns: "
            f"{some(lacking)}{others}",
            "add or rename columns, or give --missing impute to use their training means."
            + rename_hint(unused, lacking),
        )
    for listed, what in (
        (lacking, "that the file does not have take their training means"),
        (unused, "that the model does not know are left out"),
    ):
        if listed:
            notes.append(f"view {view!r}: columns {what}: {some(listed)}")
    encoders = [s for s in model.estimator.preparation_.steps_ if isinstance(s, CategoryEncoder)]
    # Cells with a level that the model has not seen: row, column and level of each.
    unknown = [level for step in encoders for level in step.unknown_levels(part.select(view))]
    levels = list(dict.fromkeys((level.column, level.level) for level in unknown))
    levels = [pair for pair in levels if "=".join(pair) not in set(names.tolist())]
    features = np.array([*names, *map("=".join, levels)], dtype=str) if levels else names
    source: Any
    if (at >= 0).all() and not levels:
        is_unchanged = not len(extra) and (at == np.arange(width)).all()
        source = have.source if is_unchanged else SubsetSource(have.source, columns=at)
        present = have.declared_present
    else:
        source = np.full((have.shape[0], len(features)), np.nan)
        source[:, np.flatnonzero(at >= 0)] = have.read(at[at >= 0])
        source[:, width:] = 0.0
        for j in np.flatnonzero(is_zero):
            text = str(names[j]).removeprefix(f"{column[j]}=")
            source[:, j] = level_cells(have, column[j], text)
        # A row with an unknown level counts as missing in the known ones.
        for level in unknown:
            if (level.column, level.level) in levels:
                source[level.row, :width][column == level.column] = np.nan
                source[level.row, width + levels.index((level.column, level.level))] = 1.0
        present = have.present
    matched = _alleles(have, at)
    if categories:
        of_fit = [
            (owner, str(name).removeprefix(f"{owner}=") if str(name) in categories else None)
            for name, owner in zip(names, owners, strict=True)
        ]
        matched = pd.DataFrame([*of_fit, *levels], columns=["column", "level"])
    return MultiView(
        {view: source},
        sample_ids=part.sample_ids,
        feature_names={view: features},
        feature_info=None if matched is None else {view: matched},
        present=None if present is None else {view: present},
    )


def _alleles(have: View, at: np.ndarray) -> pd.DataFrame | None:
    """Return the alleles of variants, to recognise swapped ones; unknown for missing columns."""
    info = have.feature_info
    if info is None or not set(ALLELE_COLUMNS) <= set(info.columns):
        return None
    of_file = info[list(ALLELE_COLUMNS)].astype(object).reset_index(drop=True)
    return of_file.reindex(at).fillna("0").reset_index(drop=True)


def _absent_view(model: SavedModel, data: MultiView, view: str) -> MultiView:
    """Return a view of the model that no sample has."""
    names = model.features[view]
    return MultiView(
        {view: np.zeros((len(data), model.n_features[view]), dtype=np.int8)},
        sample_ids=data.sample_ids,
        feature_names=None if names is None else {view: names},
        present={view: np.zeros(len(data), dtype=bool)},
    )


def _check_covariates(config: StudyConfig, table: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse a samples table without one of the covariates of the model."""
    for name in names:
        if name not in table.columns:
            raise config.problem(
                "samples.file", f"has no column {name!r}, a covariate of the model",
                "add it; single cells may be empty",
            )  # fmt: skip


def _columns_about_samples(
    preparation: Preparation, config: StudyConfig, table: pd.DataFrame, notes: list[str]
) -> pd.DataFrame | None:
    """Return the columns of the samples table that a fitted preparation needs."""
    wanted = preparation.sample_columns
    if not wanted:
        return None
    sites = {s.by: s for s in preparation.steps_ if isinstance(s, SiteHarmoniser)}
    _check_covariates(config, table, [name for name in wanted if name not in sites])
    notes += [
        f"there is no column {name!r}; every sample counts as from a site new to the model"
        for name in sites
        if name not in table.columns
    ]
    cells = table.reindex(columns=wanted).astype(object)
    cells = cells.where(cells.notna() & (cells != ""), None).reset_index(drop=True)
    for name, step in sites.items():
        new = sorted({str(v) for v in cells[name].dropna()} - {*step.sites_, *step.small_sites_})
        if new:
            listed = counted(len(new), "site is", "sites are")
            notes.append(f"{listed} new to the model ({', '.join(new[:5])})")
    return cells


# -- predicting -----------------------------------------------------------------------------------


def predictions_of(
    model: SavedModel,
    data: MultiView,
    *,
    bare: bool = False,
    outcome: str | None = None,
) -> pd.DataFrame:
    """Return one row per sample: what is predicted, how sure that is, and from which views.

    With `bare` predictions and probabilities only; with `outcome` those of one of several outcomes.
    """
    estimator = model.estimator
    columns: dict[str, Any] = {"sample": data.sample_ids.astype(str)}
    with warnings.catch_warnings(action="ignore", category=ShiftWarning):
        predicted = predict_rows(estimator, data, len(model.classes))
        ends = ()
        if not bare and hasattr(estimator, "predict_interval"):
            ends = estimator.predict_interval(data)
        if outcome is not None:
            label = one_label(predicted, model.outcomes.index(outcome))
            columns["predicted"] = np.array(NO_YES)[label["label"].astype(int)]
            columns |= {f"p_{c}": label["proba"][:, j] for j, c in enumerate(NO_YES)}
        elif model.outcomes:
            answers = np.array(NO_YES)[predicted["label"].astype(int)]  # (samples, outcomes)
            for j, name in enumerate(model.outcomes):
                columns[f"predicted_{name}"] = answers[:, j]
                columns |= _probability(name, j, predicted["proba"], ends)
        elif model.classes:
            columns |= _columns_of_classes(model, predicted, ends)
        else:
            columns["predicted"] = predicted["label"]
            if ends:
                columns["sd"] = np.ravel(estimator.predict(data, return_std=True)[1])
                columns["lower"], columns["upper"] = map(np.ravel, ends)
    if not bare:
        columns["views_used"] = _views_used(model, data)
    # Once, and for every model; some warn in each of the calls above, baselines in none.
    estimator.preparation_.warn_of_new_samples(data)
    if not bare:
        columns["flags"] = estimator.preparation_.flag_samples(data)["flags"].to_numpy()
    return pd.DataFrame(columns)


@contextmanager
def shift_in_notes(notes: list[str]) -> Iterator[None]:
    """Add warnings about new samples that differ from training to the notes, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for entry in caught:
        if not issubclass(entry.category, ShiftWarning):
            warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
        elif (note := str(entry.message).rstrip(".")) not in notes:
            notes.append(note)


def _probability(
    name: str, at: int, proba: np.ndarray, ends: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the probability of a class or an outcome, and the ends of its interval if known.

    Shapes: proba and ends (samples, classes or outcomes), of which `at` is the column.
    """
    columns = {f"p_{name}": proba[:, at]}
    for end, values in zip(("lower", "upper"), ends, strict=False):
        columns[f"p_{name}_{end}"] = values[:, at]
    return columns


def _columns_of_classes(
    model: SavedModel, predicted: dict[str, np.ndarray], ends: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the predicted class of each sample, and the probability or score of every class."""
    names = [str(c) for c in model.classes]
    # Labels of the estimator may be other words for the classes, in the same order.
    labels = np.asarray(getattr(model.estimator, "classes_", np.arange(len(names)))).tolist()
    name_of = dict(zip(labels, names, strict=False))
    predicted_names = [name_of[label] for label in predicted["label"].tolist()]
    columns = {"predicted": np.array(predicted_names, dtype=str)}
    if "proba" in predicted:
        for c, name in enumerate(names):
            columns |= _probability(name, c, predicted["proba"], ends)
    elif "margin" in predicted and predicted["margin"].ndim == 1:
        columns["score"] = predicted["margin"]
    elif "margin" in predicted:
        columns |= {f"score_{n}": predicted["margin"][:, c] for c, n in enumerate(names)}
    return columns


def features_used(model: SavedModel) -> dict[str, np.ndarray] | None:
    """Return for each view which of its columns a model uses; None where it does not say."""
    masks = getattr(model.estimator, "selected_features_", None)
    return dict(masks) if isinstance(masks, dict) else None


def shift_from_training(model: SavedModel, data: MultiView) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how predictors differ from those a model was fitted on, by view and by feature."""
    return predictor_shift(model.training, _columns_of_fit(model, data), features_used(model))


def _columns_of_fit(model: SavedModel, data: MultiView) -> MultiView:
    """Return new samples without the levels behind the columns of fit, see `read_new_samples`."""
    return select_columns(data, {name: np.arange(n) for name, n in model.n_features.items()})


def _views_used(model: SavedModel, data: MultiView) -> list[str]:
    """Return for each sample the names of the views that its prediction comes from."""
    masks = features_used(model) or {name: np.ones(n, bool) for name, n in data.n_features.items()}
    used = views_used(_columns_of_fit(model, data), masks)
    names = used.columns.to_numpy(dtype=object)
    return ["; ".join(names[row]) for row in used.to_numpy(dtype=bool)]


def contributions_of(model: SavedModel, data: MultiView) -> pd.DataFrame:
    """Return what each feature contributes to each prediction, with the classes by name."""
    with warnings.catch_warnings(action="ignore", category=ShiftWarning):
        explained = model.estimator.explain(data)
    return named_outputs(model.estimator, explained, model.classes)
