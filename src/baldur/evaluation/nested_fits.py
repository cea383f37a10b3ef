"""NestedFits: what the fits of a nested cross-validation gave for one outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.base_result import BaseResult
from baldur.evaluation.design import Comparison
from baldur.evaluation.engine.job_results import JobResults, OuterFit
from baldur.evaluation.selection.features import selection_frame
from baldur.evaluation.tables.predictions import predictions_frame
from baldur.views import MultiView


@dataclass(repr=False)
class NestedFits(BaseResult):
    """Held-out predictions, selected features and settings of the fits on the outer folds.

    All tables of a `NestedResult`, which describes the attributes, are computed from these.
    """

    comparison: Comparison
    jobs: JobResults

    def __post_init__(self) -> None:
        self.predictions = self.predictions_of(self.finished())
        self.selection = selection_frame(
            self.finished(), self.data, self.n_features, self.weight_classes
        )
        rows = [
            (model, f.repeat + 1, f.fold + 1, key, value)
            for model, fits in self.fits.items()
            for f in fits
            for key, value in f.setting.items()
        ]
        self.settings = pd.DataFrame(rows, columns=["model", "repeat", "fold", "setting", "value"])

    # -- from the comparison ---------------------------------------------------------------

    @property
    def classes(self) -> list[Any]:
        """Classes, the positive one last; empty in regression."""
        return self.comparison.classes

    @property
    def class_names(self) -> list[str]:
        """Classes as text, as the columns of the tables name them."""
        return [str(c) for c in self.classes]

    @property
    def weight_classes(self) -> list[str]:
        """Classes that have weights: the positive of two, each of several, or none ("")."""
        names = self.class_names
        return names if len(names) > 2 else names[-1:] or [""]

    @property
    def truth(self) -> np.ndarray:
        """Class codes or numbers of all samples."""
        return self.comparison.y

    @property
    def data(self) -> MultiView:
        """The samples on which the models were compared."""
        return self.comparison.data

    @property
    def n_features(self) -> dict[str, int]:
        """Features of each view, without the reference levels of categories."""
        return self.comparison.n_features

    @property
    def groups(self) -> np.ndarray | None:
        """Group of every sample, where groups were given."""
        return self.comparison.plan.groups

    @property
    def sites(self) -> np.ndarray | None:
        """Site of every sample, where sites were given."""
        return self.comparison.plan.sites

    # -- from the jobs ---------------------------------------------------------------------

    @property
    def fits(self) -> dict[str, list[OuterFit]]:
        """Fits of every model on the outer folds."""
        return self.jobs.fits

    @property
    def failures(self) -> dict[str, str]:
        """Models that failed, with the reason of each."""
        return self.jobs.failures

    @property
    def notes(self) -> dict[str, list[str]]:
        """Warnings and settings that failed, of every model."""
        return self.jobs.notes

    @property
    def permuted(self) -> dict[str, list[float]]:
        """Score of every model with each permutation of the labels."""
        return self.jobs.permuted

    @property
    def no_signal(self) -> dict[str, int]:
        """Folds of a model that showed no evidence of signal on held-out data."""
        return self.jobs.no_signal

    def finished(self) -> dict[str, list[OuterFit]]:
        """Return the fits of the models that finished every fold."""
        return {m: self.fits[m] for m in self.models if m not in self.failures}

    def predictions_of(self, fits: Mapping[str, Sequence[OuterFit]]) -> pd.DataFrame:
        """Return the held-out predictions of some fits, by model, in the form of `predictions`."""
        return predictions_frame(fits, self.data, self.truth, self.classes, self.groups, self.sites)

    def fold_values(self, model: str, metric: str) -> np.ndarray:
        """Return a metric of one model on the test rows of every outer fold.

        Parameters
        ----------
        model : str
            One that finished.
        metric : str

        Returns
        -------
        ndarray of shape (n_folds,)
        """
        fits = self.fits[model]
        return np.array([f.score(metric, self.truth, len(self.classes)) for f in fits])
