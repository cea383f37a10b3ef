"""How the predictors of a new cohort differ from those a model was trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.model_selection import GroupKFold, StratifiedKFold

from baldur.evaluation.clinical.calibration import fit_intercept, fit_line, log_odds
from baldur.exceptions import InputError
from baldur.preparation.new_samples import FAR_CELL
from baldur.views import MultiView, View

FIGURES = ("count", "mean", "sd", "low", "high")
"""What is remembered of every feature: known cells, mean, s.d., smallest and largest value."""

# A mean further away than this many training s.d., or a spread outside 1/2 to 2, is pointed out:
# beyond it a standardised weight acts on values that training hardly had.
_FAR_MEAN = 0.5
_FAR_SPREAD = 2.0


def describe_views(mv: MultiView) -> dict[str, dict[str, np.ndarray]]:
    """Return count, mean, s.d. and range of every feature of every view.

    Shapes: returns (n_features,).
    """
    return {name: _describe(mv.view(name)) for name in mv.view_names}


def _describe(view: View) -> dict[str, np.ndarray]:
    """Return the `FIGURES` of a view, each (n_features,); NaN for features without a known cell."""
    parts = []
    for _, raw in view.iter_blocks():
        cells = raw.astype(np.float64)
        known = ~np.isnan(cells)
        count = known.sum(axis=0).astype(np.float64)
        divisor = np.where(count > 0, count, np.nan)
        mean = np.where(known, cells, 0.0).sum(axis=0) / divisor
        square = np.where(known, cells - mean, 0.0) ** 2
        low = np.where(known, cells, np.inf).min(axis=0, initial=np.inf)
        high = np.where(known, cells, -np.inf).max(axis=0, initial=-np.inf)
        low, high = (np.where(count > 0, ends, np.nan) for ends in (low, high))
        parts.append((count, mean, np.sqrt(square.sum(axis=0) / divisor), low, high))
    return dict(zip(FIGURES, map(np.concatenate, zip(*parts, strict=True)), strict=True))


def predictor_shift(
    training: dict[str, dict[str, np.ndarray]],
    mv: MultiView,
    used: Mapping[str, np.ndarray] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare a new cohort with the training rows; return a table by view and one by feature.

    `training` has what `describe_views` gave; `used` masks the features that the model uses.
    """
    rows, parts = [], []
    for name, old in training.items():
        if name not in mv.view_names:
            continue
        view = mv.view(name)
        new = _describe(view)
        outside = _share_outside(view, old)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A feature that was constant has no scale: any other value is infinitely far.
            shift = np.where(
                new["mean"] == old["mean"], 0.0, (new["mean"] - old["mean"]) / old["sd"]
            )
            ratio = np.where(new["sd"] == old["sd"], 1.0, new["sd"] / old["sd"])
            far = (np.abs(shift) > _FAR_MEAN) | (ratio > _FAR_SPREAD) | (ratio < 1 / _FAR_SPREAD)
        known = new["count"] > 0
        far &= known
        missing = 1.0 - new["count"] / max(int(view.present.sum()), 1)
        frame = pd.DataFrame(
            {
                "view": name, "feature": view.feature_names, "mean_training": old["mean"],
                "mean_new": new["mean"], "shift": shift, "spread_ratio": ratio,
                "low_training": old["low"], "high_training": old["high"], "low_new": new["low"],
                "high_new": new["high"], "outside": outside, "missing": missing, "far": far,
                "used": True if used is None else used[name],
            }
        )  # fmt: skip
        parts.append(frame)
        comparable = frame[known & np.isfinite(shift)]
        in_use = comparable[comparable["used"]]
        worst: Any = {"feature": "", "shift": np.nan}
        if len(in_use):
            worst = in_use.iloc[int(in_use["shift"].abs().argmax())]
        mean_outside = np.nan
        if known.any():
            mean_outside = float(np.average(outside[known], weights=new["count"][known]))
        rows.append(
            {
                "view": name, "features": len(frame), "absent": float(np.mean(~view.present)),
                "missing": float(missing[known].mean()) if known.any() else np.nan,
                "empty": int((~known).sum()),
                "mean_shift": float(comparable["shift"].abs().median()),
                "spread_ratio": float(comparable["spread_ratio"].median()),
                "outside": mean_outside,
                "far": int(far.sum()), "worst": worst["feature"], "worst_shift": worst["shift"],
            }
        )  # fmt: skip
    return pd.DataFrame(rows), pd.concat(parts, ignore_index=True)


