"""The path from nothing to all features: held-out loss, reference, bound and choice."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.parts import empty, legend
from baldur.plots.drawing.style import number

__all__ = ["PathDisplay"]

_STEPS = {"nothing": "no feature", "views": "whole views", "features": "single features"}


class PathDisplay(Display):
    """Held-out loss of every step of the path, above that of the reference.

    Parameters
    ----------
    path : DataFrame
        As `sparsity_path_` of a fitted model: step, n_views, n_features, loss, loss_difference,
        standard_error, upper, candidate and selected.
    margin : float, optional
        Part of the reference's gain that a candidate may lose; draws that bound.
    """

    def __init__(self, path: pd.DataFrame, margin: float | None = None) -> None:
        super().__init__(pd.DataFrame(path).reset_index(drop=True))
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
        """Loss above the reference that a candidate may have; NaN where it is not known.

        The margin times what the reference gains over the step with no feature.
        """
        nothing = self.table[self.table["step"] == "nothing"]
        if self.margin is None or not len(nothing):
            return float("nan")
        return self.margin * max(float(nothing["loss_difference"].iloc[0]), 0.0)

    @property
    def selected(self) -> pd.Series | None:
        """The step that was selected; None where no step is marked."""
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
                f"; the selected one has {int(self.selected['n_features']):,} features in "
                f"{int(self.selected['n_views'])} views and a loss difference of "
                f"{number(self.selected['loss_difference'])} from the ensemble, with an upper "
                f"95 % bound of {number(self.selected['upper'])}"
            )
        if np.isfinite(self.allowed):
            text += f", where {number(self.allowed)} is allowed"
        return text + "."

    def plot(self, ax: Any = None, *, theme: str | None = None, width: float | None = None) -> Self:
        """Draw every step with its upper 95 % bound; candidates are filled, the choice is ringed.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.

        Returns
        -------
        PathDisplay
        """
        with self._drawing(ax, theme, width, 3.6) as (axes, style):
            main = axes[0]
            if not len(self.table):
                empty(main, "There is no path.", style)
                return self
            main.axhline(0.0, color=style.ink, linewidth=1.0, zorder=0)
            handles, names = [main.lines[-1]], ["reference"]
            if np.isfinite(self.allowed):
                main.axhline(self.allowed, color=style.ink, linewidth=1.0, linestyle=":", zorder=0)
                handles.append(main.lines[-1])
                names.append("most that is allowed")
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
                names.append("selected")
            main.set_xscale("symlog", linthresh=1.0, linscale=0.5)
            self._ticks(main)
            main.set_xlabel("Features")
            main.set_ylabel("Held-out loss above reference")
            legend(main, handles, names, style).set_zorder(5)
        return self

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
        ticks = [0.0, *powers]
        ax.set_xticks(ticks, [f"{int(t):,}" for t in ticks])
        ax.minorticks_off()
        ax.set_xlim(-0.4, max(most, 1.0) * 1.6)
