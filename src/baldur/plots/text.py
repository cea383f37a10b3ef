"""Names and numbers as figures write them: short, on one line, and different where they differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from baldur.core.escape import one_line
from baldur.evaluation.metrics import METRICS

ESTIMATE = ("low", "estimate", "high")
"""Columns of an estimate with its interval."""

# Shares of a shortened name that its beginning takes. The first one under which all names of a
# figure differ is used, so that the beginning is kept wherever it tells the names apart.
_HEADS = (2 / 3, 1 / 2, 1 / 3, 0.0)


def plain(text: Any, most: int = 120) -> str:
    """Return a name on one line, its middle left out where it is longer than `most`."""
    return _cut(_line(text), most, _HEADS[0])


def label(text: Any, most: int = 28) -> str:
    """Return a name that matplotlib draws as text: at most so long, no formula, not hidden."""
    return _drawn_as_text(plain(text, most))


def short_names(names: Sequence[Any], most: int, heads: Sequence[float] = _HEADS) -> list[str]:
    """Return names of at most `most` characters, so that different names stay different.

    Names that are short enough are not changed. The others lose words that they all share, or else
    their middle or their beginning, whichever keeps them apart. Names that differ only where none
    of this shows it are numbered.
    """
    lines = [_line(name) for name in names]
    n_different = len(set(lines))
    cut = lines
    for cut in _ways_to_shorten(lines, most, heads):
        if len(set(cut)) == n_different and max(map(len, cut), default=0) <= most:
            break  # otherwise the last way stays, and numbers tell the names apart
    return [_drawn_as_text(text) for text in _numbered(lines, cut, most)]


def _ways_to_shorten(
    lines: Sequence[str], most: int, heads: Sequence[float]
) -> Iterator[list[str]]:
    """Yield the lines shortened in one way after the other; `heads` are shares of beginnings."""
    shorter = list(lines)
    for shorter in _without_shared_words(lines, most):
        yield shorter
    # The last of these lacks every shared word.
    for uncut in (lines, shorter):
        for head in heads:
            yield [_cut(line, most, head) for line in uncut]


def full_name(view: Any, feature: Any) -> str:
    """Return a feature with its view before it, unless its name begins with that already."""
    view, feature = str(view), str(feature)
    if not view or feature.startswith((f"{view}_", f"{view}:", f"{view}.")):
        return feature
    return f"{view}: {feature}"


def feature_labels(pairs: Sequence[tuple[Any, Any]], most: int) -> list[str]:
    """Return labels for features, given as pairs of view and feature, that stay different.

    The view is left out where all features are of one view. In a label that is too long the view
    is shortened to a third of it first, because readers look for the feature.
    """
    views = list(dict.fromkeys(str(view) for view, _ in pairs))
    if len(views) <= 1:
        return short_names([feature for _, feature in pairs], most)
    short = dict(zip(views, short_names(views, max(6, most // 3), (1.0, *_HEADS)), strict=True))
    whole = [full_name(view, feature) for view, feature in pairs]
    labels = {text: _drawn_as_text(text) for text in whole if len(text) <= most}
    for view in views:
        # The labels of this view that are too long, and the features in them.
        long = {
            text: text.removeprefix(f"{view}: ")
            for text, (of, _) in zip(whole, pairs, strict=True)
            if str(of) == view and text not in labels
        }
        room = most - len(short[view]) - 2  # without the view and ": "
        for text, cut in zip(long, short_names(list(long.values()), room), strict=True):
            labels[text] = f"{short[view]}: {cut}"
    return [labels[text] for text in whole]


def number(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, without an exponent where that is short."""
    if not np.isfinite(value):
        return "unknown" if np.isnan(value) else ("infinite" if value > 0 else "minus infinite")
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e9:
        text = f"{value:,.0f}" if abs(value) >= 1 else f"{value:.6f}".rstrip("0")
    return "0" if text in ("-0", "0.000000") else text


def metric_axis(metric: str, name: str | None = None, between: str = "\n") -> str:
    """Return the title of the axis of a metric, which says the better direction."""
    up = metric not in METRICS or METRICS[metric].greater_is_better
    return f"{name or metric_name(metric)}{between}{'better →' if up else '← better'}"


def metric_name(metric: str) -> str:
    """Return the name of a metric on an axis."""
    names = {"balanced_accuracy": "Balanced accuracy", "brier": "Brier score", "r2": "R²",
             "loss": "Loss"}  # fmt: skip
    return names.get(metric) or (METRICS[metric].heading if metric in METRICS else metric)


def with_interval(row: Mapping[Any, Any], columns: Sequence[str] = ESTIMATE) -> str:
    """Return "0.84 (0.76 to 0.92)" for the estimate of a row with its interval."""
    low, middle, high = (number(row[c]) for c in columns)
    return f"{middle} ({low} to {high})"


def listed(texts: Sequence[str]) -> str:
    """Return the first three texts, with a note where there are more."""
    return "; ".join(texts[:3]) + (", and more" if len(texts) > 3 else "")


def sample_names(X: Any) -> list[str]:
    """Return the ids of the samples of a MultiView or DataFrame, or the numbers of the rows."""
    ids = getattr(X, "sample_ids", getattr(X, "index", None))
    return [str(name) for name in (range(len(X)) if ids is None else ids)]


def _line(text: Any) -> str:
    return one_line(str(text)[:4000])


def _drawn_as_text(line: str) -> str:
    """Return text that is not read as a formula, nor left out of legends for its underscore."""
    safe = line.replace("$", r"\$")
    return f" {safe}" if safe.startswith("_") else safe


def _cut(line: str, most: int, head: float) -> str:
    """Return a line of at most `most` characters, this share of them from its beginning."""
    if len(line) <= most:
        return line
    first = int((most - 1) * head)
    # Words may have been left out of the line already: two marks beside each other become one.
    return re.sub("…+", "…", f"{line[:first]}…{line[len(line) - (most - 1 - first) :]}")


def _without_shared_words(lines: Sequence[str], most: int) -> Iterator[list[str]]:
    """Yield the lines; in those that are too long, one more word that they share is left out."""
    yield list(lines)
    long = {line: re.split(r"([\W_]+)", line) for line in lines if len(line) > most}
    if len(long) < 2:
        return
    first, *others = long.values()
    left_out: set[str] = set()
    for word in dict.fromkeys(first):
        if not word.isalnum() or not all(word in words for words in others):
            continue
        left_out.add(word)
        # A zero byte marks each word that is left out; marks beside each other become one ellipsis.
        shorter = {
            line: re.sub(
                r"[\W_]*\0[\W_]*", "…", "".join("\0" if w in left_out else w for w in words)
            )
            for line, words in long.items()
        }
        yield [shorter.get(line, line) for line in lines]


def _numbered(lines: Sequence[str], cut: Sequence[str], most: int) -> list[str]:
    """Return the texts, with a number of its own where different lines have the same text."""
    texts = dict(zip(lines, cut, strict=True))
    shared = Counter(texts.values())
    numbers: dict[str, int] = {}
    for line, text in texts.items():
        if shared[text] > 1:
            numbers[line] = len(numbers) + 1
    return [
        f"{text[: most - 4]} #{numbers[line]}" if line in numbers else text
        for line, text in zip(lines, cut, strict=True)
    ]
