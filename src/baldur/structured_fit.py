"""How BaldurClassifier and BaldurRegressor fit: one posterior for all views, jointly Gaussian."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from baldur.estimator import BaldurBase, Training, check_seed
from baldur.exceptions import InputError, NoSignalWarning
from baldur.inference.ensemble import MEMBERS
from baldur.inference.factors import fit_factors_on_selected
from baldur.inference.fit import FitResult, fit_default
from baldur.inference.inner_folds import inner_folds
from baldur.inference.screening import Problem
from baldur.inference.selection import CONFIDENT, against_base_rate
from baldur.progress import Reporter
from baldur.views.container import MultiView
from baldur.views.products import PreparedView


class StructuredFit(BaldurBase):
    """The settings of the two estimators and the fit they share."""

    members: Sequence[str]
    margin: float
    random_state: Any
    n_jobs: int | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_members(self.members)
        check_seed(self.random_state)
        if self.n_jobs is not None and not (isinstance(self.n_jobs, Integral) and self.n_jobs != 0):
            raise InputError(
                "n_jobs must be None or a number of processes (-1 for one per core), but got "
                f"{self.n_jobs!r}."
            )
        if not (isinstance(self.margin, Real) and 0.0 <= float(self.margin) <= 1.0):
            raise InputError(
                "margin must be a number from 0 (keep whatever predicts best) to 1, the part of "
                "what is gained over the base rate that a smaller model may lose, but got "
                f"{self.margin!r}."
            )

    def _run(self, views: list[PreparedView], training: Training, reporter: Reporter) -> FitResult:
        T = training.T
        groups = self.preparation_.feature_groups
        problem = Problem(views, T, training.weight, training.task, groups)
        result = fit_default(
            problem,
            inner_folds(training.labels, training.task, training.groups, self.random_state),
            members=tuple(self.members),
            margin=float(self.margin),
            n_jobs=self.n_jobs,
            max_iter=self.max_iter,
            watch=reporter.watch,
        )
        if self.n_factors == "auto" or int(self.n_factors) >= T.shape[1]:
            return result
        return fit_factors_on_selected(problem, result, int(self.n_factors), max_iter=self.max_iter)

    def _publish(self, mv: MultiView, fitted: FitResult) -> None:
        super()._publish(mv, fitted)
        self._publish_selection(fitted)

    def _publish_selection(self, answer: FitResult) -> None:
        """Set the submodel path, the stacking weights, and what is known of the selection."""
        names = self.view_names_
        self.inclusion_probability_ = {
            name: self.preparation_.expand(name, inclusion)
            for name, inclusion in zip(names, answer.inclusion, strict=True)
        }
        self.sparsity_path_ = pd.DataFrame(answer.path)
        self.stack_ = answer.stacking
        self.sparsity_ = dict(zip(names, answer.share.tolist(), strict=True))
        self.space_ = dict.fromkeys(names, answer.solver)
        self.signal_ = answer.signal.in_errors
        self.signal_shown_ = bool(self.signal_ > CONFIDENT)
        columns = self.preparation_.columns_
        features = [np.asarray(self.feature_names_[name])[columns[name]] for name in names]
        self.credible_sets_ = pd.DataFrame(
            [
                {
                    "view": names[found.view],
                    "feature": str(features[found.view][found.feature]),
                    "member_view": names[m],
                    "member_feature": str(features[m][d]),
                    "probability": p,
                    "min_abs_correlation": found.min_abs_correlation,
                }
                for found in answer.credible_sets
                for m, d, p in zip(found.views, found.features, found.probability, strict=True)
            ],
            columns=[
                "view",
                "feature",
                "member_view",
                "member_feature",
                "probability",
                "min_abs_correlation",
            ],
        )
        if not self.signal_shown_:
            kept = sum(int(np.sum(mask)) for mask in answer.selected)
            what = (
                "the base rate is predicted for everybody"
                if kept == 0
                else "the features it keeps are not to be read as findings"
            )
            warnings.warn(
                f"{type(self).__name__}: no signal was shown. On held-out rows the model is "
                f"{against_base_rate(self.signal_)}, and {CONFIDENT} better would be needed for "
                f"95 % confidence; {what}.",
                NoSignalWarning,
                stacklevel=4,
            )


def check_members(members: Any) -> None:
    """Refuse anything but a non-empty collection of members' names."""
    legal = ", ".join(f'"{name}"' for name in MEMBERS)
    several = isinstance(members, Iterable) and not isinstance(members, (str, bytes))
    names = list(members) if several else []
    if not names or any(not isinstance(name, str) or name not in MEMBERS for name in names):
        raise InputError(
            f"members must be a tuple or list of one or more of {legal}, but got {members!r}."
        )
