"""Progress of a fit, printed on the standard error stream with verbose=1."""

from __future__ import annotations

import sys
import time
from typing import Any

EVERY = 2.0
"""Seconds between two lines; a fit of many short steps would fill the screen otherwise."""


class Reporter:
    """Print what a fit is doing, and how long it will take.

    Lines are plain text, so that they appear alike on a terminal, in a notebook and in the log of a
    cluster job.
    """

    def __init__(self, verbose: int, title: str) -> None:
        self.verbose = verbose
        self.title = title
        self._steps = 0

    def __enter__(self) -> Reporter:
        self._start = time.monotonic()
        self._next = 0.0
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None and self.verbose:
            self._print(f"finished in {duration(time.monotonic() - self._start)}")

    def watch(self, record: dict[str, Any]) -> None:
        """Print one step of a fit."""
        self._steps += 1
        elapsed = time.monotonic() - self._start
        if not self.verbose or elapsed < self._next:
            return
        self._next = elapsed + EVERY
        parts = [str(record.get("event", f"iteration {self._steps}"))]
        if "features" in record:
            parts.append(f"{int(sum(record['features'])):,} features in the model")
        done = record.get("done")
        if done is not None and 0.0 < done < 1.0:
            parts.append(f"about {duration(elapsed * (1.0 - done) / done)} left")
        self._print(", ".join(parts))

    def _print(self, text: str) -> None:
        sys.stderr.write(f"{self.title}: {text}\n")
        sys.stderr.flush()


def duration(seconds: float) -> str:
    """Return a number of seconds in words, such as "8 s", "3 min" or "2 h 05 min"."""
    if seconds < 60:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
