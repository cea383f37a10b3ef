"""View sets of one model: which are fitted and compared to say what each view adds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from baldur.evaluation.clinical.held_out import Resampled
from baldur.evaluation.job_store import job_key
from baldur.evaluation.models import Model, check_views, name_with_views, on_views
from baldur.evaluation.selected_features import view_shares
from baldur.evaluation.view_additions import (
    ADDED,
    ALL,
    ALL_ADDED,
    ALONE,
    BASELINE,
    BEYOND,
    WITH,
    WITHOUT,
    AddedValue,
    FoldTest,
    compare_view_sets,
)
from baldur.exceptions import InputError
from baldur.views import MultiView
from baldur.views.validate import some

_DEFAULT = "BALDUR"

ViewComparison = tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]
"""Question, view, model and reference by name; the views of the model, and of the reference."""


def questions(
    known: Sequence[str], baseline: Sequence[str]
) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Return each question: name, view, view set, and the view set to compare with (or empty)."""
    base = tuple(v for v in known if v in baseline)
    others = [v for v in known if v not in baseline]
    wider = {v: tuple(w for w in known if w in base or w == v) for v in others}
    fewer = {v: tuple(w for w in known if w != v) for v in known}
    every = tuple(known)
    return [
        (BASELINE, _joined(base), base, ()),
        *((WITH, v, wider[v], ()) for v in others if len(others) > 1),
        (ALL, "", every, ()),
        *((ALONE, v, (v,), ()) for v in known),
        *((WITHOUT, v, fewer[v], ()) for v in known),
        *((ADDED, v, wider[v], base) for v in others),
        (ALL_ADDED, _joined(others), every, base),
        *((BEYOND, v, every, fewer[v]) for v in known),
    ]


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def view_sets(known: Sequence[str], baseline: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sets of views that answer what each view adds, each once, without all views."""
    sets = dict.fromkeys(views for _, _, views, _ in questions(known, baseline))
    return [views for views in sets if 0 < len(views) < len(known)]


def view_set_models(
    models: Sequence[Model], data: MultiView, baseline: Sequence[str]
) -> list[Model]:
    """Return the models that a comparison needs in addition to say what each view adds."""
    whole = _model_with_all_views(models)
    identities = {_identity(model) for model in models}
    names = {model.name for model in models}
    added = []
    for views in view_sets(data.view_names, baseline):
        name = name_with_views(whole.name, views)
        model = on_views(replace(whole, name=name, views=views, base=whole.seed_name), data)
        if _identity(model) in identities:
            continue
        if name in names:
            # The name belongs to a model with other settings.
            model = replace(model, name=f"{name}, as {whole.name}")
        added.append(model)
    return added


def _model_with_all_views(models: Sequence[Model]) -> Model:
    """Return the model whose view sets are compared: BALDUR, or else the first with all views."""
    whole = [m for m in models if m.views is None]
    if not whole:
        raise InputError(
            "baseline_views needs a model with all views; remove views from one of the models."
        )
    return next((m for m in whole if m.seed_name == _DEFAULT), whole[0])


def _identity(model: Model) -> str:
    """Return a text that two models share if their jobs are the same.

    The preparation of the comparison, whose steps may name views, is the same for all models.
    """
    estimator = clone(model.estimator)
    params = estimator.get_params(deep=True)
    preparations = [k for k in params if k.rpartition("__")[2] == "preparation"]
    return job_key(
        seed=model.seed_name,
        views=model.views,
        estimator=estimator.set_params(**dict.fromkeys(preparations)),
        grid=dict(model.grid),
        search=dict(model.search),
    )


def view_comparisons(
    models: Mapping[tuple[str, ...], str], known: Sequence[str], baseline: Sequence[str]
) -> list[ViewComparison]:
    """Return the comparisons that the view sets of a model allow, each pair once.

    `models` has the name of the model of each view set. Names of a comparison are question, view,
    model (the one with it) and reference (the one without it; empty where there is none).
    """
    # A set may answer several questions; with two views comparisons are the same, too.
    comparisons: dict[tuple[str, str], ViewComparison] = {}
    for question, view, views, without in questions(known, baseline):
        if views not in models or (without and without not in models):
            continue  # its model failed
        pair = (models[views], models[without] if without else "")
        names = {"question": question, "view": view, "model": pair[0], "reference": pair[1]}
        comparisons.setdefault(pair, (names, views, without))
    return list(comparisons.values())


def finished_comparisons(
    models: Sequence[Model],
    data: MultiView,
    finished: Collection[str],
    baseline: Sequence[str],
    whole: Model | None = None,
) -> tuple[str, list[ViewComparison], str]:
    """Return a model, the comparisons of its finished view sets, and a sentence on missing ones.

    There are no comparisons where no two view sets can be compared.
    """
    whole = whole or _model_with_all_views(models)
    # The models that differ from it in their views only.
    alike = [
        m
        for m in models
        if _identity(m) == _identity(on_views(replace(whole, views=m.views), data))
    ]
    by_views: dict[tuple[str, ...], str] = {}
    for m in alike:
        if m.name in finished:
            by_views.setdefault(m.views or tuple(data.view_names), m.name)
    failed = [m.name for m in alike if m.name not in finished]
    why = f"because these models failed: {some(failed)}" if failed else ""
    comparisons = view_comparisons(by_views, data.view_names, baseline)
    if any(names["reference"] for names, _, _ in comparisons):
        missing = f"Some comparisons of view sets are missing, {why}." if failed else ""
        return whole.name, comparisons, missing
    nothing = f"There are no two view sets of {whole.name!r} to compare"
    remedy = f", {why}" if failed else f"; run nested_cv with baseline_views={list(baseline)}"
    return whole.name, [], f"{nothing}{remedy}."


def added_value_of(
    models: Sequence[Model],
    data: MultiView,
    fits: Mapping[str, Sequence[Any]],
    sample: Resampled,
    baseline: Sequence[str],
    whole: Model | None,
    fold_test: FoldTest,
    **options: Any,
) -> AddedValue:
    """Compute what each view adds, from the rows of a comparison with different views.

    The people of `fold_test` are a mask of the samples of `data`.
    """
    known = tuple(data.view_names)
    base = check_views(baseline, known, "baseline")
    name, comparisons, missing = finished_comparisons(models, data, fits, base, whole)
    if not comparisons:
        raise InputError(missing)
    # The row of `data` of each person in the predictions.
    ids = pd.Index(next(iter(sample.models.values())).people.astype(str))
    people = pd.Index(data.sample_ids.astype(str)).get_indexer(ids)
    present = {view: data.view(view).present[people] for view in known}

    def has_any(views: Iterable[str]) -> np.ndarray:
        return np.any([present[v] for v in views], axis=0)

    on_people = []
    for names, views, without in comparisons:
        chosen = has_any(views)
        if without:
            chosen = has_any(v for v in views if v not in without) & has_any(without)
        on_people.append((names, chosen))

    def p_value(model: str, reference: str, metric: str, chosen: np.ndarray) -> float:
        rows = np.zeros(len(data), dtype=bool)
        rows[people] = chosen
        return fold_test(model, reference, metric, rows)

    table, reclassification = compare_view_sets(sample, on_people, fold_test=p_value, **options)
    every = {names["model"] for names, views, _ in comparisons if views == known}
    shares = view_shares({row: fits[row] for row in every})
    mean = shares.groupby("view", sort=False)["variance_share"].mean().reset_index(name="share")
    return AddedValue(table, reclassification, mean.dropna(), base, name)