def batch_drift(model: Any, X: MultiView) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare a batch of new rows with the training rows of a fitted model.

    Parameters
    ----------
    model : fitted estimator
        Any of the package. Means and s.d. of its training rows are those after the clip.
    X : MultiView
        New rows, with the features of fit in their order.

    Returns
    -------
    views, features : DataFrame
        As in `predictor_shift`.

    Examples
    --------
    >>> from baldur import BaldurClassifier
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import batch_drift
    >>> sim = make_multiview(80, {"a": 4}, random_state=0)
    >>> model = BaldurClassifier(members=("pooled",)).fit(sim.data[:60], sim.target[:60])
    >>> views, _ = batch_drift(model, sim.data[60:])
    >>> views[["view", "features", "absent"]].to_numpy().tolist()
    [['a', 4, 0.0]]
    """
    learned = getattr(model, "preparation_", None)
    if learned is None:
        raise InputError(
            f"{type(model).__name__} has no statistics of training samples; call fit first."
        )
    mean, sd, low, high = learned.mean_, learned.scale_, learned.minimum_, learned.maximum_
    training = {}
    for name, width in learned.n_features_.items():
        # A column that the preparation left out has no range, and nothing to compare with.
        left_out = np.isnan(np.asarray(low[name], dtype=float))
        training[name] = {
            "count": np.full(width, float(learned.n_samples_)),
            "mean": np.where(left_out, np.nan, mean[name]),
            "sd": np.where(left_out, np.nan, sd[name]),
            "low": np.asarray(low[name], dtype=float),
            "high": np.asarray(high[name], dtype=float),
        }
    return predictor_shift(training, X)


def drift_notes(views: pd.DataFrame, features: pd.DataFrame) -> list[str]:
    """Return a line for each view that differs from training, given what `predictor_shift` gave."""
    notes = []
    for row in views.itertuples():
        far = features[(features["view"] == row.view) & features["far"]]
        if not len(far):
            continue
        # Features that the model uses come first, whatever the shift of the others.
        size = far["shift"].abs().fillna(0.0).to_numpy()
        first = far.iloc[np.lexsort((size, far["used"].to_numpy()))[-1]]
        unused = "" if first["used"] else ", which the model does not use"
        notes.append(
            f"view {row.view!r}: {len(far):,} of {row.features:,} columns differ from training in "
            f"mean or spread (the most {first['feature']!r}, by {first['shift']:+.1f} s.d."
            f"{unused}); {row.outside:.1%} of the cells lie outside of the training range"
        )
    return notes


def far_values(features: pd.DataFrame) -> list[str]:
    """Name the features with a value far outside of the training range, the furthest first."""
    if not len(features):
        return []
    low, high = (features[c].to_numpy(dtype=float) for c in ("low_training", "high_training"))
    under, over = (features[c].to_numpy(dtype=float) for c in ("low_new", "high_new"))
    below, above = low - under, over - high
    with np.errstate(divide="ignore", invalid="ignore"):
        # A column that was constant in training has no part in any prediction.
        widths = np.where(high > low, np.fmax(below, above) / (high - low), np.nan)
    far = np.flatnonzero(widths > FAR_CELL)
    far = far[np.argsort(-widths[far], kind="stable")]
    value = np.where(below > above, under, over)
    return [
        f"{features['feature'].iloc[i]} in {features['view'].iloc[i]} = {value[i]:.6g} (training: "
        f"{low[i]:.6g} to {high[i]:.6g})"
        for i in far
    ]


def _share_outside(view: View, training: dict[str, np.ndarray]) -> np.ndarray:
    """Return the share of each feature's known cells outside the training range."""
    share = np.zeros(view.shape[1])
    for cols, cells in view.iter_blocks():
        known = (~np.isnan(cells)).sum(axis=0)
        # NaN compares as inside.
        beyond = ((cells < training["low"][cols]) | (cells > training["high"][cols])).sum(axis=0)
        share[cols] = beyond / np.maximum(known, 1)
    return share


