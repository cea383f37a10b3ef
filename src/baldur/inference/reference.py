"""The reference: every member fitted on the same rows, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Columns, Features, Rows
from baldur.inference.gaussian import Gaussian
from baldur.inference.inclusion import fit_inclusion
from baldur.inference.members import Member, fit_by_view, fit_pooled, follow, following_length
from baldur.inference.predictive import Moments, mixture_moments, pooled
from baldur.inference.stack import Stack, attenuation
from baldur.model.likelihood import Likelihood, Noise

Array = NDArray[np.float64]

MEMBERS = ("spike_slab", "spike_slab_wide", "per_view", "pooled")
"""Members of the ensemble; see `members_for` for which of them are fitted."""

NEGLIGIBLE = 0.01
"""Gaussians that count for less than this in every output are left out of the mixture: together
they count for little, and each costs as much as the others."""


@dataclass
class Candidates:
    """Columns that the spike-and-slab members look at, and all features for the others.

    Attributes
    ----------
    gathered : Columns on all rows, the candidates of this fit and of others
    everything : Features, all features on all rows
    n_features : (M,) features per view, candidates or not
    absent : (N, M) array, 1 where a row lacks a view
    groups : (L,) number of each candidate, shared by those that are kept or dropped together, or
        None where every one stands alone
    at : (L,) places of the candidates among the gathered columns; None where they are all of them
    """

    gathered: Columns
    everything: Features
    n_features: Array
    absent: Array
    groups: NDArray[np.intp] | None = None
    at: NDArray[np.intp] | None = None

    @property
    def columns(self) -> Columns:
        """The candidates on all rows; made when asked for, as there may be many fits."""
        return self.gathered if self.at is None else self.gathered.only(self.at)

    @property
    def owner(self) -> NDArray[np.intp]:
        """View of each candidate, (L,)."""
        return self.gathered.owner if self.at is None else self.gathered.owner[self.at]

    def cells(self, rows: Rows, chosen: NDArray[np.intp] | None = None) -> Array:
        """Return cells of some rows and candidates, all by default."""
        at = np.arange(self.gathered.X.shape[1]) if self.at is None else self.at
        return self.gathered.X[np.ix_(rows, at if chosen is None else at[chosen])]


@dataclass
class Reference:
    """Members fitted on some rows.

    Attributes
    ----------
    rows : training rows
    data : Candidates
    likelihood : Likelihood of these rows
    members : dict of str to Member, without the base rate
    level, level_noise : base rate, (C,), and its q(psi)
    """

    rows: Rows
    data: Candidates
    likelihood: Likelihood
    members: dict[str, Member]
    level: Array
    level_noise: Noise

    def mixture(self, stack: Stack) -> tuple[list[Gaussian], Array]:
        """Return the Gaussians that count, and their weights (J, C)."""
        points, weights = self.mixtures(stack)
        return points, weights[0]

    def mixtures(self, *stacks: Stack) -> tuple[list[Gaussian], list[Array]]:
        """Return the Gaussians that count in any of the stacks, and their weights in each."""
        members = list(self.members.values())
        points = [q for member in members for q in member.points]
        found = []
        for stack in stacks:
            pairs = zip(stack.shares, members, strict=True)
            weights = np.concatenate([share * member.weights for share, member in pairs])
            most = weights.max(axis=1)
            weights[most < min(NEGLIGIBLE, most.max())] = 0.0
            found.append(weights / weights.sum(axis=0))
        used = np.flatnonzero(sum(weights.any(axis=1) for weights in found))
        return [points[j] for j in used], [weights[used] for weights in found]

    def at_first(self) -> Stack:
        """Return the stack before held-out rows have spoken: by what each member stands behind.

        Orders of views and features are taken from it. They then depend on the data alone, and not
        on how rows fell into folds; between features that nearly stand for each other a breath of
        the shares decides.
        """
        moments = [
            mixture_moments([q.moments() for q in member.points], member.weights)
            for member in self.members.values()
        ]
        variances = np.stack([var for _, var in moments], axis=1)
        trust = attenuation(variances, logistic=self.level_noise is None)
        return Stack(trust / trust.sum(), 1.0)

    def base_moments(self, n: int) -> tuple[Array, Array]:
        """Return the moments of a model without features."""
        mean = np.tile(self.level, (n, 1))
        return mean, np.full_like(mean, 1e-12) + noise_variance(self.level_noise)

    def moments(self, points: list[Gaussian], new: Rows) -> Moments:
        """Return moments of rows `new` under each Gaussian."""
        absent = self.data.absent[new]
        cells: dict[bool, Any] = {}
        out = []
        for q in points:
            single = self.has_own_variances(q)
            if single not in cells:
                of_all = self.data.everything
                cells[single] = self.data.cells(new) if single else of_all.new_rows(self.rows, new)
            mean, var = q.features.predict(q.sides, q.s, cells[single])
            if absent.any():
                var = var + absent @ q.lacking()
            out.append((mean, var + noise_variance(q.noise)))
        return out

    def has_own_variances(self, q: Gaussian) -> bool:
        """Whether a Gaussian is one of the candidates, and not of all features."""
        return isinstance(q.features, Columns) and q.s.shape[1] == len(self.data.owner)

    def pooled(self, moments: Moments, weights: Array, stack: Stack) -> tuple[Array, Array]:
        """Return the stack's moments from those under the Gaussians of its mixture."""
        return pooled(moments, weights, self.level, stack.slope, stack.slope_var)

    def parts(self, points: list[Gaussian], weights: Array) -> Array:
        """Return each view's part of the members' mean linear predictor, (M, N, C)."""
        return np.asarray(
            sum(w * q.features.parts(q.sides, q.s) for w, q in zip(weights, points, strict=True))
        )

    def restricted(self, points: list[Gaussian], views: NDArray[np.bool_]) -> list[Gaussian]:
        """Return the Gaussians without some views: their variances as learned, sites moved.

        By one step, which gains nearly all there is to gain.
        """
        if views.all():
            return points
        made = []
        for q in points:
            smaller = q.with_variances(q.s * q.features.spread(views[None].astype(float)))
            for _ in range(2 if q.absent.any() else 1):
                smaller.refresh()
                smaller.refresh_extra()
                follow(smaller, following_length(0))
            smaller.refresh()
            made.append(smaller)
        return made


