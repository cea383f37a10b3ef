"""The page of several outcomes: their mean first, then a short section for each of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from baldur import plots
from baldur.evaluation.metrics import AVERAGE, METRICS
from baldur.evaluation.result_files import REPORT
from baldur.evaluation.results import Results
from baldur.evaluation.results_reader import AGAIN
from baldur.exceptions import InputError
from baldur.report.answer import OTHERS, answer_of_run, main_model
from baldur.report.checks import checks_of_run
from baldur.report.evidence import comparison_of, prediction_of
from baldur.report.explanations import factors_of
from baldur.report.fitted import FittedModel
from baldur.report.formatting import (
    Cell,
    Column,
    Table,
    count,
    ends_of,
    listed,
    make_table,
    named,
    short,
    spread,
)
from baldur.report.methods import about_run, lead_of_run, methods_of_run
from baldur.report.page import OutcomeSection, Page
from baldur.report.pictures import Plan, latent_plans
from baldur.report.sentences import COMPARISON, PREDICTION, SHOWN, Sentence, case_of
from baldur.report.tables import difference_table, model_table

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
    main, n = main_model(run), count(len(run.outcomes), "outcome")
    checks = checks_of_run(run, None)
    caption = f"{_heading(run)} of every outcome"
    make = partial(plots.OutcomesDisplay, _intervals(run), metric=_metric(run))
    plans = [Plan("outcomes", "outcomes", caption, make, wide=True)]
    plans += latent_plans(model, "outcomes") if model is not None else []
    outcomes: list[OutcomeSection] = []
    for number, (name, one) in enumerate(run.outcomes.items(), 1):
        own = main if main in one.finished else main_model(one)
        found = checks_of_run(one, own)
        section = OutcomeSection(
            f"outcome-{number}",
            short(name, 80),
            own or "",
            answer_of_run(one, own, found),
            [c for c in found if c not in checks],  # the others are on the page already
            _link(run, one) if linked else "",
        )
        outcomes.append(section)
        if number <= _MOST_DRAWN:
            plans += _plans_of_outcome(one, section)
    return Page(
        **about_run(run),
        title=title or str(run.record.get("title") or "") or f"Comparison of models for {n}",
        lead=lead_of_run(run, n),
        main=main or "",
        answer=_answer(run, main, outcomes),
        checks=checks,
        tables=named(_counts(run), model_table(run), difference_table(run, main), _by_outcome(run)),
        methods=methods_of_run(run, main),
        factors="" if model is None else factors_of(model),
        outcomes=outcomes,
        plans=plans,
    )


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


def _heading(run: Results) -> str:
    return METRICS[_metric(run)].heading


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
    n = len(run.outcomes)
    question = "Can the outcomes be predicted, on average?"
    if main is None:
        text = "No model finished for every outcome, so there is no mean. The reasons are below."
        made = [Sentence(question, text, "unknown")]
    else:
        seen = prediction_of(run, main)
        evidence = replace(seen, metric=f"mean {seen.metric} over {n} outcomes", of=short(main))
        case = case_of(PREDICTION, evidence)
        made = [Sentence(question, case.text(evidence), case.outcome)]
    shown = [o.name for o in outcomes if o.answer[0].outcome == SHOWN]
    other = [o.name for o in outcomes if o.answer[0].outcome != SHOWN]
    text = f"Shown for {len(shown)} of {n}" + (f": {listed(shown, 12)}." if shown else ".")
    text += f" Not shown for {listed(other, 12)}." if other and shown else ""
    text += " Each is judged by its own interval, not adjusted for the number of outcomes."
    made.append(Sentence("Which of them?", text))
    compared = None if main is None else comparison_of(run, main)
    if compared is not None:
        compared = replace(compared, metric=f"mean {compared.metric}")
        case = case_of(COMPARISON, compared)
        made.append(Sentence(OTHERS, case.text(compared), case.outcome))
    return made


def _counts(run: Results) -> Table:
    columns = [
        Column("Outcome", "outcome"),
        Column("Yes", "yes", Cell.whole),
        Column("No", "no", Cell.whole),
        Column("Share", "share", Cell.share),
    ]
    rows = []
    for name, one in run.outcomes.items():
        labels = one.people.get("label", pd.Series(dtype=str)).astype(str)
        yes, total = int((labels == one.classes[-1]).sum()), len(labels)
        if "label" in one.people:
            share = yes / total if total else None
            rows.append({"outcome": name, "yes": yes, "no": total - yes, "share": share})
    return make_table("participants", "People with each outcome", rows, columns)


def _by_outcome(run: Results) -> Table:
    """Return one metric of every model for the mean and for every outcome."""
    frame, metric = _intervals(run), _metric(run)
    outcomes = frame["outcome"].astype(str)
    frame = frame.assign(outcome=outcomes.where(outcomes != AVERAGE, "Mean over outcomes"))
    models = [m for m in run.record.get("models", []) if m in set(frame["model"])]
    rows = spread(frame[frame["metric"].astype(str) == metric], ["outcome"], "model")
    columns = [Column("Outcome", "outcome")]
    columns += [Column(short(m), ends_of(m), Cell.interval) for m in models]
    note = (
        f"{METRICS[metric].heading} on pooled held-out predictions. The interval of the mean comes "
        "from resamples of people with all their outcomes."
        if metric in METRICS
        else ""
    )
    caption = f"{_heading(run)} of every outcome, with 95 % intervals"
    return make_table("outcomes", caption, rows, columns, note)
