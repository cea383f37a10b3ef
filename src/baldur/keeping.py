"""Keeping and Printing: the methods by which an estimator is saved and printed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["Keeping", "Printing"]


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


class Printing(Keeping):
    """For estimators that can be printed, too."""

    def card(self, path: str | Path | None = None, **words: Any) -> Any:
        """Return the printable model: what it is, its formula, and scorers in three languages.

        Parameters
        ----------
        path : str or Path, optional
            A folder to write ``card.md``, ``card.json`` and the scorers to.
        **words
            ``performance`` (a table with metric, estimate, low and high, or a dictionary of metric
            to these three), ``intended_use``, ``not_for`` and ``classes`` (names of the classes).

        Returns
        -------
        Card
            With `markdown`, `json` and `write`.
        """
        made = import_module("baldur.cards").make_card(self, **words)
        if path is not None:
            made.write(path)
        return made

    def to_onnx(self, path: str | Path | None = None) -> bytes:
        """Return the model as ONNX in float64, for programs that run it without Python.

        Inputs are ``x``, the kept features in the order of the metadata with NaN where missing,
        and ``absent``, 1 where a person lacks a view. Outputs are ``probabilities``, or ``mean``
        and ``std``.

        Parameters
        ----------
        path : str or Path, optional
            File to write.

        Returns
        -------
        bytes
        """
        made: bytes = import_module("baldur.cards").make_card(self).to_onnx(path)
        return made
