"""AddedValue: what each view adds, by paired differences of view sets of one model.

Two view sets are compared on the people who have what was added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtrit

from baldur.evaluation.clinical.bootstrap_intervals import Bootstrap
from baldur.evaluation.clinical.calibration import pairs
from baldur.evaluation.clinical.decision import (
    HALF,
    check_prevalence,
    check_thresholds,
    for_population,
    net_benefit_at,
    why_unusable,
)
from baldur.evaluation.clinical.held_out import (
    HeldOutPredictions,
    Resampled,
    Statistic,
    long_table,
    metric_statistic,
)
from baldur.evaluation.metrics import METRICS, Predicted
from baldur.evaluation.significance import holm

BASELINE, WITH, ALL, ALONE, WITHOUT = "baseline", "with", "all", "alone", "without"
"""Questions about one view set: how well do these views predict? The baseline, the baseline with a
view, all views, a view alone, and all without a view. A set has one row, of the first question."""
ADDED, ALL_ADDED, BEYOND = "added", "all added", "beyond the others"
"""Questions about two view sets: what does a view add to the baseline, what do all others add to
it together, and what does a view add to all others?"""


@dataclass
class AddedValue:
    """What each view adds to the views that one has anyway.

    Attributes
    ----------
    table : DataFrame
        One row for each question and metric: question ("baseline", "with", "all", "alone" and
        "without": how well do these views predict; "added": the view added to the baseline; "all
        added": all other views added to it; "beyond the others": the view added to all others),
        view, model and reference (the rows with and without it), metric, threshold (of a net
        benefit), people (on whom), of_people (all), units, value, value_low and value_high (with
        the view), reference_value, difference, low and high (its 95 % interval), standard_error,
        detectable (the increase that would be shown with a probability of 80 %), p and p_holm
        (corrected resampled t-test over the folds), outcome ("better", "worse", "not shown" or
        "not known") and note.
    reclassification : DataFrame
        question, view, model, reference, threshold, class, people, up, down, unchanged (people,
        averaged over repeats), net (share that moves to the right side), low, high.
    shares : DataFrame
        view, share: the mean share of each view in the variance of the linear predictor of the
        model with all views, where it has one. This is what a view contributes, not what it adds.
    baseline : tuple of str
        Views that one has anyway.
    model : str
        Name of the model.
    result : NestedResult
        The comparison that it was computed from.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> sim = make_multiview(80, {"clinical": 3, "genes": 20}, random_state=0)
    >>> result = nested_cv({"Ridge logistic": {"C": [0.1]}}, sim.data, sim.target, outer=2, inner=2,
    ...                    baseline_views=["clinical"])
    >>> added = result.added_value()
    >>> added.baseline, added.table["question"].unique().tolist()
    (('clinical',), ['baseline', 'all', 'alone', 'added', 'beyond the others'])
    """

    table: pd.DataFrame
    reclassification: pd.DataFrame
    shares: pd.DataFrame
    baseline: tuple[str, ...]
    model: str
    result: Any = field(default=None, repr=False)

    def summary(self) -> str:
        """Return one sentence for each comparison, and what the intervals include.

        Returns
        -------
        str
        """
        from baldur.report.added_value import added_value_text

        return added_value_text(self)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw how well each view set predicts, and what each view adds.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        **options
            As in `baldur.plots.Display.plot`.

        Returns
        -------
        baldur.plots.AddedValueDisplay
        """
        from baldur.plots import AddedValueDisplay

        return AddedValueDisplay(self.table).plot(ax, **options)

    def __str__(self) -> str:
        return self.summary()


# -- what could have been detected ---------------------------------------------------------------

POWER = 0.8
"""Probability with which a detectable increase is shown; the usual choice of sample sizes."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_TINY = 1e-6


def auc_error(auc: float, increase: float, n_case: float, n_control: float) -> float:
    """Return the standard error of the difference of two AUCs, the second larger by an increase.

    Scores of cases and controls are normal with equal variances. The second score adds independent
    information to the first in the best way, so that the correlation of the two is the ratio of
    their standardised distances between cases and controls.
    """
    # Standardised distances; the scores of a case are these plus a normal deviate.
    first, second = (np.sqrt(2) * ndtri(max(a, 0.5)) for a in (auc, auc + increase))
    correlation = min(first / second, 1.0) if second > 0 else 1.0
    # The share of controls below a case changes by this, integrated over the case's two deviates.
    z_first, z_new = _NODES[:, None], _NODES[None, :]
    weight = _WEIGHTS[:, None] * _WEIGHTS[None, :]
    z_second = correlation * z_first + np.sqrt(1 - correlation**2) * z_new
    change = ndtr(second + z_second) - ndtr(first + z_first)
    mean = float((weight * change).sum())
    variance = float((weight * (change - mean) ** 2).sum())
    return float(np.sqrt(variance * (1 / n_case + 1 / n_control)))


def r2_error(r2: float, increase: float, people: float) -> float:
    """Return the standard error of the difference of two R2, the second larger by an increase.

    The errors of the first prediction are those of the second and an independent normal part,
    whose variance is the increase.
    """
    unexplained = max(1 - r2 - increase, 0.0)
    return float(np.sqrt((4 * unexplained * increase + 2 * increase**2) / people))


def detectable_increase(
    ideal_error: Callable[[float], float], room: float, error: float, units: int, level: float
) -> float:
    """Return the smallest increase of at most `room` that would be shown with the power.

    Its standard error is that of the two view sets here (`error`), or that which `ideal_error`
    gives for the increase if it is larger. NaN where no such increase would be shown.
    """
    degrees = max(units - 1, 1)
    factor = float(stdtrit(degrees, 0.5 + level / 2) + stdtrit(degrees, POWER))
    if not (np.isfinite(error) and np.isfinite(room)) or room <= 2 * _TINY:
        return float("nan")

    def excess(increase: float) -> float:
        return increase - factor * ideal_error(increase)

    low, high = _TINY, room - _TINY
    if excess(high) < 0:
        return float("nan")
    from scipy.optimize import brentq

    ideal = low if excess(low) >= 0 else float(brentq(excess, low, high, xtol=1e-5))
    increase = max(ideal, factor * error)
    return increase if increase <= room else float("nan")


def _detectable(
    sample: Resampled,
    held: HeldOutPredictions,
    without: HeldOutPredictions,
    reference: float,
    error: float,
) -> float:
    """Return the increase over `reference` that would be shown with a probability of 80 %.

    It is one of the main metric, and NaN if there is none; `error` is that of the difference found.
    """
    boot, units, people = sample.boot, held.n_units, int(held.members.sum())
    # People of a group are not independent: this share of them, if they were, has this error.
    share = 1.0
    if units < people:
        ungrouped = copy(sample)
        ungrouped.boot = Bootstrap(np.arange(len(held.people)), boot.resamples, boot.level)
        metric = main_metric(bool(held.classes))
        whole, reduced = (
            ungrouped.draw(replace(metric_statistic(metric, h.where(held.members)), key=""))
            for h in (held, without)
        )
        ratio = float(whole.minus(reduced).error()) / error if error > 0 else 1.0
        share = min(1.0, ratio**2) if np.isfinite(ratio) else 1.0
    if not held.classes:
        start = max(reference, 0.0)
        ideal = partial(r2_error, start, people=share * people)
        return detectable_increase(ideal, 1 - start, error, units, boot.level)
    truth = held.truth[held.members]
    # With several classes an AUC is one against the rest; the rarest has the largest error.
    n_case = min(int(np.sum(truth == c)) for c in range(len(held.classes)))
    if not n_case:
        return float("nan")
    start = max(reference, 0.5)
    ideal = partial(auc_error, start, n_case=share * n_case, n_control=share * (people - n_case))
    return detectable_increase(ideal, 1 - start, error, units, boot.level)


# -- differences ---------------------------------------------------------------------------------

COLUMNS = [
    "question", "view", "model", "reference", "metric", "threshold", "people", "of_people", "units",
    "value", "value_low", "value_high", "reference_value", "difference", "low", "high",
    "standard_error", "detectable", "p", "p_holm", "outcome", "note",
]  # fmt: skip
_DRAWN = {
    "value": "estimate", "value_low": "low", "value_high": "high", "low": "difference_low",
    "high": "difference_high",
}  # fmt: skip
"""Columns that have another name in `Resampled.rows`."""
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

FoldTest = Callable[[str, str, str, np.ndarray], float]
"""From a model, a reference, a metric and a mask of people to a p-value."""


def main_metric(classification: bool) -> str:
    """Return the metric whose difference decides a sentence: AUC, or R2 in regression."""
    return _BY_TASK[classification][0]


def outcome_of(difference: float, low: float, high: float, greater_is_better: bool = True) -> str:
    """Return whether a difference is better, worse, not shown or not known, by its interval."""
    if not all(map(np.isfinite, (difference, low, high))):
        return UNKNOWN
    if not greater_is_better:
        low, high = -high, -low
    if low > 0:
        return BETTER
    return WORSE if high < 0 else NOT_SHOWN


def compare_view_sets(
    sample: Resampled,
    comparisons: Sequence[tuple[dict[str, str], np.ndarray]],
    *,
    thresholds: Sequence[float] | None = None,
    prevalence: float | None = None,
    fold_test: FoldTest | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the paired differences of all metrics, and who moves across the thresholds.

    Comparisons have the names of question, view, model and reference, and a mask of the people.
    """
    points = _thresholds(sample, thresholds, prevalence)
    tables: list[pd.DataFrame] = []
    moved: list[dict[str, Any]] = []
    for names, people in comparisons:
        tables.append(_differences(sample, names, people, points, prevalence, fold_test))
        moved += _reclassification_rows(sample, names, people, points, prevalence)
    table = long_table(tables, COLUMNS)
    for _, part in table.groupby(["metric", "threshold"], dropna=False):
        table.loc[part.index, "p_holm"] = holm(part["p"].to_numpy(dtype=float))
    return table, pd.DataFrame(moved, columns=RECLASSIFICATION_COLUMNS)


def _thresholds(
    sample: Resampled, thresholds: Sequence[float] | None, prevalence: float | None
) -> np.ndarray:
    """Return checked thresholds, by default 0.5 and the prevalence; none unless classes are two."""
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
    for metric in _BY_TASK[bool(held.classes)]:
        yield metric_statistic(metric, held.where(people), metric=metric, note=held.mark)
    if not why_unusable(held):
        shifted = for_population(held, prevalence).where(people)
        names = {"metric": NET_BENEFIT, "threshold": thresholds, "note": ""}
        yield Statistic(shifted, net_benefit_at(thresholds, prevalence), names)


def _differences(
    sample: Resampled,
    names: Mapping[str, str],
    people: np.ndarray,
    thresholds: np.ndarray,
    prevalence: float | None,
    fold_test: FoldTest | None,
) -> pd.DataFrame:
    """Return one row for each metric of a comparison, and one for each threshold."""
    held, without = sample.models[names["model"]], sample.models.get(names["reference"])
    part = held.where(people)
    statistics = list(_statistics(held, people, thresholds, prevalence))
    if without is not None:
        references = _statistics(without, people, thresholds, prevalence)
        # The last statistic, of net benefit, may be missing on one side.
        paired = zip(statistics, references, strict=False)
        statistics = [replace(statistic, reference=other) for statistic, other in paired]
    table = sample.rows(statistics, [_DRAWN.get(c, c) for c in COLUMNS]).set_axis(COLUMNS, axis=1)
    size = {"people": int(part.members.sum()), "units": part.n_units}
    table = table.assign(**names, **size, of_people=len(held.people), outcome="")
    if without is None:
        return table
    main = main_metric(bool(held.classes))
    for i, row in enumerate(table.to_dict("records")):
        metric = row["metric"]
        greater = metric == NET_BENEFIT or METRICS[metric].greater_is_better
        outcome = outcome_of(row["difference"], row["low"], row["high"], greater)
        table.loc[i, "outcome"] = outcome
        if outcome == UNKNOWN:
            table.loc[i, "note"] = "not defined for these people"
        if fold_test is not None and metric != NET_BENEFIT:
            table.loc[i, "p"] = fold_test(names["model"], names["reference"], metric, people)
        if metric == main:
            figures = row["reference_value"], row["standard_error"]
            table.loc[i, "detectable"] = _detectable(sample, part, without, *figures)
    return table


def _reclassification_rows(
    sample: Resampled,
    names: Mapping[str, str],
    people: np.ndarray,
    thresholds: np.ndarray,
    prevalence: float | None,
) -> Iterator[dict[str, Any]]:
    """Yield who moves across each threshold, of the controls and of the cases."""
    held, without = sample.models[names["model"]], sample.models.get(names["reference"])
    if without is None or why_unusable(held) or why_unusable(without):
        return
    new, old = (for_population(part, prevalence) for part in (held, without))
    for threshold in thresholds.tolist():
        moves = _moves(new, old, threshold)
        for code, name in enumerate(held.classes):
            chosen = people & (held.truth == code)
            draws = sample.draw(Statistic(moves.where(chosen), _moved_shares))
            up_and_down = [draws.map(itemgetter((..., j))) for j in (0, 1)]
            # Up is the right side for cases, down for controls.
            net = up_and_down[1 - code].minus(up_and_down[code])
            low, high = (float(end) for end in net.interval())
            n = float(chosen.sum())
            up, down = (round(n * float(share), 6) for share in draws.estimate)
            yield {
                **names, "threshold": threshold, "class": name, "people": n, "up": up,
                "down": down, "unchanged": n - up - down, "net": float(net.estimate),
                "low": low, "high": high,
            }  # fmt: skip


def _moves(
    held: HeldOutPredictions, without: HeldOutPredictions, threshold: float
) -> HeldOutPredictions:
    """Return predictions with the labels 1, -1 and 0 for people who move up, down and not."""
    # Whether a person lies at or above the threshold, (repeats, people).
    before = np.full((without.repeat.max() + 1, len(without.people)), np.nan)
    before[without.repeat, without.person] = pairs(without.predicted, 1)[0] >= threshold
    after = pairs(held.predicted, 1)[0] >= threshold
    label = after - before[held.repeat, held.person]
    return replace(held, predicted=replace(held.predicted, label=label))


def _moved_shares(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Return the shares of people who move up and down, (k, 2) for weights (k, n)."""
    up_and_down = np.column_stack([p.label > 0, p.label < 0]).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(weights @ up_and_down / weights.sum(axis=1, keepdims=True))
