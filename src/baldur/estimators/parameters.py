"""The table of parameter constraints of the estimators: what each argument must be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from types import MappingProxyType
from typing import Any, TypeGuard

from sklearn.utils import check_random_state

from baldur.core.parameters import NON_NEGATIVE, Constraint, is_number, is_one_of, one_of
from baldur.inference.ensemble_members import MEMBERS
from baldur.preparation.column_statistics import SCALES


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and int(value) >= 1


def is_number_of_features(value: Any) -> TypeGuard[int]:
    """Return whether a value is a whole number from 0 on."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def are_numbers_of_features(value: Any) -> TypeGuard[Mapping[str, int]]:
    """Return whether a value is a dict of names of views to whole numbers from 0 on."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(view, str) for view in value)
        and all(is_number_of_features(number) for number in value.values())
    )


def _are_costs(value: Any) -> bool:
    if value is None:
        return True
    named = isinstance(value, Mapping) and all(isinstance(name, str) for name in value)
    return named and all(NON_NEGATIVE.is_legal(number) for number in value.values())


def _are_names(value: Any) -> bool:
    several = isinstance(value, (list, tuple))
    return value is None or (several and all(isinstance(name, str) for name in value))


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
        "scale": one_of(*SCALES),
        "n_factors": Constraint(
            lambda v: is_one_of(v, ("auto",)) or _is_count(v), '"auto" or a positive integer'
        ),
        "n_features": Constraint(
            lambda v: (
                is_one_of(v, ("auto",)) or is_number_of_features(v) or are_numbers_of_features(v)
            ),
            '"auto", a whole number from 0 on, or a dict of views to such numbers',
        ),
        "cost": Constraint(
            _are_costs,
            "None, or a dict of names of views or features to finite numbers from 0 on",
        ),
        "always": Constraint(_are_names, "None, or a list or tuple of names of features"),
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
            "a number from 0 (everything, unless less is shown to lose nothing) to 1, the part of "
            "what is gained over the base rate that a smaller model may lose",
        ),
    }
)
"""Argument to constraint. An argument that is not here is checked where it is used."""
