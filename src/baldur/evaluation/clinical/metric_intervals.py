"""Every metric with its interval, per model and per site, and differences between models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Unpack

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.held_out import HeldOutPredictions
from baldur.evaluation.clinical.resampled import (
    BootstrapOptions,
    Resampled,
    draw_metric,
    resample,
)
from baldur.evaluation.metrics import METRICS

ALL = "*"
"""The value of the column site for all sites together."""

_SCALES = {"log_loss": "log", "rmse": "log", "mae": "log", "r2": "log_distance",
           "correlation": "atanh"}  # fmt: skip

# Fewer groups than this say little about how groups differ.
_FEW_UNITS = 20


def scale_of(metric: str) -> str:
    """Return the scale on which a metric's resamples are nearly normal."""
    return _SCALES.get(metric, "logit")


def rows_behind(metric: str, held: HeldOutPredictions) -> float:
    """Return the number of people a metric is computed from, for scores of exactly 0 or 1."""
    if not held.classes:
        return float(held.members.sum())
    rows, p = held.repeats[0]
    if metric == "accuracy":
        return float(len(rows))
    if metric == "precision" and len(held.classes) == 2:
        return float(max(1, np.sum(p.label == 1)))
    if metric == "recall" and len(held.classes) == 2:
        return float(max(1, np.sum(p.truth == 1)))
    return float(min(np.sum(p.truth == c) for c in np.unique(p.truth)))


def metric_intervals(
    predictions: pd.DataFrame | Resampled,
    *,
    metrics: Sequence[str] | None = None,
    by_site: bool = True,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Give every metric of every model with its interval, on pooled held-out predictions.

    People are drawn with replacement, or groups where there is a column "group"; a person's
    predictions in all repeats come along. The models are not fitted again: the interval says how
    the figure varies with the people it was measured on, not with those it was trained on.

    Parameters
    ----------
    predictions : DataFrame or Resampled
        As ``predictions.csv``; see `read_held_out` for the columns.
    metrics : list of str, optional
        Names out of `METRICS`; default all of the task.
    by_site : bool, default=True
        Also for each site, where there is a column "site".
    **bootstrap
        classes, resamples, level and random_state, as in `Resampled`.

    Returns
    -------
    DataFrame
        model, site ("*": all), metric, estimate, low, high, people, units, note.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation import metric_intervals
    >>> table = pd.DataFrame({"label": ["no", "no", "no", "yes", "yes"] * 20,
    ...                       "p_yes": [0.1, 0.3, 0.8, 0.7, 0.9] * 20})
    >>> found = metric_intervals(table, metrics=["auc"])
    >>> found[["metric", "estimate", "low", "high", "people"]].round(2)
      metric  estimate   low  high  people
    0    auc      0.83  0.73   0.9     100
    """
    sample = resample(predictions, **bootstrap)
    rows = []
    for model, one in sample.models.items():
        parts: list[tuple[str, HeldOutPredictions]] = [(ALL, one)]
        if by_site and one.sites is not None:
            parts += [(s, one.where(one.sites == s)) for s in sorted(set(one.sites.tolist()))]
        for site, part in parts:
            n, units = int(part.members.sum()), part.n_units
            if not n:
                continue
            for metric in sample.metrics(metrics):
                if site == ALL:
                    draws = sample.metric(model, metric)
                else:
                    draws = draw_metric(part, sample.boot, metric)
                low, high = draws.interval(scale_of(metric), rows_behind(metric, part))
                note = _note(part, metric, float(draws.estimate), units)
                rows.append(
                    (model, site, metric, float(draws.estimate), float(low), float(high), n,
                     units, note)
                )  # fmt: skip
    columns = ["model", "site", "metric", "estimate", "low", "high", "people", "units", "note"]
    return pd.DataFrame(rows, columns=columns)


def metric_differences(
    predictions: pd.DataFrame | Resampled,
    *,
    metrics: Sequence[str] | None = None,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Give the difference of every metric between every two models, with its interval.

    The same resamples serve all models, so that what makes a person hard for both is taken out.

    Parameters
    ----------
    predictions, metrics, **bootstrap
        As in `metric_intervals`.

    Returns
    -------
    DataFrame
        metric, model_a, model_b, difference (a minus b), low, high, note.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation import metric_differences
    >>> table = pd.DataFrame({"model": ["Ridge"] * 40 + ["Dummy"] * 40, "sample": [*range(40)] * 2,
    ...                       "label": ["no", "no", "yes", "yes"] * 20,
    ...                       "p_yes": [0.1, 0.8, 0.7, 0.9] * 10 + [0.5] * 40})
    >>> found = metric_differences(table, metrics=["auc"])
    >>> found[["model_a", "model_b", "difference", "low", "high"]].round(2)
      model_a model_b  difference   low  high
    0   Ridge   Dummy        0.25  0.08  0.42
    """
    sample = resample(predictions, **bootstrap)
    rows: list[tuple[object, ...]] = []
    nan = float("nan")
    held = sample.models
    for metric in sample.metrics(metrics):
        for a, b in combinations(held, 2):
            if not np.array_equal(held[a].members, held[b].members):
                why = "the two models predict different people"
                rows.append((metric, a, b, nan, nan, nan, why))
                continue
            draws = sample.metric(a, metric).minus(sample.metric(b, metric))
            low, high = draws.interval()
            known = np.isfinite(draws.estimate)
            why = "" if known else f"{METRICS[metric].heading} is not defined for one of them"
            rows.append((metric, a, b, float(draws.estimate), float(low), float(high), why))
    columns = ["metric", "model_a", "model_b", "difference", "low", "high", "note"]
    return pd.DataFrame(rows, columns=columns)


def _note(held: HeldOutPredictions, metric: str, estimate: float, units: int) -> str:
    heading = METRICS[metric].heading
    if np.isnan(estimate):
        if held.classes and len(np.unique(np.concatenate([p.truth for _, p in held.repeats]))) < 2:
            return f"{heading} needs two classes"
        if held.classes and not held.has_proba:
            return f"{heading} needs probabilities, which this model does not give"
        return f"{heading} is not defined for these predictions"
    notes = []
    if held.scaled and metric in ("log_loss", "brier", "calibration"):
        notes.append(held.mark)
    if units < _FEW_UNITS:
        notes.append(f"rests on {units} people or groups, so that the interval is rough")
    return "; ".join(notes)
