"""The state of a fitted object: plain values for saving, validated values when loading.

An object that can be saved has two methods:

- ``to_state()`` returns a dictionary of plain values: None, bool, int, float, str, NumPy arrays of
  numbers, truth values or text, and lists and string-keyed dictionaries of these. Its entry
  ``kind`` says what the object is. An object inside another one is its own ``to_state()``; a
  DataFrame is `dataframe_state` of it.
- ``from_state(state)``, a class method, builds the object again. `Fields` reads
  every field with its shape, its type and what must hold for its values, and a field too many, a
  field too few or a value that cannot be is an InputError that names the field.

How states become files is the job of `baldur.saving`. ``docs/reference/model-format.md`` lists
every kind with its fields. May import `baldur.exceptions`; every part that can
be saved imports it.

Examples
--------
>>> import numpy as np
>>> from dataclasses import dataclass
>>> from baldur.core.state import Fields
>>> @dataclass
... class Gaussian:
...     mean: np.ndarray
...     cov: np.ndarray
...
...     def to_state(self):
...         return {"kind": "gaussian", "mean": self.mean, "cov": self.cov}
...
...     @classmethod
...     def from_state(cls, state):
...         with Fields(state, "gaussian") as read:
...             return cls(read.array("mean", ("d",)), read.covariance("cov", ("d", "d")))
>>> Gaussian.from_state(Gaussian(np.zeros(2), np.eye(2)).to_state()).mean
array([0., 0.])
>>> Gaussian.from_state({"kind": "gaussian", "mean": np.zeros(2), "cov": -np.eye(2)})
Traceback (most recent call last):
    ...
baldur.core.state.StateError: cov: expected variances that are not negative
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from baldur.core.escape import has_control
from baldur.exceptions import InputError

State = dict[str, Any]
"""What ``to_state`` returns."""

Shape = Sequence[int | str | None]
"""A number; a name, which stands for one number within an object; or None for any number."""

LARGEST = 1e150
"""Default limit on the size of stored numbers: their squares are finite, so that no product of two
of them can turn a probability into NaN. Fields in units of the data have ``largest=np.inf``."""

CHECKED_BY_CHOLESKY = 1000
"""Covariances up to this size are factorised to see that they are positive semidefinite, which
takes 20 ms at the limit; of larger ones the diagonal and all pairs are checked."""

T = TypeVar("T")

_KINDS = {"float": "f", "int": "iu", "bool": "b", "number": "biuf", "text": "UO"}
_SAID = {
    "float": "numbers",
    "int": "whole numbers",
    "bool": "truth values",
    "number": "numbers",
    "text": "text",
}


class StateError(InputError):
    """An InputError about one field."""

    def __init__(self, path: tuple[str, ...], said: str) -> None:
        super().__init__(f"{'.'.join(path)}: {said}" if path else said)
        self.path, self.said = path, said


class Fields:
    """The fields of one saved object, each read once and validated.

    Used as a context: when the block ends without an error, every field must have been read.
    """

    def __init__(self, state: Any, kind: str | None = None, **sizes: int) -> None:
        if type(state) is not dict:
            raise StateError((), f"expected an object, but got {_described(state)}")
        self.sizes = dict(sizes)
        self._state = state
        self._read: set[str] = set()
        if kind is not None and self._take("kind") != kind:
            raise StateError(("kind",), f"expected {kind!r}, but got {_described(state['kind'])}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if error is None:
            unknown = [name for name in self._state if name not in self._read]
            if unknown:
                raise StateError((), f"a field {str(unknown[0])[:60]!r} that is not known")

    def has(self, name: str) -> bool:
        """Return whether a field is there and not None; an absent field counts as read."""
        self._read.add(name)
        return self._state.get(name) is not None

    def fault(self, said: str, name: str | None = None) -> InputError:
        """Return the error for a relation between fields that does not hold."""
        return StateError(() if name is None else (name,), said)

    def need(self, holds: Any, said: str, name: str | None = None) -> None:
        """Raise the error of `fault` unless a relation between fields holds."""
        if not holds:
            raise self.fault(said, name)

    # -- arrays ------------------------------------------------------------------------------

    def array(
        self,
        name: str,
        shape: Shape,
        kind: str = "float",
        *,
        finite: bool = True,
        largest: float = LARGEST,
        low: float | None = None,
        high: float | None = None,
        above: float | None = None,
    ) -> np.ndarray:
        """Return an array of numbers."""
        value = self._array(name, shape, kind)
        if value.dtype.kind == "f":
            if finite and not np.isfinite(value).all():
                raise StateError((name,), "expected finite numbers")
            if np.isfinite(largest) and (np.abs(value) > largest)[np.isfinite(value)].any():
                raise StateError((name,), f"expected numbers within {largest:g}")
        wrong = {
            f"at least {low}": low is not None and (value < low).any(),
            f"at most {high}": high is not None and (value > high).any(),
            f"above {above}": above is not None and (value <= above).any(),
        }
        for said, is_wrong in wrong.items():
            if is_wrong:
                raise StateError((name,), f"expected numbers {said}")
        return value

    def flags(self, name: str, shape: Shape) -> np.ndarray:
        """Return an array of truth values."""
        return self._array(name, shape, "bool")

    def index(self, name: str, shape: Shape, below: int, lowest: int = 0) -> np.ndarray:
        """Return an array of indices from `lowest` to `below` - 1."""
        return self.array(name, shape, "int", low=lowest, high=below - 1)

    def simplex(self, name: str, shape: Shape) -> np.ndarray:
        """Return weights that are at least 0 and sum to 1 along the first axis."""
        value = self.array(name, shape, low=0.0)
        # Sums of weights that were normalised in float64, or stored as float32.
        if value.size == 0 or (np.abs(value.sum(axis=0) - 1.0) > 1e-6).any():
            raise StateError((name,), "expected weights that sum to 1")
        return value

    def covariance(self, name: str, shape: Shape) -> np.ndarray:
        """Return symmetric, positive semidefinite matrices: the last two axes of the array."""
        value = self.array(name, shape)
        diagonal = np.diagonal(value, axis1=-2, axis2=-1)
        if (diagonal < 0).any():
            raise StateError((name,), "expected variances that are not negative")
        if not value.size:
            return value
        largest = np.maximum(diagonal.max(axis=-1), np.finfo(float).tiny)[..., None, None]
        # Scaled first, so that neither tiny nor huge variances leave the range of float64. The
        # tolerance is far above rounding and far below any correlation that would matter.
        scaled = value / largest
        if (np.abs(scaled - np.swapaxes(scaled, -1, -2)) > 1e-8).any():
            raise StateError((name,), "expected a symmetric matrix")
        d = np.diagonal(scaled, axis1=-2, axis2=-1)
        good = (scaled**2 <= (d[..., :, None] + 1e-8) * (d[..., None, :] + 1e-8)).all()
        if good and value.shape[-1] <= CHECKED_BY_CHOLESKY:
            try:
                np.linalg.cholesky(scaled + 1e-8 * np.eye(value.shape[-1]))
            except np.linalg.LinAlgError:
                good = False
        if not good:
            raise StateError((name,), "expected a positive semidefinite matrix")
        return value

    def ranges(self, low: str, high: str, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays, the first nowhere above the second; both are NaN where unknown."""
        lower = self.array(low, shape, finite=False, largest=np.inf)
        upper = self.array(high, shape, finite=False, largest=np.inf)
        if lower.shape != upper.shape or (lower > upper).any():
            raise StateError(
                (low,), f"expected lower limits that are not above the upper limits, {high}"
            )
        if (np.isnan(lower) != np.isnan(upper)).any():
            raise StateError((low,), f"expected ranges that are missing where {high} is")
        return lower, upper

    def texts(self, name: str, shape: Shape, *, unique: bool = False) -> np.ndarray:
        """Return an array of text without control characters."""
        value = self._array(name, shape, "text")
        listed = value.ravel().tolist()
        if not all(type(one) is str for one in listed):
            raise StateError((name,), "expected text")
        if has_control("".join(listed)):
            raise StateError((name,), "expected text without control characters")
        if unique and len(set(listed)) != len(listed):
            raise StateError((name,), "expected texts that are all different")
        return value

    def labels(self, name: str) -> np.ndarray:
        """Return class labels: numbers, truth values or printable text, none of them twice."""
        value = self._value(name)
        if isinstance(value, np.ndarray) and value.dtype.kind in "UO":
            return self.texts(name, (None,), unique=True)
        value = self.array(name, (None,), "number", largest=np.inf)
        if len(np.unique(value)) != value.size:
            raise StateError((name,), "expected labels that are all different")
        return value

    # -- plain values ------------------------------------------------------------------------

    def number(
        self,
        name: str,
        *,
        finite: bool = True,
        largest: float = LARGEST,
        low: float | None = None,
        high: float | None = None,
        above: float | None = None,
    ) -> float:
        """Return a number; conditions as in `array`."""
        value = self._take(name)
        if type(value) not in (int, float):
            raise StateError((name,), f"expected a number, but got {_described(value)}")
        try:
            value = float(value)
        except OverflowError:
            raise StateError((name,), "expected a number that fits into float64") from None
        wrong = {
            "that is finite": finite and not np.isfinite(value),
            f"within {largest:g}": np.isfinite(value) and abs(value) > largest,
            f"of at least {low}": low is not None and value < low,
            f"of at most {high}": high is not None and value > high,
            f"above {above}": above is not None and value <= above,
        }
        for said, is_wrong in wrong.items():
            if is_wrong:
                raise StateError((name,), f"expected a number {said}, but got {value:g}")
        return value

    def integer(self, name: str, low: int | None = 0, high: int | None = None) -> int:
        """Return a whole number within limits."""
        value = self._take(name)
        if type(value) is not int:
            raise StateError((name,), f"expected a whole number, but got {_described(value)}")
        # No count or index of a model leaves 64 bits.
        lowest, most = -(2**63) if low is None else low, 2**63 - 1 if high is None else high
        if not lowest <= value <= most:
            raise StateError((name,), f"expected a whole number from {lowest} to {most}")
        return value

    def boolean(self, name: str) -> bool:
        """Return a field that must be true or false."""
        value = self._take(name)
        if type(value) is not bool:
            raise StateError((name,), f"expected true or false, but got {_described(value)}")
        return value

    def text(self, name: str) -> str:
        """Return text without control characters."""
        value = self._take(name)
        if type(value) is not str or has_control(value):
            raise StateError((name,), f"expected printable text, but got {_described(value)}")
        return value

    def choice(self, name: str, options: Sequence[T]) -> T:
        """Return a field that must be one of some values."""
        value = self._take(name)
        for option in options:
            if type(value) is type(option) and value == option:
                return option
        raise StateError((name,), f"expected one of {tuple(options)}, but got {_described(value)}")

    def plain(self, name: str) -> Any:
        """Return a tree of plain values that nothing is computed from, such as a record."""
        return self._take(name)

    def records(self, name: str) -> list[dict[str, Any]]:
        """Return a list of dictionaries of plain values, such as the history of a fit."""
        value = self._list(name)
        if not all(type(one) is dict for one in value):
            raise StateError((name,), "expected a list of records")
        return value

    def names(self, name: str) -> list[str]:
        """Return a list of printable names, none of them twice."""
        value = self._list(name)
        if not all(type(one) is str for one in value) or has_control("".join(value)):
            raise StateError((name,), "expected a list of printable names")
        if len(set(value)) != len(value):
            raise StateError((name,), "expected names that are all different")
        return value

    # -- objects -----------------------------------------------------------------------------

    def part(self, name: str, make: Callable[..., T], **context: Any) -> T:
        """Return ``make(state of the field, **context)``, for example with a ``from_state``."""
        return made_by((name,), make, self._take(name), context)

    def part_of_kind(self, name: str, makers: Mapping[str, Callable[..., T]], **context: Any) -> T:
        """Return an object of one of several kinds, made by the function for its kind."""
        return made_by((name,), by_kind(makers), self._take(name), context)

    def parts(
        self,
        name: str,
        make: Callable[..., T] | Mapping[str, Callable[..., T]],
        length: int | str | None = None,
        **context: Any,
    ) -> list[T]:
        """Return a list of objects; `make` as in `part`, or the table of `part_of_kind`."""
        value, maker = self._list(name), by_kind(make) if isinstance(make, Mapping) else make
        self._size(name, length, len(value))
        return [made_by((f"{name}[{i}]",), maker, v, context) for i, v in enumerate(value)]

    def by_name(
        self,
        name: str,
        names: Sequence[str],
        read: Callable[[Fields, str], T],
        *,
        some: bool = False,
    ) -> dict[str, T]:
        """Return a dictionary with one entry for each name, such as the views, in this order."""
        value = self._take(name)
        if type(value) is not dict:
            raise StateError(
                (name,), f"expected an object with one entry per name, but got {_described(value)}"
            )
        found = [one for one in names if one in value]
        if list(value) != found or (not some and len(found) != len(names)):
            raise StateError((name,), f"expected one entry for each of {list(names)[:8]}")
        inner = Fields(value)
        inner.sizes = self.sizes
        return {one: made_by((name,), lambda _, v=one: read(inner, v), None, {}) for one in found}

    def by_any_name(self, name: str, read: Callable[[Fields, str], T]) -> dict[str, T]:
        """Return a dictionary whose names are not known beforehand; `read` as in `by_name`."""

        def entries(state: Any) -> dict[str, T]:
            with Fields(state) as inner:
                return {one: read(inner, one) for one in state}

        return self.part(name, entries)

    def each(
        self, name: str, read: Callable[[Fields, str, int], T], length: int | str | None = None
    ) -> list[T]:
        """Return a list of values that are not objects, such as one array per view.

        `read` is called with fields, the name of an entry in them and its number:
        ``lambda f, key, m: f.array(key, ("C", widths[m]))``.
        """
        value = self._list(name)
        self._size(name, length, len(value))
        made = []
        for i, one in enumerate(value):
            key = f"{name}[{i}]"
            inner = Fields({key: one})
            inner.sizes = self.sizes
            made.append(read(inner, key, i))
        return made

    # -- inside ------------------------------------------------------------------------------

    def _value(self, name: str) -> Any:
        if name not in self._state:
            raise StateError((name,), "it is missing")
        return self._state[name]

    def _take(self, name: str) -> Any:
        value = self._value(name)
        self._read.add(name)
        return value

    def _list(self, name: str) -> list[Any]:
        value = self._take(name)
        if type(value) is not list:
            raise StateError((name,), f"expected a list, but got {_described(value)}")
        return value

    def _array(self, name: str, shape: Shape, kind: str) -> np.ndarray:
        value = self._take(name)
        known = [self.sizes.get(d) if isinstance(d, str) else d for d in shape]
        good = (
            isinstance(value, np.ndarray)
            and value.dtype.kind in _KINDS[kind]
            and value.ndim == len(known)
            and all(n is None or n == size for n, size in zip(known, value.shape, strict=True))
        )
        if good:
            # A name that comes twice in one shape is settled by its first axis.
            for dim, size in zip(shape, value.shape, strict=True):
                if isinstance(dim, str) and self.sizes.setdefault(dim, size) != size:
                    good = False
        if not good:
            dims = [f"{d}={self.sizes[d]}" if d in self.sizes else f"{d}" for d in shape]
            said = ", ".join(d.replace("None", "any") for d in dims)
            wanted = f"{_SAID[kind]} of shape ({said})"
            raise StateError((name,), f"expected {wanted}, but got {_described(value)}")
        return value

    def _size(self, name: str, length: int | str | None, found: int) -> None:
        known = self.sizes.setdefault(length, found) if isinstance(length, str) else length
        if known is not None and known != found:
            raise StateError((name,), f"expected {known} entries, but got {found}")


