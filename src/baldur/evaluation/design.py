"""Comparison: models, data and folds of a nested cross-validation, all of them checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.metrics import AVERAGE, NO_YES, default_metrics, metric_of_task
from baldur.evaluation.models import Model, check_views, make_models, on_views
from baldur.evaluation.splits import NEEDED, Fold, FoldPlan
from baldur.evaluation.view_sets import view_set_models
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.preparation.categories import feature_counts
from baldur.preparation.covariates import sample_column
from baldur.views import MultiView
from baldur.views.estimator_input import as_multiview
from baldur.views.validate import match_labels, some

_WORDS: Mapping[str, int] = {
    "0": 0, "0.0": 0, "no": 0, "n": 0, "false": 0,
    "1": 1, "1.0": 1, "yes": 1, "y": 1, "true": 1,
}  # fmt: skip
"""Values that mean yes or no, whatever their case; for others `positive` has to be given."""


@dataclass(frozen=True)
class Comparison:
    """Everything that a comparison of models needs, checked."""

    models: list[Model]  # The models, with the preparation of the comparison among their parameters
    data: MultiView  # The samples
    y: np.ndarray  # (n_samples,) or (n_samples, n_labels)
    classes: list[Any]  # Labels behind the codes, the positive one last; empty in regression
    plan: FoldPlan  # Outer and inner folds, and the seed
    metric: str  # Metric that selects settings on the inner folds
    metrics: list[str]  # Metrics of the table
    permutations: int = 0  # How often everything is repeated with permuted labels
    baseline_views: tuple[str, ...] = ()
    preparation: Preparation | None = None  # Of all models
    outcomes: Sequence[str] = ()
    stratify: np.ndarray | None = None

    @cached_property
    def n_features(self) -> dict[str, int]:
        """Features of each view, without the reference levels of categories."""
        steps = () if self.preparation is None else self.preparation.steps
        return feature_counts(self.data, steps)

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 in regression."""
        return len(self.classes)

    @property
    def folds(self) -> list[Fold]:
        """The outer folds of the samples."""
        return self.plan.outer_folds(self.y if self.stratify is None else self.stratify)

    def one_outcome(self, column: int) -> Comparison:
        """Return the comparison for one column of the label matrix, on the same folds."""
        return replace(self, y=self.y[:, column], outcomes=(), stratify=self.y)

    def model(self, name: str | None = None) -> Model:
        """Return the model of this name, or the first one."""
        for model in self.models:
            if name is None or model.name == name:
                return model
        names = [m.name for m in self.models]
        raise InputError(f"There is no model {name!r} in the comparison; it has {names}.")

    def data_of(self, model: Model) -> MultiView:
        """Return the samples with the views that a model gets."""
        return self.data if model.views is None else self.data.select(model.views)


def open_comparison(
    models: Any,
    X: Any,
    y: Any,
    *,
    views: Mapping[str, Any] | None = None,
    task: str = "classification",
    positive: Any = None,
    scheme: str | None = None,
    outer: int = 5,
    inner: int = 5,
    repeats: int = 1,
    groups: Any = None,
    sites: Any = None,
    split: Any = None,
    preparation: Preparation | None = None,
    metrics: Sequence[str] | None = None,
    select_by: str | None = None,
    permutations: int = 0,
    random_state: int = 0,
    train_share: float = 1.0,
    baseline_views: Sequence[str] | None = None,
) -> Comparison:
    """Apply the options of `nested_cv` to data, and check everything before anything is fitted."""
    if task not in ("classification", "regression"):
        raise InputError(f"task must be 'classification' or 'regression', but got {task!r}.")
    if not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise InputError(f"random_state must be a whole number from 0, but got {random_state!r}.")
    classification = task == "classification"
    models = make_models(models, classification)
    data = as_multiview(X, views, estimator_name="nested_cv")
    y = match_labels(y, data.sample_ids, X)
    outcomes: list[str] = []
    if classification and is_label_matrix(y):
        codes, outcomes = read_label_matrix(y, len(data), positive)
        classes: list[Any] = list(NO_YES)
    else:
        codes, classes = encode_labels(y, len(data), classification, positive)
    models = [on_views(model, data) for model in models]
    baseline: tuple[str, ...] = ()
    if baseline_views is not None:
        baseline = check_views(baseline_views, data.view_names, "baseline_views")
        if len(baseline) == len(data.view_names):
            raise InputError(
                f"baseline_views names all views ({list(baseline)}), so that there is none to add; "
                "leave at least one out."
            )
        models += view_set_models(models, data, baseline)
    if preparation is not None:
        for column in preparation.sample_columns:
            sample_column(data, column, "The preparation")
        models = [m.prepared_by(preparation) for m in models]
    metric = select_by or ("auc" if classification else "r2")
    shown = list(metrics) if metrics is not None else default_metrics(classification)
    for name in (metric, *shown):
        metric_of_task(name, classification)
    given = {"groups": groups, "sites": sites, "split": split}
    columns = {name: _column(values, len(data), name) for name, values in given.items()}
    implied = (scheme for scheme, name in NEEDED.items() if columns[name] is not None)
    plan = FoldPlan(
        scheme=scheme or next(implied, "stratified"),
        outer=outer,
        inner=inner,
        repeats=repeats,
        classification=classification,
        seed=int(random_state),
        train_share=float(train_share),
        **columns,
    )
    return Comparison(
        models=models,
        data=data,
        y=codes,
        classes=classes,
        plan=plan,
        metric=metric,
        metrics=shown,
        permutations=permutations,
        baseline_views=baseline,
        preparation=preparation,
        outcomes=outcomes,
    )


