"""Design: what a comparison is about, checked and opened: data, labels, folds and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.metrics import default_metrics
from baldur.evaluation.models import Model, make_models
from baldur.evaluation.splits import Plan
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.preparation.covariates import sample_column
from baldur.views import MultiView, as_multiview
from baldur.views.validate import match_labels

__all__ = ["Design", "Opened", "encode_labels"]


@dataclass(frozen=True)
class Opened:
    """Everything of a comparison, checked.

    Attributes
    ----------
    models : list of Model
        With the preparation among the parameters of their estimators.
    mv : MultiView
        The data.
    y : ndarray of shape (n_samples,)
        Codes of the classes, or numbers.
    classes : list
        Labels behind the codes, the positive one last; empty for numbers.
    plan : Plan
    metric : str
        That chooses settings.
    columns : list of str
        Metrics of the table.
    """

    models: list[Model]
    mv: MultiView
    y: np.ndarray
    classes: list[Any]
    plan: Plan
    metric: str
    columns: list[str]


@dataclass(frozen=True, kw_only=True)
class Design:
    """How models are compared: the options of `nested_cv` that decide its figures.

    Parameters
    ----------
    views : dict of str to columns, optional
        Columns of each view when `X` is one matrix.
    task : {"classification", "regression"}, default="classification"
        What is predicted.
    positive : label, optional
        Positive class among two; default the last in sorted order.
    scheme : {"stratified", "grouped", "leave-one-site-out", "fixed"}, optional
        Outer folds. Default: by what is given, of `split`, `sites`, `groups` in this order,
        otherwise "stratified".
    outer, inner : int, default=5
        Number of folds.
    repeats : int, default=1
        How often the outer folds are drawn anew.
    groups, sites : array-like of shape (n_samples,), optional
        Groups never lie on both sides of a split, outer or inner. `sites` are left out one by one.
    split : array-like of "train" and "test", optional
        One fixed outer split.
    preparation : Preparation, optional
        Template of what every model learns from its training rows before anything else: filters,
        sites to align, covariates to regress out. Features it leaves out count as not selected. An
        estimator with a preparation of its own keeps that.
    metrics : list of str, optional
        Columns of the table, out of `baldur.evaluation.METRICS`; default all of the task.
    select_by : str, optional
        Metric of the inner folds, and of permutation tests; default "auc" or "r2".
    permutations : int, default=0
        Repeat everything with permuted labels this often, for a permutation test.
    random_state : int, default=0
        Seed of folds and models. One seed gives one result, whatever `n_jobs`.
    train_share : float, default=1.0
        Share of each outer fold's training rows to use, for a learning curve.
    """

    views: Mapping[str, Any] | None = None
    task: str = "classification"
    positive: Any = None
    scheme: str | None = None
    outer: int = 5
    inner: int = 5
    repeats: int = 1
    groups: Any = None
    sites: Any = None
    split: Any = None
    preparation: Preparation | None = None
    metrics: Sequence[str] | None = None
    select_by: str | None = None
    permutations: int = 0
    random_state: int = 0
    train_share: float = 1.0

    def open(self, models: Any, X: Any, y: Any) -> Opened:
        """Check everything against the data.

        Parameters
        ----------
        models, X, y
            As in `nested_cv`.

        Returns
        -------
        Opened
        """
        if self.task not in ("classification", "regression"):
            raise InputError(
                f"task must be 'classification' or 'regression', but got {self.task!r}."
            )
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)) or seed < 0:
            raise InputError(f"random_state must be a whole number from 0, but got {seed!r}.")
        classification = self.task == "classification"
        made = make_models(models, classification)
        mv = as_multiview(X, self.views, estimator_name="nested_cv")
        y = match_labels(y, mv.sample_ids, X)
        codes, classes = encode_labels(y, len(mv), classification, self.positive)
        if self.preparation is not None:
            for column in self.preparation.sample_columns:
                sample_column(mv, column, "The preparation")
            made = [m.prepared_by(self.preparation) for m in made]
        metric = self.select_by or ("auc" if classification else "r2")
        legal = default_metrics(classification)
        columns = list(self.metrics) if self.metrics is not None else legal
        for name in (metric, *columns):
            if name not in legal:
                raise InputError(f"metric {name!r} is not one of this task's: {legal}.")
        return Opened(made, mv, codes, classes, self._plan(len(mv)), metric, columns)

    def _plan(self, n: int) -> Plan:
        given = {
            name: _column(getattr(self, name), n, name) for name in ("groups", "sites", "split")
        }
        return Plan(
            scheme=self.scheme or _default_scheme(**given),
            outer=self.outer,
            inner=self.inner,
            repeats=self.repeats,
            classification=self.task == "classification",
            seed=int(self.random_state),
            train_share=float(self.train_share),
            **given,
        )


def encode_labels(
    y: Any, n: int, classification: bool, positive: Any
) -> tuple[np.ndarray, list[Any]]:
    """Return class codes with the positive class last, and the classes; or the numbers and []."""
    values = np.asarray(y)
    if values.shape != (n,):
        raise InputError(
            f"y must have one value per sample ({n}), but its shape is {values.shape}."
        )
    missing = pd.isna(values)
    if missing.any():
        raise InputError(f"y has {int(missing.sum())} missing values; leave these samples out.")
    if not classification:
        try:
            numbers = values.astype(float)
        except (TypeError, ValueError) as error:
            raise InputError(f"y must be numbers in regression ({error}).") from error
        if not np.isfinite(numbers).all():
            raise InputError("y has infinite values.")
        return numbers, []
    classes = np.unique(values).tolist()
    if len(classes) < 2:
        raise InputError(f"y must have at least two classes, but all are {classes[0]!r}.")
    if len(classes) > 50 and len(classes) > n // 4:
        raise InputError(
            f"y has {len(classes)} different values over {n} samples; for a numeric outcome use "
            "task='regression'."
        )
    if positive is not None:
        if len(classes) != 2 or positive not in classes:
            raise InputError(
                f"positive must be one of two classes, but got {positive!r} and the classes are "
                f"{classes[:10]}."
            )
        classes = [c for c in classes if c != positive] + [positive]
    order = {c: i for i, c in enumerate(classes)}
    return np.array([order[v] for v in values.tolist()], dtype=np.intp), classes


def _column(values: Any, n: int, what: str) -> np.ndarray | None:
    if values is None:
        return None
    found = np.asarray(values)
    if found.shape != (n,):
        raise InputError(
            f"{what} must have one value per sample ({n}), but the shape is {found.shape}."
        )
    if pd.isna(found).any():
        raise InputError(f"{what} has missing values; fill them or leave these samples out.")
    return found.astype(str)


def _default_scheme(groups: Any, sites: Any, split: Any) -> str:
    if split is not None:
        return "fixed"
    if sites is not None:
        return "leave-one-site-out"
    return "stratified" if groups is None else "grouped"
