"""BaseResult: what the results of one outcome and of several outcomes have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.design import Comparison
from baldur.evaluation.splits import Fold
from baldur.evaluation.tables.model_tests import compare_pairs, permutation_tests
from baldur.hooks import call_hook


class BaseResult(ABC):
    """Names, folds, tests between models and the page of a comparison.

    `NestedResult` and `MultilabelResult` add the scores: of one outcome, or means over outcomes.
    """

    comparison: Comparison  # What was compared: models, data, folds and metrics

    @property
    def models(self) -> list[str]:
        """Names of the models, the rows of the table."""
        return [m.name for m in self.comparison.models]

    @property
    def metrics(self) -> list[str]:
        """Metrics that are columns of the table."""
        return self.comparison.metrics

    @property
    def select_by(self) -> str:
        """Metric that selected settings on the inner folds."""
        return self.comparison.metric

    @cached_property
    def folds(self) -> list[Fold]:
        """The outer folds of the comparison, which all outcomes share."""
        return self.comparison.folds

    @property
    @abstractmethod
    def permuted(self) -> dict[str, list[float]]:
        """Score of every model with each permutation of the labels."""

    @abstractmethod
    def finished(self) -> Collection[str]:
        """Return the models that finished every fold."""

    @abstractmethod
    def fold_values(self, model: str, metric: str) -> np.ndarray:
        """Return a metric of one model on the test rows of every outer fold."""

    @abstractmethod
    def format(self, form: str = "text", figures: str = "intervals") -> str:
        """Return the table as it is printed."""

    def __repr__(self) -> str:
        return self.format("text")

    def compare(self, metrics: Sequence[str] | None = None) -> pd.DataFrame:
        """Compare every pair of models by the corrected resampled t-test, Holm-adjusted.

        Of several outcomes, the mean over outcomes is compared.

        Parameters
        ----------
        metrics : list of str, optional
            Default: the metric settings were selected by. Pairs are adjusted within each, those
            of models with all views apart from the others.

        Returns
        -------
        DataFrame
            metric, model_a, model_b, difference, standard_error, t, df, p, p_holm.
        """
        ratio = float(np.mean([len(f.test) / len(f.train) for f in self.folds]))
        some = self.comparison.with_some_views
        parts = []
        for metric in metrics or [self.select_by]:
            by_model = {model: self.fold_values(model, metric) for model in self.finished()}
            parts.append(compare_pairs(by_model, ratio, metric, some))
        return pd.concat(parts, ignore_index=True)

    def permutation_test(self) -> pd.DataFrame:
        """Return score, mean permuted score and p-value of every model with permutations.

        p is adjusted over the models by Holm's rule in the column p_holm. Of several outcomes, the
        scores are means over outcomes, and the outcomes of a sample are permuted together.
        """
        scores = {model: self.fold_values(model, self.select_by) for model in self.finished()}
        return permutation_tests(scores, self.permuted, self.select_by)

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write one page about this comparison: the answer, figures, tables and methods.

        Of several outcomes, the page has the mean over outcomes and a short section for each;
        ``result["stroke"].report`` writes the complete page of one outcome.

        Parameters
        ----------
        path : str or Path
            HTML file to write; it needs no network and no other file.
        **options
            As in `baldur.report.report_result`: model, people, title.

        Returns
        -------
        Path
            The file.
        """
        made: Path = call_hook("report_result", self, path, **options)
        return made
