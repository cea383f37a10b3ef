"""added_value: compare the view sets of a model by nested cross-validation, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baldur.evaluation.added_value.study import AddedValue
from baldur.evaluation.label_matrix import is_label_matrix
from baldur.evaluation.nested import nested_cv
from baldur.evaluation.result import NestedResult
from baldur.exceptions import InputError


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
    assert isinstance(result, NestedResult)  # there is one outcome
    return result.added_value(thresholds=thresholds, prevalence=prevalence)
