"""How a model was fitted: submodel path, accuracy by number of features or cost, convergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.estimators.summary import few_features_table
from baldur.evaluation.selected_features import AS_SELECTED
from baldur.exceptions import InputError
from baldur.plots.display import Display, results_of, rows_of_model
from baldur.plots.style import Style, points
from baldur.plots.text import label, metric_name, number, with_interval
from baldur.views.validate import counted

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

    nothing = ("Submodel path without steps.", "There is no submodel path.")

    def __init__(self, path: pd.DataFrame, margin: float | None = None) -> None:
        super().__init__(path)
        self.margin = margin

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the submodel path of a fitted `BaldurClassifier` or `BaldurRegressor`."""
        path = getattr(model, "sparsity_path_", None)
        if path is None:
            raise _no_path(model)
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

    def _sentence(self) -> str:
        """Return the alternative text: the range of submodels, and the selected one."""
        text = f"Held-out loss above the ensemble's over {len(self.table)} submodels"
        low, high = self.table["n_features"].min(), self.table["n_features"].max()
        text += f" of {low:,} to {high:,} features"
        if self.selected is not None:
            text += (
                f"; the selected one has {counted(int(self.selected['n_features']), 'feature')} in "
                f"{counted(int(self.selected['n_views']), 'view')} and a loss difference of "
                f"{number(self.selected['loss_difference'])} from the ensemble, with an upper "
                f"95 % bound of {number(self.selected['upper'])}"
            )
        if np.isfinite(self.allowed):
            text += f", where {number(self.allowed)} is allowed"
        return text + "."

    def _draw(self, style: Style) -> None:
        """Draw each submodel with its upper 95 % bound.

        Filled markers are candidates; a ring marks the selected submodel.
        """
        main = self._axes(style, 3.9)[0]
        look: dict[str, Any] = {"color": style.ink, "linewidth": 1.0, "zorder": 0}
        handles, names = [main.axhline(0.0, **look)], ["ensemble"]
        if np.isfinite(self.allowed):
            handles.append(main.axhline(self.allowed, linestyle=":", **look))
            names.append("largest allowed")
        for i, (step, name) in enumerate(_STEPS.items()):
            part = self.table[self.table["step"] == step].sort_values("n_features")
            if len(part):
                handles.append(self._steps(main, part, i, style))
                names.append(name)
        if self.selected is not None:
            handles += main.plot(
                [self.selected["n_features"]], [self.selected["loss_difference"]], marker="o",
                markersize=15, markerfacecolor="none", markeredgecolor=style.ink,
                markeredgewidth=1.8, linestyle="none", zorder=4,
            )  # fmt: skip
            names.append(f"selected ({int(self.selected['n_features']):,})")
        main.set_xscale("symlog", linthresh=1.0, linscale=0.5)
        self._ticks(main)
        main.set_xlabel("Features")
        main.set_ylabel("Held-out loss minus ensemble's")
        self._legend(handles, names, style)

    def _steps(self, ax: Any, part: pd.DataFrame, i: int, style: Any) -> Any:
        """Draw the submodels of the i-th kind of step; return the handle of the legend."""
        x = part["n_features"].to_numpy(dtype=float)
        y = part["loss_difference"].to_numpy(dtype=float)
        upper = part["upper"].to_numpy(dtype=float)
        known = np.isfinite(upper)
        colour = style.colour(i)
        ax.vlines(x[known], y[known], upper[known], color=colour, linewidth=1.0, alpha=0.8)
        ax.plot(x[known], upper[known], linestyle="none", marker="_", markersize=6, color=colour)
        ax.plot(x, y, color=colour, linestyle=style.line(i), linewidth=1.0, zorder=2)
        candidate = part["candidate"].astype(bool).to_numpy()
        for mask, fill in ((candidate, colour), (~candidate, style.ground)):
            ax.plot(
                x[mask], y[mask], linestyle="none", marker=style.marker(i), markersize=6,
                markerfacecolor=fill, markeredgecolor=colour, zorder=3,
            )  # fmt: skip
        return ax.lines[-2]  # the markers of the candidates

    def _ticks(self, ax: Any) -> None:
        """Set ticks at 0 and at powers of ten on the axis of numbers of features."""
        most = float(self.table["n_features"].max())
        powers = [10.0**k for k in range(int(np.log10(max(most, 1.0))) + 1)]
        # Below a thousand features there is room for 3, 30 and 300 too.
        powers += [3 * p for p in powers if most < 1000 and 3 * p <= most]
        ticks = [0.0, *sorted(powers)]
        ax.set_xticks(ticks, [f"{int(t):,}" for t in ticks])
        ax.minorticks_off()
        ax.set_xlim(-0.4, max(most, 1.0) * 1.6)


def _no_path(model: Any) -> InputError:
    return InputError(
        f"{type(model).__name__} has no submodel path: only BaldurClassifier and BaldurRegressor "
        "have one."
    )


