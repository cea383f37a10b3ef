"""Card: the printable model, and the files it is written as."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import baldur
from baldur.core.atomic_io import make_folder, write_atomically
from baldur.core.escape import markdown
from baldur.estimators.summary import against_base_rate, output_names
from baldur.exceptions import InputError
from baldur.saving.printed_model import model_numbers, onnx_bytes, r_code

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
    """Return what a card says about a fitted model in words and figures, as JSON has it.

    `classes` are its labels where these are not its own `classes_`; the other arguments are the
    words of whoever publishes it.
    """
    preparation = model.preparation_
    own = getattr(model, "classes_", None)
    labels = [] if own is None else [str(c) for c in (classes or np.asarray(own).tolist())]
    task = model._task
    # Of two classes only the positive one has weights.
    outputs = labels[-1:] if task == "binary" else labels or output_names(model)
    covariates = preparation.covariates_
    about: dict[str, Any] = {
        "model": type(model).__name__,
        "baldur": baldur.__version__,
        "task": task,
        "classes": labels,
        "outputs": outputs,
        "samples": int(preparation.n_samples_),
        "prevalence": None,
        "views": {name: int(width) for name, width in preparation.n_features_.items()},
        "scale": preparation.scaling_.scale,
        "steps_before": [type(step).__name__ for step in preparation.steps_],
        "covariates_regressed_out": [] if covariates is None else list(covariates.names),
        "missing": "A missing cell is replaced by its training mean. Where a whole view is "
        "missing, all of its cells are, and the variance of the prediction increases.",
        "intercept": model.intercept_.tolist(),
        "weights": _weights(model),
        "signal": None,
        "performance": read_performance(performance),
        "intended_use": intended_use or INTENDED,
        "not_for": [*NOT_FOR, *([not_for] if isinstance(not_for, str) else (not_for or []))],
    }
    if task == "regression":
        mean, std = model.output_units
        about["outcome"] = {"mean": mean.tolist(), "sd": std.tolist()}
    else:
        shares = np.asarray(model.class_count_, dtype=float) / preparation.n_samples_
        about["prevalence"] = dict(zip(labels, shares.tolist(), strict=True))
    if hasattr(model, "signal_shown_"):
        path = model.sparsity_path_
        about["signal"] = {
            "standard_errors_over_base_rate": float(model.signal_),
            "shown": bool(model.signal_shown_),
            "held_out_loss": _number(path.loc[path["selected"], "loss"].iloc[0]),
        }
    return about


def _weights(model: Any) -> list[dict[str, Any]]:
    """Return a row for each selected feature: weights per unit of the input, limits and range."""
    preparation = model.preparation_
    low, high = preparation.minimum_, preparation.maximum_
    figures = {
        "mean": preparation.mean_,
        "lower_limit": preparation.lower_,
        "upper_limit": preparation.upper_,
    }
    return [
        {
            "view": view,
            "feature": str(model.feature_names_[view][column]),
            "weight": model.coef_[view][:, column].tolist(),
            "weight_sd": model.coef_std_[view][:, column].tolist(),
            **{name: _number(values[view][column]) for name, values in figures.items()},
            "training_range": [float(low[view][column]), float(high[view][column])],
        }
        for view in model.view_names_
        for column in np.flatnonzero(model.selected_features_[view])
    ]


def read_performance(given: Any) -> list[dict[str, Any]]:
    """Return performance as rows, from a table of one model or a dictionary by metric."""
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
    columns = [c for c in ("metric", "estimate", "low", "high", "people", "site") if c in given]
    return [
        {str(k): v if isinstance(v, str) else _number(v) for k, v in row.items()}
        for row in given[columns].to_dict("records")
    ]


def _number(value: Any) -> float | int | None:
    """Return a number as JSON has it: None for NaN and infinity."""
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
        return _page(self.about, self.model, self.reason)

    def __str__(self) -> str:
        return self.markdown

    def files(self) -> dict[str, bytes]:
        """Return the files of the card: the page, the numbers, and scorers in three languages."""
        files = {
            "card.md": self.markdown.encode(),
            "card.json": (json.dumps(self.json, allow_nan=False) + "\n").encode(),
        }
        if self.model is not None:
            files["card.R"] = (r_code(self.model) + "\n").encode()
            files |= {f"score.{language}": scorer(language) for language in ("py", "R", "js")}
        return files

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
    """Return the card of a fitted estimator of BALDUR, with the words of `facts`.

    Numbers are printed where a scorer that sees one person at a time can prepare the cells.
    """
    if not hasattr(model, "predictor"):
        raise InputError(
            f"{type(model).__name__} has no card: cards are of BALDUR, whose weights and their "
            "uncertainty can be printed."
        )
    about = facts(model, **words)
    try:
        return Card(about, model_numbers(model, about["classes"]))
    except InputError as error:
        return Card(about, None, str(error))


# -- the page ------------------------------------------------------------------------------------

MOST_ROWS = 100
"""Features that the page lists; card.json has all of them."""

_PAGE = """\
# Model card: {model}

{facts}

## Intended use

{intended_use}

## What it must not be used for

{not_for}

## Performance

{performance}

## The formula

{formula}

{weights}

## Missing values

{missing}

## Uncertainty

