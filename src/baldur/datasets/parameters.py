"""Arguments of the simulators: the table of their constraints, widths, and values per view."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.parameters import (
    FRACTION,
    NON_NEGATIVE,
    Constraint,
    check,
    integer,
    is_number,
    optional,
)

CONSTRAINTS: Mapping[str, Constraint] = MappingProxyType(
    {
        "n": integer(),
        "dims": integer(),
        "informative": integer(least=0),
        "correlation": FRACTION,
        "block_size": integer(),
        "effect_range": NON_NEGATIVE,
        "logit_sd": NON_NEGATIVE,
        "n_classes": optional(integer(least=2)),
        "noise": NON_NEGATIVE,
        "missing_cells": FRACTION,
        "missing_views": FRACTION,
        "missing_calls": FRACTION,
        "scale": Constraint(
            lambda v: is_number(v, 0.0, 1.0) and v > 0.0, "a number above 0 and at most 1"
        ),
    }
)
"""Argument to constraint; that of an argument per view is for the value of one view."""


def scaled_width(value: Any, full: int, least: int) -> int:
    """Return the width ``round(full * scale)``, which must be at least `least`."""
    check("scale", value, CONSTRAINTS["scale"])
    width = round(full * float(value))
    if width < least:
        raise InputError(
            f"scale={value!r} gives {width} of {full} columns, but at least {least} are needed. "
            f"Use scale={least / full:.2g} or more."
        )
    return width


def per_view(value: Any, names: list[str], name: str, default: Any) -> dict[str, Any]:
    """Return the value of an argument for each view.

    A mapping has values by view name (`default` where a view is not named), a sequence has one
    value per view, and any other value is used for every view.
    """
    if isinstance(value, Mapping):
        unknown = [v for v in value if v not in names]
        if unknown:
            raise InputError(f"{name} names the views {unknown}, which are not among {names}.")
        return {v: value.get(v, default) for v in names}
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        if len(value) != len(names):
            raise InputError(
                f"{name} has {len(value)} values and there are {len(names)} views ({names}); give "
                "one value per view, or a dict by view name."
            )
        return dict(zip(names, value, strict=True))
    return dict.fromkeys(names, value)
