"""SavedModel: a fitted model with what is needed to feed it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.views import MultiView

__all__ = ["SavedModel", "layers", "preparation_of"]


@dataclass
class SavedModel:
    """A fitted model with what is needed to feed it.

    Attributes
    ----------
    estimator : estimator
        Fitted.
    features : dict of str to array of str, or None for a view with default names
        Names of every view's features, in order.
    n_features : dict of str to int
    classes : list
        Labels behind the codes the estimator predicts, the positive one last; empty for numbers.
    details : dict
        Anything else that JSON holds.
    training : dict of str to dict of str to ndarray
        Figures of every feature over the training rows, see `baldur.evaluate.drift`; may be empty.
    """

    estimator: Any
    features: dict[str, np.ndarray | None]
    n_features: dict[str, int]
    classes: list[Any] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    training: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    @classmethod
    def of(cls, estimator: Any, X: MultiView, **keywords: Any) -> SavedModel:
        """Build it from an estimator and the container it was fitted on."""
        named = {
            v: X.view(v).feature_names if X.view(v).names_given else None for v in X.view_names
        }
        return cls(estimator, named, dict(X.n_features), **keywords)

    @classmethod
    def alone(cls, estimator: Any) -> SavedModel:
        """Build it from a fitted estimator alone, which remembers its views."""
        preparation = preparation_of(estimator)
        if preparation is None:
            raise InputError(
                f"save: expected a fitted estimator of baldur, but got {type(estimator).__name__}. "
                "Call fit first; other estimators can be put behind baldur.evaluate.SideBySide."
            )
        classes = getattr(estimator, "classes_", None)
        return cls(
            estimator,
            dict(preparation.feature_names),
            dict(preparation.n_features_),
            [] if classes is None else np.asarray(classes).tolist(),
        )


def layers(estimator: Any) -> Iterator[Any]:
    """Yield an estimator and those inside it, from the outside in."""
    while estimator is not None:
        yield estimator
        estimator = vars(estimator).get("estimator_")


def preparation_of(estimator: Any) -> Preparation | None:
    """Return the outermost preparation of an estimator, or None where there is none."""
    for layer in layers(estimator):
        found = vars(layer).get("preparation_")
        if isinstance(found, Preparation):
            return found
    return None
