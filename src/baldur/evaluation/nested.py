"""nested_cv, added_value, learning_curve: settings from inner folds, scores on outer folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from baldur.core.limits import one_thread
from baldur.evaluation.clinical.learning_curves import learning_curves
from baldur.evaluation.design import Comparison, is_label_matrix, open_comparison
from baldur.evaluation.job_store import JobStore
from baldur.evaluation.jobs import seed_of, whole_sample, without_prefix
from baldur.evaluation.models import fit_with_groups, rows_with_views
from baldur.evaluation.nested_result import NestedResult
from baldur.evaluation.progress import Progress
from baldur.evaluation.run import Runner, run_jobs, search_on_all_rows
from baldur.evaluation.view_additions import AddedValue
from baldur.exceptions import InputError, NoSignalWarning

SHARES = (0.4, 0.6, 0.8)
"""Shares of the training people besides all of them."""


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
    imputation, covariates and feature selection are learned from training rows only. Where models
    show no evidence of signal, one `NoSignalWarning` counts the folds.

    Parameters
    ----------
    models : list of str or Model, or dict
        Names ("BALDUR" and the rows of `baldur.baselines.BASELINES`); or names to estimators,
        (estimator, grid) pairs, grids for known names, or None. scikit-learn estimators get the
        views side by side. `make_model` makes a model that gets some of the views only.
    X : MultiView, or 2-D array or DataFrame
        The data.
    y : array-like of shape (n_samples,) or (n_samples, n_labels)
        Labels, or numbers in regression. A matrix of 0 and 1, or a DataFrame of yes/no columns,
        has several outcomes; missing values are refused.
    n_jobs : int, default=1
        Processes; -1 for all cores.
    client : distributed.Client, optional
        A Dask cluster to run on, instead of processes of this machine. Results do not change.
    store : path, optional
        Folder where the results of finished jobs are stored, and found by the next call. Any
        number of processes may use one folder.
    shard : str, optional
        Such as "3/20": run the third of twenty parts of the jobs. It needs `store`, and raises
        `baldur.exceptions.UnfinishedError` while other parts are not done.
    progress : callable, optional
        Called with a `Progress` after every job.
    **design
        How models are compared:

        - `views`, dict of str to columns: columns of each view when `X` is one matrix.
        - `task`, "classification" (the default) or "regression".
        - `positive`: positive class among two; default the last in sorted order. In a label matrix,
          what means yes in every column where it is not obvious.
        - `scheme` of the outer folds: "stratified", "grouped", "leave-one-site-out" or "fixed".
          Default: by what is given, of `split`, `sites`, `groups` in this order, otherwise
          "stratified".
        - `outer`, `inner`: numbers of folds; default 5.
        - `repeats`: how often the outer folds are drawn anew; default 1.
        - `groups`, `sites`, arrays of shape (n_samples,): groups never lie on both sides of a
          split, outer or inner; sites are left out one by one.
        - `split`, array of "train" and "test": one fixed outer split.
        - `preparation`: template of what every model learns from its training rows before anything
          else: filters, sites to align, covariates to regress out. Features it leaves out count as
          not selected. An estimator that has a preparation of its own is left as it is.
        - `metrics`, list of str: columns of the table, out of `baldur.evaluation.METRICS`; default
          all of the task.
        - `select_by`: metric of the inner folds, and of permutation tests; default "auc" or "r2".
        - `permutations`: repeat everything with permuted labels this often, for a permutation
          test; default 0.
        - `random_state`: seed of folds and models; default 0. One seed gives one result, whatever
          `n_jobs`.
        - `train_share`: share of each outer fold's training rows to use; default 1.0.
        - `baseline_views`, list of str: views that one has anyway. One model, BALDUR or else the
          first with all views, is then also fitted on each view alone, on all but each, on these
          views, and on these and each other view, so that `NestedResult.added_value` says what each
          view adds.

    Returns
    -------
    NestedResult
        With `table()`, `predictions`, `stability()`, `compare()` and more. For several outcomes it
        has the result of each, ``result["stroke"]``, and their mean.

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
    comparison = open_comparison(models, X, y, **design)
    result = run_comparison(
        comparison, n_jobs=n_jobs, client=client, store=store, shard=shard, progress=progress
    )
    if result.no_signal:
        folds = len(result.folds)
        counts = ", ".join(f"{m} in {k} of {folds} folds" for m, k in result.no_signal.items())
        warnings.warn(
            f"No evidence of signal on held-out data: {counts}. Do not interpret the features "
            f"selected in these folds.",
            NoSignalWarning,
            stacklevel=2,
        )
    return result


def run_comparison(
    comparison: Comparison,
    *,
    n_jobs: int = 1,
    client: Any = None,
    store: str | Path | None = None,
    shard: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> NestedResult:
    """Run the nested cross-validation of a comparison with one or several outcomes."""
    if shard is not None and store is None:
        raise InputError("shard needs store, the folder that all shards share.")
    runner = _runner(n_jobs, client)
    return NestedResult(comparison, run_jobs(comparison, runner, JobStore(store), shard, progress))


def fit_all_rows(
    comparison: Comparison,
    model: str | None = None,
    *,
    n_jobs: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Return a model (default the first) fitted on all rows, and its setting.

    The setting is selected on inner folds of all rows. The model predicts class codes, which are
    positions in `comparison.classes`, or 0 and 1 for each of `comparison.outcomes`.
    """
    chosen = comparison.model(model)
    if comparison.outcomes and not chosen.joint:
        raise InputError(
            f"{chosen.name} cannot be fitted to several outcomes at once; name one outcome."
        )
    setting = search_on_all_rows(comparison, chosen, _runner(n_jobs), progress)
    with one_thread():
        seed = seed_of(comparison, chosen, 0, whole_sample(comparison))
        groups = comparison.plan.inner_groups
        estimator = chosen.make(setting, seed)
        data, y = comparison.data_of(chosen), comparison.y
        measured = rows_with_views(comparison.data, chosen.views)
        if measured is not None:
            data, y = data[measured], y[measured]
            groups = None if groups is None else groups[measured]
        fitted = fit_with_groups(estimator, data, y, groups)
    return fitted, without_prefix(setting)


