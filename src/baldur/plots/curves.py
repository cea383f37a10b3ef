"""Curves of several models: ROC, precision-recall, calibration, net benefit and learning curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from baldur.core.limits import one_thread
from baldur.evaluation.clinical.curves import curve_areas, precision_recall_curves, roc_curves
from baldur.evaluation.clinical.decision import TREAT_ALL, TREAT_NONE
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.results import Results
from baldur.plots.display import Display, results_of
from baldur.plots.style import Line, Style, band_text, chosen_models, table_lines
from baldur.plots.text import number, plain

BINS = 20
"""Bins of the histogram: enough to see where the predictions are."""


class CalibrationDisplay(Display):
    """Smooth calibration curves with a 95 % band.

    Parameters
    ----------
    table : DataFrame
        model, class, predicted, observed, low, high; as ``calibration_curve.csv`` has it.
    measures : DataFrame, optional
        model, class, measure, estimate, low, high; as ``calibration.csv`` has it.
    spread : DataFrame, optional
        model, class, left, right, people: a histogram of the predictions.
    regression : bool, default=False
        Whether the predictions are numbers and not probabilities.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import CalibrationDisplay
    >>> table = pd.DataFrame({"model": "ridge", "class": "PD", "predicted": [0.2, 0.5, 0.8],
    ...                       "observed": [0.25, 0.5, 0.7], "low": [0.1, 0.4, 0.5],
    ...                       "high": [0.4, 0.6, 0.9]})
    >>> print(CalibrationDisplay(table).alt_text)
    Smooth calibration curves with a 95 % band: ridge, at most 0.1 from the diagonal.
    """

    columns = ("model", "class", "predicted", "observed", "low", "high")
    nothing = (
        "Calibration without curves: no model gives probabilities.",
        "No model gives probabilities.",
    )

    def __init__(
        self,
        table: pd.DataFrame,
        measures: pd.DataFrame | None = None,
        spread: pd.DataFrame | None = None,
        *,
        regression: bool = False,
    ) -> None:
        super().__init__(table)
        self.measures, self.spread, self.regression = measures, spread, regression

    @classmethod
    def from_result(cls, result: Any, models: Sequence[str] | None = None) -> Self:
        """Show models of a result: six, or the first one of more than two classes, by default."""
        results = results_of(result)
        table = chosen_models(results.table("calibration_curve"), models, "calibration curve")
        spread = _histogram(results.table("predictions"), table, results.classes)
        return cls(table, results.table("calibration"), spread, regression=not results.classes)

    def _slopes(self, lines: Sequence[Line]) -> list[str]:
        """Return the calibration slope of each curve, as text after the name."""
        return [line.note(self.measures, "slope", "slope") for line in lines]

    def _sentence(self) -> str:
        """Return the alternative text: how far each curve is from the diagonal."""
        lines = table_lines(self.table)
        texts = []
        for line, slope in zip(lines, self._slopes(lines), strict=True):
            distance = np.abs(line.rows["observed"] - line.rows["predicted"]).max()
            texts.append(f"{plain(line.name)}{slope}, at most {distance:.2g} from the diagonal")
        return f"Smooth calibration curves{band_text(lines)}: {'; '.join(texts)}."

    def _draw(self, style: Style) -> None:
        """Draw the curves, and below them a histogram of the predictions."""
        lines = table_lines(self.table)
        names, notes = [line.name for line in lines], self._slopes(lines)
        height = style.width * 0.85 + style.legend_height(names, notes)
        if self.spread is None or not len(self.spread):
            main = below = self._axes(style, height)[0]
        else:
            main, below = self._axes(style, height + 0.9, (1.0,), (4.0, 1.0))
            self._people(below, self.spread, lines, style)
            main.tick_params(axis="x", labelbottom=False)
        ends = self._ends()
        main.plot(ends, ends, color=style.faint, linestyle=":", linewidth=1.2, zorder=0)
        handles = style.draw_curves(main, lines, "predicted", "observed")
        main.set_ylim(*ends)
        main.set_ylabel("Observed" if self.regression else "Observed share")
        for ax in {main, below}:
            ax.set_xlim(*ends)
        below.set_xlabel("Predicted" if self.regression else "Predicted probability")
        self._legend(handles, names, style, notes)

    def _ends(self) -> tuple[float, float]:
        """Return the ends of both axes."""
        if not self.regression:
            return -0.01, 1.01
        values = self.table[["predicted", "observed", "low", "high"]].to_numpy(dtype=float)
        values = values[np.isfinite(values)]
        room = 0.03 * max(float(np.ptp(values)), 1e-9)
        return float(values.min()) - room, float(values.max()) + room

    def _people(self, ax: Any, spread: pd.DataFrame, lines: Sequence[Line], style: Style) -> None:
        """Draw the histogram of the predictions of each curve."""
        for i, line in enumerate(lines):
            part = spread[(spread["model"] == line.model) & (spread["class"] == line.target)]
            if len(part):
                edges = np.r_[part["left"].to_numpy(), part["right"].to_numpy()[-1:]]
                ax.stairs(
                    part["people"], edges, color=style.colour(i), linestyle=style.line(i),
                    linewidth=1.2, fill=len(lines) == 1, alpha=0.6 if len(lines) == 1 else 1.0,
                )  # fmt: skip
        ax.set_ylabel("Samples")
        ax.locator_params(axis="y", nbins=2, integer=True)


def _histogram(
    predictions: pd.DataFrame, curves: pd.DataFrame, classes: Sequence[str]
) -> pd.DataFrame | None:
    """Count the samples (the mean over repeats) in bins of the prediction."""
    if not len(predictions) or not len(curves):
        return None
    drawn = predictions[predictions["model"].astype(str).isin(set(curves["model"].astype(str)))]
    ends = (0.0, 1.0)
    if not classes:
        # The same bins for all models, so that their histograms can be compared.
        pooled = drawn["predicted"].to_numpy(dtype=float)
        pooled = pooled[np.isfinite(pooled)]
        ends = (float(pooled.min()), float(pooled.max())) if len(pooled) else ends
    parts = []
    for line in table_lines(curves):
        column = f"p_{line.target}" if classes else "predicted"
        rows = drawn[drawn["model"].astype(str) == line.model]
        if column not in rows or not len(rows):
            continue
        values = rows[column].to_numpy(dtype=float)
        counts, edges = np.histogram(values[np.isfinite(values)], BINS, range=ends)
        repeats = rows["repeat"].nunique() if "repeat" in rows else 1
        bins = {"left": edges[:-1], "right": edges[1:], "people": counts / repeats}
        parts.append(pd.DataFrame({"model": line.model, "class": line.target, **bins}))
    return pd.concat(parts, ignore_index=True) if parts else None


class DecisionDisplay(Display):
    """Net benefit of each model, with treating all and treating none for comparison.

    Parameters
    ----------
    table : DataFrame
        model, threshold, net_benefit, low, high; as ``decision.csv`` has it. The models "treat all"
        and "treat none" are drawn as reference lines.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import DecisionDisplay
    >>> table = pd.DataFrame({"model": ["treat all", "treat none", "ridge"] * 2,
    ...                       "threshold": [0.2] * 3 + [0.5] * 3,
    ...                       "net_benefit": [0.25, 0.0, 0.28, -0.2, 0.0, 0.1],
    ...                       "low": [0.12, 0.0, 0.17, -0.4, 0.0, 0.02],
    ...                       "high": [0.37, 0.0, 0.4, 0.0, 0.0, 0.2]})
    >>> print(DecisionDisplay(table).alt_text)
    Decision curves with a 95 % band: net benefit above treating all or none for ridge at 2 of 2
    thresholds from 0.2 to 0.5, by 0.1 at most.
    """

    columns = ("model", "threshold", "net_benefit", "low", "high")
    nothing = (
        "Decision curves without lines: they need two classes and probabilities.",
        "Decision curves need two classes and probabilities.",
    )

    @classmethod
    def from_result(cls, result: Any, models: Sequence[str] | None = None) -> Self:
        """Show models of a result with two classes, by default the first six."""
        table = results_of(result).table("decision")
        if not len(table):
            return cls(table)
        is_reference = table["model"].isin([TREAT_ALL, TREAT_NONE])
        curves = chosen_models(table[~is_reference], models, "decision curve")
        return cls(pd.concat([table[is_reference], curves]))

    @property
    def _models(self) -> pd.DataFrame:
        return self.table[~self.table["model"].isin([TREAT_ALL, TREAT_NONE])]

    @property
    def _is_empty(self) -> bool:
        return not len(self._models)

    def _sentence(self) -> str:
        """Return the alternative text: at which thresholds each model has a net benefit."""
        lines = table_lines(self._models)
        treated = self.table[self.table["model"] == TREAT_ALL]
        # Treating none has net benefit 0.
        default = np.maximum(treated["net_benefit"].to_numpy(dtype=float), 0.0)
        texts = []
        for line in lines:
            gain = line.rows["net_benefit"].to_numpy(dtype=float) - default
            t = line.rows["threshold"].to_numpy(dtype=float)[gain > 1e-12]
            where = "at no threshold"
            if len(t):
                where = (
                    f"at {len(t)} of {len(gain)} thresholds from {t.min():g} to {t.max():g}, by "
                    f"{number(gain.max())} at most"
                )
            texts.append(f"{plain(line.name)} {where}")
        return (
            f"Decision curves{band_text(lines)}: net benefit above treating all or none for "
            f"{'; '.join(texts)}."
        )

    def _draw(self, style: Style) -> None:
        """Draw the curves, and the 95 % band of the first model."""
        lines = table_lines(self._models)
        names = [line.name for line in lines]
        height = style.width * 0.62 + style.legend_height([*names, TREAT_ALL, TREAT_NONE])
        main = self._axes(style, height)[0]
        handles = style.draw_curves(main, lines, "threshold", "net_benefit")
        for name, look in ((TREAT_ALL, ":"), (TREAT_NONE, "-")):
            part = self.table[self.table["model"] == name]
            handles += main.plot(
                part["threshold"], part["net_benefit"], color=style.ink, linestyle=look,
                linewidth=1.0, zorder=1,
            )  # fmt: skip
            names.append(name)
        # In this order, 0.02 is returned where every net benefit is missing.
        top = max(0.02, float(self.table["net_benefit"].max()))
        # Curves far below zero would take the space of the useful ones.
        main.set_ylim(-0.25 * top, 1.15 * top)
        main.set_xlim(0.0, 1.0)
        main.set_xlabel("Threshold probability")
        main.set_ylabel("Net benefit")
        self._legend(handles, names, style)


LEAST_RESAMPLES = 100
"""Fewest that the bootstrap takes, for curves whose band is not drawn."""


class RankingDisplay(Display):
    """One curve per model or class, a band for the first model, and the areas under the curves."""

    curves: ClassVar[Callable[..., pd.DataFrame]]
    title: ClassVar[str]
    labels: ClassVar[tuple[str, str]]
    area: ClassVar[tuple[str, str, str]]
    """Measure of the area in the table of areas, its name, and its short name in a legend."""

    def __init__(self, table: pd.DataFrame, areas: pd.DataFrame | None = None) -> None:
        super().__init__(table)
        self.areas = areas
        self.nothing = (
            f"{self.title} without lines: no model has scores of classes.",
            "No model has scores of classes.",
        )

    @classmethod
    def from_predictions(
        cls,
        predictions: pd.DataFrame,
        *,
        classes: Sequence[str] | None = None,
        models: Sequence[str] | None = None,
        resamples: int = 2000,
    ) -> Self:
        """Compute the curves from held-out predictions.

        Parameters
        ----------
        predictions : DataFrame
            As ``predictions.csv``.
        classes : list of str, optional
            All classes, the positive one last.
        models : list of str, optional
            Default: the first six, or only the first one where there are more than two classes.
        resamples : int, default=2000
            Number of bootstrap samples for the bands.
        """
        rows = chosen_models(predictions, models, cls.title, classes)
        record = {} if classes is None else {"classes": classes}
        results = Results(tables={"predictions": rows}, record=record)
        return cls.from_result(results, models, resamples)

    @classmethod
    def from_result(
        cls, result: Any, models: Sequence[str] | None = None, resamples: int = 2000
    ) -> Self:
        """Show models of a result; `models` and `resamples` are as in `from_predictions`."""
        results = results_of(result)
        # Predictions without classes are those of numbers, or lack columns, which are then named.
        classes = results.classes or None
        rows = chosen_models(results.table("predictions"), models, cls.title, classes)
        if not len(rows):
            return cls(pd.DataFrame())
        first, *others = dict.fromkeys(rows["model"].astype(str))
        with one_thread():
            resampled = results.resampled
            table = cls.curves(resampled.only([first], resamples))
            if others:
                # Only the first model has a band, which takes most of the time.
                curves = cls.curves(resampled.only(others, LEAST_RESAMPLES))
                table = pd.concat([table, curves.assign(low=np.nan, high=np.nan)])
            drawn = resampled.only([first, *others], resamples)
            areas = curve_areas(drawn, measures=cls.area[:1])
        return cls(table, areas)

    def _sentence(self) -> str:
        """Return the alternative text: the area under each curve."""
        lines = table_lines(self.table)
        notes = self._areas(lines, self.area[1])
        listed = "; ".join(f"{plain(o.name)}{note}" for o, note in zip(lines, notes, strict=True))
        return f"{self.title}{band_text(lines)}{self._chance_text()}: {listed}."

    def _areas(self, lines: Sequence[Line], name: str) -> list[str]:
        """Return the area under each curve with its interval, as text after the name."""
        return [line.note(self.areas, self.area[0], name) for line in lines]

    def _draw(self, style: Style) -> None:
        """Draw a curve per model or class, and the 95 % band of the first model."""
        lines = table_lines(self.table)
        names, notes = [line.name for line in lines], self._areas(lines, self.area[2])
        main = self._axes(style, style.width + style.legend_height(names, notes))[0]
        self._chance(main, style)
        handles = style.draw_curves(main, lines, self.columns[2], self.columns[3])
        main.set_xlim(-0.01, 1.01)
        main.set_ylim(-0.01, 1.01)
        main.set_box_aspect(1)
        main.set_xlabel(self.labels[0])
        main.set_ylabel(self.labels[1])
        self._legend(handles, names, style, notes)

    def _chance_text(self) -> str:
        return ""

    def _chance(self, ax: Any, style: Style) -> None:
        """Draw the curve that chance gives."""
        ax.plot([0, 1], [0, 1], color=style.faint, linestyle=":", linewidth=1.0, zorder=0)


class PrecisionRecallDisplay(RankingDisplay):
    """Precision against sensitivity, with a pointwise 95 % band and the prevalence.

    Parameters
    ----------
    table : DataFrame
        model, class, sensitivity, precision, low, high, prevalence.
    areas : DataFrame, optional
        model, class, measure ("average_precision"), estimate, low, high.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import PrecisionRecallDisplay
    >>> held_out = pd.DataFrame({"model": "ridge", "label": ["PD", "PD", "HC", "PD", "HC", "HC"],
    ...                          "p_PD": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> display = PrecisionRecallDisplay.from_predictions(held_out, resamples=100)
    >>> print(display.alt_text)
    Precision-recall curve with a 95 % band (precision by chance 50%): ridge, average precision
    0.92 (0.56 to 0.99).
    """

    curves = staticmethod(precision_recall_curves)
    title = "Precision-recall curve"
    columns = ("model", "class", "sensitivity", "precision", "low", "high")
    labels = ("Sensitivity (recall)", "Precision")
    area = ("average_precision", "average precision", "AP")

    def _chance_text(self) -> str:
        shares = self.table["prevalence"].astype(float)
        low, high = f"{shares.min():.0%}", f"{shares.max():.0%}"
        return f" (precision by chance {low if low == high else f'{low} to {high}'})"

    def _chance(self, ax: Any, style: Style) -> None:
        """Draw the prevalence, which is the precision by chance."""
        shares = self.table["prevalence"].astype(float)
        if shares.nunique() > 2:
            # One line per class would be a hatching: the range is shown instead.
            ax.axhspan(shares.min(), shares.max(), color=style.faint, alpha=0.25, linewidth=0.0)
            return
        for share in shares.unique():
            ax.axhline(share, color=style.faint, linestyle=":", linewidth=1.0, zorder=0)


class RocDisplay(RankingDisplay):
    """Sensitivity against the false-positive rate, with a pointwise 95 % band.

    Parameters
    ----------
    table : DataFrame
        model, class, false_positive_rate, sensitivity, low, high.
    areas : DataFrame, optional
        model, class, measure ("auc"), estimate, low, high.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import RocDisplay
    >>> held_out = pd.DataFrame({"model": "ridge", "label": ["PD", "PD", "HC", "PD", "HC", "HC"],
    ...                          "p_PD": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> RocDisplay.from_predictions(held_out, resamples=100).alt_text
    'ROC curve with a 95 % band: ridge, area under the curve 0.89 (0.28 to 0.99).'
    """

    curves = staticmethod(roc_curves)
    title = "ROC curve"
    columns = ("model", "class", "false_positive_rate", "sensitivity", "low", "high")
    labels = ("False-positive rate (1 − specificity)", "Sensitivity")
    area = ("auc", "area under the curve", "AUC")


class LearningCurveDisplay(Display):
    """Measured scores with intervals against the number of training samples.

    Parameters
    ----------
    table : DataFrame
        model, metric, people, kind ("measured"), estimate, low, high; as ``learning_curve.csv``
        has it.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import LearningCurveDisplay
    >>> table = pd.DataFrame({"model": "ridge", "metric": "auc", "people": [40, 80],
    ...                       "kind": "measured", "estimate": [0.7, 0.78], "low": [0.6, 0.7],
    ...                       "high": [0.8, 0.86]})
    >>> LearningCurveDisplay(table).alt_text
    'Learning curve of AUC: ridge from 0.7 with 40 samples to 0.78 with 80.'
    """

    columns = ("model", "metric", "people", "kind", "estimate", "low", "high")
    nothing = (
        "Learning curve without points: the study did not ask for one.",
        "There is no learning curve.",
    )

    @classmethod
    def from_result(cls, result: Any, models: Sequence[str] | None = None) -> Self:
        """Show models of a result or of the table of `learning_curve`, by default the first six."""
        is_table = isinstance(result, pd.DataFrame)
        table = result if is_table else results_of(result).table("learning_curve")
        if not len(table):
            return cls(pd.DataFrame())
        # Older results have fitted curves as well.
        return cls(chosen_models(table[table["kind"] == "measured"], models, "learning curve"))

    @property
    def metric(self) -> str:
        """Heading of the metric that the curve shows."""
        name = str(self.table["metric"].iloc[0])
        return METRICS[name].heading if name in METRICS else name

    def _sentence(self) -> str:
        """Return the alternative text: the score with the fewest and the most samples."""
        texts = []
        for line in table_lines(self.table):
            rows = line.rows.sort_values("people")
            first, last = rows.iloc[0], rows.iloc[-1]
            texts.append(
                f"{plain(line.name)} from {number(first['estimate'])} with "
                f"{first['people']:.0f} samples to {number(last['estimate'])} with "
                f"{last['people']:.0f}"
            )
        return f"Learning curve of {self.metric}: {'; '.join(texts)}."

    def _draw(self, style: Style) -> None:
        """Draw the points of each model with their intervals, joined by a line."""
        lines = table_lines(self.table)
        names = [line.name for line in lines]
        height = style.width * 0.62 + style.legend_height(names)
        main = self._axes(style, height)[0]
        handles = []
        for i, line in enumerate(lines):
            colour = style.colour(i)
            points = line.rows.sort_values("people")
            x, y, low, high = (
                points[c].to_numpy(dtype=float) for c in ("people", "estimate", "low", "high")
            )
            # Shifted a little, so that the intervals of several models can be seen.
            shift = (i - (len(lines) - 1) / 2) * 0.008 * max(float(np.ptp(x)), 1.0)
            main.vlines(x + shift, low, high, color=colour, linewidth=1.3)
            handles += main.plot(
                x + shift, y, linewidth=1.4, marker=style.marker(i), color=colour,
                markersize=6, zorder=3,
            )  # fmt: skip
        main.set_xlabel("Training samples")
        main.locator_params(axis="x", integer=True)
        main.set_ylabel(self.metric)
        self._legend(handles, names, style)
