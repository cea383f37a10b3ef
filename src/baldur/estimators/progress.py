"""Progress of a fit on the terminal, only when asked for."""

from __future__ import annotations

from typing import Any

__all__ = ["Reporter"]


class Reporter:
    """Shows sweeps while a fit runs.

    Parameters
    ----------
    verbose : int
        0 shows nothing, 1 or more shows one line that is rewritten.
    title : str
        What is being fitted.
    """

    def __init__(self, verbose: int, title: str) -> None:
        self.verbose = verbose
        self.title = title
        self._status: Any = None
        self._sweeps = 0

    def __enter__(self) -> Reporter:
        if self.verbose:
            # Only here: a silent fit should not pay for the terminal library.
            from rich.console import Console

            self._status = Console(stderr=True).status(self.title)
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()

    def watch(self, record: dict[str, Any]) -> None:
        """Show what a history record has: event or sweep, bound, features, passes."""
        if self._status is None:
            return
        self._sweeps += 1
        parts = [str(record.get("event", f"sweep {self._sweeps}"))]
        if "bound" in record:
            parts.append(f"bound {record['bound']:.2f}")
        active = record.get("active_features", record.get("features"))
        if active is not None:
            count = sum(active) if isinstance(active, (list, tuple)) else active
            parts.append(f"{count} features selected")
        if "passes" in record:
            parts.append(f"{record['passes']:.1f} passes over the data")
        self._status.update(f"{self.title}: {', '.join(parts)}")
