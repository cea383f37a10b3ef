"""Local linear regression of the outcome on the prediction, for every resample at once.

At each point the nearest share of people (the span) is fitted by a line with tricube weights, as
lowess does without its robust steps, which do not suit a binary outcome. Neighbourhoods are those
of the sample; a resample changes how often each neighbour counts. A curve of all resamples is then
five matrix products.
"""

from __future__ import annotations

import numpy as np

SPAN = 0.75
"""Share of people in a neighbourhood; the customary value for calibration curves."""

# Curves for sums over people are computed at no more points than this, and read between them.
_MOST_POINTS = 200


class Smoother:
    """Local linear regression on fixed values of the predictor.

    Shapes: x (n,), grid (g,).
    """

    def __init__(self, x: np.ndarray, grid: np.ndarray | None = None, span: float = SPAN) -> None:
        if grid is None:
            grid = np.unique(x)
            if len(grid) > _MOST_POINTS:
                grid = np.unique(np.quantile(x, np.linspace(0, 1, _MOST_POINTS)))
        self.x, self.grid = x, grid
        near = min(len(x), max(2, int(span * len(x) + 1e-10)))
        self.offsets = x[None, :] - grid[:, None]
        distance = np.abs(self.offsets)
        radius = np.partition(distance, near - 1, axis=1)[:, near - 1 : near]
        # Where so many people have one prediction that the radius is zero, they alone count.
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = np.where(radius > 0, distance / radius, np.where(distance > 0, 1.0, 0.0))
        self.kernel = (1 - np.minimum(scaled, 1.0) ** 3) ** 3
        # Between two predictions that all people share, everyone near lies at the very edge.
        empty = self.kernel.sum(axis=1) == 0
        self.kernel[empty] = distance[empty] <= radius[empty]
        self._first = self.kernel * self.offsets
        self._second = self._first * self.offsets

    @property
    def neighbours(self) -> np.ndarray:
        """Effective number of people behind each point of the grid, distant ones weighted less."""
        return self.kernel.sum(axis=1) ** 2 / (self.kernel**2).sum(axis=1)

    def curve(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the curve on the grid for every line of weights.

        Shapes: y (n,), weights (k, n); returns (k, g).
        """
        s0, s1, s2 = (weights @ m.T for m in (self.kernel, self._first, self._second))
        t0, t1 = (weights @ (m * y).T for m in (self.kernel, self._first))
        with np.errstate(divide="ignore", invalid="ignore"):
            determinant = s0 * s2 - s1**2
            line = (s2 * t0 - s1 * t1) / determinant
            # Neighbours with one prediction have a mean but no slope.
            flat = determinant <= 1e-10 * s0 * s2
            return np.where(s0 > 0, np.where(flat, t0 / s0, line), np.nan)

    def at_people(self, curve: np.ndarray) -> np.ndarray:
        """Return curves (k, g) read at every person's prediction, as (k, n)."""
        if len(self.grid) == 1:
            return np.repeat(curve, len(self.x), axis=1)
        right = np.clip(np.searchsorted(self.grid, self.x), 1, len(self.grid) - 1)
        left = right - 1
        share = (self.x - self.grid[left]) / (self.grid[right] - self.grid[left])
        return curve[:, left] * (1 - share) + curve[:, right] * share
