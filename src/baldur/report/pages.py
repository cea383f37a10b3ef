"""The pages of a comparison, of several outcomes and of a fitted model: texts, tables, figures."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from baldur import plots
from baldur.estimators.summary import against_base_rate
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.result_files import REPORT
from baldur.evaluation.results import Results
from baldur.evaluation.results_reader import AGAIN
from baldur.exceptions import InputError
from baldur.report import added_value, features, few_features, methods, tables
from baldur.report.checks import Check, checks_of, codes_of, doubts_of, judge_model, judge_run
from baldur.report.fitted import FittedModel, calculator_of
from baldur.report.formatting import (
    distinct,
    listed,
    named,
    short,
)
from baldur.report.people import check_people, people_of_model, people_of_run
from baldur.report.pictures import Plan, latent_plans, plans_of
from baldur.report.render import OutcomeSection, Page
from baldur.report.sentences import (
    FEATURES,
    NOT_SHOWN,
    PREDICT,
    SHOWN,
    UNKNOWN,
    Sentence,
    calibration_sentence,
    comparison_sentence,
    gains_of_trees,
    linear_sentence,
    other_models,
    prediction_of,
    prediction_sentence,
)
from baldur.views.validate import counted


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


def main_model(run: Results) -> str | None:
    """Return the model that the page is about: BALDUR, or else the best by the chosen metric."""
    models = run.with_all_views or run.finished
    baldur_models = [m for m in models if m.startswith("BALDUR")]
    return next(iter([*baldur_models, *run.ranked.index, *models]), None)


def answer_of_run(
    run: Results, main: str | None, checks: list[Check], model: FittedModel | None = None
) -> list[Sentence]:
    """Return the sentences of the section "Answer" about a comparison; `model` is its fit."""
    if main is None:
        text = "No model finished, so there is no answer. The reasons are listed below."
        return [Sentence(PREDICT, text, UNKNOWN)]
    predicted = prediction_sentence(prediction_of(run, main), doubts_of(checks))
    doubtful = any(c.code == "B01" for c in checks)  # no evidence of signal
    few = few_features.few_of(run, main)
    others, gains = other_models(run, main), gains_of_trees(run)
    sentences = [
        predicted,
        calibration_sentence(run, main),
        Sentence(FEATURES, features.selection_of_folds(run, main, model, doubtful=doubtful)),
        few_features.few_sentence(few, predicted.outcome == SHOWN) if len(few) else None,
        comparison_sentence(others, main) if len(others) else None,
        linear_sentence(gains) if len(gains) else None,
        added_value.added_value_answer(run),
    ]
    return [sentence for sentence in sentences if sentence is not None]


def answer_of_model(model: FittedModel) -> list[Sentence]:
    """Return the sentences of the section "Answer" about one fitted model."""
    inner = model.inner
    if inner is None:
        text = f"{short(model.name)} does not report which features it uses, or how much."
        return [Sentence(FEATURES, text, UNKNOWN)]
    sentences = []
    if hasattr(inner, "signal_shown_"):
        gain = against_base_rate(inner.signal_)
        shown = bool(inner.signal_shown_)
        text = (
            f"Yes: on held-out training rows the model is {gain}."
            if shown
            else f"This was not shown: on held-out training rows the model is {gain}, less than "
            "95 % confidence needs."
        )
        sentences.append(Sentence(PREDICT, text, SHOWN if shown else NOT_SHOWN))
    return [*sentences, Sentence(FEATURES, features.selection_of_model(model))]


def _run_page(run: Results, model: FittedModel | None, people: str, title: str | None) -> Page:
    """Return the page of a comparison of one outcome, with what a fitted model adds to it."""
    main = main_model(run)
    # Another model than the main one adds only its figures and its calculator.
    fitted = model if model is not None and model.is_called(main) else None
    judged = judge_run(run, main)
    checks, (checks_made, checks_not_made) = checks_of(judged), codes_of(judged)
    if fitted is not None:
        of_model = judge_model(fitted)
        checks = checks_of(judged, of_model, {"B18": _other_data(run, fitted)})
        checks_made = sorted({*checks_made, *codes_of(of_model)[0], "B18"})
    return Page(
        **methods.about_run(run, main),
        **people_of_run(run, main, people),
        title=title or str(run.record.get("title") or "") or "Comparison of models",
        main=main or "",
        lead=methods.lead_of_run(run),
        answer=answer_of_run(run, main, checks, fitted),
        checks=checks,
        checks_made=checks_made,
        checks_not_made=checks_not_made,
        tables=named(
            tables.model_table(run), tables.difference_table(run, main),
            features.feature_table(run, main, fitted), tables.participants_table(run),
            tables.presence_table(run), tables.threshold_table(run),
            tables.subgroup_table(run, main), added_value.view_set_table(run),
            added_value.addition_table(run), added_value.reclassification_table(run),
            few_features.few_table_of_run(run, main),
            *([] if fitted is None else [few_features.cost_table(fitted)]),
        ),
        views=features.view_cards(run, main, fitted),
        tripod=methods.tripod_items(run, main, fitted),
        factors="" if fitted is None else features.factors_of(fitted),
        added=added_value.added_value_section(run),
        plans=plans_of(run, main, model),
        calculator=calculator_of(model),
        has_model=model is not None and model.inner is not None,
    )  # fmt: skip


def _other_data(run: Results, model: FittedModel) -> list[str]:
    """Return a text if the model was fitted on other columns than the study has."""
    widths = {v["name"]: v["features"] for v in run.record.get("views", [])}
    differing = [
        f"{short(v)} ({n:,} features in the model, {widths.get(v, 0):,} in the study)"
        for v, n in model.n_features.items()
        if widths and widths.get(v) != n
    ]
    rows = run.table("selection")
    features_of_folds = rows[rows["feature"] != "*"] if "feature" in rows else rows
    by_view = features_of_folds.groupby("view", sort=False) if len(features_of_folds) else ()
    for view, part in by_view:
        unknown = model.lacks(str(view), dict.fromkeys(part["feature"].astype(str)))
        if unknown:
            lacks = f"the model does not have {listed(distinct(unknown), 3)}"
            differing.append(f"{short(view)} ({lacks})")
    return [f"Views that differ: {listed(differing)}."] if differing else []


def _model_page(model: FittedModel, people: str, title: str | None) -> Page:
    """Return the page of a fitted model without a comparison."""
    judged = judge_model(model)
    checks_made, checks_not_made = codes_of(judged)
    if model.X is not None:
        # Nothing says whether the model was trained on them.
        text = f"{counted(len(model.X), 'person', 'people')} were passed with the model."
        judged["B12"] = [text]
    total = sum(model.n_features.values())
    selected = ""
    if model.inner is not None:
        n = sum(int(mask.sum()) for mask in model.inner.selected_features_.values())
        selected = f", {n:,} selected"
    name, views = short(model.name), counted(len(model.n_features), "data view")
    return Page(
        **methods.about_model(model),
        **people_of_model(model, people),
        title=title or str(model.details.get("title") or "") or f"{name}, fitted",
        lead=f"{name} on {views} with {counted(total, 'feature')}{selected}.",
        main=model.name,
        answer=answer_of_model(model),
        checks=checks_of(judged),
        checks_made=checks_made,
        checks_not_made=checks_not_made,
        tables=named(
            features.feature_table(None, None, model), tables.label_table(model),
            few_features.few_table_of_model(model), few_features.cost_table(model),
        ),
        views=features.view_cards(None, None, model),
        tripod=methods.tripod_items(None, None, model),
        factors=features.factors_of(model),
        plans=plans_of(None, None, model),
        calculator=calculator_of(model),
        has_model=model.inner is not None,
    )  # fmt: skip


_MOST_DRAWN = 12
"""Outcomes with figures of their own on the page; the pages of single outcomes have all."""


def outcomes_page(
    run: Results, model: FittedModel | None, title: str | None, *, linked: bool = False
) -> Page:
    """Return the page of several outcomes, with links to the page of each that is there."""
    lacking = {"outcome", "model", "metric"} - set(_intervals(run))
    if lacking:
        raise InputError(
            f"{Path(run.folder or '') / 'intervals.csv'} is missing or damaged, or has no column "
            f"{min(lacking)!r}. {AGAIN}"
        )
    main, n = main_model(run), counted(len(run.outcomes), "outcome")
    checks = checks_of(judge_run(run, None))
    caption = f"{METRICS[_metric(run)].heading} of every outcome"
    make = partial(plots.OutcomesDisplay, _intervals(run), metric=_metric(run))
    plans = [Plan("outcomes", "outcomes", caption, make, wide=True)]
    plans += latent_plans(model, "outcomes") if model is not None else []
    outcomes: list[OutcomeSection] = []
    for number, (name, results) in enumerate(run.outcomes.items(), 1):
        model_of_outcome = main if main in results.finished else main_model(results)
        checks_of_outcome = checks_of(judge_run(results, model_of_outcome))
        section = OutcomeSection(
            f"outcome-{number}",
            short(name, 80),
            model_of_outcome or "",
            answer_of_run(results, model_of_outcome, checks_of_outcome),
            [c for c in checks_of_outcome if c not in checks],  # the others are on the page already
            _link(run, results) if linked else "",
        )
        outcomes.append(section)
        if number <= _MOST_DRAWN:
            plans += _plans_of_outcome(results, section)
    return Page(
        **methods.about_run(run, main),
        title=title or str(run.record.get("title") or "") or f"Comparison of models for {n}",
        lead=methods.lead_of_run(run, n),
        main=main or "",
        answer=_answer(run, main, outcomes),
        checks=checks,
        tables=named(
            tables.outcome_counts(run), tables.model_table(run), tables.difference_table(run, main),
            tables.outcome_table(run, _metric(run)),
        ),
        factors="" if model is None else features.factors_of(model),
        outcomes=outcomes,
        plans=plans,
    )  # fmt: skip


def _intervals(run: Results) -> pd.DataFrame:
    """Return the intervals of the mean ("*" in the column outcome) and of every outcome."""
    return run.table("intervals", every_outcome=True)


def _link(run: Results, outcome: Results) -> str:
    """Return the address of the page of an outcome, or "" where there is none."""
    if run.folder is None or outcome.folder is None or not (outcome.folder / REPORT).is_file():
        return ""
    return (outcome.folder.relative_to(run.folder) / REPORT).as_posix()


def _metric(run: Results) -> str:
    """Return the metric that settings were selected by, or the first of the table."""
    known = list(dict.fromkeys(_intervals(run).get("metric", pd.Series(dtype=str)).astype(str)))
    wanted = str(run.record.get("select_by", ""))
    return wanted if wanted in known or not known else known[0]


def _plans_of_outcome(run: Results, section: OutcomeSection) -> list[Plan]:
    """Return the ROC curve and the calibration curve of one outcome."""
    if not section.main:
        return []
    figures = (
        ("roc", f"ROC curve of {short(section.main)}", plots.RocDisplay),
        ("calibration", "predicted and observed", plots.CalibrationDisplay),
    )
    return [
        Plan(
            f"{section.id}-{name}", section.id, f"{section.name}: {caption}",
            partial(display.from_result, run, [section.main]), optional=True,
        )
        for name, caption, display in figures
    ]  # fmt: skip


def _answer(run: Results, main: str | None, outcomes: list[OutcomeSection]) -> list[Sentence]:
    """Return the answer on several outcomes: of their mean, of each, and of other models."""
    n = len(run.outcomes)
    question = "Can the outcomes be predicted, on average?"
    if main is None:
        text = "No model finished for every outcome, so there is no mean. The reasons are below."
        sentences = [Sentence(question, text, UNKNOWN)]
    else:
        # The intervals of this run are those of the mean over outcomes.
        mean = prediction_of(run, main)
        mean = replace(mean, metric=f"mean {mean.metric} over {n} outcomes", of=short(main))
        sentences = [prediction_sentence(mean, question=question)]
    shown = [o.name for o in outcomes if o.answer[0].outcome == SHOWN]
    not_shown = [o.name for o in outcomes if o.answer[0].outcome != SHOWN]
    text = f"Shown for {len(shown)} of {n}" + (f": {listed(shown, 12)}." if shown else ".")
    text += f" Not shown for {listed(not_shown, 12)}." if not_shown and shown else ""
    text += " Each is judged by its own interval, not adjusted for the number of outcomes."
    sentences.append(Sentence("Which of them?", text))
    others = pd.DataFrame() if main is None else other_models(run, main)
    if main is not None and len(others):
        sentences.append(
            comparison_sentence(others.assign(metric="mean " + others["metric"]), main)
        )
    return sentences
