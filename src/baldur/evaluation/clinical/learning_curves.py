"""Learning curves: held-out scores against the number of training people.

The interval of a score includes the choice of the test people. It does not include the choice of
the training people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import pandas as pd

from baldur.evaluation.clinical.held_out import BootstrapOptions, Resampled, metric_statistic
from baldur.exceptions import InputError

_LEAST_SIZES = 3
COLUMNS = ["model", "metric", "people", "kind", "estimate", "low", "high"]


def learning_curves(
    by_people: Mapping[float, pd.DataFrame],
    metric: str,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Return scores against training people, with intervals.

    `by_people` has the predictions of the same people after training on so many (a mean over
    folds), for at least three numbers. Columns of the table: model, metric, people, kind
    ("measured"), estimate, low and high.
    """
    people = sorted(map(float, by_people))
    if len(people) < _LEAST_SIZES:
        raise InputError(
            f"A learning curve needs at least {_LEAST_SIZES} different training set sizes, but got "
            f"{len(people)}."
        )
    # One table, so that people have one number and the resamples are the same at every size.
    tables = [
        by_people[n].assign(model=f"{n}\t" + by_people[n]["model"].astype(str)) for n in people
    ]
    sample = Resampled(pd.concat(tables, ignore_index=True), **bootstrap)
    statistics = (
        metric_statistic(metric, held, model=model, metric=metric, people=n, kind="measured")
        for model in by_people[people[0]]["model"].astype(str).unique()
        for n in people
        if (held := sample.models.get(f"{n}\t{model}")) is not None
    )
    table = sample.rows(statistics, COLUMNS)
    # A model without a score at some size has no curve.
    complete = table.groupby("model")["estimate"].transform("count") == len(people)
    return table[complete].reset_index(drop=True)
