"""nested_cv: settings chosen on inner folds, scores on outer folds, nothing seen twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from baldur.evaluation.design import Comparison, Design, open_comparison
from baldur.evaluation.handle import one_thread
from baldur.evaluation.jobs import LocalRunner, Runner
from baldur.evaluation.models import fit_with_groups
from baldur.evaluation.progress import Progress
from baldur.evaluation.result import NestedResult
from baldur.evaluation.rounds import Place, Rounds, seed_of, without_prefix
from baldur.evaluation.shard import Shard
from baldur.evaluation.splits import Fold
from baldur.evaluation.store import JobStore
from baldur.exceptions import InputError

__all__ = ["fit_all_rows", "nested_cv", "run_comparison"]


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
    comparison = open_comparison(Design(**design), models, X, y)
    return run_comparison(
        comparison, n_jobs=n_jobs, client=client, store=store, shard=shard, progress=progress
    )


def run_comparison(
    comparison: Comparison,
    *,
    n_jobs: int = 1,
    client: Any = None,
    store: str | Path | None = None,
    shard: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> NestedResult:
    """Run the nested cross-validation of a comparison.

    Parameters
    ----------
    comparison : Comparison
        As `open_comparison` returns it.
    n_jobs, client, store, shard, progress
        As in `nested_cv`.

    Returns
    -------
    NestedResult
    """
    if shard is not None and store is None:
        raise InputError("shard needs store, the folder where the parts meet.")
    rounds = Rounds(
        comparison,
        _runner(n_jobs, client),
        JobStore(store),
        None if shard is None else Shard.of(shard),
        progress,
    )
    fits, failures, notes = rounds.run()
    return NestedResult(
        models=[m.name for m in comparison.models],
        classes=comparison.classes,
        truth=comparison.y,
        mv=comparison.data,
        folds=comparison.folds,
        fits=fits,
        failures=failures,
        notes=notes,
        metrics=comparison.metrics,
        select_by=comparison.metric,
        permuted=rounds.permuted_scores,
        groups=comparison.plan.groups,
        sites=comparison.plan.sites,
    )


def fit_all_rows(
    comparison: Comparison,
    model: str | None = None,
    *,
    n_jobs: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Select a model's setting on inner folds of all rows, and fit it on all rows.

    Parameters
    ----------
    comparison : Comparison
        As `open_comparison` returns it.
    model : str, optional
        Name of one of its models; default the first.
    n_jobs : int, default=1
        Processes.
    progress : callable, optional
        Called with a `Progress` after every job.

    Returns
    -------
    estimator : fitted estimator
        It predicts class codes, places in `comparison.classes`.
    setting : dict
        The selected setting.
    """
    made = comparison.model(model)
    comparison = replace(comparison, models=[made], permutations=0)
    y = comparison.y
    rows = np.arange(len(y))
    everything = Fold(0, 0, rows, rows[:0])
    setting = made.settings()[0]
    if len(made.settings()) > 1:
        rounds = Rounds(comparison, _runner(n_jobs), progress=progress)
        setting = rounds.choose_on_all_rows(Place(made, 0, y, everything))
    with one_thread():
        fresh = made.make(setting, seed_of(comparison, made, 0, everything))
        fitted = fit_with_groups(fresh, comparison.data, y, comparison.plan.inner_groups)
    return fitted, without_prefix(setting)


def _runner(n_jobs: int, client: Any = None) -> Runner:
    if client is None:
        return LocalRunner(int(joblib.effective_n_jobs(n_jobs)))
    # Dask is imported where a client is used, and nowhere else.
    from baldur.evaluation.cluster import ClusterRunner

    return ClusterRunner(client)
