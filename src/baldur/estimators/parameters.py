"""One table of parameter constraints: what each argument of the estimators must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, NamedTuple

from sklearn.utils import check_random_state

from baldur.exceptions import InputError
from baldur.inference.ensemble import MEMBERS
from baldur.preparation import SCALES

__all__ = ["CONSTRAINTS", "Constraint", "check_parameters", "is_number", "is_one_of"]


class Constraint(NamedTuple):
    """What an argument must be: a predicate, and the words that follow "must be"."""

    is_legal: Callable[[Any], bool]
    words: str


def is_one_of(value: Any, names: Iterable[str]) -> bool:
    """Return whether the value is one of these names."""
    return isinstance(value, str) and value in names


def is_number(value: Any, low: float, high: float = float("inf")) -> bool:
    """Return whether the value is a real number from `low` to `high`."""
    return isinstance(value, Real) and low <= float(value) <= high


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and int(value) >= 1


def _are_members(value: Any) -> bool:
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    names = list(value) if several else []
    return bool(names) and all(is_one_of(name, MEMBERS) for name in names)


def _is_seed(value: Any) -> bool:
    try:
        check_random_state(value)
    except ValueError:
        return False
    return True


CONSTRAINTS: Mapping[str, Constraint] = MappingProxyType(
    {
        "scale": Constraint(lambda v: is_one_of(v, SCALES), f"one of {SCALES}"),
        "n_factors": Constraint(
            lambda v: is_one_of(v, ("auto",)) or _is_count(v), '"auto" or a positive integer'
        ),
        "max_iter": Constraint(_is_count, "a positive integer"),
        "members": Constraint(
            _are_members,
            "a tuple or list of one or more of " + ", ".join(f'"{name}"' for name in MEMBERS),
        ),
        "random_state": Constraint(_is_seed, "None, a whole number or a RandomState"),
        "n_jobs": Constraint(
            lambda v: v is None or (isinstance(v, Integral) and v != 0),
            "None or a number of processes (-1 for one per core)",
        ),
        "verbose": Constraint(lambda v: is_number(v, 0), "0, or 1 to print progress"),
        "margin": Constraint(
            lambda v: is_number(v, 0.0, 1.0),
            "a number from 0 (select whatever predicts best) to 1, the part of what is gained over "
            "the base rate that a smaller model may lose",
        ),
    }
)
"""Argument to constraint. An argument that is not here is checked where it is used."""


def check_parameters(
    parameters: Mapping[str, Any], constraints: Mapping[str, Constraint] = CONSTRAINTS
) -> None:
    """Raise an InputError for the first parameter that violates its constraint.

    Parameters
    ----------
    parameters : dict
        Argument to value, as ``get_params(deep=False)`` returns them.
    constraints : dict of str to Constraint
    """
    for name, constraint in constraints.items():
        if name in parameters and not constraint.is_legal(parameters[name]):
            raise InputError(f"{name} must be {constraint.words}, but got {parameters[name]!r}.")
