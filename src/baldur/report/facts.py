"""Facts: everything a page says, as plain values; the template adds nothing to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import baldur
from baldur.evaluation.record import versions
from baldur.report.answer import Sentence, answer_of_model, answer_of_run, main_model
from baldur.report.checks import EXPLANATIONS, Check, checks_of_model, checks_of_run, in_order
from baldur.report.fitted import FittedModel
from baldur.report.methods import (
    methods_of_model,
    methods_of_run,
    repeat_of_model,
    repeat_of_run,
)
from baldur.report.people import Person, people_of_model, people_of_run
from baldur.report.results import StudyResults
from baldur.report.tables import (
    ViewCard,
    feature_table,
    model_table,
    people_table,
    presence_table,
    subgroup_table,
    threshold_table,
    view_cards,
)
from baldur.report.tripod import Item, tripod_items
from baldur.report.words import Cell, Column, Table, count, short

__all__ = ["Facts", "gather_facts"]


@dataclass
class Facts:
    """What a page says.

    Attributes
    ----------
    title, lead : str
    main : str
        The model that the page is about.
    classes : list of str
        The positive one last; empty for numbers.
    answer : list of Sentence
    checks : list of Check
    explanations : list
        Of the checks that apply.
    tables : dict of str to Table
        models, features, people-counts, presence, thresholds, subgroups; those without rows are
        left out.
    views : list of ViewCard
    people : list of Person
    people_left : int
        Not listed.
    methods : str
    tripod : list of Item
    settings : list of (str, str)
    versions : dict of str to str
    repeat : list of str
        Commands.
    notes : list of str
        Warnings of the models.
    """

    title: str
    lead: str
    main: str
    classes: list[str]
    answer: list[Sentence]
    checks: list[Check]
    tables: dict[str, Table]
    views: list[ViewCard]
    people: list[Person]
    people_left: int
    methods: str
    tripod: list[Item]
    settings: list[tuple[str, str]]
    versions: dict[str, str]
    repeat: list[str]
    notes: list[str] = field(default_factory=list)

    @property
    def explanations(self) -> list[Any]:
        """Of the checks that apply, in the order of their codes."""
        return [EXPLANATIONS[code] for code in sorted({c.code for c in self.checks})]

    @property
    def value_name(self) -> str:
        """What the number beside a person is."""
        if not self.classes:
            return "Predicted"
        if len(self.classes) == 2:
            return f"P({short(self.classes[-1], 24)})"
        return "Probability"


def gather_facts(
    run: StudyResults | None = None,
    model: FittedModel | None = None,
    *,
    people: str = "hidden",
    title: str | None = None,
) -> Facts:
    """Return everything a page says about a comparison, a fitted model, or both.

    Parameters
    ----------
    run : StudyResults, optional
    model : FittedModel, optional
        Fitted on all people.
    people : {"hidden", "named", "none"}, default="hidden"
        Show people without identifiers, with them, or not at all.
    title : str, optional

    Returns
    -------
    Facts
    """
    if run is not None:
        return _of_run(run, model, people, title)
    if model is None:
        raise TypeError("a report is about a run, a model, or both")
    return _of_model(model, people, title)


def _of_run(run: StudyResults, model: FittedModel | None, people: str, title: str | None) -> Facts:
    main = main_model(run)
    fitted = model if model is not None and model.is_called(main) else None
    checks = checks_of_run(run, main)
    if fitted is not None:
        checks = in_order([*checks, *checks_of_model(fitted)])
    tables = [
        model_table(run), feature_table(run, main, fitted), people_table(run), presence_table(run),
        threshold_table(run), subgroup_table(run, main),
    ]  # fmt: skip
    listed, left = people_of_run(run, main, people)
    record = run.record
    views = record.get("views", [])
    lead = (
        f"{count(record.get('people', 0), 'person', 'people')}, {count(len(views), 'data view')} "
        f"with {count(sum(v['features'] for v in views), 'feature')}, "
        f"{count(len(record.get('models', [])), 'model')} compared by cross-validation."
    )
    notes = [
        f"{short(m)}: {short(n, 400)}" for m, ns in record.get("notes", {}).items() for n in ns
    ]
    return Facts(
        title=title or str(record.get("title") or "") or "Comparison of models",
        lead=lead,
        main=main or "",
        classes=run.classes,
        answer=answer_of_run(run, main, checks),
        checks=checks,
        tables={t.id: t for t in tables if t},
        views=view_cards(run, main, fitted),
        people=listed,
        people_left=left,
        methods=methods_of_run(run, main),
        tripod=tripod_items(run, main, fitted),
        settings=_settings_of_run(run),
        versions={str(k): str(v) for k, v in record.get("versions", versions()).items()},
        repeat=repeat_of_run(run),
        notes=notes + [short(n, 400) for n in record.get("notes_on_data", [])],
    )


def _settings_of_run(run: StudyResults) -> list[tuple[str, str]]:
    record = run.record
    made = [
        (name, str(record[key]))
        for name, key in (
            ("Seed", "seed"), ("Outer folds", "folds"), ("Repeats", "repeats"),
            ("Inner folds", "inner"), ("Scheme", "scheme"), ("Settings chosen by", "select_by"),
            ("Scaling", "scale"), ("Prevalence", "prevalence"),
        )
        if record.get(key) is not None
    ]  # fmt: skip
    chosen = run.table("settings")
    if "setting" in chosen:
        for (model, setting), part in chosen.groupby(["model", "setting"], sort=False):
            values = part["value"].astype(str).value_counts()
            text = ", ".join(f"{short(v)} ({n} of {len(part)} folds)" for v, n in values.items())
            made.append((short(f"{model}: {setting}", 120), text))
    return made


def _of_model(model: FittedModel, people: str, title: str | None) -> Facts:
    checks = checks_of_model(model)
    if model.X is not None:
        text = f"{count(len(model.X), 'person', 'people')} were handed over with the model."
        checks = in_order([*checks, Check("B12", "note", text)])
    listed, left = people_of_model(model, people)
    inner = model.inner if model.inner is not None else model.estimator
    total = sum(model.n_features.values())
    kept = ""
    if model.inner is not None:
        n = sum(int(mask.sum()) for mask in model.inner.selected_features_.values())
        kept = f", {n:,} kept"
    tables = [feature_table(None, None, model), _counts(model)]
    saved = {k: str(v) for k, v in model.versions.items()}
    return Facts(
        title=title or str(model.details.get("title") or "") or f"{short(model.name)}, fitted",
        lead=f"{short(model.name)} on {count(len(model.n_features), 'data view')} with "
        f"{count(total, 'feature')}{kept}.",
        main=model.name,
        classes=model.classes,
        answer=answer_of_model(model),
        checks=checks,
        tables={t.id: t for t in tables if t},
        views=view_cards(None, None, model),
        people=listed,
        people_left=left,
        methods=methods_of_model(model),
        tripod=tripod_items(None, None, model),
        settings=_settings_of_model(model, inner),
        versions=saved or versions(),
        repeat=repeat_of_model(model),
    )


def _settings_of_model(model: FittedModel, inner: Any) -> list[tuple[str, str]]:
    made = [(k, str(v)) for k, v in (model.details.get("setting") or {}).items()]
    if hasattr(inner, "get_params"):
        made += [(k, short(v, 200)) for k, v in sorted(inner.get_params(deep=False).items())]
    return list(dict(made).items())


def _counts(model: FittedModel) -> Table:
    columns = [Column("Outcome", numeric=False), Column("People")]
    table = Table("people-counts", "People handed over, by outcome", columns)
    if model.y is None or not model.classes:
        return table
    for name in model.classes:
        n = sum(str(label) == name for label in model.y)
        table.add([Cell.name(name), Cell(f"{n:,}", float(n))])
    return table


def made_with() -> str:
    """Return what made the page."""
    return f"baldur {baldur.__version__}"
