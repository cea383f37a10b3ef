"""nested_cv: settings chosen on inner folds, scores on outer folds, nothing seen twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from baldur.evaluation.design import Design
from baldur.evaluation.handle import DataHandle, one_thread
from baldur.evaluation.jobs import Runner
from baldur.evaluation.models import Model, fit_with_groups
from baldur.evaluation.progress import Progress
from baldur.evaluation.result import NestedResult
from baldur.evaluation.rounds import Place, Rounds, without_prefix
from baldur.evaluation.shard import Shard
from baldur.evaluation.splits import Fold
from baldur.evaluation.store import JobStore
from baldur.exceptions import InputError
from baldur.views import MultiView

__all__ = ["nested_cv"]


def nested_cv(
    models: Any,
    X: Any,
    y: Any,
    *,
    n_jobs: int = 1,
    client: Any = None,
    store: str | Path | None = None,
    shard: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    **design: Any,
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
    **design
        How models are compared, as in `Design`: `views`, `task`, `positive`, `scheme`, `outer`,
        `inner`, `repeats`, `groups`, `sites`, `split`, `preparation`, `metrics`, `select_by`,
        `permutations`, `random_state` and `train_share`.

    Returns
    -------
    NestedResult
        With `table()`, `predictions`, `stability()`, `compare()` and more.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> sim = make_multiview(90, {"a": 5, "b": 30}, random_state=0)
    >>> result = nested_cv({"Dummy": None, "Ridge logistic": {"C": [0.1, 1.0]}}, sim.data,
    ...                    sim.target, outer=3, inner=3)
    >>> result.table()["model"].tolist()
    ['Dummy', 'Ridge logistic']
    """
    plan = Design(**design)
    opened = plan.open(models, X, y)
    study = Rounds.of(opened, n_jobs)
    study.store, study.permutations, study.progress = JobStore(store), plan.permutations, progress
    if shard is not None:
        if store is None:
            raise InputError("shard needs store, the folder where the parts meet.")
        study.shard = Shard.of(shard)
    if client is not None:
        study.runner = _cluster(client)
    fits, failures, notes = study.run()
    return NestedResult(
        models=[m.name for m in study.models],
        classes=opened.classes,
        truth=study.y,
        mv=study.mv,
        folds=study.plan.outer_folds(study.y),
        fits=fits,
        failures=failures,
        notes=notes,
        metrics=opened.columns,
        select_by=study.metric,
        permuted=study.permuted_scores,
        groups=study.plan.groups,
        sites=study.plan.sites,
    )


def fit_all_rows(
    model: Model,
    X: MultiView,
    y: Any,
    *,
    n_jobs: int = 1,
    progress: Callable[[Progress], None] | None = None,
    permutations: int = 0,
    **design: Any,
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
    **design
        As in `nested_cv`.

    Returns
    -------
    estimator : fitted estimator
    setting : dict
    classes : list
        Labels behind the codes it predicts, the positive one last.
    data : MultiView
        What it was fitted on.
    """
    opened = Design(**design).open([model], X, y)
    study = Rounds.of(opened, n_jobs)
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
    return fitted, without_prefix(setting), opened.classes, study.mv


def _cluster(client: Any) -> Runner:
    # Dask is imported where a client is used, and nowhere else.
    from baldur.evaluation.cluster import ClusterRunner

    return ClusterRunner(client)
