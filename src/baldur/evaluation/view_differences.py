"""Differences of two view sets of one model, on the people who have what was added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtrit

from baldur.evaluation.clinical.bootstrap import Bootstrap
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
    Statistic,
    draw_metric,
    long_table,
    metric_statistic,
)
from baldur.evaluation.metric_table import holm
from baldur.evaluation.metrics import METRICS, Predicted

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
    comparisons: list[ViewComparison] = []
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
        comparisons.append(ViewComparison(question, view, *pair, people))
    return comparisons


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


# -- what could have been detected ---------------------------------------------------------------

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
    ideal_error = partial(auc_error, n_case=n_case, n_control=n_control)
    return _smallest_increase(ideal_error, max(auc, 0.5), error, quantiles(units, level))


def detectable_r2(r2: float, people: float, error: float, units: int, level: float) -> float:
    """Return the smallest increase of R2 that would be shown with the power."""
    ideal_error = partial(r2_error, people=people)
    return _smallest_increase(ideal_error, max(r2, 0.0), error, quantiles(units, level))


def _smallest_increase(
    ideal_error: Callable[[float, float], float], start: float, error: float, factor: float
) -> float:
    """Return the smallest increase that is `factor` times its standard error, up to 1."""
    room = 1 - start
    if not (np.isfinite(error) and np.isfinite(room)) or room <= 2 * _TINY:
        return float("nan")

    def beyond(increase: float) -> float:
        return increase - factor * ideal_error(start, increase)

    low, high = _TINY, room - _TINY
    if beyond(high) < 0:
        return float("nan")
    from scipy.optimize import brentq

    ideal = low if beyond(low) >= 0 else float(brentq(beyond, low, high, xtol=1e-5))
    increase = max(ideal, factor * error)
    return increase if increase <= room else float("nan")


def _detectable(
    boot: Bootstrap,
    part: HeldOutPredictions,
    without: HeldOutPredictions,
    reference: float,
    error: float,
) -> float:
    """Return the increase of the main metric that would be shown with a probability of 80 %."""
    units, people = part.n_units, int(part.members.sum())
    # People of a group are not independent: so many independent people would have this error.
    share = 1.0
    if units < people:
        alone = Bootstrap(np.arange(len(part.people)), boot.resamples, boot.level)
        metric = main_metric(bool(part.classes))
        one, other = (draw_metric(h.where(part.members), alone, metric) for h in (part, without))
        ratio = float(one.minus(other).error()) / error if error > 0 else 1.0
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


# -- differences ---------------------------------------------------------------------------------

COLUMNS = [
    "question", "view", "model", "reference", "metric", "threshold", "people", "of_people", "units",
    "value", "value_low", "value_high", "reference_value", "difference", "low", "high",
    "standard_error", "detectable", "p", "p_holm", "outcome", "note",
]  # fmt: skip
RECLASSIFICATION_COLUMNS = [
    "question", "view", "model", "reference", "threshold", "class", "people", "up", "down",
    "unchanged", "net", "low", "high",
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
    points = _thresholds(sample, thresholds, prevalence)
    rows: list[dict[str, Any]] = []
    moved: list[dict[str, Any]] = []
    for views in comparisons:
        rows += _difference_rows(sample, views, points, prevalence, fold_test)
        moved += _reclassification_rows(sample, views, points, prevalence)
    table = long_table(rows, COLUMNS)
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


def _statistics(
    held: HeldOutPredictions, people: np.ndarray, thresholds: np.ndarray, prevalence: float | None
) -> Iterator[Statistic]:
    """Yield the metrics of a view set on some people, and its net benefit at the thresholds."""
    some = None if people.all() else people
    for metric in _BY_TASK[bool(held.classes)]:
        yield metric_statistic(metric, held.where(people), some, metric=metric, threshold=np.nan)

    def benefit(p: Predicted, weights: np.ndarray) -> np.ndarray:
        # Probabilities are shifted from the share of cases among all, whom models were trained on.
        proba = shifted(held, p, prevalence, True)
        return net_benefit(proba, p.truth == 1, thresholds, prevalence=prevalence, weights=weights)

    if not usable(held):
        names = {"metric": NET_BENEFIT, "threshold": thresholds}
        yield Statistic(benefit, names, people=some)


def _difference_rows(
    sample: Resampled,
    views: ViewComparison,
    thresholds: np.ndarray,
    prevalence: float | None,
    fold_test: FoldTest | None,
) -> Iterator[dict[str, Any]]:
    """Yield one row for each metric of a comparison, and one for each threshold."""
    held, without = sample.models[views.model], sample.models.get(views.reference)
    part = held.where(views.people)
    start: dict[str, Any] = {
        **dict.fromkeys(COLUMNS, np.nan),
        "question": views.question, "view": views.view, "model": views.model,
        "reference": views.reference, "people": int(part.members.sum()),
        "of_people": len(held.people), "units": part.n_units, "outcome": "", "note": "",
    }  # fmt: skip
    both = [
        _statistics(one, views.people, thresholds, prevalence)
        for one in (held, held if without is None else without)
    ]
    for statistic, reference in zip(*both, strict=False):
        metric, draws = statistic.names["metric"], sample.draw(views.model, statistic)
        names = ("value", "value_low", "value_high")
        row = {**start, **statistic.names}
        row |= draws.columns(names, statistic.scale, statistic.count)
        if without is not None:
            other = sample.draw(views.reference, reference)
            gap = draws.minus(other)
            row |= gap.columns(("difference", "low", "high"))
            error = np.atleast_1d(gap.error())
            row |= {"reference_value": np.atleast_1d(other.estimate), "standard_error": error}
            greater = metric == NET_BENEFIT or METRICS[metric].greater_is_better
            ends = zip(row["difference"], row["low"], row["high"], strict=True)
            row["outcome"] = np.array([outcome_of(*e, greater) for e in ends], dtype=object)
            unknown = row["outcome"] == UNKNOWN
            row["note"] = np.where(unknown, "not defined for these people", "").astype(object)
            if metric != NET_BENEFIT and fold_test is not None:
                row["p"] = fold_test(views, metric)
            if metric == main_metric(bool(held.classes)):
                figures = float(other.estimate), float(gap.error())
                row["detectable"] = _detectable(sample.boot, part, without, *figures)
        if metric != NET_BENEFIT and row["note"] == "":
            row["note"] = held.mark
        yield row


def _reclassification_rows(
    sample: Resampled, views: ViewComparison, thresholds: np.ndarray, prevalence: float | None
) -> Iterator[dict[str, Any]]:
    """Yield who moves across each threshold, of the controls and of the cases."""
    held, without = sample.models[views.model], sample.models.get(views.reference)
    if without is None or usable(held) or usable(without):
        return
    about = {
        "question": views.question, "view": views.view, "model": views.model,
        "reference": views.reference,
    }  # fmt: skip
    for threshold in thresholds.tolist():
        moves = _moves(held, without, threshold, prevalence)
        for side, name in enumerate(held.classes):
            chosen = views.people & (held.truth == side)
            units = len(np.unique(held.units[chosen]))
            draws = sample.boot.run(partial(_moved_shares, moves, chosen), max(units, 1))
            up, down = draws.part(0), draws.part(1)
            net = up.minus(down) if side else down.minus(up)
            low, high = (float(end) for end in net.interval())
            n = float(chosen.sum())
            up_n, down_n = (round(n * float(share.estimate), 6) for share in (up, down))
            yield {
                **about, "threshold": threshold, "class": name, "people": n, "up": up_n,
                "down": down_n, "unchanged": n - up_n - down_n, "net": float(net.estimate),
                "low": low, "high": high,
            }  # fmt: skip


def _moves(
    held: HeldOutPredictions,
    without: HeldOutPredictions,
    threshold: float,
    prevalence: float | None,
) -> list[np.ndarray]:
    """Return for each repeat 1, -1 or 0 for people who move up, down or not; NaN if not there."""
    moves = []
    for (rows, p), (rows_without, q) in zip(held.repeats, without.repeats, strict=True):
        positive = np.full((2, len(held.people)), np.nan)
        positive[0, rows] = shifted(held, p, prevalence, True) >= threshold
        positive[1, rows_without] = shifted(without, q, prevalence, True) >= threshold
        moves.append(positive[0] - positive[1])
    return moves


def _moved_shares(moves: list[np.ndarray], chosen: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the shares of the chosen people who move up and down, averaged over repeats."""
    parts = []
    for move in moves:
        at = chosen & ~np.isnan(move)
        sides = np.column_stack([move[at] > 0, move[at] < 0]).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts.append(weights[:, at] @ sides / weights[:, at].sum(axis=1, keepdims=True))
    return np.asarray(np.mean(parts, axis=0))
