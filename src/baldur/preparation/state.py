"""Checks of stored state: every value that comes from a file is looked at before it is used.

`to_state` of a learned part returns plain values, text and arrays, in dictionaries and lists.
`from_state` builds the part again. The functions here refuse a state whose shapes, types or values
cannot be those of such a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baldur.exceptions import InputError

__all__ = ["State", "StateReader"]

State = dict[str, Any]
"""Plain values, text, arrays, and dictionaries and lists of them."""


class StateReader:
    """One dictionary of a stored state, read entry by entry.

    Parameters
    ----------
    state : dict
        As `to_state` returned it.
    where : str
        What it describes, for messages.
    """

    def __init__(self, state: Any, where: str) -> None:
        self.where = where
        self.need(isinstance(state, dict), "it is not a table of entries")
        self.state: State = state

    def need(self, holds: Any, said: str) -> None:
        """Refuse the state unless a condition holds."""
        if not holds:
            raise InputError(f"{self.where}: {said}")

    def get(self, key: str) -> Any:
        """Return an entry of any kind."""
        self.need(key in self.state, f"it has no {key}")
        return self.state[key]

    def inside(self, key: str) -> StateReader:
        """Return the reader of an entry that is a table itself."""
        return StateReader(self.get(key), f"{self.where}.{key}")

    def each(self, key: str) -> list[StateReader]:
        """Return the readers of an entry that is a list of tables."""
        found = self.get(key)
        self.need(isinstance(found, list), f"{key} is not a list")
        return [StateReader(one, f"{self.where}.{key}[{i}]") for i, one in enumerate(found)]

    def maybe(self, key: str) -> StateReader | None:
        """Return the reader of a table that may be None."""
        return None if self.get(key) is None else self.inside(key)

    def array(
        self,
        key: str,
        shape: Sequence[int | None],
        kinds: str = "f",
        *,
        finite: bool = True,
        positive: bool = False,
    ) -> np.ndarray:
        """Return an array of a given shape (None: any length) and kind.

        Parameters
        ----------
        key : str
            Entry.
        shape : sequence of int or None
            Expected lengths.
        kinds : str, default="f"
            Legal ``dtype.kind``: f floats, i integers, b truth values, U and O text.
        finite : bool, default=True
            Refuse infinite and missing floats.
        positive : bool, default=False
            Refuse numbers that are not above 0.

        Returns
        -------
        ndarray
        """
        found = self.get(key)
        good = isinstance(found, np.ndarray) and found.dtype.kind in kinds
        self.need(good, f"{key} is not an array of the expected type")
        fits = found.ndim == len(shape) and all(
            n is None or n == m for n, m in zip(shape, found.shape, strict=True)
        )
        self.need(fits, f"{key} has shape {found.shape}, and {tuple(shape)} was expected")
        if found.dtype.kind == "f" and finite:
            self.need(np.isfinite(found).all(), f"{key} has numbers that are not finite")
        if positive:
            self.need((found > 0).all(), f"{key} has numbers that are not positive")
        if found.dtype.kind == "O":
            self.need(all(type(v) is str for v in found.ravel()), f"{key} is not text throughout")
        return found

    def maybe_array(
        self, key: str, shape: Sequence[int | None], kinds: str = "f", **options: Any
    ) -> np.ndarray | None:
        """Return an array, or None where there is none."""
        return None if self.get(key) is None else self.array(key, shape, kinds, **options)

    def texts(self, key: str) -> list[str]:
        """Return a list of text."""
        found = self.get(key)
        good = isinstance(found, list) and all(type(v) is str for v in found)
        self.need(good, f"{key} is not a list of text")
        return list(found)

    def text(self, key: str) -> str:
        """Return text."""
        found = self.get(key)
        self.need(type(found) is str, f"{key} is not text")
        return str(found)

    def count(self, key: str, least: int = 0) -> int:
        """Return a whole number."""
        found = self.get(key)
        self.need(type(found) is int and found >= least, f"{key} is not a whole number")
        return int(found)

    def by_name(self, key: str) -> dict[str, StateReader]:
        """Return the readers of a table of tables, by name."""
        inner = self.inside(key)
        self.need(all(type(name) is str for name in inner.state), f"{key} has names that are none")
        return {name: inner.inside(name) for name in inner.state}
