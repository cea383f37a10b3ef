"""SavedModel: a fitted model with the description of its input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from baldur.core.state import (
    Boolean,
    ByName,
    ByView,
    Each,
    Form,
    Integer,
    Labels,
    Numbers,
    Plain,
    Sizes,
    Text,
    need,
    read_fields,
    stored,
)
from baldur.exceptions import InputError
from baldur.saving.estimator_state import FittedEstimator, kind_of


@dataclass(frozen=True)
class _LabelList(Form):
    """A list of labels, of which those of one type are checked as an array is."""

    def _read(self, value: Any, sizes: Sizes) -> Any:
        labels = Each(Plain()).read(value, sizes)
        for kind in (str, int, float, bool):
            alike = [label for label in labels if type(label) is kind]
            Labels().read(np.array(alike, dtype=object if kind is str else kind), sizes)
        simple = all(type(label) in (str, int, float, bool) for label in labels)
        need(simple, "expected labels that are text, numbers or truth values")
        return labels


_DETAILS: dict[str, Form] = {
    **dict.fromkeys(("model", "task", "outcome", "title"), Text(optional=True)),
    "samples": Integer(1, optional=True),
    "setting": ByName(Plain(), optional=True),
    # Which columns of the samples table are categories, see `learn_coding`
    "included": ByName(ByName(Boolean()), optional=True),
}
"""What the package itself uses of what a study says about a model."""


@dataclass(frozen=True)
class _Details(Form):
    """What a study says about a model; there may be more entries than the package uses."""

    def _read(self, value: Any, sizes: Sizes) -> Any:
        details = ByName(Plain()).read(value, sizes)
        known = {name: entry for name, entry in details.items() if name in _DETAILS}
        read_fields(known, {name: _DETAILS[name] for name in known}, sizes)
        return details


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

    kind: ClassVar[str] = "saved model"

    estimator: Any = stored(FittedEstimator())
    classes: list[Any] = stored(_LabelList(), default_factory=list)
    details: dict[str, Any] = stored(_Details(), default_factory=dict)
    training: dict[str, dict[str, np.ndarray]] = stored(
        ByView(ByName(Numbers("D", "number", finite=False, largest=np.inf)), some=True),
        default_factory=dict,
    )

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

    def check_state(self, sizes: Sizes) -> None:
        """Refuse other labels than the estimator has."""
        expected = len(getattr(self.estimator, "classes_", self.classes))
        fits = not self.classes or len(self.classes) == expected
        need(fits, f"expected {expected} labels", "classes")
