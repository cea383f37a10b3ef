"""Evidence: the figures of a finished run that the claims are decided by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from baldur.evaluation import NestedResult
from baldur.reproduction.differences import Difference, simultaneous_differences
from baldur.reproduction.protocol import DEFAULT, PAPER, Protocol


@dataclass(frozen=True)
class Evidence:
    """The figures of a run."""

    protocol: Protocol  # The study
    result: NestedResult  # Of all models
    truth: pd.DataFrame | None = None
    factors: int | None = None
    not_run: dict[str, str] | None = None  # Models that failed, and why

    @property
    def simulated(self) -> bool:
        """Whether the truth behind the data is known."""
        return self.truth is not None

    @cached_property
    def table(self) -> pd.DataFrame:
        """The table of the comparison, models as index; only those with figures."""
        table = self.result.table().set_index("model")
        return table[table["folds"] > 0]

    @property
    def baselines(self) -> list[str]:
        """Baselines that have figures."""
        return [name for name in self.table.index if name not in (PAPER, DEFAULT)]

    @property
    def missing(self) -> list[str]:
        """Baselines of the protocol without figures: they failed or were not run."""
        names = [name for name in self.protocol.rows if name not in (PAPER, DEFAULT)]
        return [name for name in names if name not in self.table.index]

    def pooled(self, model: str, metric: str) -> tuple[float, float, float]:
        """Return estimate and 95 % interval of a metric on pooled held-out predictions.

        Shapes: returns (estimate, low, high).
        """
        columns = [f"{metric}_{end}" for end in ("pooled", "low", "high")]
        estimate, low, high = map(float, self.table.loc[model, columns].to_numpy(dtype=float))
        return estimate, low, high

    def differences(self, model: str, others: list[str], metric: str) -> list[Difference]:
        """Return what a model has more than each of some others, with simultaneous intervals."""
        sample = self.result.resampled
        people = sample.models[model].members
        same = {
            name: sample.metric(name, metric)
            for name in others
            if name in self.table.index and np.array_equal(sample.models[name].members, people)
        }
        found = {d.other: d for d in simultaneous_differences(sample.metric(model, metric), same)}
        nan = float("nan")
        return [found.get(name, Difference(name, nan, nan, nan)) for name in others]

    # -- selected features -------------------------------------------------------------------------

    @cached_property
    def _views(self) -> pd.DataFrame:
        selection = self.result.selection
        return selection[selection["feature"] == "*"]

    def selected(self, model: str) -> pd.DataFrame:
        """Return the number of selected features: one row per fold, one column per view."""
        mine = self._views[self._views["model"] == model]
        counts = {
            row.view: [int(k) for k in str(row.folds).split(";")] for row in mine.itertuples()
        }
        return pd.DataFrame(counts)

    def percent(self, model: str) -> np.ndarray:
        """Return the share of all features that a model selects in each fold, in per cent."""
        width = sum(self.result.data.n_features.values())
        found: np.ndarray = 100.0 * self.selected(model).sum(axis=1).to_numpy(dtype=float) / width
        return found

    def features(self, model: str) -> pd.DataFrame:
        """Return the features that some fold selects: view, feature, frequency, folds."""
        selection = self.result.selection
        mine = selection[(selection["model"] == model) & (selection["feature"] != "*")]
        return mine[["view", "feature", "frequency", "folds"]].reset_index(drop=True)

    def hits(self, model: str, wanted: set[tuple[str, str]]) -> np.ndarray:
        """Return how many of some features each fold selects.

        Shapes: wanted (view, feature).
        """
        found = self.features(model)
        chosen = [pair in wanted for pair in zip(found["view"], found["feature"], strict=True)]
        rows = [[int(k) for k in str(folds).split(";")] for folds in found.loc[chosen, "folds"]]
        counts: np.ndarray = np.sum(rows, axis=0) if rows else np.zeros(self.n_folds, dtype=int)
        return counts

    @property
    def n_folds(self) -> int:
        """Number of outer folds."""
        return len(self.result.folds)

    def effects(self) -> set[tuple[str, str]]:
        """Return view and feature of what carries signal in the simulation."""
        if self.truth is None:
            return set()
        return set(zip(self.truth["view"], self.truth["feature"].astype(str), strict=True))
