"""FittedModel: what a report takes from a fitted model, with or without people to show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from baldur.exceptions import InputError
from baldur.report.formatting import short
from baldur.views.validate import counted


def inside(estimator: Any) -> Any:
    """Return the estimator that reports its features, inside any wrappers; None where none does."""
    for _ in range(20):  # wrappers of wrappers; a circle would be somebody's mistake
        if hasattr(estimator, "selected_features_") and hasattr(estimator, "coef_scaled_"):
            return estimator
        if hasattr(estimator, "estimator_"):
            estimator = estimator.estimator_
        elif hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        else:
            return None
    return None


def _without_references(widths: Mapping[str, int], estimator: Any) -> dict[str, int]:
    """Return the number of features of each view without the reference levels of categories."""
    preparation = getattr(inside(estimator) or estimator, "preparation_", None)
    references = {} if preparation is None else preparation.n_reference_levels
    return {view: width - references.get(view, 0) for view, width in widths.items()}


@dataclass
class FittedModel:
    """A fitted model, with the people that a report shows."""

    estimator: Any  # As it predicts
    classes: list[str] = field(default_factory=list)  # The positive one last; empty for numbers
    details: dict[str, Any] = field(default_factory=dict)
    n_features: dict[str, int] = field(default_factory=dict)
    X: Any = None
    y: Any = None

    @classmethod
    def of(cls, estimator: Any, X: Any = None, y: Any = None) -> FittedModel:
        """Build it from a saved model, or from a fitted estimator and, if given, people to show."""
        from baldur.saving import SavedModel

        if isinstance(estimator, SavedModel):
            return cls(
                estimator.estimator,
                [str(c) for c in estimator.classes],
                dict(estimator.details),
                _without_references(estimator.n_features, estimator.estimator),
            )
        labels = getattr(estimator, "classes_", None)
        if labels is not None and isinstance(y, pd.DataFrame) and y.shape[1] == len(labels) > 1:
            labels = y.columns  # of a label matrix, which the estimator numbers
        inner = inside(estimator)
        widths = {} if inner is None else {v: len(m) for v, m in inner.selected_features_.items()}
        widths = _without_references(widths, estimator)
        return cls(
            estimator,
            [] if labels is None else [str(c) for c in labels],
            n_features=widths,
            X=X,
            y=y,
        )

    @property
    def inner(self) -> Any:
        """The estimator that reports its features, or None."""
        return inside(self.estimator)

    def lacks(self, view: str, names: Iterable[str]) -> list[str]:
        """Return those of some features of a view that the model was not fitted with.

        Empty where the names of its features are not known.
        """
        preparation = getattr(self.inner or self.estimator, "preparation_", None)
        known = getattr(preparation, "feature_names", {}).get(view)
        if known is None:
            return []
        have = set(map(str, known))
        return [name for name in names if name not in have]

    @property
    def name(self) -> str:
        """Name of the model, or else of its class."""
        return str(self.details.get("model") or type(self.inner or self.estimator).__name__)

    def is_called(self, name: str | None) -> bool:
        """Whether this is the model of that name in a comparison; without a name it is."""
        if name is None or self.details.get("model"):
            return name is None or self.details["model"] == name
        # A model that was not made by a study has only its class: "BALDUR ..." is a Baldur...
        return type(self.inner or self.estimator).__name__.lower().startswith(name.lower()[:6])

    def summary(self) -> pd.DataFrame:
        """Return one row per selected feature and output, empty where the model reports none."""
        return (
            pd.DataFrame() if self.inner is None else self.named(pd.DataFrame(self.inner.summary()))
        )

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table whose column output has the names of classes, not their numbers.

        A model of a study was fitted on the positions of the classes in their list.
        """
        labels = getattr(self.inner, "classes_", None)
        if "output" not in table or labels is None or len(labels) != len(self.classes):
            return table
        names = dict(zip(map(str, labels), self.classes, strict=True))
        return table.assign(output=[names.get(str(o), str(o)) for o in table["output"]])

    def path(self) -> pd.DataFrame:
        """Return the submodel path, empty where there is none."""
        path = getattr(self.inner, "sparsity_path_", None)
        return pd.DataFrame() if path is None else pd.DataFrame(path)


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


def calculator_of(model: FittedModel | None) -> Calculator:
    """Return the calculator of a fitted model, or why the page cannot have one."""
    if model is None:
        return Calculator(_HOW)
    if model.inner is None:
        return Calculator(f"{short(model.name)} has none: its weights cannot be printed.")
    from baldur.saving.card import make_card, scorer

    try:
        model_card = make_card(model.estimator, classes=model.classes or None)
    except InputError as error:
        return Calculator(str(error))
    if model_card.model is None:
        return Calculator(model_card.reason)
    covariates = [c["name"] for c in model_card.model["covariates"]]
    if model_card.model["sites"]:
        covariates = [model_card.model["sites"]["by"], *covariates]
    if covariates:
        listed = ", ".join(short(name) for name in dict.fromkeys(covariates))
        return Calculator(
            f"This page has no calculator, because the model also reads {listed} of every person "
            "(sites harmonised or covariates regressed out). Predict from a file with baldur "
            "predict."
        )
    features = model_card.model["features"]
    if not features:
        return Calculator(
            "No feature was selected: everybody gets the same prediction, the base rate."
        )
    if len(features) > MOST_INPUTS:
        return Calculator(
            f"The model uses {counted(len(features), 'feature')}, too many to type in. Predict "
            "from a file with baldur predict."
        )
    ranges = {(w["view"], w["feature"]): w["training_range"] for w in model_card.about["weights"]}
    card = {
        "model": model_card.model,
        "ranges": [ranges.get((f["view"], f["name"])) for f in features],
    }
    if len(json.dumps(card)) > LARGEST:
        return Calculator(
            "The model has too many numbers for a page. Predict from a file with baldur predict."
        )
    about = (
        f"{counted(len(features), 'input')} of {short(model.name)} as fitted on all training "
        "people, computed in this page from the numbers of the model card."
    )
    return Calculator(about, card, scorer("js").decode())
