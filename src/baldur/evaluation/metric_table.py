"""The table of a comparison, one row per model, and the tests between models."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import stdtr

from baldur.core.spreadsheet import unescape_frame
from baldur.core.threads import one_thread
from baldur.evaluation.clinical.bootstrap import Draws
from baldur.evaluation.clinical.held_out import (
    PLATT,
    Resampled,
    classes_of,
    predicted_of,
    rows_behind,
    scale_of,
)
from baldur.evaluation.clinical.metric_intervals import metric_intervals
from baldur.evaluation.metrics import METRICS, score
from baldur.evaluation.selected_features import percent_selected

FEATURES = "features_percent"
PLATT_NOTE = "probabilities by Platt scaling of decision scores, learned from training rows"
POOLED = ("pooled", "low", "high")
"""Endings of the columns of a metric's estimate on pooled predictions and of its interval."""

# A row is marked when it is at chance because nearly all rows get one class.
_CHANCE_MARGIN = 0.02
_ONE_CLASS = 0.9
_NOTHING = (float("nan"),) * 3


def fold_scores(
    predictions: pd.DataFrame,
    metrics: Sequence[str],
    classes: Sequence[str],
    selection: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Score every model, repeat and fold; with the selected features give their percentage."""
    keys = ["model", "repeat", "fold"]
    rows = []
    for where, part in predictions.groupby(keys, sort=False):
        predicted = predicted_of(part, classes)
        rows.append((*where, *(score(m, predicted) for m in metrics)))
    scores = pd.DataFrame(rows, columns=[*keys, *metrics])
    if selection is None:
        return scores
    scores["position"] = scores.groupby("model", sort=False).cumcount()
    percent = percent_selected(selection)
    scores = scores.merge(percent, on=["model", "position"], how="left", sort=False)
    return scores.drop(columns="position")


def build_table(
    scores: pd.DataFrame,
    pooled: Mapping[tuple[str, str], Sequence[float]],
    metrics: Sequence[str],
    models: Sequence[str],
    *,
    failures: Mapping[str, str] | None = None,
    notes: Mapping[str, tuple[str, str]] | None = None,
) -> pd.DataFrame:
    """Return the table of a comparison from its scores and its pooled estimates and intervals.

    `notes` has for each model what stands before and after the notes on its scores, "" for nothing.
    """
    rows = []
    for model in models:
        folds = scores[scores["model"] == model]
        row: dict[str, object] = {"model": model}
        on_scores = []
        for column in (*metrics, FEATURES):
            values = folds[column].to_numpy(dtype=float)
            known = values[np.isfinite(values)]
            row[column] = float(known.mean()) if len(known) else float("nan")
            row[f"{column}_sd"] = float(known.std(ddof=1)) if len(known) > 1 else float("nan")
            if column == FEATURES:
                continue
            if 0 < len(known) < len(values):
                heading = METRICS[column].heading
                on_scores.append(f"{heading} over {len(known)} of {len(values)} folds")
            for ending, value in zip(POOLED, pooled.get((model, column), _NOTHING), strict=True):
                row[f"{column}_{ending}"] = value
        before, after = (notes or {}).get(model, ("", ""))
        row["folds"] = len(folds)
        row["note"] = "; ".join(note for note in (before, *on_scores, after) if note)
        row["failure"] = (failures or {}).get(model, "")
        rows.append(row)
    return pd.DataFrame(rows)


def pooled_intervals(
    sample: Resampled, metrics: Sequence[str]
) -> dict[tuple[str, str], Sequence[float]]:
    """Return estimate and interval of every model and metric on pooled predictions."""
    with one_thread():
        if isinstance(sample, MeanOverOutcomes):
            return {(m, name): sample.interval(m, name) for m in sample.models for name in metrics}
        frame = metric_intervals(sample, metrics=metrics, by_site=False)
    keys = zip(frame["model"], frame["metric"], strict=True)
    ends = frame[["estimate", "low", "high"]].itertuples(index=False, name=None)
    return dict(zip(keys, ends, strict=True))


def prediction_notes(
    predictions: pd.DataFrame, classes: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Return the notes of every model that follow from its predictions: chance level and Platt."""
    notes = {}
    for model, part in predictions.groupby("model", sort=False):
        scaled = "probability" in part and bool((part["probability"] == PLATT).any())
        chance = bool(classes) and _at_chance(part, len(classes))
        notes[str(model)] = ("chance level" if chance else "", PLATT_NOTE if scaled else "")
    return notes


def _at_chance(predictions: pd.DataFrame, n_classes: int) -> bool:
    label, predicted = (predictions[c].astype(str) for c in ("label", "predicted"))
    balanced = (label == predicted).groupby(label).mean().mean()
    commonest = predicted.value_counts(normalize=True).iloc[0]
    return bool(balanced < 1 / n_classes + _CHANCE_MARGIN and commonest >= _ONE_CLASS)


def recompute_table(predictions: pd.DataFrame, selection: pd.DataFrame) -> pd.DataFrame:
    """Compute the table again from the contents of the two result files.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> from baldur.evaluation.metric_table import recompute_table
    >>> sim = make_multiview(80, {"a": 5, "b": 10}, random_state=0)
    >>> result = nested_cv({"Ridge logistic": {"C": [0.1]}}, sim.data, sim.target, outer=2, inner=2)
    >>> again = recompute_table(result.predictions, result.selection)
    >>> again["auc_low"].equals(result.table()["auc_low"])
    True
    """
    predictions, selection = unescape_frame(predictions), unescape_frame(selection)
    classes = classes_of(predictions)
    metrics = [m for m, d in METRICS.items() if d.classification == bool(classes)]
    return build_table(
        fold_scores(predictions, metrics, classes, selection),
        pooled_intervals(Resampled(predictions, classes), metrics) if len(predictions) else {},
        metrics,
        list(dict.fromkeys(predictions["model"])),
        notes=prediction_notes(predictions, classes),
    )


def corrected_error(difference: np.ndarray, test_train_ratio: float) -> float:
    """Return the standard error of the mean difference, corrected for shared training rows.

    Shapes: difference (J,).
    """
    j = len(difference)
    if j < 2:
        return float("nan")
    return float(np.sqrt((1 / j + test_train_ratio) * np.var(difference, ddof=1)))


def corrected_t_test(difference: np.ndarray, test_train_ratio: float) -> tuple[float, int, float]:
    """Test whether the mean difference of paired fold scores is zero.

    Shapes: difference (J,).

    Examples
    --------
    >>> from baldur.evaluation.metric_table import corrected_t_test
    >>> difference = [0.02, 0.05, 0.03, 0.06, 0.04]  # AUC of one model minus the other, per fold
    >>> t, degrees, p = corrected_t_test(difference, test_train_ratio=1 / 4)
    >>> round(t, 2), degrees, round(p, 3)
    (3.77, 4, 0.02)
    """
    difference = np.asarray(difference, dtype=float)
    j = len(difference)
    if j < 2:
        return float("nan"), max(j - 1, 0), float("nan")
    mean, variance = float(difference.mean()), float(difference.var(ddof=1))
    # Equal differences leave a variance of rounding errors only.
    if variance <= (1e-12 * max(1.0, abs(mean))) ** 2:
        return (
            (0.0, j - 1, 1.0) if abs(mean) < 1e-12 else (float(np.sign(mean) * np.inf), j - 1, 0.0)
        )
    statistic = mean / corrected_error(difference, test_train_ratio)
    return float(statistic), j - 1, float(2 * stdtr(j - 1, -abs(statistic)))


def holm(p_values: np.ndarray) -> np.ndarray:
    """Adjust p-values by Holm's step-down rule; NaN stay NaN and do not count.

    Shapes: p_values (m,); returns (m,).

    Examples
    --------
    >>> from baldur.evaluation.metric_table import holm
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    out = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return out


def compare_pairs(
    scores: Mapping[str, np.ndarray],
    test_train_ratio: float,
    metric: str = "",
    apart: Collection[str] = (),
) -> pd.DataFrame:
    """Compare every pair of models by the corrected resampled t-test.

    Shapes: scores (J,).

    Examples
    --------
    >>> from baldur.evaluation.metric_table import compare_pairs
    >>> scores = {"A": [0.82, 0.85, 0.80, 0.84], "B": [0.80, 0.80, 0.77, 0.78],
    ...           "C": [0.81, 0.78, 0.79, 0.77]}
    >>> found = compare_pairs(scores, test_train_ratio=1 / 4, metric="auc")
    >>> found[["model_a", "model_b", "difference", "p_holm"]].round(3)
      model_a model_b  difference  p_holm
    0       A       B        0.04   0.160
    1       A       C        0.04   0.402
    2       B       C        0.00   1.000
    """
    rows = []
    for a, b in combinations(scores, 2):
        difference = np.asarray(scores[a], float) - np.asarray(scores[b], float)
        difference = difference[~np.isnan(difference)]
        statistic, degrees, p = corrected_t_test(difference, test_train_ratio)
        mean = float(difference.mean()) if len(difference) else float("nan")
        error = corrected_error(difference, test_train_ratio)
        rows.append((metric, a, b, mean, error, statistic, degrees, p))
    columns = ["metric", "model_a", "model_b", "difference", "standard_error", "t", "df", "p"]
    frame = pd.DataFrame(rows, columns=columns).assign(p_holm=np.nan)
    other = frame["model_a"].isin(apart) | frame["model_b"].isin(apart)
    for family in (other, ~other):
        frame.loc[family, "p_holm"] = holm(frame.loc[family, "p"].to_numpy(dtype=float))
    return frame


def permutation_p_value(
    observed: float, permuted: np.ndarray, greater_is_better: bool = True
) -> float:
    """Return (1 + number of permuted scores at least as good) / (1 + number of them).

    Shapes: permuted (B,).
    """
    permuted = np.asarray(permuted, dtype=float)
    permuted = permuted[np.isfinite(permuted)]
    if not len(permuted) or not np.isfinite(observed):
        return float("nan")
    sign = 1.0 if greater_is_better else -1.0
    # Equal scores may differ in their last digits.
    as_good = np.sum(sign * permuted >= sign * observed - 1e-12)
    return float((1 + as_good) / (1 + len(permuted)))


def permutation_tests(
    scores: Mapping[str, np.ndarray], permuted: Mapping[str, Sequence[float]], metric: str
) -> pd.DataFrame:
    """Compare every model with itself on permuted labels.

    Shapes: scores (n_folds,).
    """
    better = METRICS[metric].greater_is_better
    rows = []
    for model, values in scores.items():
        by_chance = np.array(permuted.get(model, []))
        if len(by_chance):
            observed = float(np.nanmean(values))
            p = permutation_p_value(observed, by_chance, better)
            rows.append((model, metric, observed, float(by_chance.mean()), len(by_chance), p))
    columns = ["model", "metric", "score", "permuted_mean", "permutations", "p"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["p_holm"] = holm(frame["p"].to_numpy(dtype=float))
    return frame


# -- the mean over outcomes --------------------------------------------------------------------


def mean_scores(
    each: Sequence[pd.DataFrame], models: Sequence[str], metrics: Sequence[str]
) -> pd.DataFrame:
    """Return the mean over outcomes of the scores of every fold."""
    parts = [scores[scores["model"].isin(models)] for scores in each]
    mean = parts[0].copy()
    for column in (*metrics, FEATURES):
        mean[column] = sum(part[column].to_numpy(dtype=float) for part in parts) / len(parts)
    return mean


class MeanOverOutcomes(Resampled):
    """Means over outcomes of the metrics, with one seed on the same resamples of people.

    The people of all outcomes are the same in the same order, so that the bootstrap draws the same
    people for each of them.
    """

    def __init__(self, each: Sequence[Resampled], models: Sequence[str]) -> None:
        self.each, self.boot = each, each[0].boot
        self.models = {model: each[0].models[model] for model in models}

    def metric(self, model: str, metric: str) -> Draws:
        """Return the mean over outcomes on the sample and on every resample."""
        each = [sample.metric(model, metric) for sample in self.each]
        return Draws(
            np.mean([d.estimate for d in each], axis=0),
            np.mean([d.resampled for d in each], axis=0),
            each[0].units,
            each[0].level,
        )

    def interval(self, model: str, metric: str) -> tuple[float, float, float]:
        """Return the mean of a metric over the outcomes, with its interval.

        All resamples of an outcome with an estimate of exactly 0 or 1 agree and say nothing; such
        an outcome widens the interval of the mean by the ends of its own, which is Wilson's.
        """
        draws = self.metric(model, metric)
        estimate = float(draws.estimate)
        low, high = (float(end) for end in draws.interval(scale_of(metric)))
        if scale_of(metric) != "logit":
            return estimate, low, high
        if estimate in (0.0, 1.0):  # so is every outcome, and no resample differs
            low = high = estimate
        below = above = 0.0
        for sample in self.each:
            draws = sample.metric(model, metric)
            if float(draws.estimate) in (0.0, 1.0):
                ends = draws.interval("logit", rows_behind(metric, sample.models[model]))
                below += float(draws.estimate) - float(ends[0])
                above += float(ends[1]) - float(draws.estimate)
        n = len(self.each)
        return estimate, max(low - below / n, 0.0), min(high + above / n, 1.0)
