"""Parameter constraints: what an argument must be, with one check and one form of message.

Estimators, baselines and simulators have a table of their arguments each; the constraints in the
tables, and the check, are those of this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
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


def check_parameters(parameters: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Raise an InputError for the first parameter that violates its constraint."""
    for name, constraint in constraints.items():
        if name in parameters:
            check(name, parameters[name], constraint)
