"""Functions of higher parts that methods of lower parts call, such as `model.save`.

`baldur.saving` and `baldur.report` import the estimators, so estimators cannot import them. A
method that saves or reports calls a hook by its name instead. The top-level package registers the
hooks when it is imported, which is before any of its parts; no other module does. Each hook imports
its part when it is first called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_hooks: dict[str, Callable[..., Any]] = {}


def register_hook(name: str, function: Callable[..., Any]) -> None:
    """Let methods of lower parts call a function of a higher part by this name."""
    _hooks[name] = function


def call_hook(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call the function that is registered under this name and return its result."""
    return _hooks[name](*args, **kwargs)
