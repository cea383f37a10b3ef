"""Several yes/no outcomes of a study: columns of the samples table as a matrix of 0 and 1."""

from __future__ import annotations

import numpy as np
import pandas as pd

from baldur.evaluation.label_matrix import read_label_matrix, yes_or_no
from baldur.exceptions import InputError
from baldur.study.config import StudyConfig
from baldur.study.samples import check_outcome, find_label


def outcome_key(config: StudyConfig) -> str:
    """Return the key of the study file that names the outcome, for messages."""
    return "outcome.columns" if config.outcome.columns else "outcome.column"


def read_outcomes(config: StudyConfig, table: pd.DataFrame) -> pd.DataFrame:
    """Return the outcomes of a study as 0 and 1, a column for each."""
    cells = table[config.outcome.columns]
    positive = config.outcome.positive
    try:
        if positive is None:
            values, names = read_label_matrix(cells, len(cells))
        else:
            # What means yes may be written differently in every column, such as 1 and 1.0.
            parts = []
            for name in config.outcome.columns:
                label = find_label(positive, sorted(cells[name].unique()))
                if label is None:
                    raise InputError(
                        f"outcome {name!r} has no value {positive!r}, which is what means yes in "
                        "this study; correct the column, or leave it out."
                    )
                parts.append(pd.Series(yes_or_no(cells[name], name, label), name=name))
            values, names = read_label_matrix(pd.concat(parts, axis=1), len(cells))
    except InputError as error:
        # The message says what to do.
        raise config.problem("outcome.columns", str(error)) from None
    return pd.DataFrame(values, columns=names, index=table.index)


def check_outcomes(config: StudyConfig, table: pd.DataFrame) -> None:
    """Refuse outcomes that cannot be predicted: one column of classes or numbers, or several."""
    if config.outcome.columns:
        read_outcomes(config, table)
    else:
        check_outcome(config, table[config.outcome.column])


def labels_by_outcome(config: StudyConfig, y: np.ndarray | pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the labels of every outcome of a study, by its column."""
    if isinstance(y, pd.DataFrame):
        return {str(name): y[name].to_numpy() for name in y}
    return {config.outcome.column: y}
