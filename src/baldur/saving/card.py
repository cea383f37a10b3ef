"""Card: the printable model, and the files it is written as."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import baldur
from baldur.core.atomic_io import make_folder, write_atomically
from baldur.estimators.summary import output_names
from baldur.exceptions import InputError
from baldur.saving.card_text import page, printable
from baldur.saving.onnx_model import onnx_bytes
from baldur.saving.scorers import r_code

INTENDED = (
    "Research on people like those it was trained on: the same inclusion criteria, the same "
    "instruments and units. The probability it gives is to be read beside other evidence."
)
"""What a model is for, unless its maker says otherwise."""

NOT_FOR = (
    "Decisions about single people without a clinician and without validation in their population.",
    "People or instruments that differ from training: other ages, scanners, assays, ancestries, "
    "units.",
    "Claims about causes: a weight says what predicts, and not what would change an outcome.",
    "Other prevalences without recalibration: probabilities carry the prevalence of training.",
)
"""What no model of this kind must be used for."""


def facts(
    model: Any,
    *,
    classes: list[Any] | None = None,
    performance: Any = None,
    intended_use: str | None = None,
    not_for: Any = None,
) -> dict[str, Any]:
    """Return what a card says in words and figures, as JSON has it."""
    preparation = model.preparation_
    known = getattr(model, "classes_", None)
    labels = [] if known is None else [str(c) for c in (classes or np.asarray(known).tolist())]
    task = getattr(model, "_task", "regression")
    n = int(preparation.n_samples_)
    outputs = labels if task == "multilabel" else output_names(model)
    if labels and task != "multilabel":
        outputs = labels[-1:] if len(model.intercept_) == 1 else labels
    found: dict[str, Any] = {
        "model": type(model).__name__,
        "baldur": baldur.__version__,
        "task": task,
        "classes": labels,
        "outputs": outputs,
        "samples": n,
        "prevalence": None,
        "views": {name: int(width) for name, width in preparation.n_features_.items()},
        "scale": preparation.scaling_.scale,
        "steps_before": [type(step).__name__ for step in preparation.steps_],
        "covariates_regressed_out": []
        if preparation.covariates_ is None
        else list(preparation.covariates_.names),
        "missing": "A missing cell is replaced by its training mean. Where a whole view is "
        "missing, all of its cells are, and the variance of the prediction increases.",
        "intercept": model.intercept_.tolist(),
        "weights": _weights(model),
        "signal": None,
        "performance": read_performance(performance),
        "intended_use": intended_use or INTENDED,
        "not_for": [*NOT_FOR, *([not_for] if isinstance(not_for, str) else (not_for or []))],
    }
    counts = getattr(model, "class_count_", None)
    if counts is not None:
        shares = np.asarray(counts, dtype=float) / n
        found["prevalence"] = dict(zip(labels, shares.tolist(), strict=True))
    elif task == "regression":
        mean, std = model.output_units
        found["outcome"] = {"mean": mean.tolist(), "sd": std.tolist()}
    if hasattr(model, "signal_shown_"):
        found["signal"] = {
            "standard_errors_over_base_rate": float(model.signal_),
            "shown": bool(model.signal_shown_),
            "held_out_loss": _selected_loss(model),
        }
    return found


def _weights(model: Any) -> list[dict[str, Any]]:
    """Return a row for each selected feature: weights per unit of the input, limits and range."""
    preparation, rows = model.preparation_, []
    lowers, uppers, means = preparation.lower_, preparation.upper_, preparation.mean_
    minima, maxima = preparation.minimum_, preparation.maximum_
    for view in model.view_names_:
        for column in np.flatnonzero(model.selected_features_[view]):
            lower, upper = lowers[view][column], uppers[view][column]
            rows.append(
                {
                    "view": view,
                    "feature": str(model.feature_names_[view][column]),
                    "weight": model.coef_[view][:, column].tolist(),
                    "weight_sd": model.coef_std_[view][:, column].tolist(),
                    "mean": float(means[view][column]),
                    "lower_limit": float(lower) if np.isfinite(lower) else None,
                    "upper_limit": float(upper) if np.isfinite(upper) else None,
                    "training_range": [
                        float(minima[view][column]),
                        float(maxima[view][column]),
                    ],
                }
            )
    return rows


def _selected_loss(model: Any) -> float | None:
    path = model.sparsity_path_
    selected = path[path["selected"]]
    return float(selected["loss"].iloc[0]) if len(selected) else None


def read_performance(given: Any) -> list[dict[str, Any]]:
    """Return performance as rows of metric, estimate, low and high."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        given = pd.DataFrame(
            [(name, *values) for name, values in given.items()],
            columns=["metric", "estimate", "low", "high"],
        )
    lacking = {"metric", "estimate", "low", "high"} - set(getattr(given, "columns", ()))
    if lacking:
        raise InputError(
            f"performance: expected a table with metric, estimate, low and high, but it has no "
            f"{', '.join(sorted(lacking))}."
        )
    if "model" in given and given["model"].nunique() > 1:
        raise InputError(
            f"performance: expected the rows of one model, but there are {given['model'].nunique()}"
            ". Select those of the model on the card."
        )
    keep = [c for c in ("metric", "estimate", "low", "high", "people", "site") if c in given]
    return [
        {str(k): v if isinstance(v, str) else _number(v) for k, v in row.items()}
        for row in given[keep].to_dict("records")
    ]


def _number(value: Any) -> float | int | None:
    number = float(value)
    if not np.isfinite(number):
        return None
    return int(number) if isinstance(value, (int, np.integer)) else number


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
        As in `baldur.saving.card.facts`.

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
