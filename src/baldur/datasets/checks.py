"""Checks of the simulators' arguments, with messages that name the argument."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from baldur.exceptions import InputError

__all__ = ["check_count", "check_fraction", "check_nonnegative", "check_scale", "per_view"]


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_count(value: Any, name: str, least: int = 1) -> int:
    """Accept an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def check_fraction(value: Any, name: str) -> float:
    """Accept a number in [0, 1)."""
    if not _is_number(value) or not 0.0 <= float(value) < 1.0:
        raise InputError(f"{name} must be a number from 0 up to but not including 1, got {value!r}")
    return float(value)


def check_nonnegative(value: Any, name: str) -> float:
    """Accept a finite number that is not negative."""
    if not _is_number(value) or not np.isfinite(float(value)) or float(value) < 0.0:
        raise InputError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def check_scale(value: Any, full: int, least: int) -> int:
    """Turn `scale` into a width: ``round(full * scale)``, at least `least`."""
    if not _is_number(value) or not 0.0 < float(value) <= 1.0:
        raise InputError(f"scale must be a number above 0 and at most 1, got {value!r}")
    width = round(full * float(value))
    if width < least:
        raise InputError(
            f"scale={value!r} leaves {width} of {full} columns and at least {least} are needed; "
            f"use scale={least / full:.2g} or more"
        )
    return width


def per_view(value: Any, names: list[str], name: str, default: Any) -> dict[str, Any]:
    """Spread an argument over the views.

    A mapping gives values by view name (`default` where a view is not named), a sequence gives
    one value per view, and anything else goes to every view.
    """
    if isinstance(value, Mapping):
        unknown = [v for v in value if v not in names]
        if unknown:
            raise InputError(f"{name} names the views {unknown}, which are not among {names}")
        return {v: value.get(v, default) for v in names}
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        if len(value) != len(names):
            raise InputError(
                f"{name} has {len(value)} values and there are {len(names)} views ({names}); give "
                "one value per view, or a dict by view name"
            )
        return dict(zip(names, value, strict=True))
    return dict.fromkeys(names, value)
