"""Held-out predictions of each model, arranged by person, from a predictions table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from baldur.core.escape import unescape_frame
from baldur.evaluation.clinical.bootstrap_intervals import Bootstrap, Draws
from baldur.evaluation.metrics import Predicted, default_metrics, metric_of_task, scores
from baldur.exceptions import InputError

PLATT = "platt"
"""In the column "probability": from decision scores by Platt scaling within training rows."""


@dataclass(frozen=True)
class HeldOutPredictions:
    """Held-out predictions of one model over numbered people."""

    model: str
    people: np.ndarray  # (n_people,); Identifiers; the same for every model of a table
    units: np.ndarray  # (n_people,)
    truth: np.ndarray  # (n_people,); Class codes, the positive one last, or numbers
    person: np.ndarray  # (n_rows,); Number of the person of every row, repeat by repeat
    predicted: Predicted  # Of these rows
    repeat: np.ndarray  # (n_rows,); Numbers from 0
    fold: np.ndarray  # (n_rows,)
    classes: list[str]  # Empty in regression
    scaled: bool = False  # Probabilities come from decision scores by Platt scaling
    sites: np.ndarray | None = None  # (n_people,)

    @cached_property
    def repeats(self) -> list[tuple[np.ndarray, Predicted]]:
        """People and predictions of every repeat; one without rows where nobody is predicted."""
        parts = [np.flatnonzero(self.repeat == r) for r in np.unique(self.repeat)]
        return [(self.person[at], self.predicted.take(at)) for at in parts or [self.repeat]]

    @property
    def targets(self) -> list[tuple[str, int | None]]:
        """Name and code of the positive class, or of each of several; no code in regression."""
        if not self.classes:
            return [("", None)]
        targets: list[tuple[str, int | None]] = [(name, c) for c, name in enumerate(self.classes)]
        return targets[1:] if len(targets) == 2 else targets

    def share(self, code: int) -> float:
        """Return the share of a class among the people who were predicted."""
        return float(np.mean(self.truth[self.members] == code))

    @property
    def mark(self) -> str:
        """Note for figures computed from probabilities by Platt scaling."""
        return "probabilities by Platt scaling" if self.scaled else ""

    @property
    def members(self) -> np.ndarray:
        """Mask of the people for whom the model has predictions."""
        mask = np.zeros(len(self.people), dtype=bool)
        mask[self.person] = True
        return mask

    def where(self, chosen: np.ndarray) -> HeldOutPredictions:
        """Return the predictions of some people (a mask over all); their numbers do not change."""
        if chosen.all():
            return self
        at = chosen[self.person]
        return replace(
            self, person=self.person[at], predicted=self.predicted.take(at),
            repeat=self.repeat[at], fold=self.fold[at],
        )  # fmt: skip

    @property
    def n_units(self) -> int:
        """Number of people, or of groups of people, that the model predicts."""
        return len(np.unique(self.units[self.members]))


def classes_of(predictions: pd.DataFrame) -> list[str]:
    """Return the classes a predictions table has columns ``p_<class>`` for, in their order."""
    return [c.removeprefix("p_") for c in predictions.columns if str(c).startswith("p_")]


def read_held_out(
    predictions: pd.DataFrame, classes: Sequence[str] | None = None
) -> dict[str, HeldOutPredictions]:
    """Return the predictions of each model by its name, people numbered alike; check the table."""
    table = predictions.reset_index(drop=True)
    if "label" not in table:
        raise InputError(
            f"A predictions table needs a column 'label', but has {list(table.columns)[:12]}."
        )
    if len(table) == 0:
        raise InputError("The predictions table has no rows.")
    for column, default in (("model", "model"), ("repeat", 1), ("sample", table.index)):
        if column not in table:
            table[column] = default
    names = classes_of(table) if classes is None else [str(c) for c in classes]
    if names:
        table, names = _complete(table, names)
    elif "predicted" not in table:
        raise InputError(
            "A predictions table without columns 'p_<class>' needs 'predicted' (regression), or "
            "say the classes."
        )
    person, people = pd.factorize(table["sample"].astype(str))
    row_of_person = np.zeros(len(people), dtype=np.intp)  # The last one of each
    row_of_person[person] = np.arange(len(table))
    by_person = table.iloc[row_of_person]
    truth = predicted_of(by_person, names).truth
    differs = truth[person] != predicted_of(table, names).truth
    if differs.any():
        raise InputError(
            f"Sample {str(table['sample'][differs.argmax()])!r} has different labels in the "
            "predictions; a person has one outcome. Give repeated visits an id each, and a column "
            "'group'."
        )
    units = np.arange(len(people))
    if "group" in table:
        units = pd.factorize(by_person["group"].astype(str))[0]
    sites = by_person["site"].to_numpy(dtype=str) if "site" in table else None
    repeat = pd.factorize(table["repeat"], sort=True)[0]
    fold = table["fold"].to_numpy() if "fold" in table else np.zeros(len(table))
    models = {}
    for model, part in table.groupby("model", sort=False):
        rows = part.index.to_numpy()
        rows = rows[np.argsort(repeat[rows], kind="stable")]
        predicted = predicted_of(table.loc[rows], names)
        scaled = "probability" in part and bool((part["probability"] == PLATT).any())
        if scaled:
            # Decision scores of different folds have no common scale; probabilities have.
            predicted = replace(predicted, margin=None)
        models[str(model)] = HeldOutPredictions(
            str(model), np.asarray(people), units, truth, person[rows], predicted, repeat[rows],
            fold[rows], names, scaled, sites,
        )  # fmt: skip
    return models


def _complete(table: pd.DataFrame, names: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Add missing probabilities (NaN beside scores alone) and labels; return table and classes."""
    if not set(table["label"].astype(str)) <= set(names):
        # Read from a file of results, in which classes such as "+" are written as no formula.
        table = unescape_frame(table)
    labels = sorted(set(table["label"].astype(str)))
    if len(names) == 1:
        others = [c for c in labels if c != names[0]]
        if len(others) != 1:
            raise InputError(
                f"With probabilities of {names[0]!r} alone there must be one other class, but the "
                f"labels are {labels[:10]}."
            )
        names = [others[0], names[0]]
    unknown = [c for c in labels if c not in names]
    if unknown:
        raise InputError(f"Label {unknown[0]!r} has no column 'p_{unknown[0]}' in the predictions.")
    columns = [f"p_{c}" for c in names]
    present = [c for c in columns if c in table]
    lacking = [c for c in columns if c not in table]
    if present and lacking and len(names) > 2:
        raise InputError(
            f"A predictions table with {present[0]!r} needs a column for each of {len(names)} "
            f"classes, but has no {lacking[0]!r}; add it, or give decision scores alone."
        )
    for column in lacking:
        # Of two classes the other one has the rest; without any there are decision scores only.
        table[column] = 1.0 - table[present[0]] if present else np.nan
    proba = table[columns].to_numpy(dtype=float)
    absent = np.isnan(proba).any(axis=1)
    known = proba[~absent]
    if len(known) and (known.min() < 0 or known.max() > 1):
        raise InputError(
            "Probabilities must lie between 0 and 1; put decision scores into the column 'score'."
        )
    for model, partly in pd.Series(absent).groupby(table["model"], sort=False):
        if partly.any() and not partly.all():
            raise InputError(
                f"Model {str(model)!r} has no probabilities for {partly.sum()} of {len(partly)} "
                "rows of the predictions; fill them in, or leave these rows out."
            )
    if "predicted" not in table:
        best = np.nan_to_num(proba, nan=-1.0).argmax(axis=1)
        if np.isnan(proba).all():
            if "score" not in table:
                raise InputError("The predictions have neither probabilities nor scores.")
            best = (table["score"].to_numpy(dtype=float) > 0).astype(int)
        table["predicted"] = np.array(names)[best]
    return table, names


