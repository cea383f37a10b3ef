"""From a fitted object to JSON and arrays: the tree of its parts, every array by its name.

==========================================  ====================================================
``null``, ``true``, ``3``, ``0.5``, "text"  themselves
``{"is": "float", "value": "nan"}``         a number that JSON does not have
``{"is": "array", "name": "a7"}``           an array of ``arrays.safetensors``
``{"is": "texts", "name": "a8", ...}``      an array of strings: UTF-8, and where each one ends
``{"is": "list", "items": [...]}``          likewise ``tuple``, ``set``, ``dict`` (pairs)
``{"is": "object", "class": ..., ...}``     an object of a class listed in `classes`
``{"is": "same", "id": 3}``                 what was written before under that id
==========================================  ====================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.persist.classes import FUNCTIONS, METHODS, name_of
from baldur.persist.trim import state_of
from baldur.preparation import Preparation

__all__ = ["Encoder"]

SAFE_DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
"""Kinds of numbers an array may have."""


class Encoder:
    """Writes one tree.

    Parameters
    ----------
    other : callable, optional
        Asked for the node of an object of a class that is not listed; None where it has none.

    Attributes
    ----------
    arrays : dict of str to ndarray
        C-contiguous; what was column-major is stored transposed.
    """

    def __init__(self, other: Callable[[Any], dict[str, Any] | None] | None = None) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._other = other
        self._nodes: dict[int, dict[str, Any]] = {}
        self._shared: set[int] = set()
        self._open: set[int] = set()
        self._alive: list[Any] = []  # so that no id is used twice

    def tree(self, value: Any) -> Any:
        """Return the node of a value, with numbers for those parts alone that come again."""
        made = self.node(value)
        for node in self._nodes.values():
            if node["id"] not in self._shared:
                del node["id"]
        return made

    def node(self, value: Any) -> Any:
        """Return the node of a value, every part of it with a number."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, np.generic):
            return self._scalar(value)
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"is": "float", "value": repr(value)}
        known = self._nodes.get(id(value))
        if known is not None:
            if id(value) in self._open:
                raise InputError("The model cannot be saved: it holds a part that holds itself.")
            self._shared.add(known["id"])
            return {"is": "same", "id": known["id"]}
        made: dict[str, Any] = {}
        self._nodes[id(value)] = made
        self._alive.append(value)
        self._open.add(id(value))
        made["id"] = len(self._alive)
        made.update(self._made(value))
        self._open.discard(id(value))
        return made

    def _made(self, value: Any) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, (list, tuple, set, frozenset)):
            kind = "set" if isinstance(value, frozenset) else type(value).__name__
            items = sorted(value, key=repr) if kind == "set" else value
            if kind in ("list", "tuple", "set"):
                return {"is": kind, "items": [self.node(v) for v in items]}
        if type(value) is dict:
            pairs = [[self.node(k), self.node(v)] for k, v in value.items()]
            return {"is": "dict", "items": pairs}
        if isinstance(value, np.dtype):
            return {"is": "dtype", "value": value.str}
        if isinstance(value, slice):
            return {"is": "slice", "items": [self.node(v) for v in _ends(value)]}
        if isinstance(value, pd.DataFrame):
            return self._frame(value)
        if isinstance(value, np.random.RandomState):
            return {"is": "random", "state": self.node(value.get_state(legacy=True))}
        if isinstance(value, Preparation) and hasattr(value, "scaling_"):
            return {"is": "preparation", "state": self.node(value.to_state())}
        if name_of(value) is not None:
            state = {k: self.node(v) for k, v in state_of(value).items()}
            return {"is": "object", "class": name_of(value), "fields": state}
        owner = getattr(value, "__self__", None)
        method = getattr(value, "__name__", "")
        if owner is not None and method in METHODS.get(name_of(owner) or "", ()):
            return {"is": "method", "name": method, "of": self.node(owner)}
        if FUNCTIONS.get(method) == getattr(value, "__module__", None) and owner is None:
            return {"is": "function", "name": method}
        found = None if self._other is None else self._other(value)
        if found is not None:
            return {k: self.node(v) for k, v in found.items()}
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise InputError(
            f"The model cannot be saved: it holds a {kind}, and a model file knows no such thing. "
            "Fit it with plain values as parameters."
        )

    def _scalar(self, value: np.generic) -> dict[str, Any]:
        if isinstance(value, (np.str_, np.bool_, np.integer)):
            return {"is": "scalar", "dtype": value.dtype.str, "value": value.item()}
        if isinstance(value, np.floating):
            # Every float16 and float32 is a float64, too.
            plain = self.node(float(value))
            return {"is": "scalar", "dtype": value.dtype.str, "value": plain}
        raise InputError(f"The model cannot be saved: it holds a value of type {value.dtype}.")

    def _array(self, array: np.ndarray) -> dict[str, Any]:
        if array.dtype.kind == "U":
            return {**self._texts(array), "dtype": array.dtype.str}
        if array.dtype.kind == "O":
            flat = array.ravel().tolist()
            if all(type(v) is str for v in flat):
                return {**self._texts(array), "dtype": "O"}
            shape = list(array.shape)
            return {"is": "objects", "shape": shape, "items": [self.node(v) for v in flat]}
        if array.dtype.str.lstrip("<>|=") not in SAFE_DTYPES:
            raise InputError(
                f"The model cannot be saved: it holds an array of type {array.dtype}. Use numbers, "
                "truth values or text."
            )
        column_major = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
        stored = np.ascontiguousarray(array.T if column_major else array)
        if stored.dtype.byteorder == ">":
            stored = stored.astype(stored.dtype.newbyteorder("<"))
        name = self._keep(stored.reshape(array.shape[::-1] if column_major else array.shape))
        node = {"is": "array", "name": name}
        return {**node, "order": "F"} if column_major else node

    def _keep(self, array: np.ndarray) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def _texts(self, array: np.ndarray) -> dict[str, Any]:
        parts = [str(v).encode("utf-8", "surrogatepass") for v in array.ravel().tolist()]
        data = np.frombuffer(b"".join(parts), dtype=np.uint8)
        ends = np.cumsum([len(p) for p in parts], dtype=np.int64)
        shape = list(array.shape)
        return {"is": "texts", "name": self._keep(data), "ends": self._keep(ends), "shape": shape}

    def _frame(self, frame: pd.DataFrame) -> dict[str, Any]:
        index = frame.index
        plain = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(frame)))
        return {
            "is": "frame",
            "rows": len(frame),
            "columns": [self.node(c) for c in frame.columns],
            "index": None if plain else self._column(index.to_series()),
            "data": [self._column(frame.iloc[:, i]) for i in range(frame.shape[1])],
            "attrs": self.node(dict(frame.attrs)),
        }

    def _column(self, column: pd.Series) -> dict[str, Any]:
        if isinstance(column.dtype, pd.CategoricalDtype):
            held = column.array
            return {
                "is": "categorical",
                "codes": self.node(np.asarray(held.codes)),
                "categories": self.node(np.asarray(held.categories)),
                "ordered": bool(held.ordered),
            }
        return self._array(column.to_numpy())


def _ends(value: slice) -> tuple[Any, Any, Any]:
    return value.start, value.stop, value.step