def encode_labels(
    y: Any, n: int, classification: bool, positive: Any
) -> tuple[np.ndarray, list[Any]]:
    """Return class codes with the positive class last, and the classes; or the numbers and []."""
    values = np.asarray(y)
    if values.shape != (n,):
        advice = ""
        if not classification and values.ndim == 2:
            advice = (
                " Several numeric outcomes are evaluated one at a time, as averages over different "
                "units have no meaning."
            )
        raise InputError(
            f"y must have one value per sample ({n}), but its shape is {values.shape}.{advice}"
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
            raise InputError("y has infinite values; correct them, or leave these samples out.")
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
    codes = {c: i for i, c in enumerate(classes)}
    return np.array([codes[v] for v in values.tolist()], dtype=np.intp), classes


def is_label_matrix(y: Any) -> bool:
    """Whether labels are a matrix with a column for each of several outcomes."""
    return np.ndim(y) == 2 and np.shape(y)[1] > 1


def read_label_matrix(y: Any, n: int, positive: Any = None) -> tuple[np.ndarray, list[str]]:
    """Return several yes/no outcomes as 0 and 1, and their names.

    Shapes: y (n_samples, n_labels); returns Y (n_samples, n_labels).

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation.design import read_label_matrix
    >>> read_label_matrix(pd.DataFrame({"stroke": ["yes", "no"], "fall": [0, 1]}), 2)[0].tolist()
    [[1, 0], [0, 1]]
    """
    frame = pd.DataFrame(y)
    names = [str(c) for c in frame.columns]
    if not isinstance(y, pd.DataFrame):
        names = [f"label {j + 1}" for j in range(frame.shape[1])]
    if len(frame) != n:
        raise InputError(f"y must have a row for each of {n} samples, but it has {len(frame)}.")
    if len(set(names)) < len(names) or AVERAGE in names or "" in names:
        raise InputError(
            f"the columns of y must have different names, none of them empty or {AVERAGE!r}, but "
            f"they are {some(names)}."
        )
    missing = frame.isna().to_numpy()
    if missing.any():
        counts = [
            f"{k} of {name!r}" for name, k in zip(names, missing.sum(axis=0), strict=True) if k
        ]
        raise InputError(
            f"y has missing values ({some(counts)}); every sample needs all labels. Leave these "
            f"samples out ({int(missing.any(axis=1).sum())} of {n}), or these columns."
        )
    columns = [yes_or_no(frame.iloc[:, j], name, positive) for j, name in enumerate(names)]
    return np.column_stack(columns), names


def yes_or_no(cells: pd.Series, name: str, positive: Any = None) -> np.ndarray:
    """Return a yes/no outcome as 1 for yes and 0 for no; refuse a column that is none.

    Shapes: cells (n_samples,); returns (n_samples,).
    """
    values = list(dict.fromkeys(cells.tolist()))
    if len(values) != 2:
        raise InputError(
            f"outcome {name!r} must have two values, yes and no, but it has {len(values)}: "
            f"{some(values)}. Leave the column out, or evaluate it alone."
        )
    if positive is not None:
        if positive not in values:
            raise InputError(f"positive is {positive!r}, but outcome {name!r} has {some(values)}.")
        return (cells == positive).to_numpy(dtype=np.intp)
    codes = {value: _WORDS.get(str(value).strip().casefold()) for value in values}
    if set(codes.values()) != {0, 1}:
        raise InputError(
            f"outcome {name!r} has {some(values)}, and which of them means yes is not known; write "
            "yes and no (or 1 and 0), or give `positive`."
        )
    return cells.map(codes).to_numpy(dtype=np.intp)


def _column(values: Any, n: int, what: str) -> np.ndarray | None:
    """Return groups, sites or a split as text of shape (n,), checked; None if not given."""
    if values is None:
        return None
    column = np.asarray(values)
    if column.shape != (n,):
        raise InputError(
            f"{what} must have one value per sample ({n}), but the shape is {column.shape}."
        )
    if pd.isna(column).any():
        raise InputError(f"{what} has missing values; fill them or leave these samples out.")
    return column.astype(str)
