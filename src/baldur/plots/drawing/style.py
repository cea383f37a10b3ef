"""How figures look: colours for the colour-blind, markers for grey prints, sizes and themes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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

    def columns(self, names: Sequence[str], most: int = 4) -> int:
        """Return the number of columns in which a legend of these names fits."""
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
    # A grey with the contrast that text needs (4.5 to 1) on white and on black.
    "both": Style(ink="#767676", faint="#8a8a8a", ground="none"),
}
"""Name of a theme to its style; "both" is transparent and legible on white and on black."""


def style_of(theme: str | None, width: float | None, ax: Any = None) -> Style:
    """Return the style of a figure."""
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
