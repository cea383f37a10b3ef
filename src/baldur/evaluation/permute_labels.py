"""permute_labels: labels in another order, for permutation tests."""

from __future__ import annotations

import numpy as np


def permute_labels(
    y: np.ndarray, groups: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Return permuted labels, exchangeable under the hypothesis of no association.

    Shapes: y (n_samples,), groups (n_samples,).
    """
    out = y.copy()
    if groups is None:
        return rng.permutation(out)
    names, member = np.unique(groups, return_inverse=True)
    rows = [np.flatnonzero(member == g) for g in range(len(names))]
    if any((y[r] != y[r[0]]).any() for r in rows):
        for r in rows:
            out[r] = rng.permutation(y[r])
        return out
    sizes = np.array([len(r) for r in rows])
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        for to, source in zip(alike, rng.permutation(alike), strict=True):
            out[rows[to]] = y[rows[source][0]]
    return out
