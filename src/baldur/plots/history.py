"""Convergence of a fit: the bound or the relative change, and the active features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.plots.display import Display
from baldur.plots.drawing import empty, legend
from baldur.plots.style import Style, count, number


class HistoryDisplay(Display):
    """The record of a fit, one row per pass.

    Parameters
    ----------
    history : list of dict, or DataFrame
        As `history_` of a fitted model.
    view_names : list of str, optional
        Names of the views whose active features are counted.
    converged : bool, optional
        Whether the fit converged.

    Attributes
    ----------
    table : DataFrame
        run (member of the ensemble, or start of a fit), step within the run, event, bound and
        change where the fit has them, active_features over all views, and active_<view>.

    Examples
    --------
    >>> from baldur.plots import HistoryDisplay
    >>> history = [{"event": "sweep", "bound": -80.0, "active_features": [3, 6]},
    ...            {"event": "sweep", "bound": -52.5, "active_features": [2, 1]}]
    >>> display = HistoryDisplay(history, ["clinic", "genes"], converged=True)
    >>> print(display.alt_text)
    Convergence of a fit over 2 iterations: bound from -80 to -52.5, active features from 9 to
    3, converged.
    """

    def __init__(
        self,
        history: Sequence[dict[str, Any]] | pd.DataFrame,
        view_names: Sequence[str] | None = None,
        converged: bool | None = None,
    ) -> None:
        if isinstance(history, pd.DataFrame) and {"run", "step"} <= set(history.columns):
            table = history.reset_index(drop=True)
        else:
            table = _table(pd.DataFrame(history).to_dict("records"), view_names)
        super().__init__(table)
        self.converged = converged

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the convergence of a fitted model.

        Parameters
        ----------
        model : fitted estimator
        """
        if not hasattr(model, "history_"):
            raise InputError(f"{type(model).__name__} has no record of its fit (history_).")
        return cls(model.history_, model.view_names_, bool(model.converged_))

    @property
    def measure(self) -> str:
        """Quantity of the upper panel: "bound", or "change" for a fit without a bound."""
        return "bound" if self.table["bound"].notna().any() else "change"

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        if not len(self.table):
            return "Convergence of a fit without iterations."
        values = self.table[self.measure].dropna()
        text = f"Convergence of a fit over {count(len(self.table), 'iteration')}"
        if len(values):
            what = "bound" if self.measure == "bound" else "relative change"
            text += f": {what} from {number(values.iloc[0], 4)} to {number(values.iloc[-1], 4)}"
        counts = self.table["active_features"].dropna()
        if len(counts):
            text += f", active features from {counts.iloc[0]:,.0f} to {counts.iloc[-1]:,.0f}"
        if self.converged is not None:
            text += ", converged" if self.converged else ", not converged"
        return text + "."

    def _draw(self, style: Style) -> None:
        """Draw the bound or the change above, and the active features below."""
        counted = bool(self.table["active_features"].notna().any()) if len(self.table) else False
        heights = (1.0, 1.0) if counted else (1.0,)
        height = 2.3 * len(heights) + 0.7
        axes = self._axes(style, height, (1.0,), heights)
        if not len(self.table):
            empty(axes[0], "The fit has no record.", style)
            return
        if self.measure == "change" and not (self.table["change"] > 0).any():
            empty(axes[0], "The fit converged in its first iteration.", style)
            return
        self._measured(axes[0], style)
        if counted:
            self._active(axes[1], style)
            axes[0].tick_params(axis="x", labelbottom=False)
            axes[1].set_xlim(axes[0].get_xlim())
        axes[-1].set_xlabel("Iteration")
        axes[-1].locator_params(axis="x", integer=True)

    def _measured(self, ax: Any, style: Style) -> None:
        handles, names = [], []
        for i, (run, part) in enumerate(self.table.groupby("run", sort=False)):
            known = part[self.measure].notna()
            if not known.any():
                continue
            (drawn,) = ax.plot(
                part["step"][known], part[self.measure][known], color=style.colour(i),
                linestyle=style.line(i), marker=style.marker(i), markersize=3.5,
                markevery=max(1, int(known.sum()) // 12),
            )  # fmt: skip
            handles.append(drawn)
            names.append(str(run))
        if self.measure == "change":
            ax.set_yscale("log")
            ax.set_ylabel("Relative change")
        else:
            ax.set_ylabel("Evidence lower bound (nats)")
        if len(names) > 1:
            self._legend(handles, names, style)

    def _active(self, ax: Any, style: Style) -> None:
        views = [
            c for c in self.table.columns if c.startswith("active_") and c != "active_features"
        ]
        counted = self.table[self.table["active_features"].notna()]
        # Only the first run that counts features: curves of several runs would overlap.
        run = counted["run"].iloc[0]
        part = counted[counted["run"] == run]
        handles, names = [], []
        for i, column in enumerate(views if len(views) > 1 else []):
            (drawn,) = ax.plot(
                part["step"], part[column], color=style.colour(i), linestyle=style.line(i + 1),
                linewidth=1.3,
            )  # fmt: skip
            handles.append(drawn)
            names.append(column.removeprefix("active_"))
        (drawn,) = ax.plot(part["step"], part["active_features"], color=style.ink, linewidth=1.8)
        handles.insert(0, drawn)
        several = self.table["run"].nunique() > 1
        names.insert(0, f"all views ({run})" if several else "all views")
        if part["active_features"].max() > 50:
            ax.set_yscale("symlog", linthresh=1.0)
        ax.set_ylim(bottom=0.0)
        ax.set_ylabel("Active features")
        if len(names) > 1:
            legend(ax, handles[:9], names[:9], style)


def _table(history: list[dict[Any, Any]], view_names: Sequence[str] | None) -> pd.DataFrame:
    rows = []
    steps: dict[str, int] = {}
    for record in history:
        event = str(record.get("event", "sweep"))
        # An ensemble names its members in the event, a mean-field fit names its start.
        stacked = "change" in record and not np.isnan(_number(record.get("change")))
        run = str(record.get("start", event if stacked else "fit"))
        steps[run] = steps.get(run, 0) + 1
        active = record.get("active_features", record.get("features"))
        row: dict[str, Any] = {
            "run": run, "step": steps[run], "event": event,
            "bound": _number(record.get("bound")), "change": _number(record.get("change")),
            "active_features": np.nan,
        }  # fmt: skip
        if isinstance(active, (list, tuple, np.ndarray)):
            row["active_features"] = float(np.sum(active))
            names = view_names or [str(m) for m in range(len(active))]
            row.update({f"active_{v}": float(n) for v, n in zip(names, active, strict=False)})
        rows.append(row)
    columns = ["run", "step", "event", "bound", "change", "active_features"]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
