"""ViewComparison: two view sets of one model and the people on whom they are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtrit

from baldur.evaluation.clinical.bootstrap import Bootstrap, Draws
from baldur.evaluation.clinical.decision import (
    check_prevalence,
    check_thresholds,
    net_benefit,
    shifted,
    usable,
)
from baldur.evaluation.clinical.held_out import (
    HeldOutPredictions,
    Resampled,
    draw_metric,
    rows_behind,
    scale_of,
)
from baldur.evaluation.metric_table import holm
from baldur.evaluation.metrics import METRICS

BASELINE, WITH, ALL, ALONE, WITHOUT = "baseline", "with", "all", "alone", "without"
"""Questions about one view set: how well do these views predict? The baseline, the baseline with a
view, all views, a view alone, and all without a view. A set has one row, of the first question."""
ADDED, ALL_ADDED, BEYOND = "added", "all added", "beyond the others"
"""Questions about two view sets: what does a view add to the baseline, what do all others add to
it together, and what does a view add to all others?"""


@dataclass(frozen=True)
class ViewComparison:
    """A model with some views, and the same model without some of them."""

    question: str  # One of the questions above
    view: str
    model: str  # The row with it
    reference: str  # The row without it; empty where there is nothing to compare with
    people: np.ndarray  # (n_people,)


def view_comparisons(
    rows: Mapping[tuple[str, ...], str],
    baseline: Sequence[str],
    present: Mapping[str, np.ndarray],
) -> list[ViewComparison]:
    """Return the comparisons that the view sets of a model allow, each pair once."""
    known = tuple(present)
    base = tuple(v for v in known if v in baseline)
    others = [v for v in known if v not in baseline]

    def has(views: Sequence[str]) -> np.ndarray:
        return np.any([present[v] for v in views], axis=0)

    asked: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]] = [
        (BASELINE, _joined(base), base, ())
    ]
    wider = {v: tuple(w for w in known if w in base or w == v) for v in others}
    asked += [(WITH, v, wider[v], ()) for v in others if len(others) > 1]
    asked.append((ALL, "", known, ()))
    asked += [(ALONE, v, (v,), ()) for v in known]
    asked += [(WITHOUT, v, tuple(w for w in known if w != v), ()) for v in known]
    asked += [(ADDED, v, wider[v], base) for v in others]
    asked.append((ALL_ADDED, _joined(others), known, base))
    asked += [(BEYOND, v, known, tuple(w for w in known if w != v)) for v in known]
    made: list[ViewComparison] = []
    pairs: set[tuple[str, str]] = set()
    for question, view, views, without in asked:
        if views not in rows or (without and without not in rows):
            continue  # its model failed
        pair = (rows[views], rows[without] if without else "")
        # A set may answer several questions; with two views comparisons are the same, too.
        if pair in pairs:
            continue
        pairs.add(pair)
        people = has(views)
        if without:
            people = has([v for v in views if v not in without]) & has(without)
        made.append(ViewComparison(question, view, *pair, people))
    return made


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


POWER = 0.8
"""Probability with which a detectable increase is shown; the usual choice of sample sizes."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_TINY = 1e-6


def quantiles(units: int, level: float) -> float:
    """Return how many standard errors an increase has to be to be shown with the power."""
    degrees = max(units - 1, 1)
    return float(stdtrit(degrees, 0.5 + level / 2) + stdtrit(degrees, POWER))


def auc_error(auc: float, increase: float, n_case: float, n_control: float) -> float:
    """Return the standard error of the difference of two AUCs, the second larger by an increase.

    Scores of cases and controls are normal with equal variances. The second score adds independent
    information to the first in the best way, so that the correlation of the two is the ratio of
    their standardised distances between cases and controls.
    """
    first, second = (np.sqrt(2) * ndtri(max(a, 0.5)) for a in (auc, auc + increase))
    correlation = min(first / second, 1.0) if second > 0 else 1.0
    # The share of controls below a case, of one score and of the other.
    z, e = _NODES[:, None], _NODES[None, :]
    weight = _WEIGHTS[:, None] * _WEIGHTS[None, :]
    other = correlation * z + np.sqrt(1 - correlation**2) * e
    change = ndtr(second + other) - ndtr(first + z)
    mean = float((weight * change).sum())
    variance = float((weight * (change - mean) ** 2).sum())
    return float(np.sqrt(variance * (1 / n_case + 1 / n_control)))


