"""The card as a page of Markdown that can be printed."""

from __future__ import annotations

from typing import Any

from baldur.guard.escape import markdown
from baldur.inference.selection import against_base_rate

__all__ = ["page"]

MOST_ROWS = 100
"""Features listed one by one; a longer list is no page any more, and card.json has them all."""


def page(about: dict[str, Any], model: dict[str, Any] | None, reason: str = "") -> str:
    """Return the card as Markdown.

    Parameters
    ----------
    about : dict
        As `facts` gives it.
    model : dict or None
        As `printable` gives it; None for a model of too many numbers.
    reason : str
        Why there are no numbers.
    """
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
        return f"A signal was shown: {said}"
    return f"**No signal was shown**: {said}. The weights are not to be read as findings"


def _performance(about: dict[str, Any]) -> str:
    if not about["performance"]:
        return (
            "Not measured for this card. Measure it with `baldur evaluate` (nested "
            "cross-validation) or `baldur validate` (a new cohort), and hand it to `card`."
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
        f"For mean weights, the {what} is the intercept plus weight times value, in the units of "
        "the input; a value beyond the limits counts as the limit."
    ]
    if about["task"] != "regression":
        said.append(
            "The probability is an average over the uncertainty of the weights, and so less "
            "extreme than the log odds of this table alone; the scorers compute it exactly."
        )
    if about["scale"] == "rank":
        said.append("Columns are ranked first: a weight per unit holds at the median alone.")
    if about["steps_before"]:
        said.append("Before that, columns are changed: " + _names(about["steps_before"]) + ".")
    heads = [f"weight ({markdown(o)})" for o in about["outputs"]] if several else ["weight"]
    rows = [
        "| view | feature | " + " | ".join(heads) + " | s.d. | mean | counted from | to |",
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
            _figure(row["lowest_counted"]),
            _figure(row["highest_counted"]),
        ]
        rows.append("| " + " | ".join(cells) + " |")
    if len(about["weights"]) > MOST_ROWS:
        said.append(f"The first {MOST_ROWS} of {len(about['weights']):,} features are listed.")
    return " ".join(said) + "\n\n" + "\n".join(rows)


def _uncertainty(about: dict[str, Any], model: dict[str, Any] | None, reason: str) -> str:
    if model is None:
        return markdown(reason)
    members, features = len(model["members"]), len(model["features"])
    said = (
        f"The posterior is a mixture of {members} Gaussian distributions over {features} weights "
        "and an intercept. `card.json` holds for each member its weight, the mean and the "
        "covariance of the weights (of standardised values: value less mean, times factor), and "
        "the variance added for a view that a person lacks. `score.py`, `score.R` and `score.js` "
        "compute predictions from it and need no other software of ours."
    )
    if members > 12 or features > 12:
        return said
    rows = ["| member | weight | intercept (s.d.) | weights (s.d.) |", "| ---: | --- | --- | --- |"]
    for j, member in enumerate(model["members"]):
        for mean, cov in zip(member["mean"], member["cov"], strict=True):
            sd = [max(row[i], 0.0) ** 0.5 for i, row in enumerate(cov)]
            pairs = [f"{m:.3g} ({s:.2g})" for m, s in zip(mean, sd, strict=True)]
            weight = ", ".join(f"{w:.3g}" for w in member["weight"])
            rows.append(f"| {j + 1} | {weight} | {pairs[0]} | {', '.join(pairs[1:])} |")
    return said + "\n\n" + "\n".join(rows)
