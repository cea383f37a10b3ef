"""q(w) under fixed prior variances for all folds and outputs of a batch, and its sites.

    bound = E[ln p(T | eta)] - KL(q(w) || N(0, diag(s)))

Every fold and output has its own bound and takes its own steps, unless outputs share the precisions
of their sites (`baldur.model.likelihood.Likelihood`): then they have one bound together.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from baldur.core.types import Array, IntArray
from baldur.inference.design import Design
from baldur.model.likelihood import Likelihood, LogisticLikelihood, Sites, put_folds, take_folds
from baldur.model.posterior import product_dtype

HALVINGS = 8
"""Halvings of a step that lowers the bound, before it is given up."""
SLACK, SINGLE_SLACK = 1e-12, 1e-6
"""Rounding allowed, relative to the bound, when a step is compared with none, where the largest
products are of double and of single precision."""
MEAN_STEPS, MEAN_TOLERANCE, LONGEST_MEAN_STEP = 8, 1e-2, 4.0
"""Most steps of the means under one covariance, twice the gain of the bound, in nats, below which
they end, and the longest step."""
FIRST_LENGTH, LENGTH_DECAY, SHORTEST_LENGTH = 0.7, 0.97, 0.1
"""Damping of the sites while variances are learned. The site of a row with an extreme feature can
answer so strongly to its own moments that longer steps overshoot for ever."""


@dataclass
class WeightPosterior:
    """q(w) of F folds and C outputs."""

    design: Any  # the features on the training rows; None where only the sites are stored
    likelihood: Likelihood
    s: Array  # (F, C, L); or (F, C, M) array, prior variances; (F, 1, ...) where outputs share them
    sites: Sites
    noise: Any  # such as q(psi) of Gaussian outputs
    extra: Any = 0.0  # (F, C, n); variance of rows with a missing view; 0.0 where none is missing
    kernel: Array | None = None  # (F, C, n, n); or None, made from `s` when first needed
    solution: Any = None

    @classmethod
    def start(cls, design: Design, likelihood: Likelihood, s: Array) -> WeightPosterior:
        """Return q(w) to begin an iteration with: its sites fit eta ~ N(base rate, 1)."""
        shape = (len(s), likelihood.n_outputs, likelihood.weight.shape[-1])
        mean = np.broadcast_to(likelihood.base_logit()[..., None], shape)
        noise = likelihood.noise_at(mean, np.zeros(shape))
        _, sites = likelihood.evaluate(mean, np.ones(shape), noise)
        return cls(design, likelihood, s, sites, noise)

    def stored(self) -> WeightPosterior:
        """Return q(w) without its design and large matrices, which can be computed again."""
        return replace(self, design=None, kernel=None, solution=None)

    def put(self, at: IntArray, part: WeightPosterior) -> None:
        """Replace sites, noise and solution of the folds `at` by those of q(w) of these alone."""
        self.put_sites(at, part)
        self.solution = put_folds(self.solution, at, part.solution)

    def put_sites(self, at: IntArray, part: WeightPosterior) -> None:
        """Replace sites, noise and missing views' variance of the folds `at` by those of `part`."""
        self.sites = put_folds(deepcopy(self.sites), at, part.sites)
        self.noise = put_folds(deepcopy(self.noise), at, part.noise)
        if np.ndim(part.extra):
            extra = self.extra.copy() if np.ndim(self.extra) else np.zeros(self.sites.j.shape)
            self.extra = put_folds(extra, at, part.extra)

    def with_variances(self, s: Array, design: Design | None = None) -> WeightPosterior:
        """Return the same sites under other prior variances, q(w) to be recomputed."""
        design = self.design if design is None else design
        return replace(self, s=s, design=design, kernel=None, solution=None)

    def rescaled(self, factor: float) -> WeightPosterior:
        """Return the same sites under the prior variances of all features times a factor."""
        K = self.kernel
        if K is not None:
            s0 = self.design.intercept_var  # stays as it is
            K = K - s0
            K *= factor
            K += s0
        return replace(self, s=factor * self.s, kernel=K, solution=None)

    def refresh(self, *, optimise_means: bool = False, rows: bool = True) -> None:
        """Recompute q(w) at the present sites, Gaussian factors that stand for the likelihood.

        Where asked for, means are moved to their optimum under the new covariance.
        Outputs with a shared site precision always have their means there. `moments` are known only
        with `rows`.
        """
        if self.kernel is None:
            self.kernel = self.design.kernel(self.s)
        self.solution = self.design.posterior(self.s, self.sites, self.kernel, rows=rows)
        if optimise_means or self.likelihood.shared:
            self.optimise_means()

    def optimise_means(self) -> None:
        """Move the means of logistic outputs to their optimum under the current covariance.

        Those of Gaussian outputs are there already.

        Conjugate gradients in the metric of the current covariance. With r the distance of j from
        its target and u = Cov(f) d the direction of the means that a direction d of j gives, the
        slope of the bound along it is r^T u and its curvature u^T (h_c - h) u + d^T u. The site
        precisions h stay as they are; h_c are those that would be best.
        """
        if not isinstance(self.likelihood, LogisticLikelihood):
            return
        likelihood = replace(self.likelihood, shared=False)
        (h, j), solution = self.sites, self.solution
        mean, var = self.moments()
        d: Any = None  # there are no directions d, u before the first step
        u = last_size = last_r = d
        for _ in range(MEAN_STEPS):
            _, best = likelihood.evaluate(mean, var, None)
            r = best.j + (h - best.h) * mean - j
            smooth = solution.smooth(r, self.kernel)  # Cov(f) r
            size = (r * smooth).sum(axis=-1, keepdims=True)  # about twice the gain of a step
            going = size > MEAN_TOLERANCE
            if not going.any():
                break
            if d is None:
                d, u = r, smooth
            else:
                # The rule of Polak and Ribiere.
                beta = np.maximum(size - (last_r * smooth).sum(axis=-1, keepdims=True), 0.0)
                beta /= np.maximum(last_size, 1e-300)
                d, u = r + beta * d, smooth + beta * u
            slope = (r * u).sum(axis=-1, keepdims=True)
            curvature = (((best.h - h) * u + d) * u).sum(axis=-1, keepdims=True)
            length = np.clip(slope / np.maximum(curvature, 1e-300), 0.0, LONGEST_MEAN_STEP)
            length *= going  # folds and outputs take their steps as if they were alone
            j, mean = j + length * d, mean + length * u
            last_size, last_r = size, r
        self.sites = Sites(h, j)
        self.solution = solution.with_linear(h, j, mean)

    def separate_sites(self) -> Sites:
        """Return sites of each output's own precisions; those that are best here if they share."""
        if not self.likelihood.shared:
            return self.sites
        return replace(self.likelihood, shared=False).evaluate(*self.moments(), None)[1]

    def with_separate_precisions(self) -> WeightPosterior:
        """Return q(w) with each output's own site precisions and covariance; itself if it has them.

        With shared precisions the variances are approximate, and this computes them at the end.
        Means do not move where they are at their optimum.
        """
        if not self.likelihood.shared:
            return self
        likelihood = replace(self.likelihood, shared=False)
        sites = self.separate_sites()
        s = np.broadcast_to(self.s, (len(self.s), likelihood.n_outputs, self.s.shape[2]))
        separate = replace(self, likelihood=likelihood, sites=sites, s=s, solution=None)
        separate.refresh()
        return separate

    def moments(self) -> tuple[Array, Array]:
        """Return <eta> and Var eta on the training rows, each (F, C, n): folds, outputs, rows."""
        return self.solution.mean, np.maximum(self.solution.var + self.extra, 1e-12)

    def evaluate(self) -> tuple[Array, Sites]:
        """Return the bound of every fold and output, (F, C), and the sites that are best here."""
        value, sites = self.likelihood.evaluate(*self.moments(), self.noise)
        kl = self.solution.kl
        if value.shape != kl.shape:  # outputs have one bound together
            kl = kl.sum(axis=1, keepdims=True)
        return value - kl, sites

    def evidence(self) -> Array:
        """Return the log evidence, closer than the bound, (F, C); sites must have converged.

        Variances of rows with a missing view are left out: sites know nothing of them.
        """
        mean, var = self.solution.mean, np.maximum(self.solution.var, 1e-12)
        expectation = self.likelihood.evidence(mean, var, self.sites, self.noise)
        return np.asarray(expectation - self.solution.kl)

    # -- samples with missing views --------------------------------------------------------

    def view_signal(self) -> Array:
        """Return the mean square of each view's part of eta over rows that have it, (F, M, C)."""
        squares = self.design.parts(self.solution, self.s) ** 2
        if self.design.absent is None:
            return np.asarray(squares.sum(axis=-1) / self.design.count[:, None, None])
        present = 1.0 - self.design.absent.swapaxes(1, 2)  # (F, M, n)
        total = np.einsum("fmcn,fmn->fmc", squares, present)
        return np.asarray(total / self._rows_with_view()[..., None])

    def missing_view_variance(self) -> Array:
        """Return the variance of a view's part of eta for a row without the view, (F, M, C).

        Its mean square among the rows that have the view, plus what the weights are uncertain.
        """
        spread = self.design.part_variance(self.solution, self.s)
        return self.view_signal() + spread / self._rows_with_view()[..., None]

    def _rows_with_view(self) -> Array:
        """Return the number of rows that have each view, at least 1, (F, M)."""
        count = np.repeat(self.design.count[:, None], self.design.n_views, axis=1)
        if self.design.absent is not None:
            count = count - self.design.absent.sum(axis=1)
        return np.maximum(count, 1.0)

    def refresh_extra(self) -> None:
        """Give rows with a missing view the variance that its part of eta would have."""
        if self.design.absent is not None:
            self.extra = np.einsum("fnm,fmc->fcn", self.design.absent, self.missing_view_variance())

    # -- sites -----------------------------------------------------------------------------

    def damped_update(self, iteration: int) -> None:
        """Move the sites part of the way, without recomputing q(w); exact for Gaussian outputs."""
        mean, var = self.moments()
        self.noise = self.likelihood.noise_at(mean, var)
        _, target = self.likelihood.evaluate(mean, var, self.noise)
        length = max(SHORTEST_LENGTH, FIRST_LENGTH * LENGTH_DECAY**iteration)
        if self.noise is not None:
            length = 1.0
        self.sites = self.sites.towards(target, np.full((1, 1), length))

    def optimise_sites(self, max_iter: int = 50, tol: float = 1e-6) -> Array:
        """Move the sites to their best values, and return the bounds there, (F, C).

        The bounds rise at every step, by gains that shrink by a steady factor, so the sum of those
        to come is known from the last two; a fold is finished when it is below `tol` of its bound
        for every output.
        """
        self.refresh(optimise_means=True)
        value, target = self.evaluate()
        gained_before = np.zeros_like(value)
        folds = np.arange(len(value))
        active = self  # q(w) of the `folds` that are not finished
        final = value.copy()
        for _ in range(max_iter):
            after, target = active.step(value, target)
            gained, value = after - value, after
            final[folds] = value
            allowed = tol * np.maximum(1.0, np.abs(value))
            going = (still_to_gain(gained, gained_before) > allowed).any(axis=1)
            if going.all():
                gained_before = gained
                continue
            if active is not self:
                self.put(folds, active)
            if not going.any():
                return final
            keep = np.flatnonzero(going)
            active, folds = take_folds(active, keep), folds[keep]
            value, gained_before = value[keep], gained[keep]
            target = take_folds(target, keep)
        if active is not self:
            self.put(folds, active)
        return final

    def step(self, value: Array, target: Sites) -> tuple[Array, Sites]:
        """Learn the noise, move the sites to `target`; return the bounds and the next target.

        A full step to the sites that are best at the present q may overshoot; the steps of outputs
        whose bound fell are halved until it does not. `value` and `target` are those of `evaluate`.
        """
        noise = self.likelihood.noise_at(*self.moments())
        if noise is not None:
            self.noise = noise
            value, target = self.evaluate()
        old = self.sites
        self.sites = target
        self.refresh(optimise_means=True)
        after, best = self.evaluate()
        fell = self._fell(after, value)
        if fell.any():
            at = np.flatnonzero(fell.any(axis=1))
            falling = take_folds(self, at)
            falling._halve(take_folds(old, at), value[at], take_folds(target, at), fell[at])
            self.put(at, falling)
            after, best = self.evaluate()
        return after, best

    def _fell(self, after: Array, value: Array) -> Array:
        """Return which bounds fell by more than rounding."""
        side, rows = self.solution.half.shape[-1], self.solution.mean.shape[-1]
        slack = SLACK if product_dtype(side, rows) is np.float64 else SINGLE_SLACK
        return np.asarray(~(after >= value - slack * np.abs(value)))

    def _halve(self, old: Sites, value: Array, target: Sites, fell: Array) -> None:
        """Halve the steps of outputs whose bound fell; stop those that rise at no length."""
        length = np.ones(value.shape)
        for _ in range(HALVINGS):
            length = np.where(fell, 0.5 * length, length)
            self.sites = old.towards(target, length)
            self.refresh()
            fell = self._fell(self.evaluate()[0], value)
            if not fell.any():
                return
        self.sites = old.towards(target, np.where(fell, 0.0, length))
        self.refresh()


def still_to_gain(gained: Array, before: Array) -> Array:
    """Return the total gain of later steps, if the gains decrease by a constant factor.

    `gained` is the last gain and `before` the one before it. Their ratio is not trusted below a
    tenth. Where the gain is not half of the one before, it is returned itself.
    """
    falling = (before > 0) & (gained < 0.5 * before)
    factor = np.maximum(np.divide(gained, before, out=np.ones_like(gained), where=falling), 0.1)
    return np.where(falling, gained * factor / (1.0 - np.minimum(factor, 0.5)), gained)
