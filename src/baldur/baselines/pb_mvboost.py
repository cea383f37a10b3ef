"""PB-MVBoost: boosted voters in each view, and view weights that optimise a PAC-Bayesian C-bound.

Goyal, Morvant, Germain and Amini, Neurocomputing 358, 2019. Departures from the authors' code, each
with a switch back: the Jacobian of the simplex constraint is the vector of ones and not the weights
themselves (``constraint_jacobian="author"``), and each tree draws its own seed
(``fixed_tree_seed=True``).

On ``normalize_voters``: the theory has the voter weights Q as a distribution, and then the ratio
that is maximised is convex in the view weights, so its maximum is always one single view. The
authors ran raw Q, which allows mixed weights once both risk and disagreement exceed one half; so
do we by default.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from baldur.baselines.base import BaselineClassifier, one_against_rest
from baldur.baselines.blocks import Block, dense_concatenation, split_columns
from baldur.core.parameters import integer, one_of, parameter
from baldur.core.types import Array

SILENT = 1e-8
"""View weights up to this value count as zero."""


@dataclass
class Ensemble:
    """Voters ``trees[t][v]``, their weights Q (T, V), the view weights rho (V,), and histories.

    A view of weight zero before round t has no voter in it: ``trees[t][v]`` is None, its Q zero.
    """

    trees: list[list[DecisionTreeClassifier | None]]
    Q: Array
    rho: Array
    rho_history: Array
    example_weights: Array

    def vote(self, views: list[Array]) -> Array:
        """Return ``sum_v rho_v sum_t Q_vt h_vt(x) / sum_v rho_v sum_t |Q_vt|``, in [-1, 1]."""
        total = np.zeros(len(views[0]))
        size = float(np.sum(np.abs(self.Q) * self.rho))
        for t, voters in enumerate(self.trees):
            for v, tree in enumerate(voters):
                weight = self.rho[v] * self.Q[t, v]
                if tree is not None and weight != 0.0:
                    total += weight * _predict(tree, views[v])
        return total / size if size > 0 else total


def _predict(tree: DecisionTreeClassifier, X: Array) -> Array:
    # X is float32 already; the check would scan a wide view once per tree.
    return np.asarray(tree.predict(X, check_input=False), dtype=np.float64)


def c_bound_terms(P: Array, q: Array, y: Array, w: Array) -> tuple[float, float]:
    """Return risk r and disagreement d of one view's T voters, under example weights w.

    ``r = sum_s q_s err_w(h_s)`` and ``d = sum_{s,s'} q_s q_s' (1 - (P diag(w) P')_{ss'}) / 2``.
    Shapes: votes P (T, n) in {-1, +1}, voter weights q (T,), labels y (n,) in {-1, +1}, w (n,)
    summing to 1.
    """
    errors = (1.0 - P @ (w * y)) / 2.0
    margin = q @ P  # the double sum needs no T x T matrix
    disagreement = (np.sum(q) ** 2 - np.sum(w * margin**2)) / 2.0
    return float(q @ errors), float(disagreement)


def optimise_views(r: Array, d: Array, last: Array, jacobian: str = "ones") -> Array:
    """Return view weights rho on the simplex that maximise ``(1 - 2 rho'r)^2 / (1 - 2 rho'd)``.

    By SLSQP, started at uniform weights, which are also the answer to terms that are not finite; a
    search that leaves the simplex falls back to ``last``. ``jacobian`` is that of the constraint:
    "ones", or else the weights, as in the authors' code.

    Shapes: risks r, disagreements d and last (V,) of V views.
    """
    V = len(r)
    uniform = np.full(V, 1.0 / V)
    if V == 1 or not np.all(np.isfinite([r, d])):
        return uniform

    def objective(rho: Array) -> tuple[float, Array]:
        """Return the negative ratio and its gradient."""
        top, bottom = 1.0 - 2.0 * rho @ r, 1.0 - 2.0 * rho @ d
        bottom = bottom + np.copysign(1e-12, bottom)
        gradient = (4.0 * top * bottom * r - 2.0 * top**2 * d) / bottom**2
        return float(-(top**2) / bottom), gradient

    constraint = {
        "type": "eq",
        "fun": lambda rho: float(np.sum(rho) - 1.0),
        "jac": (lambda rho: np.ones(V)) if jacobian == "ones" else (lambda rho: rho),
    }
    with np.errstate(all="ignore"):
        answer = minimize(
            objective,
            uniform,
            jac=True,
            bounds=[(0.0, 1.0)] * V,
            constraints=[constraint],
            method="SLSQP",
        ).x
    if not np.all(np.isfinite(answer)) or np.sum(np.maximum(answer, 0.0)) <= 0.0:
        return last
    answer = np.where(answer > SILENT, answer, 0.0)
    return np.asarray(answer / answer.sum())


def fit_pb_mvboost(
    views: list[Array],
    y: Array,
    n_rounds: int,
    rng: np.random.RandomState,
    *,
    max_depth: int = 2,
    splitter: str = "random",
    normalize_voters: bool = False,
    jacobian: str = "ones",
    fixed_tree_seed: bool = False,
) -> Ensemble:
    """Boost one voter per view and round. Shapes: views (n, D_v), y (n,) in {-1, +1}.

    A voter of a view whose current weight is zero gets Q = 0 and enters neither the bound nor the
    example weights nor the vote: its seed is drawn, so that later voters stay the same, and the
    tree is not grown. On simulated cohorts this saves about half of the trees.
    """
    n, V = len(y), len(views)
    w, rho = np.full(n, 1.0 / n), np.full(V, 1.0 / V)
    fixed_seed = int(rng.randint(np.iinfo(np.int32).max))
    trees: list[list[DecisionTreeClassifier | None]] = []
    Q = np.zeros((n_rounds, V))
    P = np.zeros((V, n_rounds, n))
    history = np.zeros((n_rounds, V))
    for t in range(n_rounds):
        voters: list[DecisionTreeClassifier | None] = []
        for v, X in enumerate(views):
            seed = fixed_seed if fixed_tree_seed else int(rng.randint(np.iinfo(np.int32).max))
            if rho[v] <= SILENT:
                voters.append(None)
                continue
            tree = DecisionTreeClassifier(
                max_depth=max_depth, splitter=splitter, random_state=seed
            ).fit(X, y, sample_weight=w, check_input=False)
            P[v, t] = _predict(tree, X)
            error = float(np.sum(w[P[v, t] != y]))
            if error <= 0.0:  # a voter without an error would have an infinite weight
                error = 0.1 * float(w.min())
            error = float(np.clip(error, 1e-300, 1.0 - 1e-12))
            Q[t, v] = 0.5 * np.log((1.0 - error) / error)
            voters.append(tree)
        trees.append(voters)
        if t >= 1:  # a single voter of a view has no disagreement
            terms = []
            for v in range(V):
                q = Q[: t + 1, v]
                if normalize_voters:
                    q = np.maximum(q, 0.0) / max(float(np.maximum(q, 0.0).sum()), 1e-300)
                terms.append(c_bound_terms(P[v, : t + 1], q, y, w))
            r, d = np.array(terms).T
            rho = optimise_views(r, d, rho, jacobian)
        history[t] = rho
        exponent = -y * np.einsum("v,vn->n", rho * Q[t], P[:, t])
        w = w * np.exp(exponent - exponent.max())
        # A weight that underflows to 0 would make 0.1 * min(w) zero as well.
        w = np.maximum(w / w.sum(), 1e-250)
        w = w / w.sum()
    return Ensemble(trees, Q, rho, history, w)


@dataclass(eq=False, repr=False)
class PBMVBoostClassifier(BaselineClassifier):
    """PAC-Bayesian multi-view boosting; several classes are handled one against the rest.

    Parameters
    ----------
    n_rounds : int
        Boosting rounds T.
    max_depth : int
        Depth of the trees.
    scale, preparation, views
        As in `BaselineEstimator`.
    splitter : {"random", "best"}
        Rule of the trees; the authors use random splits.
    normalize_voters : bool
        Normalise the voter weights inside the C-bound, as the theory has it. One view then always
        takes everything.
    constraint_jacobian : {"ones", "author"}
        "author" reproduces the authors' Jacobian of the simplex constraint.
    fixed_tree_seed : bool
        Give every tree the same seed, as the authors do.
    random_state : int, RandomState or None
        Seeds of the trees.

    Attributes
    ----------
    ensembles_ : list of Ensemble
        One, or one per class.
    view_weights_ : ndarray (n_ensembles, V)
    used_features_ : dict of ndarray of bool
        Features in a split of a voter with ``rho_v Q_vt != 0``; `selected_features_` is all true,
        since every feature is open to the trees.

    Examples
    --------
    >>> from baldur.baselines import PBMVBoostClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = PBMVBoostClassifier(n_rounds=10, random_state=0).fit(X[:40], y[:40])
    >>> model.view_weights_.shape, len(model.ensembles_)
    ((1, 2), 1)
    >>> {name: mask.shape for name, mask in model.used_features_.items()}
    {'a': (4,), 'b': (9,)}
    """

    n_rounds: int = parameter(200, integer())
    max_depth: int = 2
    _: KW_ONLY
    splitter: str = parameter("random", one_of("random", "best"))
    normalize_voters: bool = False
    constraint_jacobian: str = parameter("ones", one_of("ones", "author"))
    fixed_tree_seed: bool = False
    random_state: Any = None

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        """Boost one ensemble for two classes, or one for each class against the rest."""
        views = self._dense(blocks)
        rng = check_random_state(self.random_state)
        targets = one_against_rest(codes, len(self.classes_)).T
        self.ensembles_ = [
            fit_pb_mvboost(
                views,
                y,
                int(self.n_rounds),
                rng,
                max_depth=self.max_depth,
                splitter=self.splitter,
                normalize_voters=self.normalize_voters,
                jacobian=self.constraint_jacobian,
                fixed_tree_seed=self.fixed_tree_seed,
            )
            for y in targets
        ]
        self.view_weights_ = np.array([e.rho for e in self.ensembles_])
        # A vote of zero goes to the side with more training rows.
        self.ties_ = [1.0 if y.sum() > 0.0 else -1.0 for y in targets]
        used = {b.name: np.zeros(b.width, dtype=bool) for b in blocks}
        for e in self.ensembles_:
            for t, voters in enumerate(e.trees):
                for v, (b, tree) in enumerate(zip(blocks, voters, strict=True)):
                    if tree is not None and e.rho[v] * e.Q[t, v] != 0.0:
                        split = tree.tree_.feature
                        used[b.name][split[split >= 0]] = True  # negative in leaves
        self.used_features_ = {b.name: b.over_input(used[b.name]) for b in blocks}

    def _dense(self, blocks: list[Block]) -> list[NDArray[Any]]:
        """Return each view as a dense array (n, D_v) for the trees."""
        return split_columns(dense_concatenation(blocks, np.float32, "PB-MVBoost"), blocks)

    def _scores(self, blocks: list[Block]) -> Array:
        views = self._dense(blocks)
        votes = np.column_stack([e.vote(views) for e in self.ensembles_])
        return np.where(votes == 0.0, 1e-12 * np.asarray(self.ties_), votes)
