"""How figures look: colours for the colour-blind, markers for grey prints, sizes and themes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from baldur.core.escape import one_line
from baldur.core.optional import import_extra
from baldur.exceptions import InputError

# The colours of Okabe and Ito, which can be distinguished with every common colour blindness.
# Those that are pale on white come last; yellow, which cannot be seen there, is left out.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# In grey prints, and beyond six colours, markers and line styles tell the curves apart.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2)))
_HATCHES = ("", "///", "...", "\\\\\\", "xxx", "+++", "ooo", "---")

WIDTH = 5.2
"""Inches. A page shows this at 500 pixels; on a phone of 360 pixels the text still has 10."""
NARROWEST = 2.4
CHARACTER = 0.082
"""Inches that a character of a tick label takes on average, at the full text size."""


@dataclass(frozen=True)
class Style:
    """Colours and sizes of one figure."""

    ink: str = "#1a1a1a"
    faint: str = "#767676"
    ground: str = "white"  # Colour of the background, or "none"
    width: float = WIDTH  # Width of the figure in inches

    @property
    def size(self) -> float:
        """Font size of plain text in points."""
        return 10.5 if self.width >= 4.2 else 9.0

    @property
    def narrow(self) -> bool:
        """Whether the figure is drawn for a phone."""
        return self.width < 4.2

    def colour(self, i: int) -> str:
        """Return the colour of the i-th curve or group."""
        return _PALETTE[i % len(_PALETTE)]

    def marker(self, i: int) -> str:
        """Return the marker of the i-th curve or group."""
        return _MARKERS[i % len(_MARKERS)]

    def line(self, i: int) -> Any:
        """Return the line style of the i-th curve."""
        # Shifted by one whenever the colours repeat, so that no pair of both repeats soon.
        return _LINES[(i + i // len(_PALETTE)) % len(_LINES)]

    def hatch(self, i: int) -> str:
        """Return the hatching of the i-th bar."""
        return _HATCHES[i % len(_HATCHES)]

    def characters(self, share: float = 0.38) -> int:
        """Return how many characters of a name fit into this share of the width."""
        return max(12, int(self.width * share / (CHARACTER * self.size / 10.5)))

    def columns(self, names: Sequence[str]) -> int:
        """Return the number of columns, at most four, in which a legend of these names fits."""
        longest = max((len(name) for name in names), default=1) + 8
        return int(np.clip(self.characters(1.0) // longest, 1, min(4, max(1, len(names)))))

    def rc(self) -> dict[str, Any]:
        """Return the settings of matplotlib that draw in this style."""
        return {
            "axes.edgecolor": self.ink,
            "axes.facecolor": "none",
            "axes.formatter.useoffset": False,
            "axes.grid": False,
            "axes.labelcolor": self.ink,
            "axes.labelsize": self.size,
            "axes.linewidth": 0.8,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": self.ink,
            "axes.titlesize": self.size,
            "figure.edgecolor": "none",
            "figure.facecolor": self.ground,
            "font.size": self.size,
            "grid.color": self.faint,
            "hatch.color": self.ground if self.ground != "none" else "#ffffff",
            "hatch.linewidth": 0.8,
            "legend.fontsize": self.size - 1,
            "legend.frameon": False,
            "legend.labelcolor": self.ink,
            "lines.linewidth": 1.6,
            "savefig.edgecolor": "none",
            "savefig.facecolor": self.ground,
            "text.color": self.ink,
            "text.usetex": False,
            "xtick.color": self.ink,
            "xtick.labelsize": self.size - 1,
            "ytick.color": self.ink,
            "ytick.labelsize": self.size - 1,
        }


THEMES = {
    "light": Style(),
    "dark": Style(ink="#e8e8e8", faint="#9a9a9a", ground="#16181d"),
    # A grey with the contrast that text needs (4.5 to 1) on white and on black.
    "both": Style(ink="#767676", faint="#8a8a8a", ground="none"),
}
"""Name of a theme to its style; "both" is transparent and legible on white and on black."""


def make_style(theme: str | None, width: float | None, ax: Any = None) -> Style:
    """Return the style of a figure."""
    if theme is not None and theme not in THEMES:
        raise InputError(f"theme must be one of {tuple(THEMES)}, but got {theme!r}.")
    style = THEMES[theme or "light"]
    if ax is not None:
        box = ax.get_window_extent()
        inches = float(box.width / ax.figure.dpi)
        ink = ax.xaxis.label.get_color() if theme is None else style.ink
        return replace(style, ink=str(ink), width=width or max(inches, NARROWEST))
    if width is not None and not NARROWEST <= width <= 40:
        raise InputError(f"width must lie between {NARROWEST} and 40 inches, but got {width!r}.")
    return replace(style, width=width or WIDTH)


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
    different = len(set(lines))
    cut = lines
    for cut in _ways_to_shorten(lines, most, heads):
        if len(set(cut)) == different and max(map(len, cut), default=0) <= most:
            break
    return [_drawn_as_text(text) for text in _numbered(lines, cut, most)]


def _ways_to_shorten(
    lines: Sequence[str], most: int, heads: Sequence[float]
) -> Iterator[list[str]]:
    """Yield the lines shortened in one way after the other, the most readable first."""
    short = list(lines)
    for short in _without_shared_words(lines, most):
        yield short
    for whole in (lines, short):
        for head in heads:
            yield [_cut(line, most, head) for line in whole]


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
        long = {
            text: text.removeprefix(f"{view}: ")
            for text, (of, _) in zip(whole, pairs, strict=True)
            if str(of) == view and text not in labels
        }
        room = most - len(short[view]) - 2
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


def count(n: int, word: str) -> str:
    """Return a whole number with its noun: "1 feature", "1,200 features"."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


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
        made = {
            line: re.sub(
                r"[\W_]*\0[\W_]*", "…", "".join("\0" if w in left_out else w for w in words)
            )
            for line, words in long.items()
        }
        yield [made.get(line, line) for line in lines]


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


def matplotlib(module: str = "") -> Any:
    """Return matplotlib, or one of its modules: ``matplotlib("figure")``."""
    return import_extra(f"matplotlib.{module}".rstrip("."), "report", "Drawing figures")


def imaging(module: str) -> Any:
    """Return a module of the libraries for brain images, such as "nilearn.plotting"."""
    return import_extra(module, "imaging", "Drawing brains")
