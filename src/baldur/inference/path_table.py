"""The table of the submodel path: one record per submodel, with its held-out loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baldur.inference.selection import paired_gap
from baldur.types import Array


def path_records(
    kind: str,
    n_views: Sequence[int],
    n_features: Sequence[int],
    losses: Array,
    *,
    ensemble: Array,
    weight: Array,
    allowed: float,
) -> list[dict[str, Any]]:
    """Return the records of the submodels of one kind, from small to large.

    Parameters
    ----------
    kind : "nothing", "views" or "features", the column `step`
    n_views, n_features : numbers of views and features of each submodel
    losses : (V, N) array, held-out loss of each row
    ensemble, weight : (N,) arrays, losses of the ensemble and weights of the rows
    allowed : float
        A candidate loses at most this much more than the ensemble, with 95 % confidence. The
        base rate never is one; the largest submodel always is.
    """
    records: list[dict[str, Any]] = []
    largest = len(losses) - 1
    for place, loss in enumerate(losses):
        gap = paired_gap(loss, ensemble, weight)
        records.append(
            {
                "step": kind,
                "n_views": int(n_views[place]),
                "n_features": int(n_features[place]),
                "loss": float(loss @ weight / weight.sum()),
                "loss_difference": gap.mean,
                "standard_error": gap.error,
                "upper": gap.upper,
                "candidate": kind != "nothing" and (place == largest or gap.upper <= allowed),
                "selected": False,
            }
        )
    return records
