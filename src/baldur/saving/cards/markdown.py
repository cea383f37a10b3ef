"""The card as a page of Markdown that can be printed."""

from __future__ import annotations

from typing import Any

from baldur.inference.selection import against_base_rate
from baldur.safety.escape import markdown

MOST_ROWS = 100
"""Features that the page lists; card.json has all of them."""


def page(about: dict[str, Any], model: dict[str, Any] | None, reason: str = "") -> str:
    """Return the card as Markdown."""
    parts = [
        f"# Model card: {about['model']}",
        _lines(
            [
                f"Task: {about['task']}"
                + (f", classes {_names(about['classes'])}" if about["classes"] else ""),
                f"Fitted by baldur {about['baldur']} on {about['samples']:,} people",
                f"Views: {_names(f'{k} ({v:,} features)' for k, v in about['views'].items())}",
                _prevalence(about),
                _signal(about),
            ]
        ),
        "## Intended use\n\n" + markdown(about["intended_use"]),
        "## What it must not be used for\n\n" + _lines(markdown(t) for t in about["not_for"]),
        "## Performance\n\n" + _performance(about),
        "## The formula\n\n" + _formula(about),
        "## Missing values\n\n" + markdown(about["missing"]),
        "## Uncertainty\n\n" + _uncertainty(about, model, reason),
    ]
    return "\n\n".join(parts) + "\n"


def _lines(items: Any) -> str:
    return "\n".join(f"- {item}" for item in items if item)


def _names(items: Any) -> str:
    return ", ".join(markdown(str(item)) for item in items)


def _figure(value: Any) -> str:
    return "" if value is None else f"{value:.4g}"


def _prevalence(about: dict[str, Any]) -> str:
    if about["prevalence"]:
        shares = (f"{name} {share:.1%}" for name, share in about["prevalence"].items())
        return f"In the training rows: {_names(shares)}"
    if about.get("outcome"):
        pairs = zip(about["outcome"]["mean"], about["outcome"]["sd"], strict=True)
        return "Outcome in the training rows: " + "; ".join(
            f"mean {m:.4g}, s.d. {s:.4g}" for m, s in pairs
        )
    return ""


def _signal(about: dict[str, Any]) -> str:
    if not about["signal"]:
        return ""
    errors = about["signal"]["standard_errors_over_base_rate"]
    said = f"{against_base_rate(errors)} on held-out training rows"
    if about["signal"]["shown"]:
        return f"Evidence of signal: {said}"
    return f"**No evidence of signal on held-out data**: {said}. Do not interpret the features"


def _performance(about: dict[str, Any]) -> str:
    if not about["performance"]:
        return (
            "Not measured for this card. Measure it with `baldur evaluate` (nested "
            "cross-validation) or `baldur validate` (a new cohort), and pass it to `card`."
        )
    rows = ["| metric | estimate | 95 % interval |", "| --- | ---: | --- |"]
    for row in about["performance"]:
        where = f" ({markdown(row['site'])})" if row.get("site") else ""
        interval = f"{_figure(row['low'])} to {_figure(row['high'])}"
        rows.append(
            f"| {markdown(row['metric'])}{where} | {_figure(row['estimate'])} | {interval} |"
        )
    return "\n".join(rows)


def _formula(about: dict[str, Any]) -> str:
    what = "outcome" if about["task"] == "regression" else "log odds"
    several = len(about["outputs"]) > 1
    said = [
        f"At the mean weights, the {what} is the intercept plus the sum of weight times value, in "
        "the units of the input. A value outside the limits is set to the nearest limit."
    ]
    if about["task"] != "regression":
        said.append(
            "The probability is averaged over the uncertainty of the weights, and so less extreme "
            "than the log odds of this table alone. The scorers compute it."
        )
    if about["scale"] == "rank":
        said.append("Columns are ranked first, so a weight per unit holds only near the median.")
    if about["steps_before"]:
        said.append("Before that, columns are changed: " + _names(about["steps_before"]) + ".")
    if about["covariates_regressed_out"]:
        covariates = _names(about["covariates_regressed_out"])
        said.append(
            f"The effect of {covariates} on each column is subtracted, which this table leaves "
            "out. The scorers do it."
        )
    heads = [f"weight ({markdown(o)})" for o in about["outputs"]] if several else ["weight"]
    rows = [
        "| view | feature | " + " | ".join(heads) + " | s.d. | mean | lower limit | upper limit |",
        "| --- | --- |" + " ---: |" * (len(heads) + 4),
        "| | (intercept) | " + " | ".join(_figure(b) for b in about["intercept"]) + " | | | | |",
    ]
    for row in about["weights"][:MOST_ROWS]:
        spread = ", ".join(_figure(s) for s in row["weight_sd"])
        cells = [
            markdown(row["view"]),
            markdown(row["feature"]),
            *(_figure(w) for w in row["weight"]),
            spread,
            _figure(row["mean"]),
            _figure(row["lower_limit"]),
            _figure(row["upper_limit"]),
        ]
        rows.append("| " + " | ".join(cells) + " |")
    if len(about["weights"]) > MOST_ROWS:
        said.append(f"The first {MOST_ROWS} of {len(about['weights']):,} features are listed.")
    return " ".join(said) + "\n\n" + "\n".join(rows)


def _uncertainty(about: dict[str, Any], model: dict[str, Any] | None, reason: str) -> str:
    if model is None:
        return markdown(reason)
    of = "output" if model["loadings"] is None else "factor"
    said = (
        f"The intercept and the {len(model['features'])} weights of each {of} have one joint "
        "Gaussian posterior. `card.json` holds its mean and covariance (for standardised values: "
        "value minus mean, times factor) and the variance that a missing view adds. "
    )
    if about["task"] != "regression":
        said += (
            "The probability is the mean of the logistic function under this Gaussian, "
            "sum_i w_i Phi(mean / sqrt(c_i^2 + variance)), where mean and variance are those of "
            "the log odds, and w_i and c_i are the weights and scales of `probit`. "
        )
    return said + (
        "`score.py`, `score.R` and `score.js` compute predictions from these numbers and need no "
        "other software of ours."
    )
