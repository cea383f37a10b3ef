"""Ensemble members that include the features with the strongest marginal association.

Where one latent cause changes many correlated features, as a disease does with the voxels of a
region, each of them is associated with the outcome on its own, while given the others hardly any of
them adds something. A prior that looks for features which add something then prefers chance
associations elsewhere. Averaging the strongest marginal associations is right there ("sure
independence screening", Fan and Lv, 2008; supervised principal components, Bair and others, 2006).

The features are chosen from the training rows of each fold. Held-out rows decide, by the stacking
weights, how much such a member counts.

The strongest associations are strong by chance too, so that variances learned from them are too
large. With z_d = x_d^T r, which has variance 1 without an association, they are multiplied by

    1 - E[mean of the K largest z^2 of D features without association] / (mean of z^2 of the chosen)

the share of the associations that chance does not explain. With independent features and no signal
it is close to 0, and the member predicts the base rate. Correlated features are strong or weak
together, so that the share varies more from sample to sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from baldur.inference.dense_members import Member, learn_variances, over_scales
from baldur.inference.design import ColumnDesign, GramDesign
from baldur.model.likelihood import Likelihood
from baldur.types import Array, IntArray

TOLERANCE = 0.1
"""Largest change of a view's prior variance, as a share of all views', that counts as converged:
the share that chance does not explain, by which variances are multiplied, is known no better."""
LEAST = 1e-3
"""Least share of a variance that is kept: what is left predicts the base rate, and variances of 0
would leave the posterior undefined."""


@dataclass(frozen=True)
class Associations:
    """Marginal associations of the candidate columns of each fold."""

    order: IntArray  # (F, L); columns by falling strength; those that pad come last
    squares: Array  # (F, L); z^2 in this order
    n_tests: int  # features times outputs that could have been chosen

    def beyond_chance(self, size: int) -> Array:
        """Return the share of the strongest associations that chance does not explain, (F,)."""
        ranks = np.arange(1, size + 1) - 0.5
        by_chance = float(chi2.isf(ranks / max(self.n_tests, size), 1).mean())
        found = self.squares[:, :size].mean(axis=1)
        return np.maximum(1.0 - by_chance / np.maximum(found, 1e-12), LEAST)


def marginal_associations(
    design: ColumnDesign, left: Array, absent: Array | None, n_features: int
) -> Associations:
    """Return the associations z_d = x_d^T r of all candidate columns.

    r has length 1 over the rows that have the view of the column; cells of other rows are 0. Of
    several outputs the largest absolute value counts.

    Shapes: left (F, C, n), absent (F, n, M).
    """
    present = np.ones((*left.shape[::2], design.n_views)) if absent is None else 1.0 - absent
    power = np.matmul(left**2, present)  # (F, C, M)
    z2 = np.square(np.matmul(left, design.X1[:, :, 1:])) / np.maximum(design.spread(power), 1e-12)
    z2 = z2.max(axis=1)
    z2[design.owner == design.n_views] = -1.0
    order = np.argsort(-z2, axis=1, kind="stable")
    return Associations(order, np.take_along_axis(z2, order, axis=1), n_features * left.shape[1])


def fit_screened(
    design: ColumnDesign,
    absent: Array | None,
    likelihood: Likelihood,
    found: Associations,
    size: int,
    *,
    smaller: Member | None = None,
    max_iter: int = 200,
) -> Member:
    """Learn q(w) of the strongest columns, with one prior variance per view.

    The variances are not integrated over: their evidence would use the outcome twice, because it
    chose the columns.

    Shapes: absent (F, n, M).
    """
    chosen = found.order[:, :size]
    part = design.reordered(chosen)
    # Variances of views need no columns, only the Gram matrices of these.
    views = part if part.uses_features else GramDesign(part.grams, part.count, part.intercept_var)
    near = None
    if smaller is not None and smaller.variances is not None:
        q = smaller.points[0].q
        near = q, smaller.variances * q.design.scales()[:, None]
    q, variances, history, converged = learn_variances(
        views, absent, likelihood, max_iter=max_iter, tolerance=TOLERANCE, near=near
    )
    shrunk = found.beyond_chance(size)[:, None, None] * variances
    points, weights = over_scales(q.with_variances(part.spread(shrunk), part), most=0)
    points = [replace(p, selects=True, columns=chosen[p.folds]) for p in points]
    return Member(points, weights, history, converged, variances)
