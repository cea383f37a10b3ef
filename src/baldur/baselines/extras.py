"""The optional libraries of two baselines, imported only when one of them is fitted."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from baldur.exceptions import MissingExtraError


def import_extra(module: str, method: str) -> Any:
    """The module, or an error that says what to install."""
    try:
        with warnings.catch_warnings():
            # Their own use of deprecated parts is not something our users can act on.
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{method} needs {module.split('.')[0]}, which is not installed. Install the extra: "
            'pip install "baldur-multiview[torch]" (or torch and gpytorch themselves). '
            "All other baselines run without it."
        ) from error
