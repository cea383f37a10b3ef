"""How figures look: colours that everybody tells apart, marks for grey, themes, and safe text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.safety.escape import one_line

__all__ = ["THEMES", "Style", "label", "number", "plain", "style_of"]

# Okabe and Ito's colours, which people with any common colour blindness tell apart. Those that are
# pale on white come last; yellow, which is lost there, is left out.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# In grey, and beyond six of a kind, the shape of the mark and of the line tell them apart.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2)))
_HATCHES = ("", "///", "...", "\\\\\\", "xxx", "+++", "ooo", "---")

WIDTH = 5.2
"""Inches. A page shows it at 500 pixels; scaled to a phone of 360, text has still 10 pixels."""
NARROWEST = 2.4
# Inches a character of tick labels takes, about.
_CHARACTER = 0.082


@dataclass(frozen=True)
class Style:
    """Colours and sizes of one figure.

    Attributes
    ----------
    ink : str
        Text, axes and what stands for itself.
    faint : str
        Lines of reference, what was not kept.
    ground : str
        Background, or "none".
    width : float
        Inches.
    """

    ink: str = "#1a1a1a"
    faint: str = "#767676"
    ground: str = "white"
    width: float = WIDTH

    @property
    def size(self) -> float:
        """Points of plain text."""
        return 10.5 if self.width >= 4.2 else 9.0

    @property
    def narrow(self) -> bool:
        """Whether the figure is drawn for a phone."""
        return self.width < 4.2

    def colour(self, i: int) -> str:
        """Return the colour of the i-th thing."""
        return _PALETTE[i % len(_PALETTE)]

    def marker(self, i: int) -> str:
        """Return its mark."""
        return _MARKERS[i % len(_MARKERS)]

    def line(self, i: int) -> Any:
        """Return its line."""
        # Shifted by one on every round of the colours, so that no pair comes twice soon.
        return _LINES[(i + i // len(_PALETTE)) % len(_LINES)]

    def hatch(self, i: int) -> str:
        """Return its filling."""
        return _HATCHES[i % len(_HATCHES)]

    def characters(self, share: float = 0.38) -> int:
        """Return how many characters of a name fit into a share of the width."""
        return max(12, int(self.width * share / (_CHARACTER * self.size / 10.5)))

    def columns(self, names: Sequence[str], most: int = 4) -> int:
        """Return in how many columns a legend of these names fits."""
        longest = max((len(name) for name in names), default=1) + 8
        return int(np.clip(self.characters(1.0) // longest, 1, min(most, max(1, len(names)))))

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
    # Grey that has the contrast text needs (4.5 to 1) on white and on black alike.
    "both": Style(ink="#767676", faint="#8a8a8a", ground="none"),
}
"""For white pages, dark pages, and transparent for either."""


def style_of(theme: str | None, width: float | None, ax: Any = None) -> Style:
    """Return the style of a figure.

    Parameters
    ----------
    theme : {"light", "dark", "both"}, optional
        Default "light"; on axes that were given, their own colour of text.
    width : float, optional
        Inches.
    ax : matplotlib Axes, optional
        Where it is drawn.

    Returns
    -------
    Style
    """
    if theme is not None and theme not in THEMES:
        raise InputError(f"theme must be one of {tuple(THEMES)}, but got {theme!r}.")
    found = THEMES[theme or "light"]
    if ax is not None:
        box = ax.get_window_extent()
        inches = float(box.width / ax.figure.dpi)
        ink = ax.xaxis.label.get_color() if theme is None else found.ink
        return Style(str(ink), found.faint, found.ground, width or max(inches, NARROWEST))
    if width is not None and not NARROWEST <= width <= 40:
        raise InputError(f"width must lie between {NARROWEST} and 40 inches, but got {width!r}.")
    return Style(found.ink, found.faint, found.ground, width or WIDTH)


def plain(text: Any, most: int = 60) -> str:
    """Return a name on one line, its middle left out where it is longer than `most`."""
    line = one_line(str(text)[:4000])
    if len(line) <= most:
        return line
    head = (most - 1) * 2 // 3
    return f"{line[:head]}…{line[len(line) - (most - 1 - head) :]}"


def label(text: Any, most: int = 28) -> str:
    """Return a name for a figure: short, on one line, never run as mathematics or hidden."""
    made = plain(text, most).replace("$", r"\$")
    # Matplotlib leaves names that begin with an underscore out of legends.
    return f" {made}" if made.startswith("_") else made


def number(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits, without an exponent where that is short."""
    if not np.isfinite(value):
        return "unknown" if np.isnan(value) else ("infinite" if value > 0 else "minus infinite")
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e9:
        text = f"{value:,.0f}" if abs(value) >= 1 else f"{value:.6f}".rstrip("0")
    return "0" if text in ("-0", "0.000000") else text
