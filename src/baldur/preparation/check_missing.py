"""Missing cells: which are imputed, and which are refused.

A missing cell takes the training mean of its column, which is 0 once standardised, so it costs
nothing inside the products. A sample with a missing view has a row of zeros.
"""

from __future__ import annotations

import numpy as np

from baldur.exceptions import InputError
from baldur.preparation.column_statistics import ColumnStatistics
from baldur.views.validate import some
from baldur.views.view import View


def check_missing(view: View, statistics: ColumnStatistics, impute: str, all_missing: str) -> None:
    """Refuse views and columns without values, and cells that may not be imputed."""
    n = int(view.present.sum())
    if n == 0:
        raise InputError(
            f"View {view.name!r}: expected data for at least one training sample, but all "
            f"{view.shape[0]} have none. Leave the view out with select, or check how samples "
            "were matched."
        )
    empty = np.flatnonzero(statistics.count == 0)
    if empty.size and all_missing == "error":
        raise InputError(
            f"View {view.name!r}: expected at least one value in each column, but "
            f"{empty.size} of {view.shape[1]} columns are missing in every training sample: "
            f"{some(view.names_of(empty).tolist())}. Drop them, or give them no weight with "
            "Preparation(all_missing='zero')."
        )
    holes = np.flatnonzero((statistics.count < n) & (statistics.count > 0))
    if holes.size and impute == "error":
        raise InputError(
            f"View {view.name!r}: expected no missing cells (impute='error'), but {holes.size} of "
            f"{view.shape[1]} columns have some: {some(view.names_of(holes).tolist())}. Fill "
            "them, or use impute='mean'."
        )
