"""How BaldurClassifier and BaldurRegressor fit: one posterior for all views, jointly Gaussian."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from baldur.estimator import BaldurBase, Training
from baldur.exceptions import InputError
from baldur.inference.fitted import Fitted, fit_auto, fit_shape
from baldur.inference.fixed_rank import fit_auto_with_factors
from baldur.inference.screening import Problem
from baldur.inference.sparsity import Fold
from baldur.model.likelihood import Likelihood
from baldur.progress import Reporter
from baldur.views.products import PreparedView

INNER_FOLDS = 5


class StructuredFit(BaldurBase):
    """The settings of the two estimators and the fit they share."""

    sparsity: Any
    prune: bool
    random_state: Any
    n_jobs: int | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        shape = self.sparsity
        if shape != "auto" and not (isinstance(shape, Real) and float(shape) >= 1e-6):
            raise InputError(
                'sparsity must be "auto" or the shape of a Gamma prior from 1e-6 (few features) to '
                f"float('inf') (none dropped), but got {shape!r}."
            )

    def _fit_posterior(
        self,
        views: list[PreparedView],
        likelihood: Likelihood,
        training: Training,
        folds: Sequence[Fold],
        reporter: Reporter,
    ) -> Fitted:
        T = training.T
        rank = None if self.n_factors == "auto" else int(self.n_factors)
        if self.sparsity != "auto":
            return fit_shape(
                views,
                likelihood,
                shape=float(self.sparsity),
                n_factors=rank,
                max_iter=self.max_iter,
                tol=self.tol,
                prune=self.prune,
                watch=reporter.watch,
            )
        problem = Problem(views, likelihood, training.task)
        fitted, choice = fit_auto(
            problem,
            T,
            folds,
            n_jobs=self.n_jobs,
            max_iter=self.max_iter,
            watch=reporter.watch,
        )
        if rank is None or rank >= T.shape[1]:
            return fitted
        return fit_auto_with_factors(
            problem, choice, fitted, rank, max_iter=self.max_iter, tol=self.tol
        )
