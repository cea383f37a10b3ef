"""The page of a comparison or of a fitted model: all its texts, tables and figures.

The template adds none. The pages of several outcomes and of a validation are in their own files.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.evaluation.record import versions
from baldur.evaluation.results import Results
from baldur.report.added_value import (
    added_value_section,
    addition_table,
    reclassification_table,
    view_set_table,
)
from baldur.report.answer import answer_of_model, answer_of_run, main_model
from baldur.report.checks import (
    CARE,
    NOTE,
    Check,
    checks_of_model,
    checks_of_run,
    in_order,
    made_of_model,
    made_of_run,
)
from baldur.report.explanations import factors_of
from baldur.report.feature_tables import feature_table, view_cards
from baldur.report.few_features import cost_table, few_table_of_model, few_table_of_run
from baldur.report.fitted import FittedModel, calculator_of
from baldur.report.formatting import (
    Cell,
    Column,
    Table,
    count,
    distinct,
    listed,
    make_table,
    named,
    plain,
    short,
)
from baldur.report.methods import (
    about_run,
    lead_of_run,
    methods_of_model,
    methods_of_run,
    repeat_of_model,
    tripod_items,
)
from baldur.report.outcomes import outcomes_page
from baldur.report.page import Page
from baldur.report.people import LEFT_OUT, check_people, people_of_model, people_of_run
from baldur.report.pictures import plans_of
from baldur.report.tables import (
    difference_table,
    model_table,
    participants_table,
    presence_table,
    subgroup_table,
    threshold_table,
)


def make_page(
    run: Results | None = None,
    model: FittedModel | None = None,
    *,
    people: str = "hidden",
    title: str | None = None,
    linked: bool = False,
) -> Page:
    """Return the page of a comparison, a fitted model, or both; its figures are not drawn yet.

    `linked` says whether it lies in the results folder, beside the pages of single outcomes.
    """
    check_people(people)
    if run is None:
        if model is None:
            raise TypeError("a report is about a run, a model, or both")
        return _model_page(model, people, title)
    if run.outcomes:
        return outcomes_page(run, model, title, linked=linked)
    return _run_page(run, model, people, title)


def _run_page(run: Results, model: FittedModel | None, people: str, title: str | None) -> Page:
    main = main_model(run)
    fitted = model if model is not None and model.is_called(main) else None
    checks = checks_of_run(run, main)
    made, not_made = made_of_run(run, main)
    if fitted is not None:
        checks = in_order([*checks, *checks_of_model(fitted), _other_data(run, fitted)])
        made = sorted({*made, *made_of_model(fitted)[0], "B18"})
    shown, left = people_of_run(run, main, people)
    return Page(
        **about_run(run),
        title=title or str(run.record.get("title") or "") or "Comparison of models",
        main=main or "",
        lead=lead_of_run(run),
        answer=answer_of_run(run, main, checks, fitted),
        checks=checks,
        made=made,
        not_made=not_made,
        tables=named(
            model_table(run), difference_table(run, main), feature_table(run, main, fitted),
            participants_table(run), presence_table(run), threshold_table(run),
            subgroup_table(run, main), view_set_table(run), addition_table(run),
            reclassification_table(run), few_table_of_run(run, main),
            *([] if fitted is None else [cost_table(fitted)]),
        ),
        views=view_cards(run, main, fitted),
        people=shown,
        people_left=left,
        people_absent=LEFT_OUT if people == "none" else "There are no predictions to show.",
        hidden=people == "hidden",
        methods=methods_of_run(run, main),
        tripod=tripod_items(run, main, fitted),
        factors="" if fitted is None else factors_of(fitted),
        added=added_value_section(run),
        plans=plans_of(run, main, model),
        calculator=calculator_of(model),
        has_model=model is not None and model.inner is not None,
    )  # fmt: skip


def _other_data(run: Results, model: FittedModel) -> Check | None:
    """Return the check that applies where the model was fitted on other columns than the study."""
    widths = {v["name"]: v["features"] for v in run.record.get("views", [])}
    seen = [
        f"{short(v)} ({n:,} features in the model, {widths.get(v, 0):,} in the study)"
        for v, n in model.n_features.items()
        if widths and widths.get(v) != n
    ]
    rows = run.table("selection")
    named = rows[rows["feature"] != "*"] if "feature" in rows else rows
    for view, part in named.groupby("view", sort=False) if len(named) else ():
        unknown = model.lacks(str(view), dict.fromkeys(part["feature"].astype(str)))
        if unknown:
            seen.append(f"{short(view)} (the model does not have {listed(distinct(unknown), 3)})")
    return Check("B18", CARE, f"Views that differ: {listed(seen)}.") if seen else None


def _model_page(model: FittedModel, people: str, title: str | None) -> Page:
    checks = checks_of_model(model)
    absent = "No people were passed with the model."
    if model.X is not None:
        text = f"{count(len(model.X), 'person', 'people')} were passed with the model."
        checks = in_order([*checks, Check("B12", NOTE, text)])
        absent = "People are not listed for a model with several outcomes."
    made, not_made = made_of_model(model)
    shown, left = people_of_model(model, people)
    inner = model.inner if model.inner is not None else model.estimator
    total = sum(model.n_features.values())
    selected = ""
    if model.inner is not None:
        n = sum(int(mask.sum()) for mask in model.inner.selected_features_.values())
        selected = f", {n:,} selected"
    name, views = short(model.name), count(len(model.n_features), "data view")
    return Page(
        title=title or str(model.details.get("title") or "") or f"{name}, fitted",
        lead=f"{name} on {views} with {count(total, 'feature')}{selected}.",
        main=model.name,
        classes=model.classes,
        answer=answer_of_model(model),
        checks=checks,
        made=made,
        not_made=not_made,
        tables=named(
            feature_table(None, None, model), _counts(model), few_table_of_model(model),
            cost_table(model),
        ),
        views=view_cards(None, None, model),
        people=shown,
        people_left=left,
        people_absent=LEFT_OUT if people == "none" else absent,
        hidden=people == "hidden",
        methods=methods_of_model(model),
        tripod=tripod_items(None, None, model),
        settings=_settings_of_model(model, inner),
        versions={k: str(v) for k, v in model.versions.items()} or versions(),
        repeat=repeat_of_model(model),
        factors=factors_of(model),
        plans=plans_of(None, None, model),
        calculator=calculator_of(model),
        has_model=model.inner is not None,
    )  # fmt: skip


def _settings_of_model(model: FittedModel, inner: Any) -> list[tuple[str, str]]:
    made = [(k, plain(v)) for k, v in (model.details.get("setting") or {}).items()]
    if hasattr(inner, "get_params"):
        made += [(k, short(plain(v), 200)) for k, v in sorted(inner.get_params(deep=False).items())]
    return list(dict(made).items())


def _counts(model: FittedModel) -> Table:
    columns = [Column("Outcome", "outcome"), Column("People", "people", Cell.whole)]
    caption = "People passed with the model, by outcome"
    counts: list[int] = []
    if model.y is not None and model.classes and np.ndim(model.y) == 2:
        # Of a label matrix each column is an outcome, and people may have several.
        caption = "People passed with the model who have each outcome"
        counts = np.asarray(model.y).sum(axis=0).tolist()
    elif model.y is not None:
        counts = [sum(str(label) == name for label in model.y) for name in model.classes]
    rows = [{"outcome": c, "people": n} for c, n in zip(model.classes, counts, strict=False)]
    return make_table("participants", caption, rows, columns)
