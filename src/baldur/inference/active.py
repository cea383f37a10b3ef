"""Wide views under a sparse prior: a few features followed closely, the rest in sample space.

1. *Screen.* The best features by marginal score are gathered once, in memory. The rest of each
   view shares one precision and is one N x N matrix (see `baldur.model.structured.rest`), so
   starts and sweeps touch the gathered columns only.
2. *Look.* One pass over all features says what the bound would gain if each feature of the rest
   had its own precision. Those that would move far join the followed ones, the others take their
   precisions with them into the rest, and the sweeps go on, until a look finds nothing to gain.
   The end is the same as if every sweep had touched every feature.
3. *Drop.* Features whose removal raises the bound go, as everywhere (`baldur.inference.prune`).
   What stays is gathered, and nothing wide is read any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from baldur.inference.prune import feature_gains, precision_costs, settle, shared_cost
from baldur.inference.rates import Best, best_rates
from baldur.inference.run import (
    SCREEN_SIZES,
    Run,
    Watcher,
    best_start,
    iterate,
    magnitude,
    proceed,
    prune_by_evidence,
    record,
    set_missing_variance,
)
from baldur.inference.screening import PER_VIEW, best_everywhere
from baldur.inference.starts import flat_state, marginal_scores, screened_gamma
from baldur.inference.sweep import start_factors
from baldur.model.ard import GammaPosterior
from baldur.model.posterior import SampleSide
from baldur.model.structured.bound import bound
from baldur.model.structured.rest import Rest
from baldur.model.structured.state import Data, State

Array = NDArray[np.float64]
Index = list[NDArray[np.intp]]

WIDE = 3000
"""Features beyond which only the best are followed."""
FOLLOWED = 1000
"""Features followed from the start: the best of all views by marginal score."""
JOINING = 300
"""Most features that join the followed ones after one look."""
FAR = 0.1
"""Change of ln gamma from which a feature joins."""
LOOKS = 12
"""Most looks at all features before the drop."""
SHORTENINGS = 4
KEPT_BYTES = 1 << 27
"""Features that stay are gathered if they fit in this many bytes as float64."""


def chosen_columns(whole: Data, index: Index, *, feature_side: bool = False) -> Data:
    """Return the problem of chosen columns, held in memory; it knows the whole it is part of."""
    views = [view.take_columns(i) for view, i in zip(whole.views, index, strict=True)]
    X = None
    if feature_side and sum(len(i) for i in index) <= whole.n_samples:
        X = np.concatenate([view.dense() for view in views], axis=1)
    return Data(views, whole.likelihood, whole.priors, X, whole, index)


def replaced(state: State, gamma: list[GammaPosterior], rest: list[Rest]) -> State:
    """Return the state over other columns, all kept, with q(W) and Grams to be recomputed."""
    kept = [np.ones(len(g.rate), dtype=bool) for g in gamma]
    made = replace(state, kept=kept, gamma=gamma, rest=rest, delta=list(state.delta))
    made.factors, made.grams, made.gram_parts, made.w, made.w_var = [], [], [], [], []
    return made


@dataclass
class Active:
    """The followed columns of a problem, and the relative rates of all features.

    Attributes
    ----------
    whole : Data
    data : Data of the followed columns
    rates : list of (D_m,) arrays, r_d of the rest; entries of followed features are not used
    scores : list of (L_m,) arrays, marginal scores of the followed features
    """

    whole: Data
    data: Data
    rates: list[Array]
    scores: list[Array]

    @classmethod
    def screen(cls, whole: Data, count: int = FOLLOWED, per_view: int = PER_VIEW) -> Active:
        """Choose what to follow: one pass, and one that gathers."""
        scores = marginal_scores(whole)
        index = best_everywhere(scores, max(count, *SCREEN_SIZES), per_view)
        data = chosen_columns(whole, index)
        rates = [np.ones(D) for D in whole.widths]
        return cls(whole, data, rates, [s[i] for s, i in zip(scores, index, strict=True)])

    @property
    def index(self) -> Index:
        """Followed columns of each view."""
        return self.data.index or []

    def outside(self, m: int) -> NDArray[np.bool_]:
        """Return the mask of the rest of view m."""
        mask = np.ones(self.whole.widths[m], dtype=bool)
        mask[self.index[m]] = False
        return mask

    def rest_of(self, m: int, shape: float) -> Rest:
        """Return the rest of view m at the present rates: one pass over the view."""
        mask, N = self.outside(m), self.whole.n_samples
        r = self.rates[m][mask]
        gram = np.zeros((N, N))
        if r.size:
            gram = self.whole.views[m].weighted_gram(np.where(mask, self.rates[m] / shape, 0.0))
        return Rest(r.size, gram, float(np.log(r).sum()), float((1.0 / r).sum()))

    def starts(self, V: Array | None) -> list[State]:
        """Return the states to start from, as in `baldur.inference.run.starts`."""
        a = self.whole.priors.gamma.shape
        shape = a + 0.5 * (self.whole.likelihood.n_outputs if V is None else V.shape[1])
        flat = [self.rest_of(m, shape) for m in range(len(self.whole.views))]
        states = []
        for size in (None, *SCREEN_SIZES):
            gamma, common = None, 1.0
            if size is not None:
                gamma = screened_gamma(self.data, size, self.scores)
                common = max(float(g.max(initial=0.0)) for g in gamma)
            rest = [replace(r, scale=shape / common) for r in flat]
            states.append(flat_state(self.data, V, gamma, rest))
        return states

    def all_rates(self, state: State, m: int) -> Array:
        """Return the rates of q(gamma) of every feature of view m."""
        rates = self.rates[m] * state.rest[m].scale
        rates[self.index[m]] = state.gamma[m].rate
        return rates

    def look(self, state: State) -> list[Best]:
        """Return the best rates of the rest of each view: one pass."""
        alphas = np.stack([factor.alpha for factor in state.factors], axis=1)
        matrices = [f.Ci for f in state.factors if isinstance(f, SampleSide)]
        found = []
        for m, view in enumerate(self.whole.views):
            if not state.rest[m].count:
                found.append(Best(np.zeros(0), np.zeros(0), np.zeros(0)))
                continue
            mask = self.outside(m)
            projected, S = view.project_with_quadratics(alphas, matrices)
            found.append(
                best_rates(
                    projected[:, mask],
                    S[:, mask],
                    self.rates[m][mask] * state.rest[m].scale,
                    state.delta[m].mean,
                    state.gamma[m].shape,
                    self.whole.priors.gamma.shape,
                )
            )
        return found

    def spread(self, run: Run, found: list[Best]) -> tuple[Active, Run] | None:
        """Give the rest the rates that were found, as far as the bound allows: one pass or more.

        Features that move far join the followed ones. Returns None if the bound never rose.
        """
        state = run.state
        old = [self.all_rates(state, m) for m in range(len(found))]
        new = [rates.copy() for rates in old]
        for m, best in enumerate(found):
            if best.rate.size:
                new[m][self.outside(m)] = best.rate
        far = [np.abs(np.log(n / o)) for n, o in zip(new, old, strict=True)]
        limit = np.sort(np.concatenate(far))[::-1][:JOINING][-1]
        index = [
            np.union1d(i, np.flatnonzero((f >= max(FAR, limit)) & (f > 0.0)))
            for i, f in zip(self.index, far, strict=True)
        ]
        data = self.data
        if any(len(i) > len(j) for i, j in zip(index, self.index, strict=True)):
            data = chosen_columns(self.whole, index)
        length = 1.0
        for _ in range(SHORTENINGS):
            rates = [o * (n / o) ** length for o, n in zip(old, new, strict=True)]
            moved = Active(self.whole, data, rates, self.scores)
            shapes = [g.shape for g in state.gamma]
            gamma = [
                GammaPosterior(shape, r[i])
                for shape, r, i in zip(shapes, rates, index, strict=True)
            ]
            rest = [moved.rest_of(m, shape) for m, shape in enumerate(shapes)]
            trial = replaced(state, gamma, rest)
            start_factors(data, trial)
            value = bound(data, trial)
            if value >= run.elbo:
                return moved, replace(run, data=data, state=trial, elbo=value)
            length *= 0.5
        return None

    def as_whole(self, run: Run) -> Run:
        """Return the run with every feature on its own, nothing recomputed."""
        state = run.state
        gamma = [
            GammaPosterior(g.shape, self.all_rates(state, m)) for m, g in enumerate(state.gamma)
        ]
        full = replaced(state, gamma, [])
        full.factors, full.grams = list(state.factors), list(state.grams)
        full.gram_parts = [(k, g, None) for k, g in zip(full.kept, gamma, strict=True)]
        return replace(run, data=self.whole, state=full)


def run_active(
    active: Active,
    *,
    V: Array | None = None,
    max_iter: int = 200,
    tol: float = 1e-5,
    prune: bool = True,
    watch: Watcher | None = None,
) -> Run:
    """Fit the structured posterior under one finite prior shape, reading wide views seldom.

    Parameters are those of `baldur.inference.run.run_structured`.
    """
    state = best_start(active.data, active.starts(V), watch)
    run = iterate(active.data, state, max_iter=max_iter, tol=tol, watch=watch)
    active, run, found = settle_rest(active, run, max_iter, tol, watch)
    if any(view.absent.any() for view in active.whole.views):
        run = proceed(run, set_missing_variance(run), max_iter, tol, watch)
        active, run, found = settle_rest(active, run, max_iter, tol, watch)
    if not prune:
        return active.as_whole(run)
    run = drop_at_once(active, run, found, max_iter, tol, watch)
    return prune_by_evidence(run, max_iter=max_iter, tol=tol, watch=watch)


def settle_rest(
    active: Active, run: Run, max_iter: int, tol: float, watch: Watcher | None
) -> tuple[Active, Run, list[Best]]:
    """Look at all features and sweep on until nothing is to be gained; return the last look."""
    for number in range(1, LOOKS + 1):
        found = active.look(run.state)
        rise = sum(float(best.rise.sum()) for best in found)
        if rise <= tol * magnitude(run):
            return active, run, found
        step = active.spread(run, found)
        if step is None:
            return active, run, found
        active, run = step
        run = proceed(run, f"look {number}", max_iter, tol, watch)
    run.history.append(record(run.data, run.state, run.elbo, 0.0, f"stopped after {LOOKS} looks"))
    run.converged = False
    return active, run, active.look(run.state)


def drop_at_once(
    active: Active, run: Run, found: list[Best], max_iter: int, tol: float, watch: Watcher | None
) -> Run:
    """Drop every feature whose gain is negative; keep what stays in memory.

    Where that would lower the bound, or too much stays, the run goes on over the whole.
    """
    state, whole = run.state, active.whole
    index, gamma, dropped = [], [], 0
    for m, D in enumerate(whole.widths):
        rates = active.all_rates(state, m)
        gains = np.empty(D)
        gains[active.index[m]] = feature_gains(run.data, state, m)
        outside = active.outside(m)
        if found[m].gain.size:
            alone = replaced(state, [GammaPosterior(g.shape, rates) for g in state.gamma], [])
            costs = precision_costs(whole, alone, m)[outside] + shared_cost(run.data, state, m)
            gains[outside] = found[m].gain + costs
        stay = np.flatnonzero(gains >= 0.0)
        index.append(stay)
        gamma.append(GammaPosterior(state.gamma[m].shape, rates[stay]))
        dropped += D - len(stay)
    if sum(len(i) for i in index) * whole.n_samples * 8 <= KEPT_BYTES:
        data = chosen_columns(whole, index, feature_side=True)
        small = replaced(state, gamma, [])
        value = settle(data, small)
        if value >= run.elbo:
            run = replace(run, data=data, state=small, elbo=value)
            return proceed(run, f"dropped {dropped} features", min(10, max_iter), tol, watch)
    return active.as_whole(run)
