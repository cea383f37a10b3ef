"""Permuted labels for a permutation test that respects groups."""

from __future__ import annotations

import numpy as np

__all__ = ["permutation_p_value", "permute_labels"]


def permute_labels(
    y: np.ndarray, groups: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Return the labels in another order, one that is as likely under no association.

    Parameters
    ----------
    y : array of shape (n_samples,)
        Labels.
    groups : array of shape (n_samples,), optional
        Rows that belong together. Where labels vary within groups they change places within
        them; where each group has one label, groups of the same size exchange theirs.
    rng : numpy Generator
        Source of chance.

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    out = y.copy()
    if groups is None:
        return rng.permutation(out)
    names, member = np.unique(groups, return_inverse=True)
    rows = [np.flatnonzero(member == g) for g in range(len(names))]
    if any(len(np.unique(y[r])) > 1 for r in rows):
        for r in rows:
            out[r] = rng.permutation(y[r])
        return out
    sizes = np.array([len(r) for r in rows])
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        for to, source in zip(alike, rng.permutation(alike), strict=True):
            out[rows[to]] = y[rows[source][0]]
    return out


def permutation_p_value(
    observed: float, permuted: np.ndarray, greater_is_better: bool = True
) -> float:
    """Return (1 + number of permuted scores at least as good) / (1 + number of them).

    Parameters
    ----------
    observed : float
        Score with the true labels.
    permuted : array of shape (B,)
        Scores with permuted labels.
    greater_is_better : bool, default=True
        Direction of the score.

    Returns
    -------
    float
        NaN where there is nothing to compare.
    """
    permuted = np.asarray(permuted, dtype=float)
    permuted = permuted[np.isfinite(permuted)]
    if not len(permuted) or not np.isfinite(observed):
        return float("nan")
    sign = 1.0 if greater_is_better else -1.0
    # Equal scores may differ in their last digits.
    as_good = np.sum(sign * permuted >= sign * observed - 1e-12)
    return float((1 + as_good) / (1 + len(permuted)))
