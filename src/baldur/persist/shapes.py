"""A small language for what attributes must be: arrays of named sizes, and lists of them.

A size is named by a letter that stands for one number throughout a model: C outputs, K factors,
M views, N training rows, J members of a mixture. D is the width of the view at hand. A small letter
counts within one object only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.persist.classes import name_of

Check = Callable[[Any, "Scope", str], None]
"""Looks at a value; raises InputError with the name it was given."""


@dataclass(frozen=True)
class Scope:
    """Sizes that are known so far.

    Attributes
    ----------
    sizes : dict of str to int
    views : list of str
        Names, in order.
    widths : list of int
        Features of each view.
    look : callable
        Looks at an object by the rules of its class.
    local : dict of str to int
        Sizes within the object at hand.
    """

    sizes: dict[str, int]
    views: list[str]
    widths: list[int]
    look: Check
    local: dict[str, int] = field(default_factory=dict)

    def inside(self, **local: int) -> Scope:
        """Return the same scope with sizes of its own."""
        return replace(self, local=local)

    def agree(self, name: str, size: int) -> bool:
        """Whether a size is what its name stands for; the first one settles it."""
        if name == "*":
            return True
        if name.isdigit():
            return int(name) == size
        table = self.local if name.islower() or name == "D" else self.sizes
        return table.setdefault(name, size) == size


def _refuse(what: str, expected: str, value: Any) -> InputError:
    shape = getattr(value, "shape", None)
    got = type(value).__name__ if shape is None else f"{value.dtype} of shape {shape}"
    return InputError(f"{what}: expected {expected}, but it is {got}")


def _array(kinds: str, dims: tuple[str, ...], finite: bool, said: str) -> Check:
    def check(value: Any, scope: Scope, what: str) -> None:
        wanted = f"{said} of shape ({', '.join(dims)})"
        if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
            raise _refuse(what, wanted, value)
        agree = value.ndim == len(dims) and all(
            scope.agree(name, size) for name, size in zip(dims, value.shape, strict=True)
        )
        if not agree:
            raise _refuse(what, wanted, value)
        if finite and value.dtype.kind == "f" and not np.isfinite(value).all():
            raise InputError(f"{what}: expected finite numbers")

    return check


def numbers(*dims: str) -> Check:
    """Finite floats of some shape."""
    return _array("f", dims, True, "finite numbers")


def floats(*dims: str) -> Check:
    """Floats of some shape, missing and infinite ones among them."""
    return _array("f", dims, False, "numbers")


def whole_numbers(*dims: str) -> Check:
    """Integers of some shape."""
    return _array("i", dims, False, "whole numbers")


def flags(*dims: str) -> Check:
    """Truth values of some shape."""
    return _array("b", dims, False, "truth values")


def texts(*dims: str) -> Check:
    """Strings of some shape."""
    return _array("UO", dims, False, "text")


def places(dim: str, below: str) -> Check:
    """Indices of some length that count something of a known size."""
    shape = _array("i", (dim,), False, "indices")

    def check(value: Any, scope: Scope, what: str) -> None:
        shape(value, scope, what)
        table = scope.local if below == "D" else scope.sizes
        if value.size and (value.min() < 0 or value.max() >= table[below]):
            raise InputError(f"{what}: an index is outside of what it counts")

    return check


def anything(value: Any, scope: Scope, what: str) -> None:
    """Not looked at."""


def _plain(kinds: tuple[type, ...], said: str) -> Check:
    def check(value: Any, scope: Scope, what: str) -> None:
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise _refuse(what, said, value)

    return check


number = _plain((int, float, np.integer, np.floating), "a number")
whole = _plain((int, np.integer), "a whole number")
truth = _plain((bool, np.bool_), "true or false")
text = _plain((str,), "text")


def one_of(*values: Any) -> Check:
    """One of some values."""

    def check(value: Any, scope: Scope, what: str) -> None:
        if not any(type(value) is type(v) and value == v for v in values):
            raise _refuse(what, f"one of {values}", value)

    return check


def optional(inner: Check) -> Check:
    """None, or something."""

    def check(value: Any, scope: Scope, what: str) -> None:
        if value is not None:
            inner(value, scope, what)

    return check


def each(inner: Check, size: str = "*") -> Check:
    """A list of some length."""

    def check(value: Any, scope: Scope, what: str) -> None:
        if not isinstance(value, list) or not scope.agree(size, len(value)):
            raise _refuse(what, f"a list of {size}", value)
        for i, item in enumerate(value):
            inner(item, scope, f"{what}[{i}]")

    return check


def each_view(inner: Check) -> Check:
    """A list with one entry for each view."""

    def check(value: Any, scope: Scope, what: str) -> None:
        if not isinstance(value, list) or len(value) != len(scope.widths):
            raise _refuse(what, f"a list of {len(scope.widths)}, one for each view", value)
        for item, width in zip(value, scope.widths, strict=True):
            _at_width(inner, item, scope, width, what)

    return check


def by_view(inner: Check) -> Check:
    """A table with one entry for each view, in order."""

    def check(value: Any, scope: Scope, what: str) -> None:
        if not isinstance(value, dict) or list(value) != scope.views:
            raise _refuse(what, f"a table of the views {scope.views}", value)
        for (name, item), width in zip(value.items(), scope.widths, strict=True):
            _at_width(inner, item, scope, width, f"{what}[{name!r}]")

    return check


def _at_width(inner: Check, item: Any, scope: Scope, width: int, what: str) -> None:
    inner(item, scope.inside(D=width), what)


def object_of(*names: str) -> Check:
    """An object of one of some classes; it is looked at by the rules of its class."""

    def check(value: Any, scope: Scope, what: str) -> None:
        if name_of(value) not in names:
            raise _refuse(what, " or ".join(names), value)
        scope.look(value, scope, what)

    return check
