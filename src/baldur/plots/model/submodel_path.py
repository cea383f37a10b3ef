"""Held-out loss along the submodel path, from no feature to all features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.names import count, number
from baldur.plots.drawing.parts import empty

_STEPS = {"nothing": "no feature", "views": "whole views", "features": "single features"}


class PathDisplay(Display):
    """Difference in held-out loss between each submodel and the ensemble.

    Parameters
    ----------
    path : DataFrame
        As `sparsity_path_` of a fitted model: step, n_views, n_features, loss, loss_difference,
        standard_error, upper, candidate and selected.
    margin : float, optional
        Part of the gain of the ensemble that a candidate may lose; drawn as a line.

    Examples
    --------
    >>> from baldur import BaldurClassifier
    >>> from baldur.datasets import make_multiview
    >>> from baldur.plots import PathDisplay
    >>> made = make_multiview(60, {"clinic": 3, "genes": 6}, informative={"clinic": 2},
    ...                       random_state=0)
    >>> model = BaldurClassifier(members=("pooled",)).fit(made.data, made.target)
    >>> display = PathDisplay.from_estimator(model)
    >>> display.alt_text.split(";")[0]
    "Held-out loss above the ensemble's over 12 submodels of 0 to 9 features"
    >>> display.table.columns[:4].to_list()
    ['step', 'n_views', 'n_features', 'loss']
    """

    def __init__(self, path: pd.DataFrame, margin: float | None = None) -> None:
        super().__init__(path)
        self.margin = margin

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the submodel path of a fitted `BaldurClassifier` or `BaldurRegressor`.

        Parameters
        ----------
        model : fitted estimator

        Returns
        -------
        PathDisplay
        """
        path = getattr(model, "sparsity_path_", None)
        if path is None:
            raise InputError(
                f"{type(model).__name__} has no submodel path: only BaldurClassifier and "
                "BaldurRegressor have one."
            )
        return cls(path, margin=float(model.margin))

    @property
    def allowed(self) -> float:
        """Largest loss difference that a candidate may have; NaN where it is not known.

        This is the margin times the gain of the ensemble over the submodel without features.
        """
        nothing = self.table[self.table["step"] == "nothing"]
        if self.margin is None or not len(nothing):
            return float("nan")
        return self.margin * max(float(nothing["loss_difference"].iloc[0]), 0.0)

    @property
    def selected(self) -> pd.Series | None:
        """The selected submodel; None where no row is marked."""
        chosen = self.table[self.table["selected"].astype(bool)]
        return None if not len(chosen) else chosen.iloc[-1]

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        if not len(self.table):
            return "Submodel path without steps."
        text = f"Held-out loss above the ensemble's over {len(self.table)} submodels"
        low, high = self.table["n_features"].min(), self.table["n_features"].max()
        text += f" of {low:,} to {high:,} features"
        if self.selected is not None:
            text += (
                f"; the selected one has {count(int(self.selected['n_features']), 'feature')} in "
                f"{count(int(self.selected['n_views']), 'view')} and a loss difference of "
                f"{number(self.selected['loss_difference'])} from the ensemble, with an upper "
                f"95 % bound of {number(self.selected['upper'])}"
            )
        if np.isfinite(self.allowed):
            text += f", where {number(self.allowed)} is allowed"
        return text + "."

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw each submodel with its upper 95 % bound.

        Filled markers are candidates; a ring marks the selected submodel.
        """
        with self._drawing(ax, theme, width, 3.9) as (axes, style):
            main = axes[0]
            if not len(self.table):
                empty(main, "There is no submodel path.", style)
                return
            main.axhline(0.0, color=style.ink, linewidth=1.0, zorder=0)
            handles, names = [main.lines[-1]], ["ensemble"]
            if np.isfinite(self.allowed):
                main.axhline(self.allowed, color=style.ink, linewidth=1.0, linestyle=":", zorder=0)
                handles.append(main.lines[-1])
                names.append("largest allowed")
            for i, (step, said) in enumerate(_STEPS.items()):
                part = self.table[self.table["step"] == step].sort_values("n_features")
                if not len(part):
                    continue
                handles.append(self._steps(main, part, i, style))
                names.append(said)
            if self.selected is not None:
                (ring,) = main.plot(
                    [self.selected["n_features"]], [self.selected["loss_difference"]], marker="o",
                    markersize=15, markerfacecolor="none", markeredgecolor=style.ink,
                    markeredgewidth=1.8, linestyle="none", zorder=4,
                )  # fmt: skip
                handles.append(ring)
                names.append(f"selected ({int(self.selected['n_features']):,})")
            main.set_xscale("symlog", linthresh=1.0, linscale=0.5)
            self._ticks(main)
            main.set_xlabel("Features")
            main.set_ylabel("Held-out loss minus ensemble's")
            self._legend(handles, names, style)

    def _steps(self, ax: Any, part: pd.DataFrame, i: int, style: Any) -> Any:
        x = part["n_features"].to_numpy(dtype=float)
        y = part["loss_difference"].to_numpy(dtype=float)
        upper = part["upper"].to_numpy(dtype=float)
        known = np.isfinite(upper)
        colour = style.colour(i)
        ax.vlines(x[known], y[known], upper[known], color=colour, linewidth=1.0, alpha=0.8)
        ax.plot(x[known], upper[known], linestyle="none", marker="_", markersize=6, color=colour)
        (line,) = ax.plot(x, y, color=colour, linestyle=style.line(i), linewidth=1.0, zorder=2)
        candidate = part["candidate"].astype(bool).to_numpy()
        for mask, fill in ((candidate, colour), (~candidate, style.ground)):
            ax.plot(
                x[mask], y[mask], linestyle="none", marker=style.marker(i), markersize=6,
                markerfacecolor=fill, markeredgecolor=colour, zorder=3,
            )  # fmt: skip
        line.set_marker(style.marker(i))
        line.set_markersize(6)
        line.set_markevery([])
        return ax.lines[-2]

    def _ticks(self, ax: Any) -> None:
        most = float(self.table["n_features"].max())
        powers = [10.0**k for k in range(int(np.log10(max(most, 1.0))) + 1)]
        # Below a thousand features there is room for 3, 30 and 300 too.
        powers += [3 * p for p in powers if most < 1000 and 3 * p <= most]
        ticks = [0.0, *sorted(powers)]
        ax.set_xticks(ticks, [f"{int(t):,}" for t in ticks])
        ax.minorticks_off()
        ax.set_xlim(-0.4, max(most, 1.0) * 1.6)