def r2_error(r2: float, increase: float, people: float) -> float:
    """Return the standard error of the difference of two R2, the second larger by an increase.

    The errors of the first prediction are those of the second and an independent normal part,
    whose variance is the increase.
    """
    left = max(1 - r2 - increase, 0.0)
    return float(np.sqrt((4 * left * increase + 2 * increase**2) / people))


def detectable_auc(
    auc: float, n_case: float, n_control: float, error: float, units: int, level: float
) -> float:
    """Return the smallest increase of an AUC that would be shown with the power."""
    start = max(auc, 0.5)
    return _smallest(
        lambda d: auc_error(start, d, n_case, n_control), 1 - start, error, quantiles(units, level)
    )


def detectable_r2(r2: float, people: float, error: float, units: int, level: float) -> float:
    """Return the smallest increase of R2 that would be shown with the power."""
    start = max(r2, 0.0)
    return _smallest(
        lambda d: r2_error(start, d, people), 1 - start, error, quantiles(units, level)
    )


def _smallest(
    error_at: Callable[[float], float], room: float, error: float, factor: float
) -> float:
    """Return the smallest increase that is `factor` times its standard error, up to `room`."""
    if not (np.isfinite(error) and np.isfinite(room)) or room <= 2 * _TINY:
        return float("nan")

    def beyond(increase: float) -> float:
        return increase - factor * error_at(increase)

    low, high = _TINY, room - _TINY
    if beyond(high) < 0:
        return float("nan")
    from scipy.optimize import brentq

    ideal = low if beyond(low) >= 0 else float(brentq(beyond, low, high, xtol=1e-5))
    found = max(ideal, factor * error)
    return found if found <= room else float("nan")


RECLASSIFICATION_COLUMNS = [
    "question", "view", "model", "reference", "threshold", "class", "people", "up", "down",
    "unchanged", "net", "low", "high",
]  # fmt: skip


def reclassified(
    held: HeldOutPredictions,
    without: HeldOutPredictions,
    people: np.ndarray,
    boot: Bootstrap,
    threshold: float,
    prevalence: float | None = None,
) -> list[tuple[str, float, float, float, float, float, float, float]]:
    """Return who moves across a threshold, of the controls and of the cases.

    Shapes: returns (class, people, up, down, unchanged, net, low, high).
    """
    rows = []
    moves = _moves(held, without, threshold, prevalence)
    for side, name in enumerate(held.classes):
        chosen = people & (held.truth == side)
        draws = _shares(moves, chosen, boot, len(np.unique(held.units[chosen])))
        up, down = draws.part(0), draws.part(1)
        net = up.minus(down) if side else down.minus(up)
        low, high = (float(v) for v in net.interval())
        n, more, less = float(chosen.sum()), float(up.estimate), float(down.estimate)
        up_n, down_n = round(n * more, 6), round(n * less, 6)
        rows.append((name, n, up_n, down_n, n - up_n - down_n, float(net.estimate), low, high))
    return rows


def _moves(
    held: HeldOutPredictions,
    without: HeldOutPredictions,
    threshold: float,
    prevalence: float | None,
) -> list[np.ndarray]:
    """Return for each repeat 1, -1 or 0 for people who move up, down or not; NaN if not there."""
    found = []
    for (rows, p), (rows_without, q) in zip(held.repeats, without.repeats, strict=True):
        moved = np.full((2, len(held.people)), np.nan)
        moved[0, rows] = shifted(held, p, prevalence, True) >= threshold
        moved[1, rows_without] = shifted(without, q, prevalence, True) >= threshold
        found.append(moved[0] - moved[1])
    return found


def _shares(moves: list[np.ndarray], chosen: np.ndarray, boot: Bootstrap, units: int) -> Draws:
    """Return the shares of the chosen people who move up and down, averaged over repeats."""

    def mean(weights: np.ndarray) -> np.ndarray:
        parts = []
        for move in moves:
            at = chosen & ~np.isnan(move)
            sides = np.column_stack([move[at] > 0, move[at] < 0]).astype(float)
            with np.errstate(divide="ignore", invalid="ignore"):
                parts.append(weights[:, at] @ sides / weights[:, at].sum(axis=1, keepdims=True))
        return np.asarray(np.mean(parts, axis=0))

    return boot.run(mean, max(units, 1))


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


