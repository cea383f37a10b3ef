"""States of estimators: settings, preparation, predictor, and fitted attributes by a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from baldur.estimators.classifier import BaldurClassifier
from baldur.estimators.regressor import BaldurRegressor
from baldur.exceptions import InputError
from baldur.inference.predictor import Predictor
from baldur.paper.estimators import PaperClassifier, PaperRegressor
from baldur.paper.predictor import MeanFieldPredictor
from baldur.preparation import Preparation
from baldur.saving.baseline_state import baseline_state, is_baseline, read_baseline
from baldur.saving.fitted_attributes import Outline, attributes_of, read_attribute
from baldur.saving.setting_state import read_settings, settings_state
from baldur.state import Fields, State, by_kind, made_by
from baldur.views.view import default_names


@dataclass(frozen=True)
class _Known:
    """The class of an estimator, and which tasks it has."""

    type: Any
    tasks: tuple[str, ...]


_CLASSES = ("binary", "multiclass", "multilabel")

ESTIMATORS: Mapping[str, _Known] = MappingProxyType(
    {
        "baldur classifier": _Known(BaldurClassifier, _CLASSES),
        "baldur regressor": _Known(BaldurRegressor, ("regression",)),
        "mean-field classifier": _Known(PaperClassifier, _CLASSES),
        "mean-field regressor": _Known(PaperRegressor, ("regression",)),
    }
)
"""Kinds of our own estimators; baselines are of the kind "baseline"."""


def kind_of(estimator: Any) -> str:
    """Return the kind under which an estimator is stored; an InputError if it has none."""
    found = type(estimator)
    for kind, known in ESTIMATORS.items():
        if found is known.type:
            return kind
    if is_baseline(estimator):
        return "baseline"
    raise InputError(
        f"{found.__name__} cannot be saved: model files have estimators of baldur only. Wrap "
        f"another estimator in baldur.evaluation.SideBySide."
    )


def estimator_state(estimator: Any) -> State:
    """Return the state of a fitted estimator."""
    kind = kind_of(estimator)
    if kind == "baseline":
        return baseline_state(estimator)
    task = getattr(estimator, "_task", "regression")
    own = vars(estimator)
    return {
        "kind": kind,
        "settings": settings_state(estimator),
        "task": task,
        "views": list(estimator.view_names_),
        "preparation": estimator.preparation_.to_state(),
        "predictor": estimator.predictor.to_state(),
        "fitted": {
            name: attribute.write(own[name])
            for name, attribute in attributes_of(kind, task).items()
            if name in own
        },
    }


def read_estimator(state: Any) -> Any:
    """Build a fitted estimator from its state; every part is validated."""
    makers: dict[str, Callable[..., Any]] = dict.fromkeys(ESTIMATORS, _read_own)
    makers["baseline"] = partial(read_baseline, read_preparation=Preparation.from_state)
    return by_kind(makers)(state)


def _read_own(state: Any) -> Any:
    kind = state["kind"]
    known = ESTIMATORS[kind]
    with Fields(state, kind) as read:
        task = read.choice("task", known.tasks)
        made = known.type(**read.part("settings", read_settings, kind=known.type))
        made_by(("settings",), lambda _: made._check_parameters(), None, {})
        made.view_names_ = read.names("views")
        made.preparation_ = read.part("preparation", Preparation.from_state)
        widths = {name: int(width) for name, width in made.preparation_.n_features_.items()}
        same = list(widths) == made.view_names_
        read.need(same, "expected the views of the preparation", "views")
        # Stored once, with the preparation.
        made.feature_names_ = {
            name: default_names(name, np.arange(widths[name]), widths[name]) if one is None else one
            for name, one in made.preparation_.feature_names.items()
        }
        outline = Outline(task, made.view_names_, widths)
        read.part("fitted", _read_fitted, made=made, kind=kind, outline=outline)
        read.part("predictor", _read_predictor, made=made, kind=kind, outline=outline)
        return made


def _read_fitted(state: Any, made: Any, kind: str, outline: Outline) -> None:
    with Fields(state) as read:
        table = attributes_of(kind, outline.task)
        # Outputs and factors are counted first; all other shapes refer to them.
        for name, attribute in table.items():
            if name in state or not attribute.optional:
                setattr(made, name, read_attribute(read, name, attribute, outline))
    if outline.task != "regression":
        made._task = outline.task
        outputs = 1 if outline.task == "binary" else len(made.classes_)
        read.need(outputs == outline.sizes["C"], "expected one output per class", "classes_")
        binary = outline.task != "binary" or len(made.classes_) == 2
        read.need(binary, "expected two classes", "classes_")


# -- preparation and predictor -------------------------------------------------------------------


def _read_predictor(state: Any, made: Any, kind: str, outline: Outline) -> None:
    mean_field = kind.startswith("mean-field")
    read: Any = MeanFieldPredictor.from_state if mean_field else Predictor.from_state
    made._predictor = read(
        state,
        # The predictor sees prepared columns; everything else is about those of the input.
        widths=list(made.preparation_.scaling_.n_features_.values()),
        outputs=outline.sizes["C"],
        factors=outline.sizes["K"],
    )
    if mean_field:
        pairs = zip(outline.widths, made._predictor.result.features, strict=True)
        for name, mask in pairs:
            selected = made.preparation_.expand(name, mask, False)
            if not np.array_equal(selected, made.selected_features_[name]):
                raise InputError("expected the features that were selected")
