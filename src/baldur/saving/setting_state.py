"""Settings of estimators as plain values: what their constructors take, and nothing else.

Plain values are stored as they are. Tuples, dictionaries (whose keys may be numbers), slices,
random states and templates of preparations are objects with a ``kind``.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np

from baldur.core.state import Fields, State, StateError
from baldur.exceptions import InputError
from baldur.preparation import Preparation, Step
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
    known = signature(kind).parameters
    if isinstance(state, dict) and "scale" in state and "scale" not in known:
        # Earlier versions had it beside the preparation, which may have a scale of its own.
        state = {"preparation": state["scale"]} | {
            name: value
            for name, value in state.items()
            if name != "scale" and (name != "preparation" or value is not None)
        }
    with Fields(state) as read:
        return {name: read.part(name, read_setting) for name in state if name in known}


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


def read_setting(state: Any) -> Any:
    """Return one setting from its plain value."""
    if type(state) is list:
        return [read_setting(one) for one in state]
    if type(state) is not dict:
        return state
    kind = state.get("kind")
    if type(kind) is not str or kind not in _KINDS:
        raise StateError((), "a setting of an unknown kind")
    with Fields(state, kind) as read:
        return _KINDS[kind](read)


def _tuple(read: Fields) -> tuple[Any, ...]:
    return tuple(read.parts("items", read_setting))


def _mapping(read: Fields) -> dict[Any, Any]:
    pairs = read.parts("entries", read_setting)
    if not all(type(pair) is list and len(pair) == 2 and _is_key(pair[0]) for pair in pairs):
        raise read.fault("expected pairs of a key and a value", "entries")
    made = dict(pairs)
    read.need(len(made) == len(pairs), "expected no key twice", "entries")
    return made


def _is_key(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_key, value))
    return value is None or type(value) in (bool, int, float, str)


def _slice(read: Fields) -> slice:
    ends = read.parts("ends", read_setting, 3)
    sound = all(end is None or type(end) in (int, str) for end in ends)
    read.need(sound, "expected whole numbers or names", "ends")
    return slice(*ends)


def _random_state(read: Fields) -> np.random.RandomState:
    key = read.array("key", (624,), "int", low=0, high=2**32 - 1).astype(np.uint32)
    made = np.random.RandomState()
    made.set_state(
        {
            "bit_generator": "MT19937",
            "state": {"key": key, "pos": read.integer("position", 0, 624)},
            "has_gauss": read.integer("has_gauss", 0, 1),
            "gauss": read.number("gauss"),
        }
    )
    return made


def _preparation(read: Fields) -> Preparation:
    return Preparation(**read.part("settings", read_settings, kind=Preparation))


def _step(read: Fields) -> Step:
    kind = STEPS[read.choice("step", tuple(STEPS))]
    return kind(**read.part("settings", read_settings, kind=kind))


_KINDS = {
    "tuple": _tuple,
    "mapping": _mapping,
    "slice": _slice,
    "random state": _random_state,
    "preparation template": _preparation,
    "step template": _step,
}
