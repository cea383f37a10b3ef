"""HTML of a fitted estimator for notebooks: what it found, below scikit-learn's own diagram."""

from __future__ import annotations

from html import escape
from typing import Any

from baldur.estimators.summary import STRONGEST

COLUMNS = ("view", "feature", "output", "weight_scaled", "lower", "upper", "inclusion_probability")
"""Columns of the summary that are shown; `summary()` has the others."""


def results_html(model: Any) -> str:
    """Return evidence of signal, views and the strongest selected features as HTML.

    Every text that comes from the data is escaped.
    """
    summary = model.summary()
    lines = [f"<p>{escape(line)}</p>" for line in summary.heading.splitlines()]
    shown = summary.head(STRONGEST)
    if len(shown):
        columns = [name for name in COLUMNS if name in shown]
        lines.append(shown[columns].to_html(index=False, float_format="%.3g", border=0))
    if len(summary) > len(shown):
        more = len(summary) - len(shown)
        lines.append(f"<p>{more:,} more rows are in <code>model.summary()</code>.</p>")
    return f'<div class="baldur-results">{"".join(lines)}</div>'
