"""The features of all views through their Gram matrices, one prior variance per view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from baldur.inference.new_rows import Cross, Index, NewRows, Views, gather
from baldur.inference.weight_sums import ThroughGrams, WeightSums
from baldur.model.likelihood import Sites
from baldur.model.posterior import INTERCEPT_VAR, Side, on_samples, sample_side

Array = NDArray[np.float64]


class Grams:
    """Features through the Gram matrix X_m X_m^T of each view; one variance per view.

    Attributes
    ----------
    grams : list of M (N, N) arrays
    intercept_var : float
    """

    intercept_var = INTERCEPT_VAR

    def __init__(self, grams: Sequence[Array], intercept_var: float = INTERCEPT_VAR) -> None:
        self.grams = list(grams)
        self.n_views = len(self.grams)
        self.intercept_var = intercept_var

    def within(self, rows: NDArray[np.intp]) -> Grams:
        """Slice: a Gram of fewer rows is part of the Gram of all."""
        return Grams([gram[np.ix_(rows, rows)] for gram in self.grams], self.intercept_var)

    def scales(self) -> Array:
        """tr(X_m X_m^T)/N."""
        return np.array([np.trace(gram) / len(gram) for gram in self.grams])

    def spread(self, by_view: Array) -> Array:
        """One variance per view is all there is."""
        return by_view

    def predictor_variance(self, s: Array) -> Array:
        """Sum of s times the traces."""
        return np.asarray(s @ self.scales())

    def kernel(self, s: Array) -> Array:
        """Return sum_m s_m X_m X_m^T + s_0 from the variances (M,) of one output."""
        total = self.intercept_var + s[0] * self.grams[0]
        for variance, gram in zip(s[1:], self.grams[1:], strict=True):
            if variance > 0:
                total += variance * gram
        return np.asarray(total)

    def kernels(self, s: Array) -> list[Array]:
        """Return the kernel of every output."""
        return [self.kernel(row) for row in s]

    def posterior(self, s: Array, sites: Sites) -> list[Side]:
        """On the sample side."""
        h, j = sites
        return [sample_side(K, h[:, c], j[:, c]) for c, K in enumerate(self.kernels(s))]

    def strengths(self, sides: Sequence[Side], s: Array) -> tuple[Array, Array]:
        """s alpha^T G alpha and s tr(C^-1 G)."""
        power, used = np.zeros_like(s), np.zeros_like(s)
        for c, side in enumerate(sides):
            for m in np.flatnonzero(s[c]):
                gram = self.grams[m]
                power[c, m] = s[c, m] * (side.alpha @ gram @ side.alpha)
                used[c, m] = s[c, m] * np.vdot(on_samples(side).Ci, gram)
        return power, used

    def parts(self, sides: Sequence[Side], s: Array) -> Array:
        """s G alpha."""
        alphas = np.stack([side.alpha for side in sides], axis=1)
        return np.stack([(gram @ alphas) * s[:, m] for m, gram in enumerate(self.grams)])

    def part_variance(self, sides: Sequence[Side], s: Array) -> Array:
        """From the Gram of the view."""
        spread = [
            [
                on_samples(side).spread_under(row[m] * gram)
                for side, row in zip(sides, s, strict=True)
            ]
            for m, gram in enumerate(self.grams)
        ]
        return np.array(spread) / len(self.grams[0])

    def new_rows(self, rows: NDArray[np.intp], new: NDArray[np.intp]) -> Cross:
        """Slices of the Grams."""
        return Cross(
            [gram[np.ix_(new, rows)] for gram in self.grams],
            [np.diag(gram)[new] for gram in self.grams],
        )

    def of_new(self, new: NewRows, index: Index, train: Views) -> Cross:
        """Inner products with the training views."""
        return new.cross(train)

    def variances_of(self, s: Array, owner: NDArray[np.intp], at: NDArray[np.intp]) -> Array:
        """Those of their views."""
        return s[:, owner[at]]

    def add_weights(
        self,
        sums: WeightSums,
        w: Array,
        sides: Sequence[Side],
        s: Array,
        index: Index,
        train: Views,
    ) -> None:
        """From the training views, once for all posteriors of this kind."""
        sums.add_grams(ThroughGrams(w, sides, s, train))

    def entering(self, s: Array, index: Index, widths: Sequence[int]) -> Index:
        """All features of views with a variance."""
        live = np.atleast_1d(s.any(axis=0))
        return [np.arange(D if use else 0) for D, use in zip(widths, live, strict=True)]

    def training_columns(self, s: Array, own: Index, train: Views) -> tuple[Array, Array]:
        """Gathered from the training views, each with the variance of its view."""
        return gather(train, own), np.repeat(s, [len(columns) for columns in own], axis=1)

    def predict(self, sides: Sequence[Side], s: Array, new: Cross) -> tuple[Array, Array]:
        """From the kernel with the training rows."""
        moments = []
        for side, row in zip(sides, s, strict=True):
            K = self.intercept_var + sum(v * G for v, G in zip(row, new.grams, strict=True))
            own = self.intercept_var + sum(v * part for v, part in zip(row, new.own, strict=True))
            moments.append(on_samples(side).predict(np.asarray(K), np.asarray(own)))
        return stacked(moments)


def stacked(moments: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return means and variances of all outputs, each (n, C), from those of each."""
    mean, var = (np.stack(part, axis=1) for part in zip(*moments, strict=True))
    return mean, np.maximum(var, 1e-12)
