"""Resampled: held-out predictions of every model with one bootstrap that all tables share.

A metric is drawn once for each model, and then serves the table of a comparison, its intervals and
the differences between models.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypedDict, Unpack

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.bootstrap import Bootstrap, Draws
from baldur.evaluation.clinical.held_out import HeldOutPredictions, read_held_out
from baldur.evaluation.metrics import Predicted, default_metrics, scores
from baldur.exceptions import InputError


class Resampled:
    """Held-out predictions of every model, and the resamples of their samples.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation.clinical.resampled import Resampled
    >>> from baldur.evaluation import calibration_measures, metric_intervals
    >>> table = pd.DataFrame({"label": ["no", "no", "no", "yes", "yes"] * 20,
    ...                       "p_yes": [0.1, 0.3, 0.8, 0.7, 0.9] * 20})
    >>> sample = Resampled(table, resamples=500)
    >>> metrics, calibration = metric_intervals(sample), calibration_measures(sample)
    >>> sample.classes, sample.metric("model", "auc").resampled.shape
    (['no', 'yes'], (500,))
    """

    def __init__(
        self,
        predictions: pd.DataFrame,
        classes: Sequence[str] | None = None,
        resamples: int = 2000,
        level: float = 0.95,
        random_state: int = 0,
    ) -> None:
        self.models = read_held_out(predictions, classes)
        units = next(iter(self.models.values())).units
        self.boot = Bootstrap(units, resamples, level, random_state)
        self._draws: dict[tuple[str, str], Draws] = {}
        self._frames: dict[Hashable, pd.DataFrame] = {}

    @property
    def classes(self) -> list[str]:
        """Classes with the positive one last; empty in regression."""
        return next(iter(self.models.values())).classes

    def metrics(self, wanted: Sequence[str] | None = None) -> list[str]:
        """Return the metrics asked for, by default all of the task."""
        return list(wanted) if wanted is not None else default_metrics(bool(self.classes))

    def metric(self, model: str, metric: str) -> Draws:
        """Return a metric of a model on the sample and on every resample, drawn once."""
        key = (model, metric)
        if key not in self._draws:
            self._draws[key] = draw_metric(self.models[model], self.boot, metric)
        return self._draws[key]

    def once(self, key: Hashable, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Return a copy of the table of this key; the table is computed only once."""
        if key not in self._frames:
            self._frames[key] = make()
        return self._frames[key].copy()


class BootstrapOptions(TypedDict, total=False):
    """Arguments of `Resampled` besides the predictions, for functions that pass them on."""

    classes: Sequence[str] | None
    resamples: int
    level: float
    random_state: int


def resample(
    predictions: pd.DataFrame | Resampled, **bootstrap: Unpack[BootstrapOptions]
) -> Resampled:
    """Return predictions with resamples of their samples."""
    if not isinstance(predictions, Resampled):
        return Resampled(predictions, **bootstrap)
    if bootstrap:
        raise InputError(
            f"{', '.join(bootstrap)}: the resamples have been drawn already. Pass the predictions "
            "table, or give these arguments to Resampled."
        )
    return predictions


def draw_metric(held: HeldOutPredictions, boot: Bootstrap, metric: str) -> Draws:
    """Return a metric on the sample and on every resample, averaged over repeats."""

    def statistic(predicted: Predicted, weights: np.ndarray) -> np.ndarray:
        return scores(metric, predicted, weights)

    return held.draw(boot, statistic)
