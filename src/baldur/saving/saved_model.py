"""SavedModel: a fitted model with the description of its input."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baldur.core.state import Fields, State, plain
from baldur.exceptions import InputError
from baldur.saving.estimator_state import estimator_state, kind_of, read_estimator


@dataclass
class SavedModel:
    """A fitted model with the description of its input.

    Attributes
    ----------
    estimator : estimator
        Fitted.
    classes : list
        Labels in the order of the estimator's own, which may be their places in this list; the
        positive one is last. Empty for numbers. Of a label matrix, the names of the outcomes.
    details : dict
        Anything else that JSON holds.
    training : dict of str to dict of str to ndarray
        Statistics of every feature over training rows, see `baldur.evaluation.validation`;
        may be empty.

    Examples
    --------
    >>> from baldur.paper import PaperClassifier
    >>> from baldur.datasets import make_multiview
    >>> from baldur.saving import SavedModel
    >>> sim = make_multiview(50, {"a": 4}, random_state=0)
    >>> fitted = PaperClassifier(sparsity=0.5).fit(sim.data, sim.target)
    >>> model = SavedModel(fitted, classes=["control", "patient"], details={"title": "Pilot"})
    >>> model.classes[-1], model.details["title"]
    ('patient', 'Pilot')
    """

    estimator: Any
    classes: list[Any] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    training: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    @property
    def outcomes(self) -> list[str]:
        """Names of the outcomes of a model of a label matrix; empty for a single outcome."""
        several = getattr(self.estimator, "_task", None) == "multilabel"
        return [str(name) for name in self.classes] if several else []

    @property
    def features(self) -> dict[str, np.ndarray | None]:
        """Names of the features of every view in order, None for a view without given names."""
        return dict(self.estimator.preparation_.feature_names)

    @property
    def n_features(self) -> dict[str, int]:
        """Number of features of every view."""
        return {name: int(n) for name, n in self.estimator.preparation_.n_features_.items()}

    @classmethod
    def alone(cls, estimator: Any) -> SavedModel:
        """Build a saved model from a fitted estimator without a study."""
        kind_of(estimator)
        if not hasattr(estimator, "preparation_"):
            raise InputError(f"save: {type(estimator).__name__} is not fitted. Call fit first.")
        classes = getattr(estimator, "classes_", None)
        return cls(estimator, [] if classes is None else np.asarray(classes).tolist())

    def to_state(self) -> State:
        """Return the state of the model and of the description of its input."""
        return {
            "kind": "saved model",
            "estimator": estimator_state(self.estimator),
            "classes": plain(self.classes, "the classes"),
            "details": plain(self.details, "the details"),
            "training": plain(self.training, "the figures of the training rows"),
        }

    @classmethod
    def from_state(cls, state: Any) -> SavedModel:
        """Build a saved model from its state; every part is validated."""
        with Fields(state, "saved model") as read:
            estimator = read.part("estimator", read_estimator)
            widths = estimator.preparation_.n_features_
            made = cls(
                estimator=estimator,
                classes=read.part("classes", _read_labels),
                details=read.part("details", _read_details),
                training=read.by_name(
                    "training",
                    list(widths),
                    lambda f, v: f.part(v, _read_figures, width=widths[v]),
                    some=True,
                ),
            )
            labels = getattr(made.estimator, "classes_", None)
            if labels is not None and made.classes:
                fits = len(labels) == len(made.classes)
                read.need(fits, f"expected {len(labels)} labels", "classes")
            return made


def _read_labels(state: Any) -> list[Any]:
    if type(state) is not list:
        raise InputError("expected a list of labels")
    # One array of each type of label, for the checks that arrays have.
    for kind in (str, int, float, bool):
        some = [label for label in state if type(label) is kind]
        if some:
            with Fields({"labels": np.array(some, dtype=object if kind is str else None)}) as read:
                read.labels("labels")
    if not all(type(label) in (str, int, float, bool) for label in state):
        raise InputError("expected labels that are text, numbers or truth values")
    return list(state)


def _read_details(state: Any) -> dict[str, Any]:
    """Return what the study said; entries that the package itself uses are validated."""
    if type(state) is not dict:
        raise InputError("expected a dictionary")
    read = Fields(state)
    for name in ("model", "task", "outcome", "title"):
        if read.has(name):
            read.text(name)
    if read.has("samples"):
        read.integer("samples", 1)
    if read.has("setting"):
        read.need(type(read.plain("setting")) is dict, "expected a dictionary", "setting")
    if read.has("included"):
        read.part("included", _read_coding)
    return state


def _read_coding(state: Any) -> None:
    """Validate which columns of the samples table are categories, see `CovariateCoding`."""
    with Fields(state) as read:
        read.part("categories", _read_truth_values)


def _read_truth_values(state: Any) -> None:
    with Fields(state) as read:
        for name in state:
            read.boolean(name)


def _read_figures(state: Any, width: int) -> dict[str, np.ndarray]:
    with Fields(state) as read:
        return {
            name: read.array(name, (width,), "number", finite=False, largest=np.inf)
            for name in state
        }
