"""learning_curve: a comparison on subsets of the training people, reusing finished jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.threads import one_thread
from baldur.evaluation.clinical.learning_curves import (
    learning_curves,
    minimum_people,
    minimum_people_regression,
)
from baldur.evaluation.design import Comparison, Design, open_comparison
from baldur.evaluation.nested import run_comparison
from baldur.evaluation.result import NestedResult
from baldur.exceptions import InputError

SHARES = (0.4, 0.6, 0.8)
"""Shares of the training people besides all of them."""


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
    >>> found = learning_curve(models, sim.data, sim.target, outer=2, inner=2)
    >>> found["people"].tolist()
    [16.5, 24.5, 32.5, 40.0]
    """
    options = {f.name for f in fields(Design)} & set(keywords)
    design = Design(**{name: keywords.pop(name) for name in options})
    comparison = open_comparison(design, models, X, y)
    return run_learning_curve(comparison, shares=shares, full=full, **keywords)


def run_learning_curve(
    comparison: Comparison,
    *,
    shares: Sequence[float] = SHARES,
    full: NestedResult | None = None,
    **how: Any,
) -> pd.DataFrame:
    """Score the models of a comparison on subsets of the training people."""
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


def people_needed(result: NestedResult) -> pd.DataFrame:
    """Return the closed-form minimum numbers of people for each model of a comparison.

    They are for a regression without penalty that discriminates as well as the model did, on all
    candidate columns, and on as many as the model selected (which is fewer than it chose from, so
    that this number is too low). Where no such regression can be fitted, a note says so.
    """
    table = result.table()
    rows = []
    for record in table[table["failure"] == ""].to_dict("records"):
        model = result.comparison.model(str(record["model"]))
        width = sum(result.n_features[v] for v in model.views or result.data.view_names)
        selected = float(record["features_percent"]) / 100 * width
        sizes = {"all": float(width)}
        if np.isfinite(selected) and selected < width:
            sizes["selected"] = selected
        for name, count in sizes.items():
            row: dict[Any, Any] = {"model": record["model"], "candidates": name, "note": ""}
            if count < 1:
                rows.append({**row, "note": "the model selects no features"})
                continue
            row["parameters"] = int(np.ceil(count))
            try:
                criteria = _criteria(result, record, row["parameters"])
                rows += [{**row, **criterion} for criterion in criteria.to_dict("records")]
            except InputError as error:
                rows.append({**row, "note": str(error)})
    columns = ["model", "candidates", "parameters", "criterion", "people", "meaning", "note"]
    return pd.DataFrame(rows, columns=columns).astype({"parameters": "Int64", "people": "Int64"})


def _criteria(result: NestedResult, record: dict[Any, Any], parameters: int) -> pd.DataFrame:
    people = len(result.truth)
    if parameters >= people:
        raise InputError(
            f"A regression without penalty cannot be fitted to {parameters:,} features of "
            f"{people:,} people, so that there is no minimum sample size."
        )
    if not result.classes:
        return minimum_people_regression(parameters, float(record["r2_pooled"]))
    if len(result.classes) > 2:
        raise InputError(
            "Minimum sample sizes can be computed for two classes or a numeric outcome only."
        )
    share = float(np.mean(result.truth == 1))
    return minimum_people(parameters, share, auc=float(record["auc_pooled"]))
