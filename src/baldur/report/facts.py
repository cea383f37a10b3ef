"""Facts: all texts and numbers of a page as plain values; the template adds none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import baldur
from baldur.evaluation.metrics import METRICS
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
from baldur.report.explanations import EXPLANATIONS, factors_of
from baldur.report.feature_tables import ViewCard, feature_table, view_cards
from baldur.report.few_features import cost_table, few_table_of_model, few_table_of_run
from baldur.report.fitted import FittedModel
from baldur.report.formatting import (
    Cell,
    Column,
    Table,
    count,
    distinct,
    listed,
    make_table,
    plain,
    short,
)
from baldur.report.methods import (
    Item,
    methods_of_model,
    methods_of_run,
    repeat_of_model,
    repeat_of_run,
    tripod_items,
)
from baldur.report.people import Person, people_of_model, people_of_run
from baldur.report.sentences import Sentence
from baldur.report.tables import (
    difference_table,
    model_table,
    participants_table,
    presence_table,
    subgroup_table,
    threshold_table,
)


@dataclass
class OutcomeFacts:
    """The short section of one of several outcomes."""

    id: str
    name: str
    main: str  # The model that it is about
    answer: list[Sentence]
    checks: list[Check]
    link: str = ""  # Address of the page of this outcome, or ""


@dataclass
class Facts:
    """Everything that a page shows, as plain values."""

    title: str
    lead: str
    main: str  # The model that the page is about
    classes: list[str]  # The positive one last; empty for numbers
    answer: list[Sentence]
    checks: list[Check]
    tables: dict[str, Table]
    views: list[ViewCard]
    people: list[Person]
    people_left: int  # Not listed
    methods: str
    tripod: list[Item]
    settings: list[tuple[str, str]]  # (str, str)
    versions: dict[str, str]
    repeat: list[str]  # Commands
    notes: list[str] = field(default_factory=list)  # Warnings of the models
    validation: bool = False  # Whether the page is about a model in a new cohort
    made: list[str] = field(default_factory=list)
    not_made: list[str] = field(default_factory=list)
    factors: str = ""  # What the latent factors of the model are, where it has any
    outcomes: list[OutcomeFacts] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    @property
    def explanations(self) -> list[Any]:
        """Explanations of the checks that apply, in the order of their codes."""
        checks = [*self.checks, *(c for o in self.outcomes for c in o.checks)]
        return [EXPLANATIONS[code] for code in sorted({c.code for c in checks})]

    @property
    def one_model(self) -> bool:
        """Whether the page shows features, views and calculator of a model of one outcome."""
        return not self.validation and not self.outcomes

    @property
    def value_name(self) -> str:
        """Heading of the predicted value of each person."""
        if not self.classes:
            return "Predicted"
        if len(self.classes) == 2:
            return f"P({short(self.classes[-1], 24)})"
        return "Probability"


def gather_facts(
    run: Results | None = None,
    model: FittedModel | None = None,
    *,
    people: str = "hidden",
    title: str | None = None,
) -> Facts:
    """Return everything that a page shows about a comparison, a fitted model, or both."""
    if run is not None:
        return _of_run(run, model, people, title)
    if model is None:
        raise TypeError("a report is about a run, a model, or both")
    return _of_model(model, people, title)


def _of_run(run: Results, model: FittedModel | None, people: str, title: str | None) -> Facts:
    main = main_model(run)
    fitted = model if model is not None and model.is_called(main) else None
    checks = checks_of_run(run, main)
    made, not_made = made_of_run(run, main)
    if fitted is not None:
        checks = in_order([*checks, *checks_of_model(fitted), _other_data(run, fitted)])
        made = sorted({*made, *made_of_model(fitted)[0], "B18"})
    tables = [
        model_table(run), difference_table(run, main), feature_table(run, main, fitted),
        participants_table(run), presence_table(run), threshold_table(run),
        subgroup_table(run, main), view_set_table(run), addition_table(run),
        reclassification_table(run), few_table_of_run(run, main),
        *([] if fitted is None else [cost_table(fitted)]),
    ]  # fmt: skip
    shown, left = people_of_run(run, main, people)
    record = run.record
    notes = [
        f"{short(m)}: {short(n, 400)}" for m, ns in record.get("notes", {}).items() for n in ns
    ]
    return Facts(
        title=title or str(record.get("title") or "") or "Comparison of models",
        lead=lead_of_run(run),
        main=main or "",
        classes=run.classes,
        answer=answer_of_run(run, main, checks, fitted),
        checks=checks,
        tables={t.id: t for t in tables if t},
        views=view_cards(run, main, fitted),
        people=shown,
        people_left=left,
        methods=methods_of_run(run, main),
        tripod=tripod_items(run, main, fitted),
        settings=settings_of_run(run),
        versions={str(k): str(v) for k, v in record.get("versions", versions()).items()},
        repeat=repeat_of_run(run),
        notes=notes + [short(n, 400) for n in record.get("notes_on_data", [])],
        made=made,
        not_made=not_made,
        factors="" if fitted is None else factors_of(fitted),
        added=added_value_section(run),
    )


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


def lead_of_run(run: Results, outcomes: str = "") -> str:
    """Return the first line of a page: people, views and features, models."""
    record = run.record
    views = record.get("views", [])
    some = record.get("view_sets", {})
    return (
        f"{count(record.get('people', 0), 'person', 'people')}, {count(len(views), 'data view')} "
        f"with {count(sum(v['features'] for v in views), 'feature')}, "
        f"{outcomes + ', ' if outcomes else ''}"
        f"{count(len(record.get('models', [])) - len(some), 'model')}"
        f"{' and ' + count(len(some), 'view set') if some else ''} compared by cross-validation."
    )


def settings_of_run(run: Results) -> list[tuple[str, str]]:
    """Return the settings of a comparison, each with its name."""
    record = run.record
    made = [
        (name, plain(record[key]))
        for name, key in (
            ("Seed", "seed"), ("Outer folds", "folds"), ("Repeats", "repeats"),
            ("Inner folds", "inner"), ("Scheme", "scheme"),
            ("Scaling", "scale"), ("Prevalence", "prevalence"),
        )
        if record.get(key) is not None
    ]  # fmt: skip
    metric = str(record.get("select_by", ""))
    if metric in METRICS:
        made.append(("Settings chosen by", METRICS[metric].heading))
    chosen = run.table("settings")
    if "setting" in chosen:
        for (model, setting), part in chosen.groupby(["model", "setting"], sort=False):
            values = part["value"].map(plain).value_counts()
            texts = distinct(values.index)
            counts = [f"{v} ({n} of {len(part)} folds)" for v, n in zip(texts, values, strict=True)]
            made.append((short(f"{model}: {setting}", 120), ", ".join(counts)))
    return made


def _of_model(model: FittedModel, people: str, title: str | None) -> Facts:
    checks = checks_of_model(model)
    if model.X is not None:
        text = f"{count(len(model.X), 'person', 'people')} were passed with the model."
        checks = in_order([*checks, Check("B12", NOTE, text)])
    made, not_made = made_of_model(model)
    shown, left = people_of_model(model, people)
    inner = model.inner if model.inner is not None else model.estimator
    total = sum(model.n_features.values())
    selected = ""
    if model.inner is not None:
        n = sum(int(mask.sum()) for mask in model.inner.selected_features_.values())
        selected = f", {n:,} selected"
    tables = [
        feature_table(None, None, model), _counts(model), few_table_of_model(model),
        cost_table(model),
    ]  # fmt: skip
    saved = {k: str(v) for k, v in model.versions.items()}
    return Facts(
        title=title or str(model.details.get("title") or "") or f"{short(model.name)}, fitted",
        lead=f"{short(model.name)} on {count(len(model.n_features), 'data view')} with "
        f"{count(total, 'feature')}{selected}.",
        main=model.name,
        classes=model.classes,
        answer=answer_of_model(model),
        checks=checks,
        tables={t.id: t for t in tables if t},
        views=view_cards(None, None, model),
        people=shown,
        people_left=left,
        methods=methods_of_model(model),
        tripod=tripod_items(None, None, model),
        settings=_settings_of_model(model, inner),
        versions=saved or versions(),
        repeat=repeat_of_model(model),
        made=made,
        not_made=not_made,
        factors=factors_of(model),
    )


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


def made_with() -> str:
    """Return the name and version of the package, for the foot of the page."""
    return f"baldur {baldur.__version__}"
