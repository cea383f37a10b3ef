"""nested_cv: settings chosen on inner folds, scores on outer folds, nothing seen twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from baldur.evaluate.deconfound import CONFOUNDS, Deconfounded
from baldur.evaluate.handle import DataHandle, one_thread
from baldur.evaluate.jobs import LocalRunner, Runner
from baldur.evaluate.metrics import default_metrics
from baldur.evaluate.models import Model, make_models
from baldur.evaluate.progress import Progress
from baldur.evaluate.result import NestedResult
from baldur.evaluate.rounds import Place, Rounds, without_prefix
from baldur.evaluate.shard import Shard
from baldur.evaluate.splits import Fold, Plan
from baldur.evaluate.steps import WithSteps, fit_with_groups
from baldur.evaluate.store import JobStore
from baldur.exceptions import InputError
from baldur.views import MultiView, as_multiview

__all__ = ["nested_cv"]


def nested_cv(
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
    confounds: Any = None,
    steps: Sequence[Any] = (),
    metrics: Sequence[str] | None = None,
    select_by: str | None = None,
    permutations: int = 0,
    random_state: int = 0,
    n_jobs: int = 1,
    client: Any = None,
    store: str | Path | None = None,
    shard: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> NestedResult:
    """Compare models by nested cross-validation.

    In each outer fold every setting of a model's grid is scored on inner folds of the training
    rows, the best is fitted on all training rows, and the test rows are predicted once. Scaling,
    imputation, covariates and selection are learned inside, on training rows.

    Parameters
    ----------
    models : list of str, or dict
        Names ("BALDUR" and the rows of `baldur.baselines.BASELINES`); or names to estimators,
        (estimator, grid) pairs, grids for known names, or None. scikit-learn estimators get the
        views side by side.
    X : MultiView, or 2-D array or DataFrame
        The data.
    y : array-like of shape (n_samples,)
        Labels, or numbers in regression.
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
    confounds : array-like of shape (n_samples, q), optional
        Covariates regressed out of every view, learned on training rows.
    steps : list of transformers, optional
        From `MultiView` to `MultiView`, fitted on training rows before every model, such as those
        of `baldur.io.view_steps`. Features they remove count as not selected.
    metrics : list of str, optional
        Columns of the table, out of `baldur.evaluate.METRICS`; default all of the task.
    select_by : str, optional
        Metric of the inner folds, and of the permutation test; default "auc" or "r2".
    permutations : int, default=0
        Repeat everything with permuted labels this often, for a permutation test.
    random_state : int, default=0
        Seed of folds and models. One seed gives one result, whatever `n_jobs`.
    n_jobs : int, default=1
        Processes; -1 for all cores.
    client : distributed.Client, optional
        A Dask cluster to run on, instead of processes of this machine. Results do not change.
    store : path, optional
        Folder where finished jobs are kept. The same call takes them from there. Any number of
        processes may use one folder.
    shard : str, optional
        Such as "3/20": do the third of twenty parts. Needs `store`. Where other parts are not
        done yet, `baldur.exceptions.UnfinishedError` says so.
    progress : callable, optional
        Called with a `Progress` after every job.

    Returns
    -------
    NestedResult
        With `table()`, `predictions`, `stability()`, `compare()` and more.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluate import nested_cv
    >>> sim = make_multiview(90, {"a": 5, "b": 30}, random_state=0)
    >>> result = nested_cv({"Dummy": None, "Ridge logistic": {"C": [0.1, 1.0]}}, sim.data,
    ...                    sim.target, outer=3, inner=3)
    >>> result.table()["model"].tolist()
    ['Dummy', 'Ridge logistic']
    """
    study, classes, columns = open_comparison(
        models, X, y, views=views, task=task, positive=positive, scheme=scheme, outer=outer,
        inner=inner, repeats=repeats, groups=groups, sites=sites, split=split, confounds=confounds,
        steps=steps, metrics=metrics, select_by=select_by, random_state=random_state, n_jobs=n_jobs,
    )  # fmt: skip
    study.store, study.permutations, study.progress = JobStore(store), permutations, progress
    if shard is not None:
        if store is None:
            raise InputError("shard needs store, the folder where the parts meet.")
        study.shard = Shard.of(shard)
    if client is not None:
        study.runner = _cluster(client)
    fits, failures, notes = study.run()
    return NestedResult(
        models=[m.name for m in study.models],
        classes=classes,
        truth=study.y,
        mv=study.mv,
        folds=study.plan.outer_folds(study.y),
        fits=fits,
        failures=failures,
        notes=notes,
        metrics=columns,
        select_by=study.metric,
        permuted=study.permuted_scores,
    )


def fit_all_rows(
    model: Model,
    X: MultiView,
    y: Any,
    *,
    n_jobs: int = 1,
    progress: Callable[[Progress], None] | None = None,
    permutations: int = 0,
    **keywords: Any,
) -> tuple[Any, dict[str, Any], list[Any], MultiView]:
    """Choose a model's setting on inner folds of all rows, and fit it on all rows.

    Parameters
    ----------
    model : Model
        What to fit.
    X : MultiView
        The data.
    y : array-like of shape (n_samples,)
        Labels or numbers.
    n_jobs : int, default=1
        Processes.
    progress : callable, optional
        Called with a `Progress` after every job.
    permutations : int
        Not used.
    **keywords
        As in `nested_cv`.

    Returns
    -------
    estimator : fitted estimator
    setting : dict
    classes : list
        Labels behind the codes it predicts, the positive one last.
    data : MultiView
        What it was fitted on: `X`, and the covariates as a view if there are any.
    """
    study, classes, _ = open_comparison([model], X, y, n_jobs=n_jobs, **keywords)
    study.progress = progress
    study.begin()
    rows = np.arange(len(study.y))
    everything = Fold(0, 0, rows, rows[:0])
    made = study.models[0]
    setting = made.settings()[0]
    if len(made.settings()) > 1:
        study.state = Progress(total=len(made.settings()), n_jobs=study.runner.n_jobs)
        with DataHandle(study.mv) as handle:
            best = study.choose([Place(made, 0, study.y, everything)], handle)
        if study.failures:
            raise InputError(study.failures[made.name])
        setting = best[(made.name, 0, 0, 0)][1]
    with one_thread():
        fresh = made.make(setting, study.seed_of(made, 0, everything))
        fitted = fit_with_groups(fresh, study.mv, study.y, study.plan.inner_groups)
    return fitted, without_prefix(setting), classes, study.mv


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
    confounds: Any = None,
    steps: Sequence[Any] = (),
    metrics: Sequence[str] | None = None,
    select_by: str | None = None,
    random_state: int = 0,
    n_jobs: int = 1,
) -> tuple[Rounds, list[Any], list[str]]:
    """Check everything; return the study, its classes and the columns of the table."""
    if task not in ("classification", "regression"):
        raise InputError(f"task must be 'classification' or 'regression', but got {task!r}.")
    if not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise InputError(f"random_state must be a whole number from 0, but got {random_state!r}.")
    classification = task == "classification"
    made = make_models(models, classification)
    mv = as_multiview(X, views, estimator_name="nested_cv")
    n = len(mv)
    codes, classes = encode_labels(y, n, classification, positive)
    if confounds is not None:
        mv = with_confounds(mv, confounds)
        made = [m.inside(Deconfounded(m.estimator)) for m in made]
    if len(steps):
        made = [m.inside(WithSteps(m.estimator, list(steps))) for m in made]
    given = {
        name: _column(values, n, name)
        for name, values in (("groups", groups), ("sites", sites), ("split", split))
    }
    plan = Plan(
        scheme=scheme or _default_scheme(**given),
        outer=outer,
        inner=inner,
        repeats=repeats,
        classification=classification,
        seed=int(random_state),
        **given,
    )
    chosen = select_by or ("auc" if classification else "r2")
    legal = default_metrics(classification)
    columns = list(metrics) if metrics is not None else legal
    for name in (chosen, *columns):
        if name not in legal:
            raise InputError(f"metric {name!r} is not one of this task's: {legal}.")
    study = Rounds(
        made, mv, codes, len(classes), plan, chosen, int(random_state),
        LocalRunner(int(joblib.effective_n_jobs(n_jobs))),
    )  # fmt: skip
    return study, classes, columns


def _cluster(client: Any) -> Runner:
    # Dask is imported where a client is used, and nowhere else.
    from baldur.evaluate.cluster import ClusterRunner

    return ClusterRunner(client)


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


def with_confounds(mv: MultiView, confounds: Any) -> MultiView:
    """Return the container with the covariates as one more view."""
    cells = np.asarray(confounds, dtype=float)
    cells = cells[:, None] if cells.ndim == 1 else cells
    if cells.ndim != 2 or len(cells) != len(mv):
        raise InputError(
            f"confounds must have one row per sample ({len(mv)}), but the shape is {cells.shape}."
        )
    # The container defers rows; a view over all its stored rows keeps it that way.
    first = mv.view(mv.view_names[0])
    rows = first.rows
    if rows is not None:
        full = np.full((first.source.shape[0], cells.shape[1]), np.nan)
        full[rows] = cells
        if len(np.unique(rows)) != len(rows):
            raise InputError("confounds need samples that occur once; X repeats rows.")
        cells = full
    table = MultiView({CONFOUNDS: cells})._tables
    return MultiView._with({**mv._tables, **table}, rows, mv.sample_ids)


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
