"""Check what fitted models predict, and report damaged models by one kind of error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from baldur.estimators.targets import check_answer
from baldur.exceptions import BaldurError, InputError
from baldur.types import Array


@contextmanager
def predicting(estimator: Any) -> Iterator[None]:
    """Turn what a damaged or forged model runs into while it predicts into an `InputError`."""
    try:
        yield
    except BaldurError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        said = str(error).splitlines()[0][:200] if str(error) else ""
        raise InputError(
            f"{type(estimator).__name__} cannot predict ({type(error).__name__}: {said}). A model "
            "from somebody else may be damaged or forged."
        ) from error


def check_probabilities(p: Array) -> Array:
    """Return probabilities (n, C); refuse those that are not from 0 to 1 or do not sum to 1."""
    p = check_answer(p, "probabilities", (0.0, 1.0))
    # Far above the rounding of float32.
    if (np.abs(p.sum(axis=1) - 1.0) > 1e-3).any():
        raise InputError(
            "The probabilities of the classes do not sum to 1. A model from somebody else may be "
            "damaged or forged."
        )
    return p
