"""Every metric with its interval, per model and per site, and differences between models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Unpack

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.bootstrap import Bootstrap, Draws
from baldur.evaluation.clinical.calibration import index_draws, line_draws
from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    draw_metric,
    resample,
)
from baldur.evaluation.metrics import METRICS
from baldur.exceptions import InputError

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


LEAST = 10
"""Cases, and controls, a subgroup must have: with fewer an interval of the AUC spans most of it."""

# Numbers with more values than this are cut at their median.
_MOST_LEVELS = 10
_MISSING = "(missing)"

COLUMNS = [
    "model", "subgroup", "level", "people", "cases", "measure", "estimate", "low", "high",
    "difference", "difference_low", "difference_high", "note",
]  # fmt: skip


def subgroup_measures(
    predictions: pd.DataFrame | Resampled,
    subgroups: Sequence[str] | pd.DataFrame,
    *,
    least: int = LEAST,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Give size, discrimination and calibration in each subgroup, and differences from the others.

    Parameters
    ----------
    predictions : DataFrame or Resampled
        As ``predictions.csv``; see `read_held_out` for the columns.
    subgroups : list of str, or DataFrame
        Columns of a predictions table, or a table with one row per sample and the ids as its
        index. A number with more than ten values is cut at its median.
    least : int, default=10
        Cases, and controls, that a subgroup must have (people, in regression). A smaller one is
        listed with its size and without figures.
    **bootstrap
        classes, resamples, level and random_state, as in `Resampled`.

    Returns
    -------
    DataFrame
        model, subgroup, level, people, cases, measure, estimate, low, high, difference (subgroup
        minus all others), difference_low, difference_high, note.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation import subgroup_measures
    >>> table = pd.DataFrame({"label": ["no", "no", "no", "yes", "yes"] * 20})
    >>> table["p_yes"] = [0.1, 0.3, 0.8, 0.7, 0.9] * 10 + [0.4, 0.6, 0.8, 0.5, 0.7] * 10
    >>> table["sex"] = ["female"] * 50 + ["male"] * 50
    >>> found = subgroup_measures(table, ["sex"])
    >>> found.loc[found["measure"] == "auc", ["level", "people", "estimate", "difference"]].round(2)
        level  people  estimate  difference
    0  female      50      0.83        0.33
    5    male      50      0.50       -0.33
    """
    sample = resample(predictions, **bootstrap)
    if not isinstance(subgroups, pd.DataFrame):
        subgroups = _from_columns(predictions, subgroups)
    people = next(iter(sample.models.values())).people
    table = subgroups.copy()
    table.index = table.index.astype(str)
    absent = [p for p in people if p not in table.index]
    if absent:
        raise InputError(f"The subgroups have no row for sample {absent[0]!r}; give one for each.")
    table = table.loc[people]
    rows: list[dict[str, Any]] = []
    for column in table:
        levels = level_names(table[column])
        for name in dict.fromkeys(sorted(set(levels), key=_order)):
            chosen = levels == name
            for model, one in sample.models.items():
                start = {"model": model, "subgroup": str(column), "level": name}
                rows += [{**start, **r} for r in _rows(one, sample.boot, chosen, least)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _from_columns(predictions: pd.DataFrame | Resampled, columns: Sequence[str]) -> pd.DataFrame:
    if isinstance(predictions, Resampled):
        raise InputError("Give subgroups as a table, or the predictions as a table.")
    for column in columns:
        if column not in predictions:
            raise InputError(
                f"The predictions have no column {column!r}; they have "
                f"{list(predictions.columns)[:12]}."
            )
    ids = predictions["sample"] if "sample" in predictions else predictions.index.to_series()
    found = predictions[list(columns)].set_index(ids.astype(str).to_numpy())
    return found[~found.index.duplicated()]


def level_names(values: pd.Series) -> np.ndarray:
    """Return the level of each person; numbers with many values are cut at their median."""
    text = values.astype(object).where(values.notna(), "").astype(str).str.strip()
    known = text != ""
    numbers = pd.to_numeric(text.where(known), errors="coerce")
    if numbers[known].notna().all() and numbers[known].nunique() > _MOST_LEVELS:
        middle = float(numbers[known].median())
        cut = np.where(numbers <= middle, f"up to {middle:g}", f"above {middle:g}")
        return np.where(known, cut, _MISSING).astype(str)
    return np.where(known, text, _MISSING).astype(str)


def _order(name: str) -> tuple[bool, bool, str]:
    # The lower half first, what is missing last.
    return name == _MISSING, name.startswith("above "), name


def _rows(
    held: HeldOutPredictions, boot: Bootstrap, chosen: np.ndarray, least: int
) -> Iterator[dict[str, Any]]:
    inside, outside = held.where(chosen), held.where(~chosen)
    people = int(inside.members.sum())
    size: dict[str, Any] = {"people": people, "cases": _cases(inside)}
    why = _too_small(inside, least)
    if why:
        yield {**size, "measure": "", "note": why}
        return
    against = not _too_small(outside, least)
    rest = dict(_drawn(outside, boot)) if against else {}
    for measure, draws in _drawn(inside, boot):
        scale = (
            "log" if measure == "ici" else scale_of(measure) if _is_metric(measure) else "identity"
        )
        count = rows_behind(measure, inside) if _is_metric(measure) else None
        low, high = draws.interval(scale, count)
        row = {
            **size, "measure": measure, "estimate": float(draws.estimate), "low": float(low),
            "high": float(high), "note": held.mark,
        }  # fmt: skip
        if against:
            gap = draws.minus(rest[measure])
            ends = gap.interval()
            row["difference"] = float(gap.estimate)
            row["difference_low"], row["difference_high"] = (float(e) for e in ends)
        else:
            row["note"] = "; ".join(n for n in (row["note"], "too few others to compare with") if n)
        yield row


def _is_metric(measure: str) -> bool:
    return measure not in ("intercept", "slope", "ici")


def _cases(held: HeldOutPredictions) -> float:
    if len(held.classes) != 2:
        return float("nan")
    return float(np.sum(held.truth[held.members] == 1))


def _too_small(held: HeldOutPredictions, least: int) -> str:
    """Return why a subgroup has no figures; an empty text if it has."""
    truth = held.truth[held.members]
    if not held.classes:
        return "" if len(truth) >= least else f"fewer than {least} people"
    for c, name in enumerate(held.classes):
        have = int(np.sum(truth == c))
        if have < least:
            return f"{have} of class {name}, fewer than {least}"
    return ""


def _drawn(held: HeldOutPredictions, boot: Bootstrap) -> Iterator[tuple[str, Draws]]:
    if not held.classes:
        target = None
        yield from ((m, draw_metric(held, boot, m)) for m in ("r2", "mae"))
    else:
        target = 1
        yield "auc", draw_metric(held, boot, "auc")
        if not held.has_proba:
            return
        yield "brier", draw_metric(held, boot, "brier")
        if len(held.classes) > 2:
            return
    line = line_draws(held, boot, target)
    yield "intercept", line.part(0)
    yield "slope", line.part(1)
    yield "ici", index_draws(held, boot, target)