def predicted_of(part: pd.DataFrame, classes: Sequence[str]) -> Predicted:
    """Return rows of a predictions table as arrays, with classes as codes."""
    if not classes:
        truth, label = (part[c].to_numpy(dtype=float) for c in ("label", "predicted"))
        return Predicted(truth, label, n_classes=0)
    codes = {c: i for i, c in enumerate(classes)}
    truth, label = (
        part[c].astype(str).map(codes).to_numpy(dtype=np.intp) for c in ("label", "predicted")
    )
    proba = part[[f"p_{c}" for c in classes]].to_numpy(dtype=float)
    margin: np.ndarray | None = None
    for columns in (["score"], [f"score_{c}" for c in classes]):
        if margin is None and set(columns) <= set(part) and part[columns].notna().all(axis=None):
            margin = part[columns].to_numpy(dtype=float)
            margin = margin[:, 0] if len(columns) == 1 else margin
    return Predicted(truth, label, None if np.isnan(proba).all() else proba, margin, len(classes))


@dataclass(frozen=True)
class Statistic:
    """A function of a model's predictions, and the columns that name its values in a table."""

    held: HeldOutPredictions  # Of a model, or of some of its people
    # From predictions and weights (k, n) to one value (k,) or several values (k, m) per resample
    function: Callable[[Predicted, np.ndarray], np.ndarray]
    names: Mapping[str, Any] = field(default_factory=dict)  # One value, or one for each row
    scale: str = "identity"  # As in `Draws`
    count: float | np.ndarray | None = None
    key: str = ""  # A statistic of all people with a key is drawn only once
    reference: Statistic | None = None  # The difference from it is given as well