VERSIONS = {"intercept": False, "intercept and slope": True}
"""Names of the two versions, and whether a slope is learned."""

# One or two parameters are learned well from nine tenths of the rows; with fewer rows of a class,
# as many folds as it has rows.
_FOLDS = 10


def recalibrate(
    predictions: pd.DataFrame, classes: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame, list[tuple[str, str]]]:
    """Recalibrate the probabilities of two classes on the rows they were made for.

    Returns version, intercept, slope and rows (learned from all rows), the predictions (each
    recalibrated by what the other folds say), and the versions that are left out with the reason.
    """
    rows, parts, left_out = [], [], []
    why = _why_unusable(predictions, classes)
    for version, with_slope in VERSIONS.items():
        if why:
            left_out.append((version, why))
            continue
        negative, positive = (f"p_{c}" for c in classes)
        x = log_odds(predictions[positive].to_numpy(dtype=float))
        y = (predictions["label"].astype(str) == classes[1]).to_numpy(dtype=float)
        a, b = _fit(x, y, with_slope)
        p = np.full(len(x), np.nan)
        for train, test in _folds(predictions, x, y):
            intercept, slope = _fit(x[train], y[train], with_slope)
            p[test] = expit(intercept + slope * x[test])
        if not np.isfinite([a, b]).all() or not np.isfinite(p).all():
            left_out.append((version, "the probabilities separate the classes, or are all equal"))
            continue
        rows.append((version, a, b, len(x)))
        columns: dict[str, Any] = {positive: p, negative: 1 - p}
        columns["predicted"] = np.asarray(classes)[(p > 0.5).astype(int)]
        columns["model"] = predictions["model"] + f" (recalibrated: {version})"
        parts.append(predictions.assign(**columns))
    parameters = pd.DataFrame(rows, columns=["version", "intercept", "slope", "rows"])
    recalibrated = pd.concat(parts, ignore_index=True) if parts else predictions.iloc[:0]
    return parameters, recalibrated, left_out


def _why_unusable(predictions: pd.DataFrame, classes: Sequence[str]) -> str:
    """Return why predictions cannot be recalibrated; an empty text if they can."""
    if len(classes) != 2:
        return "recalibration is made for two classes"
    if predictions[[f"p_{c}" for c in classes]].isna().to_numpy().any():
        return "the model has no probabilities"
    counts = [int((predictions["label"].astype(str) == c).sum()) for c in classes]
    if min(counts) < 2:
        return f"each class needs two samples or more, but there are {counts[0]} and {counts[1]}"
    if "group" in predictions and predictions["group"].nunique() < 2:
        return "all samples belong to one group"
    return ""


def _fit(x: np.ndarray, y: np.ndarray, with_slope: bool) -> tuple[float, float]:
    """Return intercept and slope (1 if it is not learned) of the log odds of y on log odds x."""
    once = np.ones((1, len(x)))
    if not with_slope:
        return float(fit_intercept(x, y, once)[0]), 1.0
    a, b = fit_line(x, y, once)
    return float(a[0]), float(b[0])


def _folds(
    predictions: pd.DataFrame, x: np.ndarray, y: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return folds of (train, test) rows, in which groups stay whole; else stratified ones."""
    if "group" in predictions:
        groups = predictions["group"].to_numpy()
        return GroupKFold(min(_FOLDS, len(np.unique(groups)))).split(x, y, groups)
    folds = int(min(_FOLDS, y.sum(), len(y) - y.sum()))
    return StratifiedKFold(folds, shuffle=True, random_state=0).split(x, y)
