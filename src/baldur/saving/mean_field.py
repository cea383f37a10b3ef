"""The predictor of the paper's mean-field posterior: the result of its run, and little else."""

from __future__ import annotations

from typing import Any

from baldur.exceptions import InputError
from baldur.inference.fitted import Fitted
from baldur.inference.fitted_mean_field import fitted_from_result
from baldur.model.meanfield.result import MeanFieldResult
from baldur.state import Fields, State

__all__ = ["mean_field_state", "read_mean_field"]


def mean_field_state(fitted: Fitted) -> State:
    """Return the state of a fitted mean-field posterior.

    Parameters
    ----------
    fitted : Fitted

    Returns
    -------
    dict
    """
    result = getattr(fitted.moments, "result", None)
    if not isinstance(result, MeanFieldResult):
        raise InputError("This posterior cannot be saved yet.")
    return {
        "kind": "mean-field predictor",
        "result": result.to_state(),
        "signal": fitted.signal,
        "sparsity": fitted.sparsity,
        "observed": fitted.moments.observed,  # type: ignore[attr-defined]
    }


def read_mean_field(state: Any, widths: list[int], outputs: int, factors: int) -> Fitted:
    """Build the posterior again; every part is validated.

    Parameters
    ----------
    state : dict
    widths : list of int
        Features of each view.
    outputs, factors : int

    Returns
    -------
    Fitted
    """
    with Fields(state, "mean-field predictor") as read:
        result = read.part(
            "result", MeanFieldResult.from_state, widths=widths, outputs=outputs, factors=factors
        )
        return fitted_from_result(
            result,
            signal=read.array("signal", (len(widths), factors), low=0.0),
            sparsity=read.number("sparsity", finite=False, above=0.0),
            observed=read.boolean("observed"),
        )