class AccuracyDisplay(Display):
    """Accuracy at several limits: a panel per metric, points with 95 % intervals."""

    columns = ("limit", "metric", "estimate", "low", "high", "chance")
    _xlabel = ""

    def __init__(self, table: pd.DataFrame) -> None:
        super().__init__(table)
        self.nothing = (
            f"Accuracy by {self._xlabel.lower()}, without points.",
            "The model has no submodels.",
        )

    @classmethod
    def _from_fit(cls, model: Any, fit: pd.DataFrame, limits: list[str]) -> Self:
        """Show a table of a fitted model, which has a row per limit, with AUC (or R2) and loss."""
        metric = "r2" if "r2" in fit else "auc"
        path = model.sparsity_path_
        base_loss = float(path[path["step"] == "nothing"]["loss"].iloc[0])
        parts = []
        for name, chance in ((metric, 0.0 if metric == "r2" else 0.5), ("loss", base_loss)):
            part = fit[[f"{name}_lower", name, f"{name}_upper"]].astype(float)
            part = part.set_axis(["low", "estimate", "high"], axis=1)
            parts.append(part.assign(limit=limits, metric=name, chance=chance))
        return cls(pd.concat(parts)[list(cls.columns)])

    @property
    def metrics(self) -> list[str]:
        """The metrics shown, in their order."""
        return list(dict.fromkeys(self.table["metric"].astype(str)))

    def _sentence(self) -> str:
        """Return the alternative text: the first metric at each limit."""
        metric = self.metrics[0]
        rows = self.table[self.table["metric"] == metric].to_dict("records")
        texts = "; ".join(f"{row['limit']}: {with_interval(row)}" for row in rows)
        return f"{metric_name(metric)} by {self._xlabel.lower()}, with 95 % intervals: {texts}."

    def _draw(self, style: Style) -> None:
        """Draw a panel per metric with a point and its interval for each number."""
        axes = self._panels(style, len(self.metrics), 2.6 if style.narrow else 3.2)
        for panel, metric in zip(axes, self.metrics, strict=True):
            self._panel(panel, metric, style)

    def _panel(self, ax: Any, metric: str, style: Style) -> None:
        """Draw one metric with its interval at each limit, and the value that chance gives."""
        part = self.table[self.table["metric"] == metric]
        at = np.arange(len(part))
        points(ax, part, at, style.colour(0), upright=True, linestyle="-", linewidth=1.0)
        chance = part["chance"].to_numpy(dtype=float)
        if len(chance) and np.isfinite(chance[0]):
            style.reference_line(ax, chance[0], upright=False)
        texts = [str(text).replace(AS_SELECTED, "sel.") for text in part["limit"]]
        style.name_columns(ax, texts, 0.8 if style.narrow else 0.8 / len(self.metrics))
        ax.set_xlim(-0.5, len(at) - 0.5)
        ax.set_xlabel(self._xlabel)
        ax.set_ylabel(label(metric_name(metric)))


