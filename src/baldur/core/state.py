"""One way of saving: what is stored of an object, how it is written, read and checked.

A class that can be saved is a dataclass that names its ``kind`` and describes what is stored of it
in the metadata of its fields (`stored`). `write_state` turns an object into plain values: None,
bool, int, float, str, NumPy arrays of numbers, truth values or text, and lists and string-keyed
dictionaries of these. `read_state` checks every value with the form of its field and builds the
object again. A field too many, a field too few or a value that cannot be is an InputError that
names the field.

Three methods are for objects that differ from what is stored of them:

- ``state_values(self)`` returns the stored values by name; without it they are the attributes.
- ``from_values(cls, values, sizes)`` builds the object; without it, values that the constructor
  takes are passed to it, and the others are set as attributes.
- ``check_state(self, sizes)`` checks relations between fields, with `need`.

How states become files is the job of `baldur.saving`. ``docs/reference/model-format.md`` lists
every kind with its fields.

Examples
--------
>>> import numpy as np
>>> from dataclasses import dataclass
>>> from baldur.core.state import Covariance, Numbers, read_state, stored, write_state
>>> @dataclass
... class Gaussian:
...     kind = "gaussian"
...     mean: np.ndarray = stored(Numbers("d"))
...     cov: np.ndarray = stored(Covariance("d d"))
>>> state = write_state(Gaussian(np.zeros(2), np.eye(2)))
>>> read_state(state, Gaussian).mean
array([0., 0.])
>>> read_state({**state, "cov": -np.eye(2)}, Gaussian)
Traceback (most recent call last):
    ...
baldur.core.state.StateError: cov: expected variances that are not negative
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec

import numpy as np

from baldur.core.escape import has_control
from baldur.exceptions import InputError

State = dict[str, Any]
"""What `write_state` returns."""

LARGEST = 1e150
"""Default limit on the size of stored numbers: their squares are finite, so that no product of two
of them can turn a probability into NaN. Fields in units of the data have ``largest=np.inf``."""

CHECKED_BY_CHOLESKY = 1000
"""Covariances up to this size are factorised to see that they are positive semidefinite, which
takes 20 ms at the limit; of larger ones the diagonal and all pairs are checked."""

_KINDS = {
    "float": ("f", "numbers"),
    "int": ("iu", "whole numbers"),
    "bool": ("b", "truth values"),
    "number": ("biuf", "numbers"),
    "text": ("UO", "text"),
}
"""Letters of the types of an array, and what an error calls them."""


class StateError(InputError):
    """An InputError about one field."""

    def __init__(self, path: tuple[str, ...], message: str) -> None:
        where = ".".join(path).replace(".[", "[")
        super().__init__(f"{where}: {message}" if path else message)
        self.path, self.message = path, message


@contextmanager
def at(*path: str) -> Iterator[None]:
    """Put the path to a field in front of every error of the block."""
    try:
        yield
    except StateError as error:
        raise StateError((*path, *error.path), error.message) from None
    except InputError as error:
        raise StateError(path, str(error)) from None


def need(holds: Any, message: str, *path: str) -> None:
    """Raise a StateError about a field unless a condition holds."""
    if not holds:
        raise StateError(path, message)


class Sizes:
    """Lengths of named axes (`known`), and the number of columns of each view (`widths`).

    One object is filled while a state is read, so that all fields agree about each length. ``M`` is
    the number of views, and ``D`` the number of columns of the view that is read.
    """

    def __init__(self, widths: Mapping[str, int] | None = None, **known: int) -> None:
        self.widths = dict(widths or {})
        self.known = {**known, **({"M": len(widths)} if widths else {})}

    def inner(self, **known: int) -> Sizes:
        """Return a copy for an object inside, whose own names do not reach the outside."""
        return Sizes(self.widths, **{**self.known, **known})

    def of_view(self, name: str) -> Sizes:
        """Return a copy for a value of one view."""
        return self.inner(D=self.widths[name])

    def fits(self, shape: Sequence[str], actual: Sequence[int]) -> bool:
        """Return whether a shape agrees with its names; a new name gets the length it meets."""
        return len(shape) == len(actual) and all(
            dim == "?" or self.known.setdefault(dim, int(dim) if dim.isdigit() else n) == n
            for dim, n in zip(shape, actual, strict=True)
        )

    def described(self, shape: Sequence[str]) -> str:
        """Return a shape with the numbers that are known, for errors."""
        return ", ".join(
            f"{dim}={self.known[dim]}" if dim in self.known and not dim.isdigit() else dim
            for dim in (("any" if dim == "?" else dim) for dim in shape)
        )


# -- forms of values -----------------------------------------------------------------------------

Form = Callable[[Any, Sizes], Any]
"""Checks a stored value and returns it as it is used, or raises a StateError. The functions below
are written as such readers; `form` turns each into a function from its options to a form."""

P = ParamSpec("P")


def form(read: Callable[Concatenate[Any, Sizes, P], Any]) -> Callable[P, Form]:
    """Turn ``read(value, sizes, *options)`` into a function from options to a `Form`."""

    @wraps(read)
    def with_options(*args: P.args, **options: P.kwargs) -> Form:
        return lambda value, sizes: read(value, sizes, *args, **options)

    return with_options


@form
def Plain(value: Any, sizes: Sizes) -> Any:
    """Return any tree of plain values as it is."""
    return value


@form
def OrNone(value: Any, sizes: Sizes, other: Form) -> Any:
    """Read a value of some other form, or None."""
    return None if value is None else other(value, sizes)


@form
def Numbers(
    value: Any,
    sizes: Sizes,
    shape: str,
    kind: str = "float",
    *,
    below: str | None = None,
    unique: bool = False,
    simplex: bool = False,
    **limits: Any,
) -> Any:
    """Check an array of numbers; `shape` has a number, a name or ``?`` (any) for each axis.

    They are indices smaller than the length named `below`; with `simplex`, weights whose sums along
    the first axis are 1; with `unique`, all different. `limits` are those of `_check_limits`.
    """
    _check_shape(value, shape, kind, sizes)
    _check_limits(value, "numbers", **limits)
    if below is not None:
        high = sizes.known[below] - 1
        need(not (value > high).any(), f"expected numbers of at most {high:g}")
    distinct = not unique or len(np.unique(value)) == value.size
    need(distinct, "expected numbers that are all different")
    if simplex:
        # Sums of weights that were normalised in float64, or stored as float32.
        sums = value.size > 0 and (np.abs(value.sum(axis=0) - 1.0) <= 1e-6).all()
        need(sums, "expected weights that sum to 1")
    return value


def _check_limits(
    values: np.ndarray,
    noun: str,
    finite: bool = True,
    largest: float = LARGEST,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
) -> None:
    """Refuse numbers outside of limits; `noun` is what an error calls them."""
    finite_values = values[np.isfinite(values)]
    need(not finite or finite_values.size == values.size, "expected finite numbers")
    need(not (np.abs(finite_values) > largest).any(), f"expected {noun} within {largest:g}")
    if low is not None:
        need(not (values < low).any(), f"expected {noun} of at least {low:g}")
    if high is not None:
        need(not (values > high).any(), f"expected {noun} of at most {high:g}")
    if above is not None:
        need(not (values <= above).any(), f"expected {noun} above {above:g}")


def _check_shape(value: Any, shape: str, kind: str, sizes: Sizes) -> None:
    """Refuse what is not an array of this kind and shape."""
    letters, name = _KINDS[kind]
    dims = shape.split()
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in letters
    if not (is_array and sizes.fits(dims, value.shape)):
        wanted = f"{name} of shape ({sizes.described(dims)})"
        raise StateError((), f"expected {wanted}, but got {_described(value)}")


def Flags(shape: str) -> Form:
    """An array of truth values."""
    return Numbers(shape, "bool")


@form
def Covariance(value: Any, sizes: Sizes, shape: str) -> Any:
    """Check symmetric, positive semidefinite matrices: the last two axes of the array."""
    value = Numbers(shape)(value, sizes)
    diagonal = np.diagonal(value, axis1=-2, axis2=-1)
    need((diagonal >= 0).all(), "expected variances that are not negative")
    if not value.size:
        return value
    largest = np.maximum(diagonal.max(axis=-1), np.finfo(float).tiny)[..., None, None]
    # Scaled first, so that neither tiny nor huge variances leave the range of float64. The
    # tolerance is far above rounding and far below any correlation that would matter.
    scaled = value / largest
    asymmetry = np.abs(scaled - np.swapaxes(scaled, -1, -2))
    need((asymmetry <= 1e-8).all(), "expected a symmetric matrix")
    d = np.diagonal(scaled, axis1=-2, axis2=-1)
    good = (scaled**2 <= (d[..., :, None] + 1e-8) * (d[..., None, :] + 1e-8)).all()
    if good and value.shape[-1] <= CHECKED_BY_CHOLESKY:
        try:
            np.linalg.cholesky(scaled + 1e-8 * np.eye(value.shape[-1]))
        except np.linalg.LinAlgError:
            good = False
    need(good, "expected a positive semidefinite matrix")
    return value


@form
def Texts(value: Any, sizes: Sizes, shape: str, *, unique: bool = False) -> Any:
    """Check an array of text without control characters."""
    _check_shape(value, shape, "text", sizes)
    cells = value.ravel().tolist()
    need(all(type(cell) is str for cell in cells), "expected text")
    need(not has_control("".join(cells)), "expected text without control characters")
    distinct = not unique or len(set(cells)) == len(cells)
    need(distinct, "expected texts that are all different")
    return value


@form
def Labels(value: Any, sizes: Sizes) -> Any:
    """Check class labels: numbers, truth values or printable text, none of them twice."""
    is_text = isinstance(value, np.ndarray) and value.dtype.kind in "UO"
    numbers = Numbers("?", "number", largest=np.inf, unique=True)
    return (Texts("?", unique=True) if is_text else numbers)(value, sizes)


@form
def Number(value: Any, sizes: Sizes, **limits: Any) -> Any:
    """Read a number; limits as for `Numbers`."""
    need(type(value) in (int, float), f"expected a number, but got {_described(value)}")
    try:
        value = float(value)
    except OverflowError:
        raise StateError((), "expected a number that fits into float64") from None
    _check_limits(np.asarray(value), "a number", **limits)
    return value


@form
def Integer(
    value: Any, sizes: Sizes, low: int = 0, high: int = 2**63 - 1, name: str | None = None
) -> Any:
    """Check a whole number within limits; no count or index of a model leaves 64 bits.

    In shapes, `name` then stands for the number.
    """
    need(type(value) is int, f"expected a whole number, but got {_described(value)}")
    need(low <= value <= high, f"expected a whole number from {low} to {high}")
    if name is not None:
        sizes.known[name] = value
    return value


@form
def Text(value: Any, sizes: Sizes) -> Any:
    """Check text without control characters."""
    good = type(value) is str and not has_control(value)
    need(good, f"expected printable text, but got {_described(value)}")
    return value


@form
def Choice(value: Any, sizes: Sizes, options: tuple[Any, ...]) -> Any:
    """Check that a value is one of some options, type included."""
    good = any(type(value) is type(option) and value == option for option in options)
    need(good, f"expected one of {options}, but got {_described(value)}")
    return value


def Boolean() -> Form:
    """True or false."""
    return Choice((True, False))


@form
def Names(value: Any, sizes: Sizes, *, or_text: bool = False) -> Any:
    """Check a list of printable names, none of them twice; with `or_text`, also a single name."""
    if or_text and type(value) is str:
        return Text()(value, sizes)
    names = _list(value)
    good = all(type(name) is str for name in names) and not has_control("".join(names))
    need(good, "expected a list of printable names")
    need(len(set(names)) == len(names), "expected names that are all different")
    return names


@form
def Each(value: Any, sizes: Sizes, entry: Form, length: str | None = None) -> Any:
    """Read a list of values of one form; ``length="M"`` is a list with one entry per view."""
    if length is not None:
        expected = sizes.known.setdefault(length, len(_list(value)))
        need(expected == len(value), f"expected {expected} entries, but got {len(value)}")
    views = list(sizes.widths)
    entries = []
    for i, part in enumerate(_list(value)):
        with at(f"[{i}]"):
            inner = sizes.of_view(views[i]) if length == "M" else sizes.inner()
            entries.append(entry(part, inner))
    return entries


@form
def ByName(value: Any, sizes: Sizes, entry: Form) -> Any:
    """Read a dictionary from names to values of one form."""
    entries = {}
    for name, part in _object(value).items():
        with at(name[:60]):
            entries[name] = entry(part, sizes.inner())
    return entries


@form
def ByView(value: Any, sizes: Sizes, entry: Form, *, some: bool = False) -> Any:
    """Read a dictionary with an entry for each view in order; with `some`, for some of them."""
    views = [name for name in sizes.widths if not some or name in _object(value)]
    need(list(_object(value)) == views, f"expected one entry for each of {list(sizes.widths)[:8]}")
    entries = {}
    for name in views:
        with at(name):
            entries[name] = entry(value[name], sizes.of_view(name))
    return entries


@form
def Widths(value: Any, sizes: Sizes) -> Any:
    """Read the number of columns of each view; `ByView` and ``M`` then refer to these views."""
    widths = ByName(Integer(1))(value, sizes)
    need(widths, "expected at least one view")
    need(not has_control("".join(widths)), "expected printable names of views")
    sizes.widths, sizes.known["M"] = widths, len(widths)
    return dict(widths)


@form
def Object(value: Any, sizes: Sizes, *classes: type) -> Any:
    """Read an object of one of some classes."""
    return read_state(value, *classes, sizes=sizes.inner())


# -- objects -------------------------------------------------------------------------------------


def stored(form: Form, **options: Any) -> Any:
    """Return the field of a dataclass that is stored in this form."""
    return dataclasses.field(metadata={"stored": form}, **options)


def stored_fields(kind: type) -> Mapping[str, Form]:
    """Return the form of every stored field of a class, by name."""
    fields = dataclasses.fields(kind)
    return {field.name: field.metadata["stored"] for field in fields if field.metadata}


def write_state(value: Any) -> State:
    """Return the kind and the stored fields of an object as plain values, for `read_state`."""
    values = value.state_values() if hasattr(value, "state_values") else {}
    state: State = {"kind": value.kind}
    for name in stored_fields(type(value)):
        state[name] = plain(values[name] if name in values else getattr(value, name), name)
    return state


def read_state(state: Any, *classes: type, sizes: Sizes | None = None) -> Any:
    """Return the object that `write_state` stored; its ``kind`` says of which of the classes it is.

    Every field is checked by its form. `sizes` are the lengths of axes that are known already.
    """
    by_kind: dict[str, Any] = {cls.kind: cls for cls in classes}  # type: ignore[attr-defined]
    kind = _object(state).get("kind")
    if type(kind) is not str or kind not in by_kind:
        wanted = " or ".join(map(repr, by_kind))
        raise StateError(("kind",), f"expected {wanted}, but got {_described(kind)}")
    sizes = Sizes() if sizes is None else sizes
    cls = by_kind[kind]
    values = read_fields(state, stored_fields(cls), sizes, besides=("kind",))
    # The optional methods `from_values` and `check_state` are described at the top of this file.
    if hasattr(cls, "from_values"):
        instance = cls.from_values(values, sizes)
    else:
        arguments = signature(cls).parameters
        instance = cls(**{name: value for name, value in values.items() if name in arguments})
        # Attributes that the constructor does not take, such as those of a fit.
        vars(instance).update({k: value for k, value in values.items() if k not in arguments})
    if hasattr(instance, "check_state"):
        instance.check_state(sizes)
    return instance


def read_fields(
    state: Any, fields: Mapping[str, Form], sizes: Sizes, besides: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the value of each field, read by its form; `besides` are other keys that are legal.

    A field too few or too many is a StateError.
    """
    unknown = [name for name in _object(state) if name not in fields and name not in besides]
    if unknown:
        raise StateError((), f"a field {unknown[0][:60]!r} that is not known")
    values: dict[str, Any] = {}
    for name, form in fields.items():
        with at(name):
            need(name in state, "it is missing")
            values[name] = form(state[name], sizes)
    return values


def _object(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise StateError((), f"expected an object, but got {_described(value)}")
    return value


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise StateError((), f"expected a list, but got {_described(value)}")
    return value


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    if value is None or type(value) in (bool, int, float):
        return repr(value)[:60]
    if type(value) is str:
        return ascii(value[:40])
    return {"dict": "an object", "list": "a list"}.get(type(value).__name__, type(value).__name__)


STATES: dict[type, Callable[[Any], State]] = {}
"""How objects of other libraries are written; `baldur.core.dataframe_state` adds DataFrames."""


def plain(value: Any, what: str = "a value") -> Any:
    """Return a value as a tree of plain values.

    Objects are written by their stored fields, tuples as lists and NumPy scalars as numbers.
    """
    if value is None or type(value) in (bool, int, float, str) or isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return plain(value.item(), what)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [plain(entry, what) for entry in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {str(key): plain(entry, what) for key, entry in value.items()}
    if isinstance(getattr(type(value), "kind", None), str):
        return write_state(value)
    if type(value) in STATES:
        return STATES[type(value)](value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise InputError(
        f"{what} cannot be saved: it is or holds a {kind}. Use numbers, text, truth values, lists, "
        "dictionaries with text as keys, or arrays of numbers or text."
    )
