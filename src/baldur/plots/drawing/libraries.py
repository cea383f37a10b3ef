"""The plotting libraries, imported only when something is drawn."""

from __future__ import annotations

from typing import Any

from baldur.optional import import_extra


def matplotlib(module: str = "") -> Any:
    """Return matplotlib, or one of its modules: ``matplotlib("figure")``."""
    return import_extra(f"matplotlib.{module}".rstrip("."), "report", "Drawing figures")


def imaging(module: str) -> Any:
    """Return a module of the libraries for brain images, such as "nilearn.plotting"."""
    return import_extra(module, "imaging", "Drawing brains")
