"""SaveMixin and ExportMixin: methods that save an estimator and export it for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from baldur.hooks import call_hook


class OnnxModel(bytes):
    """Content of an ONNX file: bytes with a short representation."""

    def __repr__(self) -> str:
        return f"<OnnxModel of {len(self):,} bytes; to_onnx(path) writes it to a file>"


class SaveMixin:
    """The method `save`, for every estimator that `baldur.save` accepts."""

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
        saved: Path = call_hook("save", self, path, overwrite=overwrite)
        return saved


class ExportMixin(SaveMixin):
    """`save`, model cards and ONNX, for estimators whose formula can be printed."""

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
        made = call_hook("make_card", self, **words)
        if path is not None:
            made.write(path)
        return made

    def to_onnx(self, path: str | Path | None = None) -> Path | OnnxModel:
        """Return the model as ONNX in float64, for programs that run it without Python.

        Inputs are ``x``, the selected features in the order of the metadata with NaN where missing,
        and ``absent``, 1 where a sample has a missing view. Outputs are ``probabilities``, or
        ``mean`` and ``std``.

        Parameters
        ----------
        path : str or Path, optional
            File to write.

        Returns
        -------
        Path or OnnxModel
            The file that was written; without a path, the content of the file as bytes.
        """
        content = OnnxModel(call_hook("make_card", self).to_onnx(path))
        return content if path is None else Path(path)
