"""Differences of a metric between one model and several others, with simultaneous intervals.

A model that is said to be the best of all is compared with every other one. Each of these
comparisons could go wrong by chance, so that their intervals are wide enough to hold all at once:
their half-widths are standard errors times the 95 % quantile, over resamples, of the largest
standardised deviation among all comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from baldur.evaluation.clinical import Draws

_ROUNDING = 1e-12
"""Differences and spreads of metrics below this size are rounding errors."""


@dataclass(frozen=True)
class Difference:
    """A difference of a metric from another model, with the ends of its simultaneous interval."""

    other: str
    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an estimate with an interval."""
        return all(map(math.isfinite, (self.value, self.low, self.high)))


def simultaneous_differences(model: Draws, others: Mapping[str, Draws]) -> list[Difference]:
    """Return what a model has more than each of some others, with simultaneous intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.evaluation.clinical import Bootstrap
    >>> from baldur.reproduction.differences import simultaneous_differences
    >>> rng = np.random.default_rng(0)
    >>> boot, scores = Bootstrap(np.arange(50)), rng.normal(size=(3, 50))
    >>> a, b, c = (boot.run(lambda w, x=x: w @ x / w.sum(axis=1)) for x in scores)
    >>> alone, = simultaneous_differences(a, {"b": b})
    >>> both = simultaneous_differences(a, {"b": b, "c": c})[0]
    >>> both.low < alone.low < alone.value < alone.high < both.high
    True
    """
    gaps = [model.minus(draws) for draws in others.values()]
    errors = np.array([float(gap.error()) for gap in gaps])
    constant = errors <= _ROUNDING
    largest = [
        np.abs(gap.resampled - gap.estimate) / error
        for gap, error in zip(gaps, errors, strict=True)
        if np.isfinite(error) and error > _ROUNDING
    ]
    width = float(student.ppf(0.5 + model.level / 2, max(model.units - 1, 1)))
    if largest:
        # Never narrower than the interval of one comparison alone.
        together = np.fmax.reduce(largest)
        width = max(width, float(np.nanquantile(together, model.level, method="higher")))
    values = np.array([float(gap.estimate) for gap in gaps])
    # The same difference in every resample: 0 for two models that agree (the same predictions, for
    # example), and otherwise two metrics at their borders, such as a recall of 1 and one of 0.
    half = np.where(constant & (np.abs(values) > _ROUNDING), np.nan, width * errors)
    return [
        Difference(name, float(value), float(value - h), float(value + h))
        for name, value, h in zip(others, values, half, strict=True)
    ]
