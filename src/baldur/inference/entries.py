"""What the double ARD prior tells apart: features one by one, and the rest of each wide view.

Features beyond the candidates share one precision per view: in sample space they are one N x N
matrix and cost nothing per sweep, yet they are part of the model. Without them the candidates,
chosen for their correlation with the outcome, look as if every view were full of signal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Columns, Features, owners
from baldur.inference.gaussian import Gaussian
from baldur.inference.grams import Grams
from baldur.inference.new_rows import Index, gather
from baldur.inference.screening import Problem, candidates
from baldur.model.double_ard import DoubleArd
from baldur.model.posterior import SampleSide

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Entries:
    """L columns and R rests, on the training rows.

    Attributes
    ----------
    X : (N, L) array
    place : (L,) number of each column in its view
    column_owner, rest_owner : (L,) and (R,) views they belong to
    rests : list of R int arrays, the features of each rest
    grams : list of R (N, N) arrays, X X^T of each rest
    widths : (M,) features of each view
    intercept_var : float
    """

    X: Array
    place: NDArray[np.intp]
    column_owner: NDArray[np.intp]
    rest_owner: NDArray[np.intp]
    rests: list[NDArray[np.intp]]
    grams: list[Array]
    widths: Array
    intercept_var: float

    @classmethod
    def screen(cls, problem: Problem, intercept_var: float) -> Entries:
        """Gather the candidates, and make the Gram of what is left: three passes at most."""
        index = candidates(problem, [np.arange(problem.n_samples)])[0]
        rests, rest_owner = [], []
        for m, (view, columns) in enumerate(zip(problem.views, index, strict=True)):
            if len(columns) < view.shape[1]:
                rests.append(np.setdiff1d(np.arange(view.shape[1]), columns))
                rest_owner.append(m)
        return cls(
            gather(problem.views, index),
            np.concatenate(index),
            owners(index),
            np.array(rest_owner, dtype=np.intp),
            rests,
            [
                problem.views[m].weighted_gram(np.bincount(rest, minlength=int(problem.widths[m])))
                for m, rest in zip(rest_owner, rests, strict=True)
            ],
            problem.widths,
            intercept_var,
        )

    @property
    def owner(self) -> NDArray[np.intp]:
        """View of each entry, (L + R,)."""
        return np.concatenate([self.column_owner, self.rest_owner])

    @property
    def count(self) -> Array:
        """Features of each entry, (L + R,)."""
        return np.concatenate([np.ones(len(self.place)), [len(rest) for rest in self.rests]])

    @property
    def index(self) -> Index:
        """Columns of each view."""
        return [self.place[self.column_owner == m] for m in range(len(self.widths))]

    def selected(self) -> list[Mask]:
        """Return a mask of the features of each view that are in."""
        masks = [np.zeros(int(D), dtype=bool) for D in self.widths]
        for m, features in [*enumerate(self.index), *zip(self.rest_owner, self.rests, strict=True)]:
            masks[m][features] = True
        return masks

    def spread(self, values: Array) -> Array:
        """Return values of the features of all views (K, D) from those of the entries; 0 if out."""
        edges = np.concatenate([[0], np.cumsum(self.widths)]).astype(np.intp)
        out = np.zeros((len(values), edges[-1]))
        out[:, edges[self.column_owner] + self.place] = values[:, : len(self.place)]
        for m, rest, own in zip(
            self.rest_owner, self.rests, values[:, len(self.place) :].T, strict=True
        ):
            out[:, edges[m] + rest] = own[:, None]
        return out

    def only(self, keep: Mask) -> Entries:
        """Return some of the entries."""
        L = len(self.place)
        at = np.flatnonzero(keep[L:])
        return replace(
            self,
            X=np.ascontiguousarray(self.X[:, keep[:L]]),
            place=self.place[keep[:L]],
            column_owner=self.column_owner[keep[:L]],
            rest_owner=self.rest_owner[at],
            rests=[self.rests[r] for r in at],
            grams=[self.grams[r] for r in at],
        )

    def scaled(self, gamma: Array) -> Features:
        """Return the features times gamma^-1/2, which have one prior variance per view."""
        N, L = self.X.shape
        X, M = self.X / np.sqrt(gamma[:L]), len(self.widths)
        if L < N and not self.rests:
            return Columns(X, self.column_owner, M, self.intercept_var)
        parts = [X[:, self.column_owner == m] for m in range(M)]
        grams = [part @ part.T for part in parts]
        for m, gram, own in zip(self.rest_owner, self.grams, gamma[L:], strict=True):
            grams[m] += gram / own
        return Grams(grams, self.intercept_var)

    def statistics(self, q: Gaussian, prior: DoubleArd) -> tuple[Array, Array]:
        """Return <w>^2/s and 1 - Var w/s, summed over each entry, each (K, L + R)."""
        if isinstance(q.features, Columns):
            projected, S = q.features.statistics(q.sides)
            return q.s * projected**2, q.s * S
        sides = [side for side in q.sides if isinstance(side, SampleSide)]
        alphas = np.stack([side.alpha for side in sides])
        power = (alphas @ self.X) ** 2
        used = np.stack([side.quadratic(self.X) for side in sides])
        if self.grams:
            more = [[side.alpha @ gram @ side.alpha for gram in self.grams] for side in sides]
            power = np.hstack([power, more])
            used = np.hstack(
                [used, [[np.vdot(side.Ci, gram) for gram in self.grams] for side in sides]]
            )
        s = prior.variances
        return s * power, s * used
