"""Bootstrap over people or groups: all resamples at once, the same ones for every model.

A resample is a line of weights, one per person: how often he or she was drawn. Groups (families,
repeated visits) are drawn whole, and a person's predictions in all repeats of a study come along.
Statistics are functions of these weights, so that nothing loops over people.

Intervals are normal intervals on a scale where the statistic is nearly normal (log odds for what
lies between 0 and 1, logarithms for what is positive), with the spread of the resamples as
standard error. They contain the estimate, unlike percentiles of statistics that resampling
biases (a calibration slope, an absolute distance), and they reach their nominal coverage in
cohorts of a hundred, where percentile intervals of a slope do not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri, stdtrit

from baldur.exceptions import InputError

# Cells of one block of weights: 8 MB, so that a few arrays of that size are no burden.
_BLOCK_CELLS = 1 << 20
# Counts up to this number (256 MB) are stored for the next statistic, more are drawn again.
_KEEP_CELLS = 1 << 27
# Fewer usable resamples than this share leave the interval open to which ones were usable.
_LEAST_USABLE = 0.9


def wilson(share: np.ndarray, count: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's interval of a share among `count` independent cases."""
    z = ndtri(0.5 + level / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        denominator = 1 + z**2 / count
        centre = (share + z**2 / (2 * count)) / denominator
        variance = share * (1 - share) / count + (z / (2 * count)) ** 2
        half_width = z * np.sqrt(variance) / denominator
    return np.clip(centre - half_width, 0.0, 1.0), np.clip(centre + half_width, 0.0, 1.0)


@dataclass(frozen=True)
class Draws:
    """A statistic on the sample and on every resample."""

    estimate: np.ndarray  # On the sample
    resampled: np.ndarray  # (resamples, ...); NaN where a resample does not define it
    units: int  # People or groups that were drawn from
    level: float  # Coverage of intervals
    scale: str = "identity"  # Where resamples are nearly normal; a key of `_scaled`
    count: float | np.ndarray | None = None  # People behind estimates of exactly 0 or 1

    def minus(self, other: Draws) -> Draws:
        """Return the difference of two statistics over the same resamples."""
        with np.errstate(invalid="ignore"):
            estimate = self.estimate - other.estimate
            return Draws(estimate, self.resampled - other.resampled, self.units, self.level)

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Draws:
        """Return the statistic with a function applied to it and to its resamples."""
        estimate, resampled = (np.asarray(function(v)) for v in (self.estimate, self.resampled))
        return Draws(estimate, resampled, self.units, self.level)

    def error(self) -> np.ndarray:
        """Return the standard error; infinite where resamples diverge, NaN where too few count."""
        return _standard_error(self.resampled, self.units)

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper ends of the interval."""
        forward, backward = self._scaled()
        with np.errstate(all="ignore"):
            centre = forward(self.estimate)
            error = _standard_error(forward(self.resampled), self.units)
            half_width = stdtrit(max(self.units - 1, 1), 0.5 + self.level / 2) * error
            low, high = backward(centre - half_width), backward(centre + half_width)
        if self.scale == "log_distance":  # The way back, 1 - exp(x), falls
            low, high = high, low
        if self.scale == "logit":
            low, high = self._at_the_border(low, high)
        if self.scale in ("log", "log_distance"):
            low, high = self._at_the_best(low, high, 0.0 if self.scale == "log" else 1.0)
        unknown = ~np.isfinite(self.estimate)
        return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)

    def columns(self, *names: str) -> dict[str, np.ndarray]:
        """Return the estimate and both ends of its interval as columns of a table."""
        values = (self.estimate, *self.interval())
        return dict(zip(names, map(np.atleast_1d, values), strict=True))

    def _scaled(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Return the function from the statistic to the scale of its interval, and the inverse."""
        if self.scale == "logit":
            # Resamples that hit a border lie at half the estimate's distance from it.
            floor = np.minimum(np.abs(self.estimate), np.abs(1 - self.estimate)) / 2
            floor = np.where((floor > 0) & np.isfinite(floor), floor, 0.5)
            return lambda x: logit(np.clip(x, floor, 1 - floor)), expit
        if self.scale == "log":
            floor = np.where(self.estimate > 0, self.estimate / 2, 1.0)
            return lambda x: np.log(np.maximum(x, floor)), np.exp
        if self.scale == "log_distance":
            return lambda x: np.log(1 - x), lambda x: 1 - np.exp(x)
        if self.scale == "atanh":
            return lambda x: np.arctanh(np.clip(x, -1 + 1e-12, 1 - 1e-12)), np.tanh
        return (lambda x: x), (lambda x: x)

    def _at_the_border(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Replace the ends by Wilson's where the estimate is exactly 0 or 1: no finite log odds."""
        at_border = (self.estimate <= 0) | (self.estimate >= 1)
        if not np.any(at_border):
            return low, high
        if self.count is None:
            ends = (np.asarray(np.nan), np.asarray(np.nan))
        else:
            # Groups are drawn whole: there are no more independent cases than groups.
            cases = np.minimum(np.asarray(self.count, dtype=float), self.units)
            ends = wilson(np.clip(self.estimate, 0.0, 1.0), cases, self.level)
        return np.where(at_border, ends[0], low), np.where(at_border, ends[1], high)

    def _at_the_best(
        self, low: np.ndarray, high: np.ndarray, best: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Use quantiles where the estimate is best (an error of 0, an R2 of 1): no logarithm."""
        is_best = self.estimate == best
        if not np.any(is_best):
            return low, high
        tail = (1 - self.level) / 2
        ends = [_quantile(self.resampled, q) for q in (tail, 1 - tail)]
        return np.where(is_best, ends[0], low), np.where(is_best, ends[1], high)


def _standard_error(resampled: np.ndarray, units: int) -> np.ndarray:
    """Return the standard error from the middle two thirds of resamples, robust to outliers.

    The quantiles of a normal distribution at one s.d. on each side lie two s.d. apart.
    """
    enough = (~np.isnan(resampled)).mean(axis=0) >= _LEAST_USABLE
    if not np.any(enough):
        return np.full(resampled.shape[1:], np.nan)
    low, high = (_quantile(resampled, q) for q in ndtr([-1.0, 1.0]))
    with np.errstate(invalid="ignore"):
        deviation = (high - low) / 2
    # The spread of resamples of m units is that of a sample of m - 1.
    return np.where(enough, deviation * np.sqrt(units / max(units - 1, 1)), np.nan)


def _quantile(values: np.ndarray, q: float) -> np.ndarray:
    """Return a quantile over resamples: one of the values, as a mean with infinity is infinite."""
    method: Any = "lower" if q < 0.5 else "higher"
    if not np.isnan(values).any():
        return np.asarray(np.quantile(values, q, axis=0, method=method))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        return np.asarray(np.nanquantile(values, q, axis=0, method=method))


class Bootstrap:
    """People or groups drawn with replacement.

    Shapes: units (n_people,).
    """

    def __init__(
        self,
        units: np.ndarray,
        resamples: int = 2000,
        level: float = 0.95,
        random_state: int = 0,
    ) -> None:
        if not isinstance(resamples, (int, np.integer)) or resamples < 100:
            raise InputError(
                f"resamples must be a whole number of at least 100, but got {resamples!r}."
            )
        if not 0.5 <= level < 1:
            raise InputError(f"level must lie between 0.5 and 1, but got {level!r}.")
        self.units = np.asarray(units, dtype=np.intp)
        self.n_units = int(self.units.max()) + 1 if len(self.units) else 0
        self.resamples = int(resamples)
        self.level = float(level)
        self.random_state = random_state
        self._counts: list[np.ndarray] | None = None

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield weights of shape (some resamples, n_people), in the order they are drawn."""
        ungrouped = np.array_equal(self.units, np.arange(self.n_units))
        for counts in self._draw() if self._counts is None else self._counts:
            weights = counts.astype(float)
            yield weights if ungrouped else weights[:, self.units]

    def _draw(self) -> Iterator[np.ndarray]:
        """Yield how often each unit is drawn, for a block of resamples at a time."""
        at_once = max(1, _BLOCK_CELLS // max(1, len(self.units)))
        rng = np.random.default_rng(self.random_state)
        probability = np.full(self.n_units, 1.0 / max(self.n_units, 1))
        # A unit is drawn as often as there are units at most.
        count_type = np.uint16 if self.n_units < 1 << 16 else np.uint32
        blocks = []
        for start in range(0, self.resamples, at_once):
            size = min(at_once, self.resamples - start)
            counts = rng.multinomial(self.n_units, probability, size=size).astype(count_type)
            if self.resamples * self.n_units <= _KEEP_CELLS:
                blocks.append(counts)
            yield counts
        self._counts = blocks or None

    def run(
        self,
        statistic: Callable[[np.ndarray], np.ndarray],
        units: int | None = None,
        scale: str = "identity",
        count: float | np.ndarray | None = None,
    ) -> Draws:
        """Compute a statistic on the sample and on every resample.

        Of a statistic of some people only, `units` are the number of these, or of their groups.

        Shapes: statistic takes weights (resamples, n_people) and returns (resamples, ...).
        """
        estimate = np.asarray(statistic(np.ones((1, len(self.units))))[0])
        resampled = np.concatenate([statistic(block) for block in self.blocks()])
        return Draws(estimate, resampled, units or self.n_units, self.level, scale, count)
