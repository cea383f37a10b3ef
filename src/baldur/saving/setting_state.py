"""Settings of estimators as plain values: what their constructors take, and nothing else.

Plain values are stored as they are. Tuples, dictionaries (whose keys may be numbers), slices,
random states and templates of preparations are objects with a ``kind``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from baldur.core.state import (
    Choice,
    Each,
    Form,
    Integer,
    Number,
    Numbers,
    Plain,
    Sizes,
    State,
    StateError,
    need,
    read_fields,
)
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.preparation.preparation import STEPS


def settings_state(estimator: Any) -> State:
    """Return the settings of an estimator."""
    return {
        name: setting_state(value, name) for name, value in estimator.get_params(deep=False).items()
    }


def read_settings(state: Any, kind: type) -> dict[str, Any]:
    """Return the arguments for the constructor of an estimator.

    Settings that came after the file was written have their defaults.
    """
    names = [name for name in signature(kind).parameters if type(state) is dict and name in state]
    return read_fields(state, dict.fromkeys(names, Setting()), Sizes())


def setting_state(value: Any, name: str) -> Any:
    """Return one setting as a plain value; `name` is for the error."""
    if value is None or isinstance(value, (bool, int, float, str, np.generic, np.ndarray)):
        return value
    if isinstance(value, list):
        return [setting_state(one, name) for one in value]
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [setting_state(one, name) for one in value]}
    if isinstance(value, Mapping):
        entries = [
            [setting_state(key, name), setting_state(one, name)] for key, one in value.items()
        ]
        return {"kind": "mapping", "entries": entries}
    if isinstance(value, slice):
        ends = [setting_state(end, name) for end in (value.start, value.stop, value.step)]
        return {"kind": "slice", "ends": ends}
    if isinstance(value, np.random.RandomState):
        held: Any = value.get_state(legacy=False)
        if held["bit_generator"] == "MT19937":
            return {
                "kind": "random state",
                "key": np.array(held["state"]["key"]),
                "position": int(held["state"]["pos"]),
                "has_gauss": int(held["has_gauss"]),
                "gauss": float(held["gauss"]),
            }
    if isinstance(value, Preparation):
        # A template: what it may have learned is not part of a setting.
        return {"kind": "preparation template", "settings": settings_state(value)}
    if type(value) in STEPS.values():
        settings = settings_state(value)
        return {"kind": "step template", "step": type(value).__name__, "settings": settings}
    raise InputError(
        f"The setting {name} cannot be saved: it is or holds a {type(value).__name__}. Fit with "
        "numbers, text, lists, dictionaries, slices or arrays as settings."
    )


@dataclass(frozen=True)
class Setting(Form):
    """One setting of an estimator."""

    def _read(self, value: Any, sizes: Sizes) -> Any:
        """Return one setting from its plain value."""
        if type(value) is list:
            return Each(self).read(value, sizes)
        if type(value) is not dict:
            return value
        kind = value.get("kind")
        if type(kind) is not str or kind not in _KINDS:
            raise StateError((), "a setting of an unknown kind")
        fields, make = _KINDS[kind]
        return make(**read_fields(value, fields, sizes, known=("kind",)))


def _mapping(entries: list[Any]) -> dict[Any, Any]:
    pairs = all(type(pair) is list and len(pair) == 2 and _is_key(pair[0]) for pair in entries)
    need(pairs, "expected pairs of a key and a value", "entries")
    made = dict(entries)
    need(len(made) == len(entries), "expected no key twice", "entries")
    return made


def _is_key(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_key, value))
    return value is None or type(value) in (bool, int, float, str)


def _slice(ends: list[Any]) -> slice:
    sound = len(ends) == 3 and all(end is None or type(end) in (int, str) for end in ends)
    need(sound, "expected three whole numbers or names", "ends")
    return slice(*ends)


def _random_state(key: np.ndarray, position: int, **gauss: Any) -> np.random.RandomState:
    made = np.random.RandomState()
    state = {"key": key.astype(np.uint32), "pos": position}
    made.set_state({"bit_generator": "MT19937", "state": state, **gauss})
    return made


def _template(step: str | None = None, settings: Any = None) -> Any:
    kind: Any = Preparation if step is None else STEPS[step]
    return kind(**read_settings(settings, kind))


_SETTINGS = Each(Setting())

_KINDS: dict[str, tuple[dict[str, Form], Callable[..., Any]]] = {
    "tuple": ({"items": _SETTINGS}, lambda items: tuple(items)),
    "mapping": ({"entries": _SETTINGS}, _mapping),
    "slice": ({"ends": _SETTINGS}, _slice),
    "random state": (
        {
            "key": Numbers("624", "int", low=0, high=2**32 - 1),
            "position": Integer(0, 624),
            "has_gauss": Integer(0, 1),
            "gauss": Number(),
        },
        _random_state,
    ),
    "preparation template": ({"settings": Plain()}, _template),
    "step template": ({"step": Choice(tuple(STEPS)), "settings": Plain()}, _template),
}
"""For each kind of setting its fields, and what makes it of them."""