Rows = Statistic | Mapping[str, Any]
"""A statistic to be drawn, or rows of a table that are known without resamples."""


class Resampled:
    """Held-out predictions of every model, and the resamples of their samples."""

    def __init__(
        self,
        predictions: pd.DataFrame,
        classes: Sequence[str] | None = None,
        resamples: int = 2000,
        level: float = 0.95,
        random_state: int = 0,
    ) -> None:
        self.models = read_held_out(predictions, classes)
        units = next(iter(self.models.values())).units
        self.boot = Bootstrap(units, resamples, level, random_state)
        self._draws: dict[tuple[str, str], Draws] = {}
        self._frames: dict[Hashable, pd.DataFrame] = {}

    @property
    def classes(self) -> list[str]:
        """Classes with the positive one last; empty in regression."""
        return next(iter(self.models.values())).classes

    def metrics(self, wanted: Sequence[str] | None = None) -> list[str]:
        """Return the metrics asked for, by default all of the task."""
        return list(wanted) if wanted is not None else default_metrics(bool(self.classes))

    def only(self, models: Sequence[str], resamples: int) -> Resampled:
        """Return the predictions of some models, on the same resamples where so many were drawn."""
        some = copy(self)
        some.models, some._frames = {model: self.models[model] for model in models}, {}
        if resamples != self.boot.resamples:
            units, level, seed = self.boot.units, self.boot.level, self.boot.random_state
            some.boot, some._draws = Bootstrap(units, resamples, level, seed), {}
        return some

    def metric(self, model: str, metric: str) -> Draws:
        """Return a metric of a model on the sample and on every resample, drawn once."""
        return self.draw(metric_statistic(metric, self.models[model]))

    def interval(self, model: str, metric: str) -> tuple[float, float, float]:
        """Return a metric of a model, and both ends of its interval."""
        draws = self.metric(model, metric)
        low, high = draws.interval()
        return float(draws.estimate), float(low), float(high)

    def draw(self, statistic: Statistic) -> Draws:
        """Return a statistic (its mean over repeats) on the sample and on every resample."""
        held, key = statistic.held, (statistic.held.model, statistic.key)
        is_kept = bool(statistic.key) and held is self.models[held.model]
        if is_kept and key in self._draws:
            return self._draws[key]
        # People in the order of the table need not be looked up.
        ordered = [np.array_equal(rows, np.arange(len(held.people))) for rows, _ in held.repeats]

        def mean(weights: np.ndarray) -> np.ndarray:
            parts = [
                statistic.function(p, weights if in_order else weights[:, rows])
                for (rows, p), in_order in zip(held.repeats, ordered, strict=True)
            ]
            return parts[0] if len(parts) == 1 else np.mean(parts, axis=0)

        draws = self.boot.run(mean, held.n_units, statistic.scale, statistic.count)
        if is_kept:
            self._draws[key] = draws
        return draws

    def table(
        self, statistics: Callable[[HeldOutPredictions], Iterable[Rows]], columns: Sequence[str]
    ) -> pd.DataFrame:
        """Return a row for each value of the statistics of each model, with its interval."""
        rows = (r for held in self.models.values() for r in statistics(held))
        return self.rows(rows, columns)

    def rows(self, statistics: Iterable[Rows], columns: Sequence[str]) -> pd.DataFrame:
        """Return a row for each value of the statistics, with interval; known rows as they are."""
        parts: list[Mapping[str, Any]] = []
        for part in statistics:
            if isinstance(part, Statistic):
                draws = self.draw(part)
                values = draws.columns("estimate", "low", "high")
                if part.reference is not None:
                    other = self.draw(part.reference)
                    difference = draws.minus(other)
                    values |= difference.columns("difference", "difference_low", "difference_high")
                    values["reference_value"] = np.atleast_1d(other.estimate)
                    values["standard_error"] = np.atleast_1d(difference.error())
                part = {"model": part.held.model, **part.names, **values}
            parts.append(part)
        return long_table(parts, columns)

    def once(self, make: Callable[..., pd.DataFrame], **options: Any) -> pd.DataFrame:
        """Return a copy of the table that a function makes; it is made once for given options."""
        values = (tuple(v) if np.iterable(v) else v for v in options.values())
        key = (make.__name__, *values)
        if key not in self._frames:
            self._frames[key] = make(self, **options)
        return self._frames[key].copy()


