"""Card: the printable model, and the files it is written as."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baldur.atomic_io import make_folder, write_atomically
from baldur.exceptions import InputError
from baldur.saving.cards.about import facts
from baldur.saving.cards.markdown import page
from baldur.saving.cards.numbers import printable
from baldur.saving.cards.onnx_model import onnx_bytes
from baldur.saving.cards.r_code import r_code


@dataclass(frozen=True)
class Card:
    """The printable model.

    Attributes
    ----------
    about : dict
        What it is, was trained on, does and is for, as JSON has it.
    model : dict or None
        Its numbers, which the scorers read; None where it has too many to print.
    reason : str
        Why there are no numbers.
    """

    about: dict[str, Any]
    model: dict[str, Any] | None
    reason: str = ""

    @property
    def json(self) -> dict[str, Any]:
        """Facts and numbers together, as ``card.json`` holds them."""
        return {"about": self.about, "model": self.model}

    @property
    def markdown(self) -> str:
        """The card as a page of Markdown."""
        return page(self.about, self.model, self.reason)

    def __str__(self) -> str:
        return self.markdown

    def files(self) -> dict[str, bytes]:
        """Return the files of the card: the page, the numbers, and scorers in three languages."""
        made = {
            "card.md": self.markdown.encode(),
            "card.json": (json.dumps(self.json, allow_nan=False) + "\n").encode(),
        }
        if self.model is not None:
            made["card.R"] = (r_code(self.model) + "\n").encode()
            made |= {f"score.{language}": scorer(language) for language in ("py", "R", "js")}
        return made

    def to_onnx(self, path: str | Path | None = None) -> bytes:
        """Return the model as the bytes of an ONNX file in float64, written to `path` if given.

        Parameters
        ----------
        path : str or Path, optional
            File to write.

        Returns
        -------
        bytes
        """
        if self.model is None:
            raise InputError(f"This model cannot be exported to ONNX. {self.reason}")
        if self.model["sites"] or self.model["covariates"]:
            what = [*(["harmonised sites"] if self.model["sites"] else [])]
            what += ["regressed-out covariates"] if self.model["covariates"] else []
            raise InputError(
                "This model cannot be exported to ONNX: the graph takes numbers of views only, "
                f"and the model has {' and '.join(what)}. Use baldur predict, or the scorers that "
                "card(path) writes."
            )
        content = onnx_bytes(self.model)
        if path is not None:
            write_atomically(path, content)
        return content

    def write(self, folder: str | Path) -> Path:
        """Write the files of the card into a folder.

        Parameters
        ----------
        folder : str or Path
            Made if it is not there; files of the same names are replaced.

        Returns
        -------
        Path
            The folder.
        """
        target = make_folder(folder)
        for name, content in self.files().items():
            write_atomically(target / name, content)
        return target


def scorer(language: str) -> bytes:
    """Return the reference scorer, a small program that knows the printed model alone."""
    return (Path(__file__).parent / f"score.{language}").read_bytes()


def make_card(model: Any, **words: Any) -> Card:
    """Return the card of a fitted model.

    Parameters
    ----------
    model : fitted estimator of ours
        Numbers are printed where a scorer that sees one person at a time can prepare the cells.
    **words
        As in `baldur.saving.cards.about.facts`.

    Returns
    -------
    Card
    """
    if not hasattr(model, "predictor"):
        raise InputError(
            f"{type(model).__name__} has no card: cards are of BALDUR, whose weights and their "
            "uncertainty can be printed."
        )
    about = facts(model, **words)
    try:
        return Card(about, printable(model, words.get("classes")))
    except InputError as error:
        return Card(about, None, str(error))
