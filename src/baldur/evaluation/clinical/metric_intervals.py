"""Every metric with its interval, per model and per site, and differences between models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Unpack

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.calibration import calibration_statistics
from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    Rows,
    Statistic,
    metric_statistic,
    resample,
)
from baldur.evaluation.metrics import METRICS
from baldur.exceptions import InputError

ALL = "*"
"""The value of the column site for all sites together."""

# Fewer groups than this say little about how groups differ.
_FEW_UNITS = 20


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
    predictions : DataFrame
        As in `evaluate_predictions`.
    metrics : list of str, optional
        Names out of `METRICS`; default all of the task.
    by_site : bool, default=True
        Also for each site, where there is a column "site".
    **bootstrap
        As in `evaluate_predictions`.

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

    def statistics(held: HeldOutPredictions) -> Iterator[Statistic]:
        sites: list[tuple[str, np.ndarray | None]] = [(ALL, None)]
        if by_site and held.sites is not None:
            sites += [(s, held.sites == s) for s in sorted(set(held.sites.tolist()))]
        for site, people in sites:
            part = held if people is None else held.where(people)
            size = {"people": int(part.members.sum()), "units": part.n_units}
            for metric in sample.metrics(metrics) if size["people"] else ():
                notes = {
                    "note": _caution(part, metric, size["units"]),
                    "undefined": _why_undefined(part, metric),
                }
                yield metric_statistic(metric, part, site=site, metric=metric, **size, **notes)

    columns = ["model", "site", "metric", "estimate", "low", "high", "people", "units", "note"]
    table = sample.table(statistics, [*columns, "undefined"])
    table["note"] = table["note"].where(table["estimate"].notna(), table["undefined"])
    return table[columns]


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
    for metric in sample.metrics(metrics):
        for (a, held), (b, other) in combinations(sample.models.items(), 2):
            note = "the two models predict different people"
            values: tuple[float, ...] = (np.nan, np.nan, np.nan)
            if np.array_equal(held.members, other.members):
                draws = sample.metric(a, metric).minus(sample.metric(b, metric))
                values = (float(draws.estimate), *map(float, draws.interval()))
                defined = np.isfinite(draws.estimate)
                note = (
                    "" if defined else f"{METRICS[metric].heading} is not defined for one of them"
                )
            rows.append((metric, a, b, *values, note))
    columns = ["metric", "model_a", "model_b", "difference", "low", "high", "note"]
    return pd.DataFrame(rows, columns=columns)


def _why_undefined(held: HeldOutPredictions, metric: str) -> str:
    """Return the note on a metric that these predictions do not define."""
    heading = METRICS[metric].heading
    if held.classes and len(np.unique(held.predicted.truth)) < 2:
        return f"{heading} needs two classes"
    if held.classes and not held.predicted.has_proba:
        return f"{heading} needs probabilities, which this model does not give"
    return f"{heading} is not defined for these predictions"


def _caution(held: HeldOutPredictions, metric: str, units: int) -> str:
    """Return the note on a metric with a rough interval, or from scaled probabilities."""
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
    predictions : DataFrame
        As in `evaluate_predictions`.
    subgroups : list of str, or DataFrame
        Columns of a predictions table, or a table with one row per sample and the ids as its
        index. A number with more than ten values is cut at its median.
    least : int, default=10
        Cases, and controls, that a subgroup must have (people, in regression). A smaller one is
        listed with its size and without figures.
    **bootstrap
        As in `evaluate_predictions`.

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
    levels = {str(column): level_names(values) for column, values in table.loc[people].items()}
    rows = [
        row
        for column, level in levels.items()
        for name in sorted(set(level), key=_order)
        for held in sample.models.values()
        for row in _subgroup(held, level == name, least, subgroup=column, level=name)
    ]
    return sample.rows(rows, COLUMNS)


def _from_columns(predictions: pd.DataFrame | Resampled, columns: Sequence[str]) -> pd.DataFrame:
    """Return columns of a predictions table with one row per sample, the first where it repeats."""
    if isinstance(predictions, Resampled):
        raise InputError("Give subgroups as a table, or the predictions as a table.")
    for column in columns:
        if column not in predictions:
            raise InputError(
                f"The predictions have no column {column!r}; they have "
                f"{list(predictions.columns)[:12]}."
            )
    ids = predictions["sample"] if "sample" in predictions else predictions.index.to_series()
    table = predictions[list(columns)].set_index(ids.astype(str).to_numpy())
    return table[~table.index.duplicated()]


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


def _subgroup(
    held: HeldOutPredictions, chosen: np.ndarray, least: int, **names: Any
) -> Iterator[Rows]:
    """Yield the measures of a subgroup, and their differences from those of the others."""
    inside, outside = held.where(chosen), held.where(~chosen)
    names |= {"people": int(inside.members.sum()), "note": held.mark}
    if len(held.classes) == 2:
        names["cases"] = float(np.sum(inside.truth[inside.members] == 1))
    reason = _why_too_small(inside, least)
    if reason:
        yield {"model": held.model, **names, "measure": [""], "note": reason}
        return
    has_others = not _why_too_small(outside, least)
    if not has_others:
        names["note"] = "; ".join(filter(None, (held.mark, "too few others to compare with")))
    for statistic in _measures(inside, **names):
        others = replace(statistic, held=outside) if has_others else None
        yield replace(statistic, reference=others)


def _measures(held: HeldOutPredictions, **names: Any) -> Iterable[Statistic]:
    """Return two metrics of a subgroup, and calibration; without probabilities the AUC alone."""
    metrics = ("auc", "brier") if held.classes else ("r2", "mae")
    statistics = [metric_statistic(metric, held, measure=metric, **names) for metric in metrics]
    if held.classes and not held.predicted.has_proba:
        return statistics[:1]
    if len(held.classes) > 2:
        return statistics
    target = 1 if held.classes else None
    return [*statistics, *calibration_statistics(held, target, **names)]


def _why_too_small(held: HeldOutPredictions, least: int) -> str:
    """Return why a subgroup has no figures; an empty text if it has."""
    truth = held.truth[held.members]
    if not held.classes:
        return "" if len(truth) >= least else f"fewer than {least} people"
    for c, name in enumerate(held.classes):
        have = int(np.sum(truth == c))
        if have < least:
            return f"{have} of class {name}, fewer than {least}"
    return ""
