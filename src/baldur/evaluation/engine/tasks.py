"""FoldTask: one model on one outer fold. Shard: a part of all tasks, for job arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from baldur.evaluation.design import Comparison
from baldur.evaluation.models import Model
from baldur.evaluation.permute_labels import permute_labels
from baldur.evaluation.splits import Fold
from baldur.exceptions import InputError

ALL = -1
"""The outcome of a task that is about all of them."""

TaskKey = tuple[str, int, int, int, int]


@dataclass(frozen=True)
class FoldTask:
    """One model on one outer fold, with the true labels or one permutation of them."""

    model: Model
    permutation: int  # 0 for the true labels
    labels: np.ndarray  # (n_samples,) or (n_samples, n_labels)
    fold: Fold
    outcome: int = ALL

    @property
    def key(self) -> TaskKey:
        """Name of the model, outcome, permutation, repeat and fold."""
        where = (self.permutation, self.fold.repeat, self.fold.number)
        return (self.model.name, self.outcome, *where)

    @property
    def y(self) -> np.ndarray:
        """The labels that the model is fitted to."""
        return self.labels if self.outcome == ALL else self.labels[:, self.outcome]

    @property
    def searched(self) -> bool:
        """Whether there are settings to select from."""
        return len(self.model.settings()) > 1


def whole_sample(comparison: Comparison) -> Fold:
    """Return a fold that trains on all rows and tests on none."""
    rows = np.arange(len(comparison.y))
    return Fold(0, 0, rows, rows[:0])


def fold_tasks(comparison: Comparison) -> list[FoldTask]:
    """Return every model on every outer fold, with the true labels and permuted ones."""
    labels = [comparison.y]
    for b in range(1, comparison.permutations + 1):
        rng = np.random.default_rng([comparison.plan.seed, 3, b])
        labels.append(permute_labels(comparison.y, comparison.plan.groups, rng))
    return [
        FoldTask(model, b, y, fold, outcome)
        for b, y in enumerate(labels)
        for fold in comparison.plan.outer_folds(y)
        for model in comparison.models
        for outcome in outcomes_of(comparison, model)
    ]


def outcomes_of(comparison: Comparison, model: Model) -> list[int]:
    """Return the columns of a label matrix that a model is fitted to one after another."""
    apart = bool(comparison.outcomes) and not model.joint
    return list(range(len(comparison.outcomes))) if apart else [ALL]


def seed_of(comparison: Comparison, model: Model, permutation: int, fold: Fold) -> int:
    """Return the seed of one model on one outer fold."""
    place = [crc32(model.seed_name.encode()), permutation, fold.repeat, fold.number]
    entropy = [comparison.plan.seed, 4, *place]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def without_prefix(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting with the parameter names of the model, without prefix."""
    while any(k.startswith("estimator__") for k in setting):
        setting = {k.removeprefix("estimator__"): v for k, v in setting.items()}
    return dict(setting)


@dataclass(frozen=True)
class Shard:
    """Part `number` (from 1) of `count` parts of the work, for job arrays that share a folder."""

    number: int
    count: int

    @classmethod
    def of(cls, text: str) -> Shard:
        """Read a shard that is written like "3/20".

        Examples
        --------
        >>> from baldur.evaluation.engine.tasks import Shard
        >>> Shard.of("3/20")
        Shard(number=3, count=20)
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(text))
        number, count = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= count:
            raise InputError(
                "a shard must be written like 3/20, with the number from 1 to the count, but got "
                f"{text!r}; an array job counts from 1 with --array=1-20."
            )
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def part_of(self, tasks: Sequence[FoldTask], per_fold: int) -> list[FoldTask]:
        """Return the tasks of this shard; every task belongs to exactly one shard.

        All settings of one model on one fold stay together with the fit that needs the best of
        them, so no part waits for another.
        """
        folds = len(tasks) // per_fold
        # Numbered model by model, so that slow models are spread over the parts.
        return [
            task
            for i, task in enumerate(tasks)
            if ((i % per_fold) * folds + i // per_fold) % self.count == self.number - 1
        ]