def made_by(
    path: tuple[str, ...], make: Callable[..., T], state: Any, context: Mapping[str, Any]
) -> T:
    """Return ``make(state, **context)``; errors are prefixed with the path to the object."""
    try:
        return make(state, **context)
    except StateError as error:
        raise StateError((*path, *error.path), error.said) from None
    except InputError as error:
        raise StateError(path, str(error)) from None


def by_kind(makers: Mapping[str, Callable[..., T]]) -> Callable[..., T]:
    """Return a maker that chooses one of several by the entry ``kind`` of the state."""

    def make(state: Any, **context: Any) -> T:
        kind = state.get("kind") if type(state) is dict else None
        if type(kind) is not str or kind not in makers:
            wanted = " or ".join(repr(k) for k in makers)
            raise StateError(("kind",), f"expected {wanted}, but got {_described(kind)}")
        return makers[kind](state, **context)

    return make


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    if value is None or type(value) in (bool, int, float):
        return repr(value)[:60]
    if type(value) is str:
        return ascii(value[:40])
    return {"dict": "an object", "list": "a list"}.get(type(value).__name__, type(value).__name__)


def plain(value: Any, what: str = "a value") -> Any:
    """Return a value as a tree of plain values: NumPy scalars as numbers, tuples as lists."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return plain(value.item(), what)
    if isinstance(value, (list, tuple)):
        return [plain(one, what) for one in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {str(key): plain(one, what) for key, one in value.items()}
    if isinstance(value, str):
        return str(value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise InputError(
        f"{what} cannot be saved: it is or holds a {kind}. Use numbers, text, truth values, lists, "
        "dictionaries with text as keys, or arrays of numbers or text."
    )
