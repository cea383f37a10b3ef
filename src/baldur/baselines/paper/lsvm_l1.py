"""LSVM-l1: a linear SVM with l1 penalty on the concatenated views."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_class_weight

from baldur.baselines.shared.base import (
    BaselineClassifier,
    Block,
    class_scores,
    linear_predictor,
    one_against_rest,
)
from baldur.baselines.shared.dense import gather_columns, project_all
from baldur.baselines.shared.working_set import solve_on_working_set
from baldur.exceptions import NotConvergedWarning
from baldur.parameters import POSITIVE, Constraint, optional
from baldur.types import Array


def smallest_c(correlations: Array, bias: Array) -> float:
    """Return the penalty parameter below which the model is empty (`sklearn.svm.l1_min_c`).

    ``1 / (2 max_j |x_j'(s * y)|)`` over columns and the constant column liblinear penalises too.
    """
    top = max(float(np.max(np.abs(correlations), initial=0.0)), float(np.max(np.abs(bias))))
    return 0.5 / top if top > 0 else 1.0


class L1SVMClassifier(BaselineClassifier):
    """``min ||w||_1 + C sum_i max(0, 1 - y_i (w'x_i + b))^2``, one against the rest.

    The penalty is searched as a multiple of the value below which the model is empty. Wide data
    are solved on a working set of columns, with all the others checked through ``X'r``.

    Parameters
    ----------
    c_ratio : float
        C over the smallest useful C. At 1 or below the model is empty.
    C : float or None
        The penalty parameter itself, overriding ``c_ratio``.
    class_weight : None, "balanced" or dict
    max_iter, tol : int, float
        Of liblinear.
    block_scale : bool
        Off by default: scaling would change the penalty of each view.
    scale : {"clipped", "standard", "rank"}
        How columns are scaled before the method sees them, as in `BaldurClassifier`.
    preparation : Preparation or None
        What is learned about the columns beyond scaling, as in `BaldurClassifier`.
    views : dict or None
        Columns of each view when ``X`` is one matrix.
    random_state : int, RandomState or None
        Order of liblinear's coordinates.

    Attributes
    ----------
    coef_ : dict of ndarray (1 or C, D_v)
    C_ : float
        The penalty parameter used.

    Examples
    --------
    >>> from baldur.baselines import L1SVMClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = L1SVMClassifier(c_ratio=3.0, random_state=0).fit(X[:40], y[:40])
    >>> {name: int(mask.sum()) for name, mask in model.selected_features_.items()}
    {'a': 2, 'b': 2}
    >>> round(model.score(X[40:], y[40:]), 2)
    1.0
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "c_ratio": POSITIVE,
        "C": optional(POSITIVE),
    }

    def __init__(
        self,
        c_ratio: float = 10.0,
        C: float | None = None,
        class_weight: Any = None,
        *,
        max_iter: int = 5000,
        tol: float = 1e-4,
        block_scale: bool = False,
        scale: str = "clipped",
        preparation: Any = None,
        views: Any = None,
        random_state: Any = None,
    ) -> None:
        self.c_ratio = c_ratio
        self.C = C
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.block_scale = block_scale
        self.scale = scale
        self.preparation = preparation
        self.views = views
        self.random_state = random_state

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        K = len(self.classes_)
        signs = one_against_rest(codes, K)
        weight = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_[codes]
        )
        # liblinear weighs a row by its own class in the binary case; one against the rest, the
        # rest has weight 1.
        s = weight[codes][:, None] if K == 2 else np.where(signs > 0, weight[codes][:, None], 1.0)
        first = project_all(blocks, s * signs)  # (D, 1 or C)
        smallest = smallest_c(first, np.sum(s * signs, axis=0))
        self.C_ = float(self.C) if self.C is not None else float(self.c_ratio * smallest)
        C, fits = self.C_, {"n_iter": 0, "short": False}

        def solve(active: NDArray[np.intp]) -> Array:
            model = LinearSVC(
                penalty="l1",
                loss="squared_hinge",
                dual=False,
                C=C,
                class_weight=dict(enumerate(weight)),
                max_iter=self.max_iter,
                tol=self.tol,
                random_state=self.random_state,
            )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                model.fit(gather_columns(blocks, active), codes)
            fits["short"] = any(issubclass(w.category, ConvergenceWarning) for w in caught)
            fits["n_iter"] = int(np.max(model.n_iter_))
            self.intercept_ = np.atleast_1d(model.intercept_)
            return np.asarray(model.coef_)

        def correlations(active: NDArray[np.intp], coef: Array) -> Array:
            margin = gather_columns(blocks, active) @ coef.T + self.intercept_
            slack = s * signs * np.maximum(0.0, 1.0 - signs * margin)
            return np.asarray(np.max(2.0 * C * np.abs(project_all(blocks, slack)), axis=1))

        D = sum(b.width for b in blocks)
        start = np.max(np.abs(first), axis=1)
        active, coef, self.n_rounds_ = solve_on_working_set(
            D, solve, correlations, start, tol=1e-2, name="LSVM-l1"
        )
        if fits["short"]:
            warnings.warn(
                f"LSVM-l1 stopped at max_iter={self.max_iter} with C={C:.3g}; above separability "
                "the solution hardly changes, so lower c_ratio rather than raise max_iter.",
                NotConvergedWarning,
                stacklevel=3,
            )
        self.n_iter_ = max(1, int(fits["n_iter"]))
        full = np.zeros((coef.shape[0], D))
        full[:, active] = coef
        self.coef_ = self._split(full, blocks)
        self.selected_features_ = {k: np.any(c != 0.0, axis=0) for k, c in self.coef_.items()}

    def _scores(self, blocks: list[Block]) -> Array:
        coef = {name: c.T for name, c in self.coef_.items()}
        return class_scores(linear_predictor(blocks, coef, self.intercept_))
