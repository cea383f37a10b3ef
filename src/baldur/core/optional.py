"""Imports that wait until they are needed: of optional libraries, and of names of a package."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from baldur.exceptions import MissingExtraError


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Return a module of an optional library, or raise the error that says what to install."""
    try:
        with warnings.catch_warnings():
            # Users cannot act on the deprecation warnings of a library's own imports.
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs {module.split('.')[0]}, which is not installed. Install it with: "
            f"pip install 'baldur-multiview[{extra}]'"
        ) from error


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package whose names are imported when first used.

    `homes` maps each module to the names it has, separated by blanks.
    """
    modules = {name: f"{package}.{home}" for home, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return find, lambda: sorted(modules)
