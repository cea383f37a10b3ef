"""Probabilities out of margins: Platt scaling, learned inside the training rows.

A margin of a support vector machine orders people but does not say how likely anything is. The
training rows are cut into inner folds; a model fitted on the others gives margins of each; a
logistic curve is fitted to these margins and then read at the margins of the test rows, which are
those of the model fitted on all training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from baldur.evaluation.clinical.recalibrate import fit_line

__all__ = ["Platt", "needs_platt"]


def needs_platt(estimator: Any, n_classes: int) -> bool:
    """Whether an estimator has margins of two classes and no probabilities."""
    has_margin = hasattr(estimator, "decision_function")
    return n_classes == 2 and has_margin and not hasattr(estimator, "predict_proba")


@dataclass(frozen=True)
class Platt:
    """A rising logistic curve from margins to probabilities of the positive class.

    Attributes
    ----------
    intercept, slope : float
    """

    intercept: float
    slope: float

    @classmethod
    def learn(cls, margin: np.ndarray, positive: np.ndarray) -> Platt:
        """Fit the curve to held-out margins.

        The truth is drawn in from 0 and 1 as by one more person of each class, so that margins
        which separate the classes have a curve too. A curve that falls says that the margins
        order these rows by chance; it is replaced by the share of positive rows.

        Parameters
        ----------
        margin : array of shape (n,)
            Larger means the positive class.
        positive : bool array of shape (n,)
            Truth.

        Returns
        -------
        Platt

        References
        ----------
        J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
        likelihood methods", Advances in Large Margin Classifiers (1999).
        """
        up, down = int(positive.sum()), int((~positive).sum())
        target = np.where(positive, (up + 1) / (up + 2), 1 / (down + 2))
        intercept, slope = (
            float(v[0]) for v in fit_line(margin, target, np.ones((1, len(margin))))
        )
        if not (np.isfinite(intercept) and slope > 0):
            return cls(float(np.log((up + 1) / (down + 1))), 0.0)
        return cls(intercept, slope)

    def proba(self, margin: np.ndarray) -> np.ndarray:
        """Return probabilities of both classes, of shape (n, 2)."""
        p = expit(self.intercept + self.slope * margin)
        return np.column_stack([1 - p, p])