def _runner(n_jobs: int, client: Any = None) -> Runner:
    """Return what runs the jobs: processes of this machine, or a Dask cluster."""
    if client is None:
        return Runner(int(joblib.effective_n_jobs(n_jobs)))
    # Dask is imported where a client is used, and nowhere else.
    from baldur.evaluation.dask_runner import DaskRunner

    return DaskRunner(client)


def added_value(
    X: Any,
    y: Any,
    baseline: Sequence[str],
    *,
    model: Any = "BALDUR",
    thresholds: Sequence[float] | None = None,
    prevalence: float | None = None,
    **keywords: Any,
) -> AddedValue:
    """Say what each view adds to the views that one has anyway.

    One model is fitted on each view alone, on all views but each, on the baseline, on the baseline
    and each other view, and on all views; each set is fitted once. Differences are those of the
    same held-out people. A view is compared on the people who have it.

    Parameters
    ----------
    X : MultiView, or 2-D array or DataFrame with `views`
        At least two views.
    y : array-like of shape (n_samples,)
        Labels, or numbers with ``task="regression"``.
    baseline : list of str
        Views that one has anyway, such as ["clinical"].
    model : str or Model, default="BALDUR"
        A name as in `nested_cv`, or what `make_model` returns.
    thresholds : list of float, optional
        Probabilities from which a person tests positive, for net benefit and reclassification;
        default 0.5 and the prevalence.
    prevalence : float, optional
        Share of cases in the population that the test is meant for; default that of the data.
    **keywords
        As in `nested_cv`: folds, groups, sites, `n_jobs`, `store` and more.

    Returns
    -------
    AddedValue
        With `table`, `reclassification`, `summary()` and `plot()`; its `result` is that of
        `nested_cv`.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import added_value
    >>> sim = make_multiview(90, {"clinical": 3, "genes": 20}, random_state=0)
    >>> found = added_value(sim.data, sim.target, ["clinical"], model="Ridge logistic", outer=3,
    ...                     inner=3)
    >>> found.table.loc[found.table["question"] == "added", "metric"].tolist()[:3]
    ['auc', 'log_loss', 'brier']
    """
    if is_label_matrix(y):
        raise InputError(
            f"y has {np.shape(y)[1]} outcomes; run nested_cv with baseline_views, and call "
            "added_value of its result, which has one for each outcome."
        )
    result = nested_cv([model], X, y, baseline_views=baseline, **keywords)
    return result.added_value(thresholds=thresholds, prevalence=prevalence)


def learning_curve(
    models: Any,
    X: Any,
    y: Any,
    *,
    shares: Sequence[float] = SHARES,
    full: NestedResult | None = None,
    **keywords: Any,
) -> pd.DataFrame:
    """Score models trained on subsets of the training people.

    The test rows stay what they are. Smaller parts lie within larger ones, hold classes in the same
    shares and groups whole; settings are chosen anew on inner folds of each part.

    Parameters
    ----------
    models, X, y
        As in `nested_cv`.
    shares : list of float
        Shares of the training people; all of them are added.
    full : NestedResult, optional
        The comparison with all training people, where it is done already.
    **keywords
        As in `nested_cv`. With `store` every job is kept and found again.

    Returns
    -------
    DataFrame
        As `learning_curves` gives it, for the metric settings were selected by.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import learning_curve
    >>> sim = make_multiview(80, {"a": 5, "b": 10}, random_state=0)
    >>> models = {"Ridge logistic": {"C": [0.1]}}
    >>> curve = learning_curve(models, sim.data, sim.target, outer=2, inner=2)
    >>> curve["people"].tolist()
    [16.5, 24.5, 32.5, 40.0]
    """
    names = ("n_jobs", "client", "store", "shard", "progress")
    how = {name: keywords.pop(name) for name in names if name in keywords}
    comparison = open_comparison(models, X, y, **keywords)
    return run_learning_curve(comparison, shares=shares, full=full, **how)


def run_learning_curve(
    comparison: Comparison,
    *,
    shares: Sequence[float] = SHARES,
    full: NestedResult | None = None,
    **how: Any,
) -> pd.DataFrame:
    """Score models on subsets of the training people; `how` are options of `run_comparison`."""
    for share in shares:
        if not 0 < share < 1:
            raise InputError(f"shares must lie between 0 and 1, but got {share!r}.")
    if comparison.outcomes:
        raise InputError("a learning curve is drawn for one outcome; give one column of y.")
    comparison = replace(comparison, permutations=0)
    parts = [
        replace(comparison, plan=replace(comparison.plan, train_share=float(share)))
        for share in sorted(set(shares))
    ]
    results = [run_comparison(part, **how) for part in parts]
    results.append(full if full is not None else run_comparison(comparison, **how))
    by_people = {
        float(np.mean([len(f.train) for f in result.folds])): result.predictions
        for result in results
        if len(result.predictions)
    }
    with one_thread():
        return learning_curves(
            by_people,
            comparison.metric,
            classes=[str(c) for c in comparison.classes],
        )
