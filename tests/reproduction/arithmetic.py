"""Whether precision and recall of a printed row fit its accuracies, as printed or exchanged.

Three statements about the mean specificity over folds follow from a row. Balanced accuracy is half
the sum of recall and specificity, for means over folds as well. Accuracy is their mean weighted by
the shares of the classes, which are assumed to be those of stratified folds: the number of people
of a class differs by at most one between folds. For means over folds this adds the covariance of
the share with recall minus specificity, which is at most the product of their standard deviations.
Precision and recall of a fold imply its specificity, but not so for means over folds, because
precision is a ratio: what they imply is bounded for any such folds that have the printed means and
standard deviations. Precision and recall fit if some mean specificity agrees with all three
statements, given how numbers are rounded. There is no tolerance to choose.

The paper does not say what it prints after the sign "±"; here it is the standard deviation over
folds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

READINGS = {
    (True, False): "as printed",
    (False, True): "exchanged",
    (True, True): "either way",
    (False, False): "neither way",
}
"""Whether the values as printed fit, and whether exchanged ones do, to a word for it."""

HALF = 0.005
"""Half a unit of the second decimal, to which the paper rounds."""
_TINY = 1e-6  # the least recall: without a true positive there is no precision
_GRID = 41  # values of the mean recall and of the share of positives that are tried, evenly spaced


def implied(precision: float, recall: float, positives: int, negatives: int) -> tuple[float, float]:
    """Return what precision and recall imply for one table of predictions.

    Shapes: returns (accuracy, balanced_accuracy).

    Examples
    --------
    >>> from reproduction.arithmetic import implied
    >>> [round(value, 2) for value in implied(0.82, 0.55, 119, 96)]
    [0.68, 0.7]
    """
    true_positives = recall * positives
    false_positives = true_positives * (1.0 / precision - 1.0)
    true_negatives = negatives - false_positives
    return (
        (true_positives + true_negatives) / (positives + negatives),
        0.5 * (recall + true_negatives / negatives),
    )


def positive_share(rows: Iterable[Any], positives: int, negatives: int) -> tuple[float, float]:
    """Return the least and the largest share of the positive class that a study may have had.

    The accuracy of a model that assigns everybody to the positive class is that share. For BioFIND
    such rows print .57, where the numbers of people in the text give .553.

    Shapes: returns (low, high).
    """
    known = [positives / (positives + negatives)]
    for row in rows:
        if row.mean("recall") == 1.0 and row.mean("balanced_accuracy") == 0.5:
            known += [row.mean("accuracy") - HALF, row.mean("accuracy") + HALF]
    return min(known), max(known)


@dataclass(frozen=True)
class Fit:
    """How far precision and recall of a printed row are from fitting its accuracies."""

    as_printed: float
    exchanged: float
    without_balanced: float

    @property
    def reading(self) -> str:
        """Which way they fit, as one of `READINGS`."""
        return READINGS[self.as_printed == 0.0, self.exchanged == 0.0]

    @property
    def off_by(self) -> float:
        """How far they are from fitting either way."""
        return min(self.as_printed, self.exchanged)

    @property
    def contradicts(self) -> bool:
        """Whether they do not fit, whatever the order of the arguments was."""
        return self.off_by > 0.0 and self.without_balanced > 0.0


def fits_of(rows: Mapping[str, Any], positives: int, negatives: int, folds: int) -> dict[str, Fit]:
    """Return how precision and recall of all rows of a study fit.

    Examples
    --------
    >>> from reproduction.arithmetic import fits_of
    >>> from baldur.reproduction.printed import PRINTED
    >>> fits_of(PRINTED["biofind"], 119, 96, 5)["BALDUR"].reading
    'exchanged'
    """
    share = positive_share(rows.values(), positives, negatives)
    return {name: fit_of(row, share, folds, positives + negatives) for name, row in rows.items()}


def fit_of(row: Any, share: tuple[float, float], folds: int, people: int) -> Fit:
    """Return how precision and recall of a printed row fit its accuracies.

    Shapes: share (low, high).
    """
    precision, recall = row.cells["precision"], row.cells["recall"]
    balanced, accuracy = row.cells["balanced_accuracy"], row.mean("accuracy")
    if precision is None or recall is None or balanced is None:
        raise ValueError("precision, recall or balanced accuracy of the row is not printed")
    rest = share, folds, people
    return Fit(
        as_printed=mismatch(precision, recall, accuracy, balanced, *rest),
        exchanged=mismatch(recall, precision, accuracy, balanced, *rest),
        without_balanced=mismatch(recall, precision, accuracy, None, *rest),
    )


def mismatch(
    precision: tuple[float, float],
    recall: tuple[float, float],
    accuracy: float,
    balanced: tuple[float, float] | None,
    share: tuple[float, float],
    folds: int,
    people: int,
) -> float:
    """Return how far figures are from being those of some folds, as they are rounded.

    Shapes: precision, recall (mean, s.d.), balanced (mean, s.d.), share (low, high).
    """
    mean_recall = np.linspace(max(recall[0] - HALF, _TINY), min(recall[0] + HALF, 1.0), _GRID)[
        :, None
    ]
    positive = np.linspace(*share, _GRID)[None, :]
    least, most, inverse_sd = _inverse(precision, folds)
    # Mean of recall / precision: the product of means and a covariance, which is at most the
    # product of standard deviations.
    covariance = (recall[1] + HALF) * inverse_sd
    # Folds that differ by a person of each class have shares that differ by at most one over the
    # size of the smallest fold; the s.d. of shares is at most half of that.
    apart = 1.0 / (people / folds - 1.0)
    most_odds, least_odds = _odds(positive + apart), _odds(positive - apart)
    # Recall minus specificity is twice the difference of recall and balanced accuracy. The s.d. of
    # a specificity is at most one half.
    spread = recall[1] + HALF + 0.5
    if balanced is not None:
        spread = min(spread, 2.0 * (recall[1] + balanced[1] + 2.0 * HALF))
    weighting = 0.5 * apart * spread
    # The least and the largest mean specificity: of any fold, and by each of the statements.
    least_specificity: list[float | np.ndarray] = [
        0.0,
        1.0 - most_odds * (mean_recall * (most - 1.0) + covariance),
        (accuracy - HALF - weighting - positive * mean_recall) / (1.0 - positive),
    ]
    most_specificity: list[float | np.ndarray] = [
        1.0,
        1.0 - least_odds * np.maximum(mean_recall * (least - 1.0) - covariance, 0.0),
        (accuracy + HALF + weighting - positive * mean_recall) / (1.0 - positive),
    ]
    if balanced is not None:
        least_specificity.append(2.0 * (balanced[0] - HALF) - mean_recall)
        most_specificity.append(2.0 * (balanced[0] + HALF) - mean_recall)
    low = np.maximum.reduce(np.broadcast_arrays(*least_specificity))
    high = np.minimum.reduce(np.broadcast_arrays(*most_specificity))
    return float(max(0.0, (low - high).min()))


def _odds(share: np.ndarray) -> np.ndarray:
    share = np.clip(share, 0.0, 1.0 - _TINY)
    return share / (1.0 - share)


def _inverse(cell: tuple[float, float], folds: int) -> tuple[float, float, float]:
    """Return bounds of the mean of 1 / x over folds, and of its s.d., from mean and s.d. of x.

    Of all sets with the same mean and s.d., the mean of 1 / x is largest for the one with a single
    small value and equal others, and smallest for the one with a single large value.
    """
    mean, sd = cell
    apart = np.sqrt(folds - 1.0)
    # The s.d. of a set of folds is smaller than that of a sample by this factor; which one is
    # printed is not known.
    least_sd = max(sd - HALF, 0.0) * np.sqrt((folds - 1.0) / folds)
    most_sd = sd + HALF
    centre = min(mean + HALF, 1.0)
    large = _one_apart(centre + least_sd * apart, centre - least_sd / apart, folds)
    centre = max(mean - HALF, 0.0)
    if centre - most_sd * apart <= 0.0:
        return float(large.mean()), np.inf, np.inf
    small = _one_apart(centre - most_sd * apart, centre + most_sd / apart, folds)
    return float(large.mean()), float(small.mean()), float(small.std())


def _one_apart(one: float, others: float, folds: int) -> np.ndarray:
    """Return 1 / x for folds of which one differs from the others."""
    return 1.0 / np.array([one] + [others] * (folds - 1))