def compare_view_sets(
    sample: Resampled,
    comparisons: Sequence[ViewComparison],
    *,
    thresholds: Sequence[float] | None = None,
    prevalence: float | None = None,
    fold_test: FoldTest | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the paired differences of all metrics, and who moves across the thresholds."""
    stated = _thresholds(sample, thresholds, prevalence)
    rows: list[dict[str, Any]] = []
    moved: list[tuple[object, ...]] = []
    for one in comparisons:
        rows += _rows(sample, one, stated, prevalence, fold_test)
        held, without = sample.models[one.model], sample.models.get(one.reference)
        if without is None or usable(held) or usable(without):
            continue
        about = (one.question, one.view, one.model, one.reference)
        for t in stated.tolist():
            moves = reclassified(held, without, one.people, sample.boot, t, prevalence)
            moved += [(*about, t, *row) for row in moves]
    table = pd.DataFrame(rows, columns=COLUMNS)
    for _, part in table.groupby(["metric", "threshold"], dropna=False):
        table.loc[part.index, "p_holm"] = holm(part["p"].to_numpy(dtype=float))
    return table, pd.DataFrame(moved, columns=RECLASSIFICATION_COLUMNS)


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
    held, without = sample.models[one.model], sample.models.get(one.reference)
    part = held.where(one.people)
    start: dict[str, Any] = {
        "question": one.question, "view": one.view, "model": one.model,
        "reference": one.reference, "people": int(part.members.sum()),
        "of_people": len(held.people), "units": part.n_units,
    }  # fmt: skip
    rows = []

    def draws(name: str, metric: str) -> Draws:
        if one.people.all():
            return sample.metric(name, metric)
        return draw_metric(sample.models[name].where(one.people), sample.boot, metric)

    for metric in _BY_TASK[bool(sample.classes)]:
        value = draws(one.model, metric)
        ends = value.interval(scale_of(metric), rows_behind(metric, part))
        other = None if without is None else draws(one.reference, metric)
        row = _figures(value, ends, other, METRICS[metric].greater_is_better)
        if without is not None:
            row["detectable"] = _detectable(sample.boot, part, without, metric, row)
            row["p"] = np.nan if fold_test is None else fold_test(one, metric)
        row["note"] = row["note"] or held.mark
        rows.append({**start, "metric": metric, "threshold": np.nan, **row})
    if usable(held) or (without is not None and usable(without)):
        return rows
    benefits = _benefits(held, one.people, sample, thresholds, prevalence)
    others = None
    if without is not None:
        others = _benefits(without, one.people, sample, thresholds, prevalence)
    for j, threshold in enumerate(thresholds.tolist()):
        value, other = benefits.part(j), None if others is None else others.part(j)
        row = _figures(value, value.interval(), other, True)
        rows.append({**start, "metric": NET_BENEFIT, "threshold": threshold, **row})
    return rows


def _figures(
    value: Draws,
    ends: tuple[np.ndarray, np.ndarray],
    other: Draws | None,
    greater_is_better: bool,
) -> dict[str, Any]:
    """Return the columns of one view set; those of a comparison are empty without another."""
    figures: dict[str, Any] = {
        **dict.fromkeys(COLUMNS[COLUMNS.index("value") : COLUMNS.index("outcome")], np.nan),
        "value": float(value.estimate), "value_low": float(ends[0]), "value_high": float(ends[1]),
        "outcome": "", "note": "",
    }  # fmt: skip
    if other is None:
        return figures
    draws = value.minus(other)
    low, high = (float(v) for v in draws.interval())
    difference = float(draws.estimate)
    outcome = outcome_of(difference, low, high, greater_is_better)
    return figures | {
        "reference_value": float(other.estimate), "difference": difference, "low": low,
        "high": high, "standard_error": float(draws.error()), "outcome": outcome,
        "note": "not defined for these people" if outcome == UNKNOWN else "",
    }  # fmt: skip


def _detectable(
    boot: Bootstrap,
    part: HeldOutPredictions,
    without: HeldOutPredictions,
    metric: str,
    row: dict[str, Any],
) -> float:
    """Return the increase of the main metric that would be shown with a probability of 80 %."""
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
