"""From JSON and arrays back to a fitted object: listed classes only, and nothing of theirs is run.

Objects are made empty and given their attributes; no constructor, no reduction and no import that
a file could choose. Whether the parts fit together is asked afterwards, see `forms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from baldur.exceptions import InputError
from baldur.persist.classes import METHODS, class_named, function_named, name_of
from baldur.preparation import Preparation, Step
from baldur.views.reads import Reads

__all__ = ["Decoder"]

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_SCALARS = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}
MOST_CELLS = 1 << 31
"""No array of text or objects in a model has more cells."""
MOST_TEXT = 1 << 30
"""Bytes of one array of text in memory: a million names of 250 letters."""


class Decoder:
    """Reads one tree.

    Parameters
    ----------
    arrays : dict of str to ndarray
        What the tree refers to.
    other : callable, optional
        Turns a node of kind "skops" into an object.
    """

    def __init__(
        self, arrays: Mapping[str, np.ndarray], other: Callable[[Any], Any] | None = None
    ) -> None:
        self._arrays = arrays
        self._other = other
        self._known: dict[int, Any] = {}

    def value(self, node: Any) -> Any:
        """Return what a node stands for."""
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if not isinstance(node, dict):
            raise InputError("a part that is no node")
        kind = node.get("is")
        if kind == "same":
            if node.get("id") not in self._known:
                raise InputError("a part that refers to none before it")
            return self._known[node["id"]]
        rule = getattr(self, f"_{kind}", None) if kind in _KINDS else None
        if rule is None:
            raise InputError(f"a part of kind {str(kind)[:40]!r}")
        made = rule(node)
        if isinstance(node.get("id"), int):
            self._known[node["id"]] = made
        return made

    # -- plain values ----------------------------------------------------------------------

    def _float(self, node: dict[str, Any]) -> float:
        return _FLOATS[_text(node, "value")]

    def _scalar(self, node: dict[str, Any]) -> Any:
        dtype, value = _dtype(node), self.value(node.get("value"))
        wanted = {"U": str, "b": bool, "i": int, "u": int, "f": float}[dtype.kind]
        if type(value) is not wanted:
            raise InputError("a number of another type than it says")
        return dtype.type(value)

    def _dtype(self, node: dict[str, Any]) -> np.dtype:
        return _dtype(node, "value")

    def _list(self, node: dict[str, Any]) -> list[Any]:
        return [self.value(v) for v in _items(node)]

    def _tuple(self, node: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._list(node))

    def _set(self, node: dict[str, Any]) -> set[Any]:
        return set(self._list(node))

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        pairs = _items(node)
        if not all(isinstance(p, list) and len(p) == 2 for p in pairs):
            raise InputError("a table whose entries are no pairs")
        made = {self.value(k): self.value(v) for k, v in pairs}
        if len(made) != len(pairs):
            raise InputError("a table with an entry twice")
        return made

    def _slice(self, node: dict[str, Any]) -> slice:
        start, stop, step = self._list(node)
        return slice(start, stop, step)

    def _random(self, node: dict[str, Any]) -> np.random.RandomState:
        made = np.random.RandomState()
        made.set_state(self.value(node.get("state")))
        return made

    # -- arrays ----------------------------------------------------------------------------

    def _take(self, name: Any) -> np.ndarray:
        if not isinstance(name, str) or name not in self._arrays:
            raise InputError(f"an array {str(name)[:40]!r} that is not there")
        return self._arrays[name]

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        array = self._take(node.get("name"))
        return array.T if node.get("order") == "F" else array

    def _texts(self, node: dict[str, Any]) -> np.ndarray:
        data, ends = self._take(node.get("name")), self._take(node.get("ends"))
        shape = _shape(node)
        good = data.dtype == np.uint8 and ends.dtype == np.int64 and data.ndim == ends.ndim == 1
        edges = np.concatenate([[0], ends]) if good else np.zeros(1)
        if not good or len(ends) != np.prod(shape) or (np.diff(edges) < 0).any():
            raise InputError("an array of text that does not fit its ends")
        if len(ends) and ends[-1] != len(data):
            raise InputError("an array of text that does not fit its ends")
        raw = data.tobytes()
        texts = [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(edges.tolist())]
        if node.get("dtype") == "O":
            made = np.empty(len(texts), dtype=object)
            made[:] = texts
            return made.reshape(shape)
        dtype, longest = _dtype(node), max(map(len, texts), default=0)
        if dtype.kind != "U" or longest > dtype.itemsize // 4:
            raise InputError("an array of text that is longer than it says")
        # Every cell takes the room of the longest: a short file must not ask for all memory.
        if len(texts) * dtype.itemsize > MOST_TEXT:
            dtype = np.dtype(f"<U{max(longest, 1)}")
        if len(texts) * dtype.itemsize > MOST_TEXT:
            raise InputError("an array of text that is larger than any model's")
        return np.array(texts, dtype=dtype).reshape(shape)

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        items, shape = self._list(node), _shape(node)
        if len(items) != np.prod(shape):
            raise InputError("an array with more or fewer cells than it says")
        made = np.empty(len(items), dtype=object)
        made[:] = items
        return made.reshape(shape)

    def _categorical(self, node: dict[str, Any]) -> pd.Categorical:
        return pd.Categorical.from_codes(
            self.value(node.get("codes")),
            categories=pd.Index(self.value(node.get("categories"))),
            ordered=bool(node.get("ordered")),
        )

    def _frame(self, node: dict[str, Any]) -> pd.DataFrame:
        columns = [self.value(c) for c in node.get("columns", [])]
        data = [self.value(c) for c in node.get("data", [])]
        rows = node.get("rows")
        if len(columns) != len(data) or any(len(c) != rows for c in data):
            raise InputError("a table whose columns differ in length")
        index = None if node.get("index") is None else pd.Index(self.value(node["index"]))
        frame = pd.DataFrame(dict(enumerate(data)), index=pd.RangeIndex(rows), copy=True)
        frame.columns = pd.Index(columns) if columns else frame.columns
        if index is not None:
            frame.index = index
        frame.attrs.update(self.value(node.get("attrs")) or {})
        return frame

    # -- objects ---------------------------------------------------------------------------

    def _object(self, node: dict[str, Any]) -> Any:
        kind: Any = class_named(node.get("class"))
        fields = node.get("fields")
        if not isinstance(fields, dict):
            raise InputError(f"a {kind.__name__} without attributes")
        own = set(getattr(kind, "__dataclass_fields__", ()))
        for name in fields:
            if not name.isidentifier() or name.startswith("__"):
                raise InputError(f"a {kind.__name__} with an attribute {name[:40]!r}")
            if issubclass(kind, (Preparation, Step)) and name not in kind._get_param_names():
                raise InputError(f"a {kind.__name__} that was fitted, outside of an estimator")
            if name not in own and callable(getattr(kind, name, None)):
                raise InputError(f"a {kind.__name__} whose method {name} is replaced")
        made = kind.__new__(kind)
        vars(made).update({name: self.value(v) for name, v in fields.items()})
        _complete(made)
        _with_defaults(made)
        return made

    def _preparation(self, node: dict[str, Any]) -> Preparation:
        return Preparation.from_state(self.value(node.get("state")))

    def _method(self, node: dict[str, Any]) -> Any:
        owner, name = self.value(node.get("of")), node.get("name")
        if name not in METHODS.get(name_of(owner) or "", ()):
            raise InputError(f"a method {str(name)[:40]!r} that no model uses")
        return getattr(owner, name)

    def _function(self, node: dict[str, Any]) -> Any:
        return function_named(node.get("name"))

    def _skops(self, node: dict[str, Any]) -> Any:
        if self._other is None:
            raise InputError("a baseline where none is expected")
        return self._other(node)


_KINDS = frozenset(
    {
        "float", "scalar", "dtype", "list", "tuple", "set", "dict", "slice", "random", "array",
        "texts", "objects", "categorical", "frame", "object", "method", "function", "skops",
        "preparation",
    }
)  # fmt: skip


def _complete(made: Any) -> None:
    """Give views and sources what follows from the rest of them."""
    name = name_of(made)
    if name == "ArraySource":
        made.shape, made.dtype = tuple(np.shape(made.array)), np.asarray(made.array).dtype
    if name == "PreparedView":
        cells = made._cells
        array = cells.array if name_of(cells) == "Kept" else cells.source.array
        made.reads = Reads()
        made.shape = (len(made.absent), int(array.shape[1]))
        made.dtype = np.dtype(cells.dtype)


def _with_defaults(made: Any) -> None:
    """Give an estimator of an older version the settings that came after it."""
    if isinstance(made, BaseEstimator):
        for name, about in signature(type(made)).parameters.items():
            if name not in vars(made) and about.default is not about.empty:
                vars(made)[name] = about.default


def _text(node: dict[str, Any], key: str) -> str:
    value = node.get(key)
    if not isinstance(value, str):
        raise InputError(f"a part without {key}")
    return value


def _items(node: dict[str, Any]) -> list[Any]:
    items = node.get("items")
    if not isinstance(items, list):
        raise InputError("a part without items")
    return items


def _shape(node: dict[str, Any]) -> tuple[int, ...]:
    shape = node.get("shape")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise InputError("an array without a shape")
    if np.prod([float(n) for n in shape]) > MOST_CELLS:
        raise InputError("an array that is larger than any model's")
    return tuple(shape)


def _dtype(node: dict[str, Any], key: str = "dtype") -> np.dtype:
    text = _text(node, key)
    if text.lstrip("<>|=") not in _SCALARS and not (
        text.startswith("<U") and text[2:].isdigit() and len(text) < 9
    ):
        raise InputError(f"a type {text[:20]!r} that no model has")
    return np.dtype(text)
