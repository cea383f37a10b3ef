"""Optional libraries: imported when they are first needed, with an error that names the extra."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from baldur.exceptions import MissingExtraError


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Return a module of an optional library, or raise the error that says what to install."""
    try:
        with warnings.catch_warnings():
            # Users cannot act on the deprecation warnings of a library's own imports.
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs {module.split('.')[0]}, which is not installed. Install it with: "
            f"pip install 'baldur-multiview[{extra}]'"
        ) from error
