"""From facts and figures to one HTML file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from baldur.core.optional import import_extra
from baldur.report.explanations import EXPLANATIONS
from baldur.report.facts import Facts, made_with
from baldur.report.fitted import Calculator
from baldur.report.formatting import kind, number, short
from baldur.report.people import Person
from baldur.report.pictures import Picture

_SECTIONS = [
    ("answer", "Answer"),
    ("studied", "Participants"),
    ("models", "Models"),
    ("outcomes", "Outcomes"),
    ("cohort", "New cohort"),
    ("features", "Features"),
    ("views", "Views"),
    ("added", "Added value"),
    ("usefulness", "Clinical use"),
    ("calculator", "Calculator"),
    ("people", "People"),
    ("methods", "Methods"),
    ("tripod", "TRIPOD+AI"),
    ("repeat", "Reproduce"),
    ("checks", "Checks"),
]


@dataclass
class Page:
    """Facts, figures and calculator of one page."""

    facts: Facts
    figures: list[Picture]
    calculator: Calculator
    hidden: bool = True  # Whether identifiers are hidden
    has_model: bool = False  # Whether there is a fit on all people
    people_absent: str = ""  # Why no people are listed, if none are
    left_figures: list[str] = field(default_factory=list)


def render(page: Page) -> str:
    """Return the page as HTML."""
    check_extra()
    safe = import_extra("markupsafe", "report", "A report").Markup
    facts = page.facts
    scripts = [asset("page.js")]
    if page.calculator.ready:
        scripts += [page.calculator.script, asset("calculator.js")]
    by_section: dict[str, list[Any]] = {}
    for picture in page.figures:
        picture.svg = safe(picture.svg)  # drawn by this package, which escapes names
        by_section.setdefault(picture.section, []).append(picture)
    names = [*(name for name, _ in _SECTIONS), *(o.id for o in facts.outcomes)]
    useful = {"thresholds", "subgroups"} & set(facts.tables) or by_section.get("usefulness")
    there = {
        "models": "models" in facts.tables,
        "outcomes": bool(facts.outcomes),
        "cohort": "figures" in facts.tables,
        "features": facts.one_model,
        "views": facts.one_model,
        "added": bool(facts.added),
        "usefulness": bool(useful),
        "calculator": facts.one_model,
        "people": not facts.outcomes,
        "tripod": bool(facts.tripod),
    }
    features = facts.tables.get("features")
    tags = features.tags if features is not None else []
    text: str = template("page.html.j2").render(
        facts=facts,
        figures={name: by_section.get(name, []) for name in names},
        calculator=page.calculator,
        sections=[(i, n) for i, n in _SECTIONS if there.get(i, True)],
        explanations=facts.explanations or list(EXPLANATIONS.values()),
        made=_names(facts.made),
        not_made=_names(facts.not_made),
        feature_models=list(dict.fromkeys(t["model"] for t in tags if t["model"])),
        feature_views=list(dict.fromkeys(t["view"] for t in tags)),
        person_columns=_person_columns(facts),
        show_site=any(p.site for p in facts.people),
        show_missing=any(p.missing for p in facts.people),
        hidden=page.hidden,
        has_model=page.has_model,
        people_absent=page.people_absent,
        left_figures=page.left_figures,
        filled=sum(bool(i.answer) for i in facts.tripod),
        number=number,
        kind=kind,
        style=safe(asset("style.css")),
        scripts=[safe(s) for s in scripts],
        script_hashes=safe(" ".join(_hash(s) for s in scripts)),
        data=safe(_json(_data(page))),
        made_with=made_with(),
    )
    # A lone surrogate, which UTF-8 does not have, would stop the whole page.
    return text.encode("utf-8", errors="replace").decode("utf-8")


def template(name: str, **filters: Callable[[str], str]) -> Any:
    """Return a template; filters get a text and return HTML."""
    jinja = import_extra("jinja2", "report", "A report")
    environment = jinja.Environment(
        autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    safe = import_extra("markupsafe", "report", "A report").Markup
    for key, made in filters.items():
        environment.filters[key] = lambda text, made=made: safe(made(str(text)))
    return environment.from_string(asset(name))


def _names(codes: list[str]) -> str:
    """Return the names of checks, as a list in a sentence."""
    names = (EXPLANATIONS[code].name for code in codes)
    return ", ".join(name[0].lower() + name[1:] for name in names)


def _person_columns(facts: Facts) -> list[tuple[str, bool]]:
    columns = [
        ("Person", False),
        ("Observed", False),
        ("Predicted", False),
        (facts.value_name, True),
    ]
    if any(p.site for p in facts.people):
        columns.append(("Site", False))
    if any(p.missing for p in facts.people):
        columns.append(("Missing views", False))
    return columns


def _data(page: Page) -> dict[str, Any]:
    facts = page.facts
    made: dict[str, Any] = {
        "people": [_person(p, facts) for p in facts.people],
        "personHeads": ["Model", *(["Class"] if facts.classes else []), facts.value_name],
        "termsCaption": "What each feature adds"
        + (" to the log odds" if facts.classes else " to the prediction")
        + (f" of {short(facts.classes[-1], 40)}" if facts.classes else ""),
    }
    if page.calculator.card is not None:
        made["card"] = page.calculator.card
    return made


def _person(person: Person, facts: Facts) -> dict[str, Any]:
    shown = [("Observed", person.truth or "not known"), ("Predicted", person.predicted)]
    shown.append((facts.value_name, number(person.value, 3)))
    if person.site:
        shown.append(("Site", person.site))
    shown.append(("Missing views", ", ".join(person.missing) or "none"))
    if person.right is not None:
        shown.append(("Prediction", "right" if person.right else "wrong"))
    return {
        "name": person.name,
        "facts": shown,
        "models": [
            [m, *([label] if facts.classes else []), number(v, 3)] for m, label, v in person.models
        ],
        "terms": [[f"{v}: {f}" if v else f, value] for v, f, value in person.terms],
    }


def _json(value: Any) -> str:
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
