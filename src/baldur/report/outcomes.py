"""The page of several outcomes: their mean first, then a short section for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from baldur import plots
from baldur.evaluation.label_matrix import AVERAGE
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.multilabel import MultilabelResult
from baldur.evaluation.record import record_of
from baldur.evaluation.results_reader import AGAIN
from baldur.exceptions import InputError
from baldur.report.answer import OTHERS, answer_of_run, main_model
from baldur.report.checks import checks_of_run
from baldur.report.evidence import comparison_of, prediction_of
from baldur.report.explanations import factors_of
from baldur.report.facts import Facts, OutcomeFacts, lead_of_run, settings_of_run
from baldur.report.fitted import Calculator, FittedModel
from baldur.report.formatting import (
    Cell,
    Column,
    Table,
    count,
    ends_of,
    listed,
    make_table,
    short,
    spread,
)
from baldur.report.methods import methods_of_run, repeat_of_run
from baldur.report.page import Page
from baldur.report.pictures import Plan, draw, latent_plans
from baldur.report.results import StudyResults
from baldur.report.sentences import COMPARISON, PREDICTION, SHOWN, Sentence, case_of
from baldur.report.tables import difference_table, model_table
from baldur.study.write_results import OUTCOMES, REPORT, WrittenOutcomes, outcome_folders

_MOST_DRAWN = 12
"""Outcomes with figures of their own on the page; the pages of single outcomes have all."""
_MEAN_TABLES = ("table", "intervals", "differences", "comparisons", "permutation")


@dataclass
class OutcomesResults:
    """A finished comparison of models for several outcomes."""

    mean: StudyResults  # The mean over outcomes: table, intervals, differences and tests
    each: dict[str, StudyResults]  # Every outcome
    links: dict[str, str]  # Addresses of the pages of single outcomes, where there are any
    intervals: pd.DataFrame  # Of the mean ("*" in the column outcome) and of every outcome

    @classmethod
    def from_result(cls, result: MultilabelResult) -> OutcomesResults:
        """Build it from a result in memory."""
        tables = {
            "table": result.table(),
            "intervals": result.intervals(),
            "differences": result.differences(),
            "comparisons": result.compare(),
            "permutation": result.permutation_test(),
        }
        each = {name: StudyResults.from_result(one) for name, one in result.results.items()}
        for name, run in each.items():
            run.record["outcome"] = name
        return cls._of(tables, record_of(result), each, {})

    @classmethod
    def from_written(cls, written: WrittenOutcomes, folder: Path) -> OutcomesResults:
        """Build it from the tables that were written to a results folder."""
        places = outcome_folders(list(written.outcomes))
        each = {}
        for name, one in written.outcomes.items():
            each[name] = StudyResults.from_tables(one.tables, one.record, one.grids)
            each[name].folder = folder / OUTCOMES / places[name]
        made = cls._of(written.tables, written.record, each, _links(places))
        made.mean.folder = folder
        return made

    @classmethod
    def from_folder(cls, run: StudyResults, folder: Path, *, linked: bool) -> OutcomesResults:
        """Build it from a results folder."""
        lacking = {"outcome", "model", "metric"} - set(run.table("intervals"))
        if lacking:
            raise InputError(
                f"{folder / 'intervals.csv'} is missing or damaged, or has no column "
                f"{min(lacking)!r}. {AGAIN}"
            )
        # Names of folders follow from those of the outcomes; none is taken from the file.
        places = outcome_folders(run.record["outcomes"])
        each = {
            name: StudyResults.from_folder(folder / OUTCOMES / place)
            for name, place in places.items()
        }
        tables = {name: run.table(name) for name in _MEAN_TABLES}
        there = {n: p for n, p in places.items() if (folder / OUTCOMES / p / REPORT).is_file()}
        made = cls._of(tables, run.record, each, _links(there) if linked else {})
        made.mean.folder, made.mean.problems = folder, run.problems
        return made

    @classmethod
    def _of(
        cls,
        tables: Mapping[str, pd.DataFrame],
        record: dict[str, object],
        each: dict[str, StudyResults],
        links: dict[str, str],
    ) -> OutcomesResults:
        intervals = tables["intervals"]
        only = {
            name: frame[frame["outcome"].astype(str) == AVERAGE].drop(columns="outcome")
            if "outcome" in frame
            else frame
            for name, frame in tables.items()
        }
        return cls(StudyResults.from_tables(only, record), each, links, intervals)


def _links(places: Mapping[str, str]) -> dict[str, str]:
    return {name: f"{OUTCOMES}/{place}/{REPORT}" for name, place in places.items()}


def outcomes_page(
    found: OutcomesResults, model: FittedModel | None, people: str, title: str | None
) -> Page:
    """Return the page of several outcomes."""
    run = found.mean
    main = main_model(run)
    checks = checks_of_run(run, None)
    outcomes: list[OutcomeFacts] = []
    plans: list[Plan] = []
    for number, (name, one) in enumerate(found.each.items(), 1):
        outcomes.append(_outcome(name, number, one, main, found.links.get(name, "")))
        # What is said of the data once is not said of every outcome again.
        outcomes[-1].checks = [c for c in outcomes[-1].checks if c not in checks]
        if number <= _MOST_DRAWN:
            plans += _plans_of_outcome(one, outcomes[-1])
    tables = [_counts(found), model_table(run), difference_table(run, main), _by_outcome(found)]
    record = run.record
    n = count(len(found.each), "outcome")
    facts = Facts(
        title=title or str(record.get("title") or "") or f"Comparison of models for {n}",
        lead=lead_of_run(run, n),
        main=main or "",
        classes=run.classes,
        answer=_answer(found, main, outcomes),
        checks=checks,
        tables={t.id: t for t in tables if t},
        views=[],
        people=[],
        people_left=0,
        methods=_methods(found, main),
        tripod=[],
        settings=settings_of_run(run),
        versions={str(k): str(v) for k, v in record.get("versions", {}).items()},
        repeat=repeat_of_run(run),
        notes=[
            f"{short(m)}: {short(text, 400)}"
            for m, texts in record.get("notes", {}).items()
            for text in texts
        ]
        + [short(text, 400) for text in record.get("notes_on_data", [])],
        factors="" if model is None else factors_of(model),
        outcomes=outcomes,
    )
    plans = [
        Plan(
            "outcomes", "outcomes", f"{_heading(found)} of every outcome",
            lambda: plots.OutcomesDisplay(found.intervals, metric=_metric(found)), wide=True,
        ),
        *(latent_plans(model, "outcomes") if model is not None else []),
        *plans,
    ]  # fmt: skip
    figures, left = draw(plans)
    return Page(facts=facts, figures=figures, calculator=Calculator(""), left_figures=left)


def _metric(found: OutcomesResults) -> str:
    """Return the metric that settings were selected by, or the first of the table."""
    known = list(dict.fromkeys(found.intervals.get("metric", pd.Series(dtype=str)).astype(str)))
    wanted = str(found.mean.record.get("select_by", ""))
    return wanted if wanted in known or not known else known[0]


def _heading(found: OutcomesResults) -> str:
    return METRICS[_metric(found)].heading


def _outcome(
    name: str, number: int, run: StudyResults, main: str | None, link: str
) -> OutcomeFacts:
    """Return the short section of one outcome: its answer and its checks."""
    own = main if main in run.finished else main_model(run)
    checks = checks_of_run(run, own)
    answer = answer_of_run(run, own, checks)
    return OutcomeFacts(f"outcome-{number}", short(name, 80), own or "", answer, checks, link)


def _plans_of_outcome(run: StudyResults, facts: OutcomeFacts) -> list[Plan]:
    if not facts.main:
        return []
    results, models = run.results, [facts.main]
    name = facts.name
    return [
        Plan(
            f"{facts.id}-roc", facts.id, f"{name}: ROC curve of {short(facts.main)}",
            lambda: plots.RocDisplay.from_result(results, models), optional=True,
        ),
        Plan(
            f"{facts.id}-calibration", facts.id, f"{name}: predicted and observed",
            lambda: plots.CalibrationDisplay.from_result(results, models), optional=True,
        ),
    ]  # fmt: skip


def _answer(
    found: OutcomesResults, main: str | None, outcomes: list[OutcomeFacts]
) -> list[Sentence]:
    run, n = found.mean, len(found.each)
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


def _counts(found: OutcomesResults) -> Table:
    columns = [
        Column("Outcome", "outcome"),
        Column("Yes", "yes", Cell.whole),
        Column("No", "no", Cell.whole),
        Column("Share", "share", Cell.share),
    ]
    rows = []
    for name, run in found.each.items():
        labels = run.people.get("label", pd.Series(dtype=str)).astype(str)
        yes, total = int((labels == run.classes[-1]).sum()), len(labels)
        if "label" in run.people:
            share = yes / total if total else None
            rows.append({"outcome": name, "yes": yes, "no": total - yes, "share": share})
    return make_table("participants", "People with each outcome", rows, columns)


def _by_outcome(found: OutcomesResults) -> Table:
    """Return one metric of every model for the mean and for every outcome."""
    frame, metric = found.intervals, _metric(found)
    outcomes = frame["outcome"].astype(str)
    frame = frame.assign(outcome=outcomes.where(outcomes != AVERAGE, "Mean over outcomes"))
    models = [m for m in found.mean.record.get("models", []) if m in set(frame["model"])]
    rows = spread(frame[frame["metric"].astype(str) == metric], ["outcome"], "model")
    columns = [Column("Outcome", "outcome")]
    columns += [Column(short(m), ends_of(m), Cell.interval) for m in models]
    note = (
        f"{METRICS[metric].heading} on pooled held-out predictions. The interval of the mean comes "
        "from resamples of people with all their outcomes."
        if metric in METRICS
        else ""
    )
    caption = f"{_heading(found)} of every outcome, with 95 % intervals"
    return make_table("outcomes", caption, rows, columns, note)


def _methods(found: OutcomesResults, main: str | None) -> str:
    """Return the paragraph of a comparison, with what several outcomes add."""
    run = found.mean
    apart = [
        short(row["model"])
        for row in run.table("table").to_dict("records")
        if "one outcome at a time" in str(row.get("note", ""))
    ]
    joint = [short(m) for m in run.record.get("models", []) if short(m) not in apart]
    text = (
        f"There were {len(found.each)} yes/no outcomes: {listed(list(map(short, found.each)), 20)}."
    )
    if joint:
        text += f" {listed(joint, 20)} predicted all of them together."
    if apart:
        text += f" {listed(apart, 20)} were fitted to one outcome at a time."
    text += (
        " All outcomes have the same folds, with every outcome in about equal shares (iterative "
        "stratification) where there are no groups, sites or fixed split. Means over "
        "outcomes are unweighted; their intervals come from resamples of people with all their "
        "outcomes."
    )
    added = any(len(one.table("added_value")) for one in found.each.values())
    return f"{text} {methods_of_run(run, main, added=added)}"