class FewFeaturesDisplay(AccuracyDisplay):
    """Held-out accuracy with 1, 2, 3, 5, 10, 20 features and without a limit.

    Parameters
    ----------
    table : DataFrame
        limit, metric, estimate, low, high, chance; one row per number of features and metric.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import FewFeaturesDisplay
    >>> table = pd.DataFrame({"limit": ["1", "5", "all"], "metric": "auc", "chance": 0.5,
    ...                       "estimate": [0.7, 0.82, 0.84], "low": [0.6, 0.73, 0.75],
    ...                       "high": [0.8, 0.91, 0.93]})
    >>> print(FewFeaturesDisplay(table).alt_text)
    AUC by largest number of features, with 95 % intervals: 1: 0.7 (0.6 to 0.8); 5: 0.82 (0.73
    to 0.91); all: 0.84 (0.75 to 0.93).
    """

    _xlabel = "Largest number of features"

    @classmethod
    def from_result(cls, result: Any, model: str | None = None) -> Self:
        """Show the outer folds of a model, by default of the first with submodels."""
        rows, _ = rows_of_model(results_of(result), "few_features", model, "submodels")
        return cls(rows[list(cls.columns)])

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the inner folds of a fitted `BaldurClassifier` or `BaldurRegressor`."""
        fit = few_features_table(model)
        if not len(fit):
            raise _no_path(model)
        limits = [f"{n:,}" for n in fit["n_features"][:-1]]
        return cls._from_fit(model, fit, [*limits, "all"])


class CostDisplay(AccuracyDisplay):
    """Held-out accuracy by what has been paid for, in the order by gain per cost.

    Parameters
    ----------
    table : DataFrame
        limit (the cost so far), metric, estimate, low, high, chance.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import CostDisplay
    >>> table = pd.DataFrame({"limit": ["10", "250"], "metric": "auc", "chance": 0.5,
    ...                       "estimate": [0.7, 0.82], "low": [0.6, 0.73], "high": [0.8, 0.91]})
    >>> print(CostDisplay(table).alt_text)
    AUC by cost so far, with 95 % intervals: 10: 0.7 (0.6 to 0.8); 250: 0.82 (0.73 to 0.91).
    """

    _xlabel = "Cost so far"

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show `cost_path_` of a `BaldurClassifier` or `BaldurRegressor` fitted with costs."""
        path = getattr(model, "cost_path_", pd.DataFrame())
        if not len(path):
            raise InputError(f"{type(model).__name__} was fitted without costs.")
        return cls._from_fit(model, path, [f"{cost:g}" for cost in path["cost"]])


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

    columns = ("run", "step", "event", "bound", "change", "active_features")
    nothing = ("Convergence of a fit without iterations.", "The fit has no record.")

    def __init__(
        self,
        history: Sequence[dict[str, Any]] | pd.DataFrame,
        view_names: Sequence[str] | None = None,
        converged: bool | None = None,
    ) -> None:
        is_table = isinstance(history, pd.DataFrame) and {"run", "step"} <= set(history)
        super().__init__(pd.DataFrame(history) if is_table else _table(history, view_names))
        self.converged = converged

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the convergence of a fitted model."""
        if not hasattr(model, "history_"):
            raise InputError(f"{type(model).__name__} has no record of its fit (history_).")
        return cls(model.history_, model.view_names_, bool(model.converged_))

    @property
    def measure(self) -> str:
        """Quantity of the upper panel: "bound", or "change" for a fit without a bound."""
        return "bound" if self.table["bound"].notna().any() else "change"

    def _sentence(self) -> str:
        """Return the alternative text: the first and last bound and active features."""
        values = self.table[self.measure].dropna()
        text = f"Convergence of a fit over {counted(len(self.table), 'iteration')}"
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
        has_counts = bool(self.table["active_features"].notna().any())
        heights = (1.0, 1.0) if has_counts else (1.0,)
        height = 2.3 * len(heights) + 0.7
        axes = self._axes(style, height, (1.0,), heights)
        if self.measure == "change" and not (self.table["change"] > 0).any():
            style.empty(axes[0], "The fit converged in its first iteration.")
            return
        self._measured(axes[0], style)
        if has_counts:
            self._active(axes[1], style)
            axes[0].tick_params(axis="x", labelbottom=False)
            axes[1].set_xlim(axes[0].get_xlim())
        axes[-1].set_xlabel("Iteration")
        axes[-1].locator_params(axis="x", integer=True)

    def _measured(self, ax: Any, style: Style) -> None:
        """Draw the bound, or the change, of each run by iteration."""
        handles, names = [], []
        for i, (run, part) in enumerate(self.table.groupby("run", sort=False)):
            known = part[self.measure].notna()
            if not known.any():
                continue
            handles += ax.plot(
                part["step"][known], part[self.measure][known], color=style.colour(i),
                linestyle=style.line(i), marker=style.marker(i), markersize=3.5,
                markevery=max(1, int(known.sum()) // 12),
            )  # fmt: skip
            names.append(str(run))
        if self.measure == "change":
            ax.set_yscale("log")
            ax.set_ylabel("Relative change")
        else:
            ax.set_ylabel("Evidence lower bound (nats)")
        if len(names) > 1:
            self._legend(handles, names, style)

    def _active(self, ax: Any, style: Style) -> None:
        """Draw the number of active features by iteration, over all views and of each."""
        views = [
            c for c in self.table.columns if c.startswith("active_") and c != "active_features"
        ]
        with_counts = self.table[self.table["active_features"].notna()]
        # Only the first run that counts features: curves of several runs would overlap.
        run = with_counts["run"].iloc[0]
        part = with_counts[with_counts["run"] == run]
        several = self.table["run"].nunique() > 1
        names = [f"all views ({run})" if several else "all views"]
        x = part["step"]
        handles = ax.plot(x, part["active_features"], color=style.ink, linewidth=1.8, zorder=2.1)
        for i, column in enumerate(views if len(views) > 1 else []):
            look = {"color": style.colour(i), "linestyle": style.line(i + 1), "linewidth": 1.3}
            handles += ax.plot(x, part[column], **look)
            names.append(column.removeprefix("active_"))
        if part["active_features"].max() > 50:
            ax.set_yscale("symlog", linthresh=1.0)
        ax.set_ylim(bottom=0.0)
        ax.set_ylabel("Active features")
        if len(names) > 1:
            style.legend(ax, handles[:9], names[:9])


def _table(history: Any, view_names: Sequence[str] | None) -> pd.DataFrame:
    """Return a history as the table of `HistoryDisplay`, a row for each record."""
    records = pd.DataFrame(history).rename(columns={"features": "active_features"})
    table = records.reindex(columns=["event", "bound", "change"])
    table = table.astype({"bound": float, "change": float}).fillna({"event": "sweep"})
    # An ensemble names its members in the event, a mean-field fit names its start.
    run = records.get("start", table["event"].where(table["change"].notna(), "fit"))
    table.insert(0, "run", run.astype(str))
    table.insert(1, "step", table.groupby("run").cumcount() + 1)
    counts = records.reindex(columns=["active_features"])["active_features"].dropna()
    columns = pd.Index(view_names) if view_names else None  # a history may have no counts
    active = pd.DataFrame(counts.tolist(), counts.index, columns, dtype=float)
    table["active_features"] = active.sum(axis=1)
    return table.join(active.add_prefix("active_"))