{uncertainty}
"""

_NOT_MEASURED = (
    "Not measured for this card. Measure it with `baldur evaluate` (nested cross-validation) or "
    "`baldur validate` (a new cohort), and pass it to `card`."
)
_FORMULA = (
    "At the mean weights, the {what} is the intercept plus the sum of weight times value, in the "
    "units of the input. A value outside the limits is set to the nearest limit."
)
_AVERAGED = (
    "The probability is averaged over the uncertainty of the weights, and so less extreme than the "
    "log odds of this table alone. The scorers compute it."
)
_UNCERTAINTY = (
    "The intercept and the {features} weights of each {part} have one joint Gaussian posterior. "
    "`card.json` holds its mean and covariance (for standardised values: value minus mean, times "
    "factor) and the variance that a missing view adds. {probit}`score.py`, `score.R` and "
    "`score.js` compute predictions from these numbers and need no other software of ours."
)
_PROBIT = (
    "The probability is the mean of the logistic function under this Gaussian, "
    "sum_i w_i Phi(mean / sqrt(c_i^2 + variance)), where mean and variance are those of the log "
    "odds, and w_i and c_i are the weights and scales of `probit`. "
)


def _page(about: dict[str, Any], model: dict[str, Any] | None, reason: str) -> str:
    """Return the card as Markdown."""
    classes = f", classes {_names(about['classes'])}" if about["classes"] else ""
    lines = [
        f"Task: {about['task']}{classes}",
        f"Fitted by baldur {about['baldur']} on {about['samples']:,} people",
        f"Views: {_names(f'{k} ({v:,} features)' for k, v in about['views'].items())}",
        _outcome(about),
        _signal(about),
    ]
    uncertainty = markdown(reason)
    if model is not None:
        uncertainty = _UNCERTAINTY.format(
            features=len(model["features"]),
            part="output" if model["loadings"] is None else "factor",
            probit="" if about["task"] == "regression" else _PROBIT,
        )
    return _PAGE.format(
        model=about["model"],
        facts=_list(lines),
        intended_use=markdown(about["intended_use"]),
        not_for=_list(map(markdown, about["not_for"])),
        performance=_performance(about),
        formula=_formula(about),
        weights=_weight_table(about),
        missing=markdown(about["missing"]),
        uncertainty=uncertainty,
    )


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items if item)


def _names(items: Iterable[Any]) -> str:
    return ", ".join(markdown(str(item)) for item in items)


def _table(heads: Sequence[str], aligned: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table; numbers have four digits, and None is an empty cell."""
    lines = [[c if isinstance(c, str) else _figure(c) for c in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in [heads, aligned, *lines])


def _outcome(about: dict[str, Any]) -> str:
    """Return shares of classes, or mean and s.d. of a continuous outcome, of the training rows."""
    if about["prevalence"]:
        shares = (f"{name} {share:.1%}" for name, share in about["prevalence"].items())
        return f"In the training rows: {_names(shares)}"
    if about.get("outcome"):
        pairs = zip(about["outcome"]["mean"], about["outcome"]["sd"], strict=True)
        units = "; ".join(f"mean {mean:.4g}, s.d. {sd:.4g}" for mean, sd in pairs)
        return f"Outcome in the training rows: {units}"
    return ""


def _signal(about: dict[str, Any]) -> str:
    """Return whether the model predicts better than the base rate; empty where it does not say."""
    if not about["signal"]:
        return ""
    errors = about["signal"]["standard_errors_over_base_rate"]
    evidence = f"{against_base_rate(errors)} on held-out training rows"
    if about["signal"]["shown"]:
        return f"Evidence of signal: {evidence}"
    return f"**No evidence of signal on held-out data**: {evidence}. Do not interpret the features"


def _performance(about: dict[str, Any]) -> str:
    """Return the table of measured performance, or how to measure it."""
    rows = []
    for row in about["performance"]:
        site = f" ({markdown(row['site'])})" if row.get("site") else ""
        interval = f"{_figure(row['low'])} to {_figure(row['high'])}"
        rows.append((markdown(row["metric"]) + site, row["estimate"], interval))
    heads = ("metric", "estimate", "95 % interval")
    return _table(heads, ("---", "---:", "---"), rows) if rows else _NOT_MEASURED


def _formula(about: dict[str, Any]) -> str:
    """Return the sentences about the formula that hold for this model."""
    continuous = about["task"] == "regression"
    steps, covariates = about["steps_before"], about["covariates_regressed_out"]
    # Each sentence, and whether it holds.
    sentences = {
        _FORMULA.format(what="outcome" if continuous else "log odds"): True,
        _AVERAGED: not continuous,
        "Columns are ranked first, so a weight per unit holds only near the median.": (
            about["scale"] == "rank"
        ),
        f"Before that, columns are changed: {_names(steps)}.": steps,
        f"The effect of {_names(covariates)} on each column is subtracted, which this table leaves "
        "out. The scorers do it.": covariates,
        f"The first {MOST_ROWS} of {len(about['weights']):,} features are listed.": (
            len(about["weights"]) > MOST_ROWS
        ),
    }
    return " ".join(sentence for sentence, holds in sentences.items() if holds)


def _weight_table(about: dict[str, Any]) -> str:
    """Return the table of the intercept and the first selected features."""
    outputs = about["outputs"]
    weights = [f"weight ({markdown(o)})" for o in outputs] if len(outputs) > 1 else ["weight"]
    heads = ["view", "feature", *weights, "s.d.", "mean", "lower limit", "upper limit"]
    rows: list[Sequence[Any]] = [["", "(intercept)", *about["intercept"], *[None] * 4]]
    for row in about["weights"][:MOST_ROWS]:
        spread = ", ".join(map(_figure, row["weight_sd"]))
        limits = row["mean"], row["lower_limit"], row["upper_limit"]
        names = markdown(row["view"]), markdown(row["feature"])
        rows.append([*names, *row["weight"], spread, *limits])
    return _table(heads, ["---", "---", *["---:"] * (len(heads) - 2)], rows)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
