"""Ensemble members that include the features with the strongest marginal association.

Where one latent cause changes many correlated features, as a disease does with the voxels of a
region, each of them is associated with the outcome on its own, while given the others hardly any of
them adds something. A prior that looks for features which add something then prefers chance
associations elsewhere. Averaging the strongest marginal associations is right there ("sure
independence screening", Fan and Lv, 2008; supervised principal components, Bair and others, 2006).

The features are chosen from the training rows of each fold. Held-out rows decide, by the stacking
weights, how much such a member counts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baldur.inference.dense_members import Member, WarmStart, learn_variances, over_scales
from baldur.inference.design import ColumnDesign
from baldur.model.likelihood import Likelihood
from baldur.types import Array, IntArray


def marginal_order(design: ColumnDesign, left: Array) -> IntArray:
    """Return the columns of each fold by falling |x_d^T r|, (F, L); those that pad come last.

    `left` (F, C, n) has the outcomes minus their means, each divided by its length to give r. Of
    several outputs the largest value counts.
    """
    left = left / np.maximum(np.linalg.norm(left, axis=2, keepdims=True), 1e-12)
    score = np.abs(np.matmul(left, design.X1[:, :, 1:])).max(axis=1)
    score[design.owner == design.n_views] = -1.0
    return np.argsort(-score, axis=1, kind="stable")


def fit_screened(
    design: ColumnDesign,
    absent: Array | None,
    likelihood: Likelihood,
    chosen: IntArray,
    *,
    max_iter: int = 200,
    start: WarmStart | None = None,
) -> Member:
    """Learn q(w) of the strongest columns, with one prior variance per view.

    The scale of so few variances is known well enough for one point: the s.d. of the logarithm of
    a variance that K weights share is about (2/K)^1/2.

    Parameters
    ----------
    design : ColumnDesign
        Candidate columns.
    absent : (F, n, M) array of 0 and 1, or None
    likelihood : Likelihood
    chosen : (F, K) int array
        The strongest columns of each fold.
    max_iter : int
    start : WarmStart, optional

    Returns
    -------
    Member
        Its points are posteriors over the chosen columns.
    """
    part = design.reordered(chosen)
    q, variances, history, converged = learn_variances(
        part, absent, likelihood, max_iter=max_iter, start=start
    )
    points, weights = over_scales(q, most=0)
    points = [replace(p, selects=True, columns=chosen[p.folds]) for p in points]
    return Member(points, weights, history, converged, variances)
