"""Parameter constraints: what an argument must be, with one check and one form of message.

The parameters of estimators and baselines are the fields of their classes, of which `parameter`
makes those that have a constraint. Simulators check their arguments one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import field, fields
from numbers import Integral, Real
from typing import Any, NamedTuple

from baldur.exceptions import InputError


class Constraint(NamedTuple):
    """What an argument must be: a predicate, and the words that follow "must be"."""

    is_legal: Callable[[Any], bool]
    words: str


def is_one_of(value: Any, names: Iterable[str]) -> bool:
    """Return whether the value is one of these names."""
    return isinstance(value, str) and value in names


def is_number(value: Any, low: float, high: float = math.inf) -> bool:
    """Return whether the value is a real number from `low` to `high`, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool) and low <= float(value) <= high


def one_of(*names: str) -> Constraint:
    """Return the constraint of an argument that is one of some names."""
    return Constraint(lambda v: is_one_of(v, names), f"one of {names}")


def integer(least: int = 1) -> Constraint:
    """Return the constraint of an argument that is an integer of at least `least`."""
    return Constraint(
        lambda v: isinstance(v, Integral) and not isinstance(v, bool) and int(v) >= least,
        f"an integer of at least {least}",
    )


def optional(constraint: Constraint) -> Constraint:
    """Return the constraint of an argument that may also be None."""
    return Constraint(lambda v: v is None or constraint.is_legal(v), f"None or {constraint.words}")


POSITIVE = Constraint(lambda v: is_number(v, 0) and 0 < v < math.inf, "a finite number above 0")
NON_NEGATIVE = Constraint(
    lambda v: is_number(v, 0) and v < math.inf, "a finite number of at least 0"
)
FRACTION = Constraint(
    lambda v: is_number(v, 0) and v < 1, "a number from 0 up to but not including 1"
)


def check(name: str, value: Any, constraint: Constraint) -> None:
    """Raise an InputError that names the argument if its value violates a constraint."""
    if not constraint.is_legal(value):
        raise InputError(f"{name} must be {constraint.words}, but got {value!r}.")


def parameter(default: Any, constraint: Constraint) -> Any:
    """Return a field of an estimator: a parameter with its default, and what values are legal."""
    return field(default=default, metadata={"constraint": constraint})


def check_parameters(estimator: Any) -> None:
    """Raise an InputError for the first parameter of an estimator that violates its constraint."""
    for f in fields(estimator):
        if "constraint" in f.metadata:
            check(f.name, getattr(estimator, f.name), f.metadata["constraint"])
