"""Working sets: an l1 problem over many columns, solved over few of them.

The optimum of ``loss(X w) + sum_j |w_j|`` is reached on the columns W when every other column j
satisfies ``|x_j' loss'(X w)| <= 1``. The check of the rest needs one product ``X' r``, which can be
made block by block, so a wide view is never held as one dense matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from baldur.exceptions import NotConvergedWarning
from baldur.types import Array

DENSE_LIMIT = 4096
"""Largest number of columns for which the whole problem is solved at once."""


def solve_on_working_set(
    n_columns: int,
    solve: Callable[[NDArray[np.intp]], Array],
    correlations: Callable[[NDArray[np.intp], Array], Array],
    start: Array,
    *,
    dense_limit: int = DENSE_LIMIT,
    max_rounds: int = 50,
    tol: float = 1e-3,
    name: str = "this model",
) -> tuple[NDArray[np.intp], Array, int]:
    """Return the columns used, their coefficients and the number of rounds.

    Shapes: start (n_columns,).
    """
    if n_columns <= dense_limit:
        active = np.arange(n_columns)
        return active, solve(active), 1
    size = min(n_columns, max(16, dense_limit // 8))
    active = np.sort(np.argpartition(-start, size - 1)[:size])
    for round_ in range(1, max_rounds + 1):
        coef = solve(active)
        wish = correlations(active, coef)
        wish[active] = 0.0
        violators = np.flatnonzero(wish > 1.0 + tol)
        if len(violators) == 0:
            return active, coef, round_
        if len(violators) > size:
            violators = violators[np.argpartition(-wish[violators], size - 1)[:size]]
        # Columns at zero leave, so the set stays near the size of the solution; they come back
        # through the check if they were needed. Cycling is impossible while the objective falls,
        # and after ten rounds no column leaves, which ends changes within the tolerance.
        if round_ <= 10:
            used = np.any(coef.reshape(-1, coef.shape[-1]) != 0.0, axis=0)
            active = active[used]
        active = np.union1d(active, violators)
    warnings.warn(
        f"The working set of {name} still had {len(violators)} of {n_columns} columns to add after "
        f"{max_rounds} rounds; the last solution is used. A stronger penalty converges sooner.",
        NotConvergedWarning,
        stacklevel=2,
    )
    return active, solve(active), max_rounds
