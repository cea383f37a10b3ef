"""What a page shows, and how it becomes one HTML file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import baldur
from baldur.core.optional import import_extra
from baldur.report.checks import LIMITS, Check
from baldur.report.fitted import Calculator
from baldur.report.formatting import Table, distinct, kind, listed, number, short
from baldur.report.people import Person
from baldur.report.pictures import Picture, Plan, draw
from baldur.report.sentences import Sentence

_SECTIONS = {
    "answer": "Answer",
    "studied": "Participants",
    "models": "Models",
    "outcomes": "Outcomes",
    "cohort": "New cohort",
    "features": "Features",
    "views": "Views",
    "added": "Added value",
    "usefulness": "Clinical use",
    "calculator": "Calculator",
    "people": "People",
    "methods": "Methods",
    "tripod": "TRIPOD+AI",
    "repeat": "Reproduce",
    "checks": "Checks",
}
"""Sections of a page in their order, with their names in its navigation."""


@dataclass
class OutcomeSection:
    """The short section of one of several outcomes."""

    id: str
    name: str
    main: str  # The model that it is about
    answer: list[Sentence]
    checks: list[Check]
    link: str = ""  # Address of the page of this outcome, or ""


@dataclass
class Page:
    """Everything that a page shows, as plain values; figures are drawn by `render`."""

    title: str
    lead: str
    main: str  # The model that the page is about
    classes: list[str]  # The positive one last; empty for numbers
    answer: list[Sentence]
    checks: list[Check]
    tables: dict[str, Table]
    methods: str
    versions: dict[str, str]
    repeat: list[str]  # Commands
    plans: list[Plan]  # Figures
    checks_made: list[str] = field(default_factory=list)  # Codes of the checks that could be made
    checks_not_made: list[str] = field(default_factory=list)
    views: list[dict[str, Any]] = field(default_factory=list)
    people: list[Person] = field(default_factory=list)
    people_left: int = 0  # Not listed
    people_absent: str = ""  # Why no people are listed, if none are
    hidden: bool = True  # Whether identifiers are hidden
    tripod: list[dict[str, str]] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # Warnings of the models
    factors: str = ""  # What the latent factors of the model are, where it has any
    added: list[str] = field(default_factory=list)  # Sentences on what each view adds
    outcomes: list[OutcomeSection] = field(default_factory=list)
    calculator: Calculator | None = None  # None: the page is not about one model of one outcome
    has_model: bool = False  # Whether there is a fit on all people
    validation: bool = False  # Whether the page is about a model in a new cohort

    @property
    def codes(self) -> list[str]:
        """Codes of the checks that are explained: of those that apply, or else of all."""
        checks = [*self.checks, *(c for o in self.outcomes for c in o.checks)]
        return sorted({c.code for c in checks} or explanations())

    @property
    def value_name(self) -> str:
        """Heading of the predicted value of each person."""
        if not self.classes:
            return "Predicted"
        if len(self.classes) == 2:
            return f"P({short(self.classes[-1], 24)})"
        return "Probability"


def generator() -> str:
    """Return the name and version of the package, for the foot of the page."""
    return f"baldur {baldur.__version__}"


@cache
def explanations() -> dict[str, dict[str, str]]:
    """Return name, reason and advice of every check by its code."""
    texts = tomllib.loads(asset("checks.toml"))
    return {
        code: {key: text.format(**LIMITS) for key, text in entry.items()}
        for code, entry in texts.items()
    }


def render(page: Page) -> str:
    """Return a page as HTML with its figures, style, scripts and data inside, for a file alone.

    A section is there unless nothing on the page is about it.
    """
    safe = import_extra("markupsafe", "report", "A report").Markup
    pictures, not_drawn = draw(page.plans)
    figures: dict[str, list[Picture]] = {}
    for picture in pictures:
        picture.svg = safe(picture.svg)  # drawn by this package, which escapes names
        figures.setdefault(picture.section, []).append(picture)
    scripts = [asset("page.js")]
    if page.calculator is not None and page.calculator.card is not None:  # it can compute
        scripts += [page.calculator.script, asset("calculator.js")]
    one_model = page.calculator is not None  # the page is about one model of one outcome
    has_section = {
        "models": "models" in page.tables,
        "outcomes": bool(page.outcomes),
        "cohort": "figures" in page.tables,
        "features": one_model,
        "views": one_model,
        "added": bool(page.added),
        "usefulness": bool({"thresholds", "subgroups"} & {*page.tables} or "usefulness" in figures),
        "calculator": one_model,
        "people": not page.outcomes,  # a page of several outcomes lists nobody
        "tripod": bool(page.tripod),
    }
    tags = page.tables["features"].tags if "features" in page.tables else []
    text: str = template("page.html.j2", html=True).render(
        page=page,
        figures=figures,
        sections={name: head for name, head in _SECTIONS.items() if has_section.get(name, True)},
        checks_made=_names(page.checks_made),
        checks_not_made=_names(page.checks_not_made),
        feature_models=list(dict.fromkeys(t["model"] for t in tags if t["model"])),
        feature_views=list(dict.fromkeys(t["view"] for t in tags)),
        show_site=any(p.site for p in page.people),
        show_missing=any(p.missing for p in page.people),
        left_figures=not_drawn,
        explanations=explanations(),
        filled=sum(bool(i["answer"]) for i in page.tripod),
        number=number,
        kind=kind,
        style=safe(asset("style.css")),
        scripts=[safe(s) for s in scripts],
        # The content security policy of the page allows no other scripts.
        script_hashes=safe(" ".join(_hash(s) for s in scripts)),
        data=safe(_script_json(_data(page))),
        generator=generator(),
    )
    # A lone surrogate, which UTF-8 does not have, would stop the whole page.
    return text.encode("utf-8", errors="replace").decode("utf-8")


@cache
def template(name: str, *, html: bool = False) -> Any:
    """Return a template of this package; in one of plain text an unknown variable is empty."""
    jinja = import_extra("jinja2", "report", "A report")
    environment = jinja.Environment(
        autoescape=html, undefined=jinja.StrictUndefined if html else jinja.Undefined,
        trim_blocks=True, lstrip_blocks=True, loader=jinja.FunctionLoader(asset),
    )  # fmt: skip
    environment.filters.update(short=short, distinct=distinct, listed=listed)
    return environment.get_template(name)


def _names(codes: list[str]) -> str:
    """Return the names of checks, as a list in a sentence."""
    names = (explanations()[code]["name"] for code in codes)
    return ", ".join(name[0].lower() + name[1:] for name in names)


def _data(page: Page) -> dict[str, Any]:
    """Return what the scripts of the page read: every person, and the numbers of the model."""
    scale = f"log odds of {short(page.classes[-1], 40)}" if page.classes else "prediction"
    data: dict[str, Any] = {
        "people": [_person(p, page) for p in page.people],
        "personHeads": ["Model", *(["Class"] if page.classes else []), page.value_name],
        "termsCaption": f"What each feature adds to the {scale}",
    }
    if page.calculator is not None and page.calculator.card is not None:
        data["card"] = page.calculator.card
    return data


def _person(person: Person, page: Page) -> dict[str, Any]:
    """Return a person as the scripts of the page read it."""
    facts = [("Observed", person.truth or "not known"), ("Predicted", person.predicted)]
    facts.append((page.value_name, number(person.value, 3)))
    if person.site:
        facts.append(("Site", person.site))
    facts.append(("Missing views", ", ".join(person.missing) or "none"))
    if person.right is not None:
        facts.append(("Prediction", "right" if person.right else "wrong"))
    return {
        "name": person.name,
        "facts": facts,
        "models": [
            [model, *([label] if page.classes else []), number(value, 3)]
            for model, label, value in person.models
        ],
        "terms": [
            [f"{view}: {feature}" if view else feature, contribution]
            for view, feature, contribution in person.terms
        ],
    }


def _script_json(value: Any) -> str:
    """Return JSON that cannot end a script element, whatever the texts in it hold."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def asset(name: str) -> str:
    """Return a file of the page, such as its style sheet."""
    return (resources.files("baldur.report") / "templates" / name).read_text(encoding="utf-8")


def check_extra() -> None:
    """Refuse, in one line that says what to install, to begin without the libraries of a page."""
    for module in ("jinja2", "matplotlib"):
        import_extra(module, "report", "A report")
