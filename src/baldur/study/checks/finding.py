"""Finding: one suspicious property of the data, as one line of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Finding(NamedTuple):
    """One suspicious property of the data, with what to do about it."""

    key: str  # Where in the study file
    what: str  # What was seen
    fix: str  # What to do

    def __str__(self) -> str:
        return f"{self.key}: {self.what}; {self.fix}."


def names(items: Sequence[Any], limit: int = 3) -> str:
    """List the first few items, and say how many more there are."""
    shown = ", ".join(repr(str(item)) for item in items[:limit])
    more = len(items) - limit
    return f"{shown} and {more} more" if more > 0 else shown


def option_of(key: str, option: str) -> str:
    """Return the section and key of a reader's option in the study file."""
    section = "samples" if key.startswith(("covariates", "outcome", "samples")) else key
    return f"{option} in [{section}]"