def noise_variance(noise: Noise) -> Array | float:
    """Return the variance of the noise of each output, 0 for logistic outputs."""
    return 0.0 if noise is None else 1.0 / noise.mean


def members_for(chosen: Sequence[str], n_views: int) -> list[str]:
    """Return the names of the members to fit, in the order of `MEMBERS`.

    With a single view "per_view" is the same posterior as "pooled", and only one of them is fitted.
    """
    names = [name for name in MEMBERS if name in chosen]
    if n_views == 1 and "pooled" in names:
        names = [name for name in names if name != "per_view"]
    return names


def fit_reference(
    data: Candidates,
    rows: Rows,
    likelihood: Likelihood,
    max_iter: int = 200,
    chosen: Sequence[str] = MEMBERS,
) -> Reference:
    """Fit the chosen members on some rows; `likelihood` is of these rows."""
    columns, everything = data.columns.within(rows), data.everything.within(rows)
    absent = data.absent[rows]
    members: dict[str, Member] = {}
    for name in members_for(chosen, everything.n_views):
        if name == "pooled":
            members[name] = fit_pooled(everything, absent, likelihood)
        elif name == "per_view":
            members[name] = fit_by_view(everything, absent, likelihood, max_iter=max_iter)
        else:
            members[name] = fit_inclusion(
                columns,
                absent,
                data.n_features,
                likelihood,
                by_mean=name == "spike_slab",
                start=members.get("spike_slab"),
                max_iter=max_iter,
            )
    level = likelihood.base_rate()
    mean = np.tile(level, (len(rows), 1))
    return Reference(
        rows,
        data,
        likelihood,
        members,
        level,
        likelihood.noise_at(mean, np.zeros_like(mean)),
    )
