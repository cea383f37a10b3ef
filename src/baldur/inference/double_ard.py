"""The posterior under the paper's double ARD prior of a finite shape, and what it drops.

One loop: sites, q(w), prior. Given gamma the prior is one variance per view on scaled features, so
q(w) is the Gaussian of every other prior. Each step is guarded: it is tried at shrinking lengths
and kept only if the bound does not fall.

It starts with gamma = 1 and every view explaining an equal share. More starts, from screened
features, with the best bound kept, took longer and did not predict better on average.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.entries import Entries
from baldur.inference.gaussian import SLACK, Gaussian
from baldur.model.double_ard import DoubleArd
from baldur.model.likelihood import Likelihood
from baldur.views.products import PreparedView
from baldur.views.reads import passes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Record = dict[str, Any]
Watcher = Callable[[Record], None]
Trace = Callable[[str, float], None]

CYCLES = 3
"""Steps of sites and delta, in sample space, for each step of gamma, which touches features."""
LENGTHS = 0.5 ** np.arange(6)
CALM_SWEEPS = 3
"""Sweeps in a row that must change little: with ARD one quiet sweep is not convergence."""
SETTLING = 5
"""Steps of sites and delta that a trial gets before its bound is compared."""
SWEEPS_BETWEEN = 10
"""Most sweeps between two drops of features; after the last one there are as many as needed."""


@dataclass
class ArdFit:
    """A fit in progress.

    Attributes
    ----------
    entries : Entries
    prior : DoubleArd
    q : Gaussian
    views : list of PreparedView, whose passes are counted
    history : one record per sweep or declared change
    converged : bool
    """

    entries: Entries
    prior: DoubleArd
    q: Gaussian
    views: Sequence[PreparedView]
    watch: Watcher | None = None
    history: list[Record] = field(default_factory=list)
    converged: bool = False
    started: float = field(default_factory=time.perf_counter)

    @classmethod
    def start(
        cls,
        entries: Entries,
        shape: float,
        likelihood: Likelihood,
        absent: Array,
        views: Sequence[PreparedView],
        watch: Watcher | None = None,
    ) -> ArdFit:
        """Begin with gamma = 1."""
        owner, count = entries.owner, entries.count
        ones, K = np.ones(len(owner)), likelihood.n_outputs
        prior = DoubleArd.start(shape, ones, owner, count, entries.widths, K)
        features = entries.scaled(ones)
        q = Gaussian.start(features, likelihood, features.spread(prior.by_view), absent)
        q.refresh()
        return cls(entries, prior, q, views, watch)

    def bound(self) -> float:
        """Return L(q)."""
        return float(self.q.bound().sum()) + self.prior.bound()

    def move(self, prior: Callable[[float], DoubleArd]) -> float:
        """Change the prior as far as the bound allows, q(w) following; return the bound."""
        before = self.bound()
        for length in LENGTHS:
            trial = self.under(prior(float(length)))
            after = trial.bound()
            if after >= before - SLACK * abs(before):
                self.prior, self.q = trial.prior, trial.q
                return after
        return before

    def under(self, prior: DoubleArd) -> ArdFit:
        """Return the same sites under another prior."""
        same = prior.gamma is self.prior.gamma
        features = self.q.features if same else self.entries.scaled(prior.gamma.mean)
        q = replace(self.q, features=features, s=features.spread(prior.by_view), bounds=[])
        q.refresh()
        return replace(self, prior=prior, q=q)

    def step_sites(self) -> float:
        """Move sites and noise, and q(w) with them."""
        value, _ = self.q.step(*self.q.evaluate())
        return float(value.sum()) + self.prior.bound()

    def step_delta(self) -> float:
        """Move q(delta), and q(w) with it."""
        power, used = self.q.features.strengths(self.q.sides, self.q.s)
        return self.move(lambda length: self.prior.with_delta(power, used, length))

    def step_gamma(self) -> float:
        """Move q(gamma), and q(w) with it."""
        power, used = self.entries.statistics(self.q, self.prior)
        return self.move(lambda length: self.prior.with_gamma(power, used, length).rescaled())

    def sweep(self, trace: Trace | None = None) -> float:
        """Take every step in turn and return the bound; `trace` is told it after each."""
        for step in (*(self.step_sites, self.step_delta) * CYCLES, self.step_gamma):
            value = step()
            if trace is not None:
                trace(step.__name__, value)
        return value

    def iterate(self, max_iter: int, tol: float) -> None:
        """Sweep until the bound has changed by less than `tol` of itself some times in a row.

        Itself without the constant cost of idle features, which grows with the width of the views.
        """
        self.converged, calm, value = False, 0, self.bound()
        for _ in range(max_iter):
            before, value = value, self.sweep()
            self.tell("sweep", value)
            size = max(1.0, abs(value - self.prior.idle()))
            calm = calm + 1 if abs(value - before) <= tol * size else 0
            if calm >= CALM_SWEEPS:
                self.converged = True
                return

    def tell(self, event: str, value: float) -> None:
        """Add a line of history."""
        record = {
            "event": event,
            "bound": value,
            "active_features": [int(n) for n in self.prior.n_in],
            "n_factors": self.prior.n_factors,
            "passes": passes(self.views),
            "seconds": time.perf_counter() - self.started,
        }
        self.history.append(record)
        if self.watch is not None:
            self.watch(record)

    def declare_missing(self) -> None:
        """Give rows that lack a view the variance of its part of eta, held by later sweeps."""
        self.q.refresh_extra()
        self.tell("missing views", self.bound())

    # -- dropping ---------------------------------------------------------------------------------

    def only(self, keep: Mask) -> ArdFit:
        """Return a trial with some of the entries, sites and delta settled."""
        trial = replace(self, entries=self.entries.only(keep))
        return trial.under(self.prior.only(keep)).settled()

    def without_factor(self, k: int) -> ArdFit:
        """Return a trial without factor k, sites and delta settled."""
        trial = replace(self, q=self.q.without_factor(k))
        return trial.under(self.prior.without_factor(k)).settled()

    def settled(self) -> ArdFit:
        """Let sites and delta follow a drop."""
        for _ in range(SETTLING):
            self.step_sites()
            self.step_delta()
        return self

    def accept(self, trial: ArdFit) -> bool:
        """Become the trial if its bound is not lower."""
        if trial.bound() < self.bound():
            return False
        self.entries, self.prior, self.q = trial.entries, trial.prior, trial.q
        return True

    def drop_features(self) -> int:
        """Drop features whose gain is negative; return how many.

        All of them if the bound then rises, else the worse half, quarter and so on: two features
        that stand for each other can both look useless while both are in. The rest of a view goes
        together with the features that do, before its delta could follow those that stay.
        """
        gains = self.prior.gains(*self.entries.statistics(self.q, self.prior))
        gains[len(self.entries.place) :] = -np.inf
        negative = np.flatnonzero(gains < 0.0)
        worst = negative[np.argsort(gains[negative], kind="stable")]
        while len(worst):
            keep = np.ones(len(gains), dtype=bool)
            keep[worst] = False
            dropped = int(self.entries.count[~keep].sum())
            if self.accept(self.only(keep)):
                return dropped
            worst = worst[: len(worst) // 2]
        return 0

    def drop_views(self) -> int:
        """Drop views one at a time, that whose loss helps most first; return how many."""
        dropped = 0
        while (used := np.flatnonzero(self.prior.n_in)).size:
            trials = [self.only(self.entries.owner != m) for m in used]
            if not self.accept(max(trials, key=ArdFit.bound)):
                break
            dropped += 1
        return dropped

    def drop_factors(self) -> int:
        """Drop factors of learned loadings, the weakest first, while the bound rises."""
        dropped = 0
        while (k := self.q.weakest_factor()) is not None:
            if not self.accept(self.without_factor(k)):
                break
            dropped += 1
        return dropped

    def prune(self, max_iter: int, tol: float) -> None:
        """Alternate drops and sweeps until the bound is highest as it is."""
        while dropped := self.drop_features():
            self.tell(f"dropped {dropped} features", self.bound())
            self.iterate(min(SWEEPS_BETWEEN, max_iter), tol)
        views, factors = self.drop_views(), self.drop_factors()
        if views or factors:
            self.tell(f"dropped {views} views and {factors} factors", self.bound())
        # Rows that lack a view which is now empty lack nothing any more.
        if self.q.absent.any() and not self.prior.n_in.all():
            self.declare_missing()
            views += 1
        if views or factors or not self.converged:
            self.iterate(max_iter, tol)


def fit_double_ard(
    fit: ArdFit, *, max_iter: int = 200, tol: float = 1e-5, prune: bool = True
) -> ArdFit:
    """Fit from where `fit` stands.

    Parameters
    ----------
    fit : ArdFit
    max_iter, tol : int, float
        Most sweeps, and the relative change of the bound that counts as calm.
    prune : bool
        Drop features, views and factors whose removal raises the bound.

    Returns
    -------
    ArdFit
    """
    fit.iterate(max_iter, tol)
    if fit.q.absent.any():
        fit.declare_missing()
        fit.iterate(max_iter, tol)
    if prune:
        fit.prune(max_iter, tol)
    return fit
