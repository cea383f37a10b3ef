"""evaluate_predictions: everything a clinical reader asks of held-out predictions, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from baldur.evaluation.clinical.calibration import NO_PROBABILITIES, curves_of, measures_of
from baldur.evaluation.clinical.decision import THRESHOLDS, decisions_of, usable
from baldur.evaluation.clinical.held_out import HeldOutPredictions, open_predictions
from baldur.evaluation.clinical.intervals import differences_of, intervals_of
from baldur.evaluation.clinical.subgroups import LEAST, subgroups_of
from baldur.evaluation.clinical.thresholds import thresholds_of

__all__ = ["Evaluation", "evaluate_predictions"]


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
    predictions: pd.DataFrame,
    *,
    classes: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    thresholds: Sequence[float] | None = None,
    sensitivities: Sequence[float] = (),
    specificities: Sequence[float] = (),
    prevalence: float | None = None,
    shift: bool = True,
    subgroups: pd.DataFrame | None = None,
    least: int = LEAST,
    resamples: int = 2000,
    level: float = 0.95,
    random_state: int = 0,
) -> Evaluation:
    """Compute intervals, calibration, usefulness and subgroups from predictions alone.

    Parameters
    ----------
    predictions : DataFrame
        As ``predictions.csv``, of any model: sample, label and p_<class> for each class with the
        positive one last; further columns as in `read_held_out`.
    classes : list of str, optional
        Classes with the positive one last, [] for regression; default by the columns.
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
    resamples : int, default=2000
        How often people (or groups) are drawn.
    level : float, default=0.95
        Coverage of intervals.
    random_state : int, default=0
        The same number gives the same figures.

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
    held, boot = open_predictions(predictions, classes, resamples, level, random_state)
    return Evaluation(
        intervals=intervals_of(held, boot, metrics),
        differences=differences_of(held, boot, metrics),
        calibration=measures_of(held, boot),
        calibration_curve=curves_of(held, boot),
        decision=decisions_of(held, boot, THRESHOLDS, prevalence, shift),
        thresholds=thresholds_of(
            held, boot, thresholds, sensitivities, specificities, prevalence, shift
        ),
        subgroups=pd.DataFrame()
        if subgroups is None
        else subgroups_of(held, boot, subgroups, least),
        left_out=_left_out(held),
    )


def _left_out(held: dict[str, HeldOutPredictions]) -> pd.DataFrame:
    rows = []
    for model, one in held.items():
        if one.classes and not one.has_proba:
            rows.append((model, "calibration", NO_PROBABILITIES))
        why = usable(one)
        if why:
            rows += [(model, figure, why) for figure in ("decision curve", "thresholds")]
        if not one.classes:
            rows.append((model, "brier", "a numeric outcome has no Brier score"))
    return pd.DataFrame(rows, columns=["model", "figure", "reason"])
