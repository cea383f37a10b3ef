"""Matplotlib and nilearn, imported only when something is drawn."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType

from baldur.exceptions import MissingExtraError

__all__ = ["import_plotting"]


def import_plotting(
    module: str, extra: str = "report", purpose: str = "Drawing figures"
) -> ModuleType:
    """Return a plotting library, or raise the error that says what to install."""
    try:
        with warnings.catch_warnings():
            # Their own use of deprecated parts is not something our users can act on.
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs {module.split('.')[0]}, which is not installed. Install it with: "
            f"pip install 'baldur-multiview[{extra}]'"
        ) from error
