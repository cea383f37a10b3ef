"""Paired differences of every metric between a model with a view and without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.added_value.comparisons import ViewComparison
from baldur.evaluation.added_value.detectable import detectable_auc, detectable_r2
from baldur.evaluation.added_value.reclassification import COLUMNS as MOVED
from baldur.evaluation.added_value.reclassification import reclassified
from baldur.evaluation.clinical.bootstrap import Bootstrap, Draws
from baldur.evaluation.clinical.decision import (
    check_prevalence,
    check_thresholds,
    net_benefit,
    shifted,
    usable,
)
from baldur.evaluation.clinical.held_out import HeldOutPredictions
from baldur.evaluation.clinical.metric_intervals import rows_behind, scale_of
from baldur.evaluation.clinical.resampled import Resampled, draw_metric
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.tables.model_tests import holm

COLUMNS = [
    "question", "view", "model", "reference", "metric", "threshold", "people", "of_people", "units",
    "value", "value_low", "value_high", "reference_value", "difference", "low", "high",
    "standard_error", "detectable", "p", "p_holm", "outcome", "note",
]  # fmt: skip

NET_BENEFIT = "net_benefit"
"""Name of the net benefit in the column metric; it is not one of `METRICS`."""
BETTER, WORSE, NOT_SHOWN, UNKNOWN = "better", "worse", "not shown", "not known"
"""Outcomes of a difference: its interval lies on the better side of 0, on the worse, includes 0,
or there is none."""

_BY_TASK = {True: ("auc", "log_loss", "brier"), False: ("r2", "rmse")}
HALF = 0.5  # the threshold where none is stated, as in `threshold_measures`

FoldTest = Callable[[ViewComparison, str], float]


def main_metric(classification: bool) -> str:
    """Return the metric whose difference decides a sentence: AUC, or R2 in regression."""
    return _BY_TASK[classification][0]


def outcome_of(difference: float, low: float, high: float, greater_is_better: bool = True) -> str:
    """Return the outcome of a difference, which its interval decides."""
    if not all(map(np.isfinite, (difference, low, high))):
        return UNKNOWN
    if not greater_is_better:
        low, high = -high, -low
    if low > 0:
        return BETTER
    return WORSE if high < 0 else NOT_SHOWN


@dataclass(frozen=True)
class Compared:
    """What `compare_view_sets` returns: a table of differences, and one of reclassification."""

    table: pd.DataFrame
    reclassification: pd.DataFrame


def compare_view_sets(
    sample: Resampled,
    comparisons: Sequence[ViewComparison],
    *,
    thresholds: Sequence[float] | None = None,
    prevalence: float | None = None,
    fold_test: FoldTest | None = None,
) -> Compared:
    """Compute the paired differences of all metrics, with intervals on the same people."""
    stated = _thresholds(sample, thresholds, prevalence)
    rows: list[dict[str, Any]] = []
    moved: list[tuple[object, ...]] = []
    for one in comparisons:
        rows += _rows(sample, one, stated, prevalence, fold_test)
        held = sample.models[one.model]
        if not one.reference or usable(held) or usable(sample.models[one.reference]):
            continue
        about = (one.question, one.view, one.model, one.reference)
        for t in stated.tolist():
            found = reclassified(
                held, sample.models[one.reference], one.people, sample.boot, t, prevalence
            )
            moved += [(*about, t, *row) for row in found]
    table = pd.DataFrame(rows, columns=COLUMNS)
    for _, part in table.groupby(["metric", "threshold"], dropna=False):
        table.loc[part.index, "p_holm"] = holm(part["p"].to_numpy(dtype=float))
    return Compared(table, pd.DataFrame(moved, columns=MOVED))


def _thresholds(
    sample: Resampled, thresholds: Sequence[float] | None, prevalence: float | None
) -> np.ndarray:
    """Return the thresholds that were stated, or 0.5 and the prevalence; none without two."""
    check_prevalence(prevalence)
    if len(sample.classes) != 2:
        return np.zeros(0)
    if thresholds is None:
        truth = next(iter(sample.models.values())).truth
        thresholds = [HALF, float(np.mean(truth == 1)) if prevalence is None else prevalence]
    return np.unique(check_thresholds(thresholds))


def _rows(
    sample: Resampled,
    one: ViewComparison,
    thresholds: np.ndarray,
    prevalence: float | None,
    fold_test: FoldTest | None,
) -> list[dict[str, Any]]:
    """Return one row for each metric of a comparison, and one for each threshold."""
    whole = bool(one.people.all())
    held = sample.models[one.model]
    without = sample.models[one.reference] if one.reference else None
    part = held.where(one.people)
    start: dict[str, Any] = {
        "question": one.question, "view": one.view, "model": one.model,
        "reference": one.reference, "people": int(part.members.sum()),
        "of_people": len(held.people), "units": part.n_units,
    }  # fmt: skip
    made = []

    def draws(name: str, metric: str) -> Draws:
        if whole:
            return sample.metric(name, metric)
        return draw_metric(sample.models[name].where(one.people), sample.boot, metric)

    for metric in _BY_TASK[bool(sample.classes)]:
        value = draws(one.model, metric)
        ends = value.interval(scale_of(metric), rows_behind(metric, part))
        row = {**start, "metric": metric, "threshold": np.nan, **_level(value, ends)}
        if without is not None:
            other = draws(one.reference, metric)
            better = METRICS[metric].greater_is_better
            row |= _difference(value.minus(other), float(other.estimate), better)
            row["detectable"] = _detectable(sample.boot, part, without, row)
            row["p"] = np.nan if fold_test is None else fold_test(one, metric)
        made.append(row)
    for row in made:
        row["note"] = row["note"] or held.mark
    if usable(held) or (without is not None and usable(without)):
        return made
    benefits = _benefits(held, one.people, sample, thresholds, prevalence)
    others = None
    if without is not None:
        others = _benefits(without, one.people, sample, thresholds, prevalence)
    for j, threshold in enumerate(thresholds.tolist()):
        value = benefits.part(j)
        row = {**start, "metric": NET_BENEFIT, "threshold": threshold}
        row |= _level(value, value.interval())
        if others is not None:
            other = others.part(j)
            row |= _difference(value.minus(other), float(other.estimate), True)
        made.append(row)
    return made


def _level(value: Draws, ends: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    """Return the columns of one view set; those of a comparison are empty."""
    nan = float("nan")
    return {
        "value": float(value.estimate), "value_low": float(ends[0]), "value_high": float(ends[1]),
        "reference_value": nan, "difference": nan, "low": nan, "high": nan, "standard_error": nan,
        "detectable": nan, "p": nan, "p_holm": nan, "outcome": "", "note": "",
    }  # fmt: skip


def _difference(draws: Draws, reference: float, greater_is_better: bool) -> dict[str, Any]:
    low, high = (float(v) for v in draws.interval())
    difference = float(draws.estimate)
    outcome = outcome_of(difference, low, high, greater_is_better)
    note = "" if outcome != UNKNOWN else "not defined for these people"
    return {
        "reference_value": reference, "difference": difference, "low": low, "high": high,
        "standard_error": float(draws.error()), "outcome": outcome, "note": note,
    }  # fmt: skip


def _detectable(
    boot: Bootstrap, part: HeldOutPredictions, without: HeldOutPredictions, row: dict[str, Any]
) -> float:
    """Return the increase of the main metric that would be shown with a probability of 80 %."""
    metric = row["metric"]
    if metric != main_metric(bool(part.classes)):
        return float("nan")
    reference, error = row["reference_value"], row["standard_error"]
    units, people = part.n_units, int(part.members.sum())
    # People of a group are not independent: so many independent people would have this error.
    share = 1.0
    if units < people:
        alone = Bootstrap(np.arange(len(part.people)), boot.resamples, boot.level)
        pair = (draw_metric(h.where(part.members), alone, metric) for h in (part, without))
        ratio = float(next(pair).minus(next(pair)).error()) / error if error > 0 else 1.0
        share = min(1.0, ratio**2) if np.isfinite(ratio) else 1.0
    if not part.classes:
        return detectable_r2(reference, share * people, error, units, boot.level)
    truth = part.truth[part.members]
    # With several classes an AUC is one against the rest; the rarest has the largest error.
    case = min(int(np.sum(truth == c)) for c in range(len(part.classes)))
    if not case:
        return float("nan")
    counts = (share * case, share * (people - case))
    return detectable_auc(reference, *counts, error, units, boot.level)


def _benefits(
    held: HeldOutPredictions,
    people: np.ndarray,
    sample: Resampled,
    thresholds: np.ndarray,
    prevalence: float | None,
) -> Draws:
    """Return the net benefit at every threshold, on some people."""
    # Probabilities are shifted from the share of cases among all, whom the models were trained on.
    moved = []
    for rows, p in held.repeats:
        predicted = shifted(held, p, prevalence, True)
        at = people[rows]
        moved.append((rows[at], predicted[at], p.truth[at] == 1))

    def mean(weights: np.ndarray) -> np.ndarray:
        parts = [
            net_benefit(
                predicted, case, thresholds, prevalence=prevalence, weights=weights[:, rows]
            )
            for rows, predicted, case in moved
        ]
        return np.asarray(np.mean(parts, axis=0))

    return sample.boot.run(mean, held.where(people).n_units)
