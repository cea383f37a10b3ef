"""The calculator of a page: the numbers of the model card, and the scorer in JavaScript."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from baldur.exceptions import InputError
from baldur.report.fitted import FittedModel
from baldur.report.formatting import count, short
from baldur.saving.cards import make_card, scorer

LARGEST = 3_000_000
"""Largest number of characters of the model; more would make the page slow to open."""
MOST_INPUTS = 200
"""Largest number of inputs that is offered for typing."""

_HOW = (
    "To have it here, fit the model on all people (baldur fit study.toml --out model) and make the "
    "page with it (baldur report results --model model)."
)


@dataclass
class Calculator:
    """The calculator of a page, or the reason why the page has none."""

    about: str
    card: dict[str, Any] | None = None
    script: str = ""  # The scorer

    @property
    def ready(self) -> bool:
        """Whether the page has a calculator."""
        return self.card is not None


def calculator_of(model: FittedModel | None) -> Calculator:
    """Return the calculator of a fitted model."""
    if model is None:
        return Calculator(_HOW)
    if model.inner is None:
        return Calculator(f"{short(model.name)} has none: its weights cannot be printed.")
    try:
        made = make_card(model.estimator, classes=model.classes or None)
    except InputError as error:
        return Calculator(str(error))
    if made.model is None:
        return Calculator(made.reason)
    about_person = [c["name"] for c in made.model["covariates"]]
    if made.model["sites"]:
        about_person = [made.model["sites"]["by"], *about_person]
    if about_person:
        listed = ", ".join(short(name) for name in dict.fromkeys(about_person))
        return Calculator(
            f"This page has no calculator, because the model also reads {listed} of every person "
            "(sites harmonised or covariates regressed out). Predict from a file with baldur "
            "predict."
        )
    features = made.model["features"]
    if not features:
        return Calculator(
            "No feature was selected: everybody gets the same prediction, the base rate."
        )
    if len(features) > MOST_INPUTS:
        return Calculator(
            f"The model uses {count(len(features), 'feature')}, too many to type in. Predict from "
            "a file with baldur predict."
        )
    known = {(w["view"], w["feature"]): w["training_range"] for w in made.about["weights"]}
    card = {
        "model": made.model,
        "ranges": [known.get((f["view"], f["name"])) for f in features],
    }
    if len(json.dumps(card)) > LARGEST:
        return Calculator(
            "The model has too many numbers for a page. Predict from a file with baldur predict."
        )
    about = (
        f"{count(len(features), 'input')} of {short(model.name)} as fitted on all training people, "
        "computed in this page from the numbers of the model card."
    )
    return Calculator(about, card, scorer("js").decode())
