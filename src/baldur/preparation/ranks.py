"""Normal scores of training rows: the knots and scores that `scale="rank"` learns."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from baldur.exceptions import InputError

MOST_KNOTS = 256
"""Training values that are stored per column. Up to this many samples every rank is
exact; beyond, values are chosen at even steps of the score, about .03 apart, and a cell is
interpolated between two of them."""

# Knots and scores of one view may take this much; they are a copy of its training rows.
_LIMIT_BYTES = 1 << 30

# A score this small is 0.
_ROUNDING = 1e-9


def check_knot_memory(name: str, n_rows: int, n_columns: int) -> None:
    """Refuse to rank a view whose knots would not fit in memory."""
    need = min(n_rows, MOST_KNOTS) * n_columns * 16
    if need > _LIMIT_BYTES:
        raise InputError(
            f"View {name!r}: scale='rank' keeps up to {MOST_KNOTS} training values of every "
            f"column, which needs {need / 2**30:.1f} GB for {n_columns:,} columns (limit "
            f"{_LIMIT_BYTES / 2**30:.0f} GB). Use scale='clipped', which is as robust and keeps "
            "two numbers per column."
        )


def normal_scores(
    cells: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return knots and scores of some columns.

    With F the share of training weight below a value plus half of the weight at it, its score is
    the standard normal quantile of F, standardised over the training cells.

    Shapes: cells (n_samples, k), weight (n_samples,); returns knots, scores (n_samples, 256).
    """
    n, k = cells.shape
    order = np.argsort(cells, axis=0, kind="stable")
    values = np.take_along_axis(cells, order, axis=0)
    known = ~np.isnan(values)
    mass = known.astype(np.float64) if weight is None else weight[order] * known
    after = np.cumsum(mass, axis=0)
    total = after[-1]
    # Equal values share one rank: from the mass before the first to that up to the last of them.
    new = np.ones((n, k), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    row = np.arange(n)[:, None]
    first = np.maximum.accumulate(np.where(new, row, 0), axis=0)
    final = np.ones((n, k), dtype=bool)
    final[:-1] = new[1:]
    last = np.minimum.accumulate(np.where(final, row, n - 1)[::-1], axis=0)[::-1]
    below = np.take_along_axis(after - mass, first, axis=0)
    upto = np.take_along_axis(after, last, axis=0)
    scores = np.where(known, ndtri(np.where(known, (below + upto) / (2 * total), 0.5)), 0.0)
    mean = (mass * scores).sum(axis=0) / total
    scores -= mean
    scores /= np.sqrt((mass * scores**2).sum(axis=0) / total)
    count = known.sum(axis=0)
    if n <= MOST_KNOTS:
        at = row
    else:
        even = np.linspace(-1.0, 1.0, MOST_KNOTS)[:, None] * ndtri(1 - 0.5 / count)
        at = np.rint(count * ndtr(even) - 0.5).astype(np.intp)
    # Missing cells sort last; a column with fewer values repeats its largest.
    at = np.minimum(at, count - 1)
    return np.take_along_axis(values, at, axis=0), np.take_along_axis(scores, at, axis=0)


def slope_at_median(knots: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each column's score is 0, and how fast the score rises there.

    Shapes: knots, scores (n_knots, k); returns centre, slope (k,).
    """
    below, above = scores < -_ROUNDING, scores > _ROUNDING
    low = np.maximum(len(knots) - 1 - np.argmax(below[::-1], axis=0), 0)
    high = np.argmax(above, axis=0)
    columns = np.arange(knots.shape[1])
    x0, x1, s0, s1 = (a[i, columns] for a in (knots, scores) for i in (low, high))
    with np.errstate(over="ignore"):  # in a column whose spread is too small to be used
        slope = (s1 - s0) / (x1 - x0)
    nearest = np.argmin(np.abs(scores), axis=0)
    at_zero = np.abs(scores[nearest, columns]) <= _ROUNDING
    return np.where(at_zero, knots[nearest, columns], x0 - s0 / slope), slope
