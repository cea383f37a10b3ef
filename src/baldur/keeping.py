"""Keeping: the methods by which an estimator is saved."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

__all__ = ["Keeping"]


class Keeping:
    """For estimators that can be saved with `baldur.save`."""

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fitted model into a folder; `baldur.load` reads it.

        Parameters
        ----------
        path : str or Path
            The folder.
        overwrite : bool, default=False
            Replace a model folder that is there; nothing else is ever replaced.

        Returns
        -------
        Path
            The folder.
        """
        # What saves knows all estimators and so stands above them; it is asked for by name.
        saved: Path = import_module("baldur.persist").save(self, path, overwrite=overwrite)
        return saved
