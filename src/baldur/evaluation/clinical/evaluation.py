"""evaluate_predictions: all clinical tables of held-out predictions in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import pandas as pd

from baldur.evaluation.clinical.calibration import (
    NO_PROBABILITIES,
    calibration_curves,
    calibration_measures,
)
from baldur.evaluation.clinical.decision import decision_curves, threshold_measures, why_unusable
from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    resample,
)
from baldur.evaluation.clinical.metric_intervals import (
    LEAST,
    metric_differences,
    metric_intervals,
    subgroup_measures,
)


@dataclass
class Evaluation:
    """Figures of held-out predictions, one tidy table each.

    Attributes
    ----------
    intervals : DataFrame
        As `metric_intervals` gives it.
    differences : DataFrame
        As `metric_differences`.
    calibration : DataFrame
        As `calibration_measures`.
    calibration_curve : DataFrame
        As `calibration_curves`.
    decision : DataFrame
        As `decision_curves`; no rows where the outcome has not two classes.
    thresholds : DataFrame
        As `threshold_measures`; likewise.
    subgroups : DataFrame
        As `subgroup_measures`; no rows where none were asked for.
    left_out : DataFrame
        model, figure, reason: what is not given, and why.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation import evaluate_predictions
    >>> table = pd.DataFrame({"label": ["no", "no", "no", "yes", "yes"] * 20,
    ...                       "p_yes": [0.1, 0.3, 0.8, 0.7, 0.9] * 20})
    >>> found = evaluate_predictions(table)
    >>> list(found.frames())
    ['intervals.csv', 'calibration.csv', 'calibration_curve.csv', 'decision.csv', 'thresholds.csv']
    """

    intervals: pd.DataFrame
    differences: pd.DataFrame
    calibration: pd.DataFrame
    calibration_curve: pd.DataFrame
    decision: pd.DataFrame
    thresholds: pd.DataFrame
    subgroups: pd.DataFrame
    left_out: pd.DataFrame = field(default_factory=pd.DataFrame)

    def frames(self) -> dict[str, pd.DataFrame]:
        """Return the tables that have rows, by the name of their file."""
        return {f"{name}.csv": frame for name, frame in vars(self).items() if len(frame)}


def evaluate_predictions(
    predictions: pd.DataFrame | Resampled,
    *,
    metrics: Sequence[str] | None = None,
    thresholds: Sequence[float] | None = None,
    sensitivities: Sequence[float] = (),
    specificities: Sequence[float] = (),
    prevalence: float | None = None,
    shift: bool = True,
    subgroups: pd.DataFrame | None = None,
    least: int = LEAST,
    **bootstrap: Unpack[BootstrapOptions],
) -> Evaluation:
    """Compute intervals, calibration, net benefit and subgroups from a predictions table.

    Parameters
    ----------
    predictions : DataFrame
        As ``predictions.csv``, of any model: label, and p_<class> for each class with the positive
        one last (or of the positive class only), or score (decision scores); in regression
        predicted. Further columns may be left out: model, sample, repeat, fold, predicted, group,
        site, and probability ("platt" where probabilities come from Platt scaling).
    metrics : list of str, optional
        Names out of `METRICS`; default all of the task.
    thresholds, sensitivities, specificities
        Where the test is judged, by default at 0.5 and at the prevalence; see
        `threshold_measures`.
    prevalence : float, optional
        Share of cases in the population the test is meant for; default that of the predictions.
    shift : bool, default=True
        With `prevalence`: shift the probabilities to it as well.
    subgroups : DataFrame, optional
        One row per sample, ids as index, one column per way of parting the people.
    least : int, default=10
        Cases, and controls, a subgroup must have.
    **bootstrap
        classes (list of str, the positive one last and [] in regression; by default those with a
        column), resamples (2000 by default), level (coverage of the intervals, 0.95 by default)
        and random_state (0 by default).

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from baldur.evaluation import evaluate_predictions
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=200)
    >>> label = np.where(rng.uniform(size=200) < p, "case", "control")
    >>> made = evaluate_predictions(pd.DataFrame({"label": label, "p_case": p}))
    >>> slope = made.calibration.set_index("measure").loc["slope"]
    >>> bool(slope["low"] < 1 < slope["high"])
    True
    """
    sample = resample(predictions, **bootstrap)
    population: dict[str, Any] = {"prevalence": prevalence, "shift": shift}
    chosen = {"sensitivities": sensitivities, "specificities": specificities}
    subgroup_table = pd.DataFrame()
    if subgroups is not None:
        subgroup_table = subgroup_measures(sample, subgroups, least=least)
    return Evaluation(
        intervals=sample.once(metric_intervals, metrics=metrics),
        differences=sample.once(metric_differences, metrics=metrics),
        calibration=sample.once(calibration_measures),
        calibration_curve=sample.once(calibration_curves),
        decision=sample.once(decision_curves, **population),
        thresholds=sample.once(threshold_measures, thresholds=thresholds, **chosen, **population),
        subgroups=subgroup_table,
        left_out=_left_out(sample.models),
    )


def _left_out(held: dict[str, HeldOutPredictions]) -> pd.DataFrame:
    """List the figures that a model's predictions do not allow, and why."""
    rows = []
    for model, predictions in held.items():
        if predictions.classes and not predictions.predicted.has_proba:
            rows.append((model, "calibration", NO_PROBABILITIES))
        why = why_unusable(predictions)
        if why:
            rows += [(model, figure, why) for figure in ("decision curve", "thresholds")]
        if not predictions.classes:
            rows.append((model, "brier", "a numeric outcome has no Brier score"))
    return pd.DataFrame(rows, columns=["model", "figure", "reason"])