def long_table(
    parts: Sequence[Mapping[str, Any] | pd.DataFrame], columns: Sequence[str]
) -> pd.DataFrame:
    """Join rows, given as values or arrays by column, to a table; what a row lacks is missing."""
    if not parts:
        return pd.DataFrame(columns=list(columns))
    frames = [pd.DataFrame(part) for part in parts]
    return pd.concat(frames, ignore_index=True).reindex(columns=list(columns))


class BootstrapOptions(TypedDict, total=False):
    """Arguments of `Resampled` besides the predictions, for functions that pass them on."""

    classes: Sequence[str] | None
    resamples: int
    level: float
    random_state: int


def resample(
    predictions: pd.DataFrame | Resampled, **bootstrap: Unpack[BootstrapOptions]
) -> Resampled:
    """Return predictions with resamples of their samples; those that have them as they are."""
    if not isinstance(predictions, Resampled):
        return Resampled(predictions, **bootstrap)
    if bootstrap:
        raise InputError(
            f"{', '.join(bootstrap)}: the resamples have been drawn already. Pass the predictions "
            "table, or give these arguments to Resampled."
        )
    return predictions


def metric_statistic(metric: str, held: HeldOutPredictions, /, **names: Any) -> Statistic:
    """Return a metric of some predictions, for `Resampled` to draw with its interval."""
    scale = metric_of_task(metric, bool(held.classes)).scale
    count = _people_behind(metric, held)
    return Statistic(held, partial(scores, metric), names, scale, count, key=metric)


def _people_behind(metric: str, held: HeldOutPredictions) -> float:
    """Return the number of people a metric is computed from, for scores of exactly 0 or 1."""
    if not held.classes:
        return float(held.members.sum())
    rows, p = held.repeats[0]
    if metric == "accuracy":
        return float(len(rows))
    if metric in ("precision", "recall") and len(held.classes) == 2:
        return float(max(1, np.sum((p.label if metric == "precision" else p.truth) == 1)))
    # Other metrics rest on the smallest class.
    return float(np.unique(p.truth, return_counts=True)[1].min())
