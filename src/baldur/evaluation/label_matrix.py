"""Label matrices: several yes/no outcomes of the same samples, read as a matrix of 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.views.validate import some

NO_YES = ["no", "yes"]
"""The classes of every label, the positive one last."""

AVERAGE = "*"
"""The value of the column outcome for the mean over all outcomes."""

_WORDS: Mapping[str, int] = {
    "0": 0, "0.0": 0, "no": 0, "n": 0, "false": 0,
    "1": 1, "1.0": 1, "yes": 1, "y": 1, "true": 1,
}  # fmt: skip
"""Values that mean yes or no, whatever their case; for others `positive` has to be given."""


def is_label_matrix(y: Any) -> bool:
    """Whether labels are a matrix with a column for each of several outcomes."""
    return np.ndim(y) == 2 and np.shape(y)[1] > 1


def read_label_matrix(y: Any, n: int, positive: Any = None) -> tuple[np.ndarray, list[str]]:
    """Return several yes/no outcomes as 0 and 1, and their names.

    Shapes: y (n_samples, n_labels); returns Y (n_samples, n_labels).

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation.label_matrix import read_label_matrix
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
    """Return 1 for yes and 0 for no.

    Shapes: returns (n_samples,).
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
    means = {value: _WORDS.get(str(value).strip().casefold()) for value in values}
    if set(means.values()) != {0, 1}:
        raise InputError(
            f"outcome {name!r} has {some(values)}, and which of them means yes is not known; write "
            "yes and no (or 1 and 0), or give `positive`."
        )
    return cells.map(means).to_numpy(dtype=np.intp)
