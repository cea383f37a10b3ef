"""Contributions to the prediction for one sample, as log odds and as a probability."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from baldur.estimators.explain import AVERAGE, OTHERS, UNCERTAINTY
from baldur.evaluation.formatting import fixed
from baldur.exceptions import InputError
from baldur.plots.display import Display
from baldur.plots.drawing import name_features, row_height
from baldur.plots.style import Style, full_name, label, number, plain, sample_names

# Probabilities that the upper axis may show.
_PROBABILITIES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
_SMALL = "(smaller terms)"
PREDICTION = "prediction"


class ContributionsDisplay(Display):
    """The prediction for one sample, term by term from the prediction for the average person.

    ``plot(most=14)`` draws so many terms one by one at most; the smaller ones are one bar.

    Parameters
    ----------
    table : DataFrame
        Rows of `explain` of one sample and output: view, feature, contribution and, where known,
        lower and upper. The row "(average person)" is the starting point.
    probability : bool, default=True
        Whether the contributions are log odds of a probability.
    sample, output : str, optional
        Sample and class (or outcome) of the prediction.

    Attributes
    ----------
    table : DataFrame
        view, feature, contribution, lower, upper, start and end of each bar and, with
        probability, the probability after it; the last row is the prediction.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import ContributionsDisplay
    >>> table = pd.DataFrame({"view": ["", "clinic", "genes"], "contribution": [-1.0, 1.5, -0.3],
    ...                       "feature": ["(average person)", "age", "APOE"]})
    >>> print(ContributionsDisplay(table, output="PD").alt_text)
    From the average person's 26.9% to a probability of PD of 55.0% (log odds 0.2), the largest
    contributions being clinic: age +1.50; genes: APOE -0.30.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        *,
        probability: bool = True,
        sample: str | None = None,
        output: str | None = None,
    ) -> None:
        super().__init__(_walk(pd.DataFrame(table), probability))
        self.probability, self.sample, self.output = probability, sample, output

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, sample: Any = None, output: str | None = None, most: int = 50
    ) -> Self:
        """Explain the prediction for one sample.

        Parameters
        ----------
        model : fitted estimator
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``.
        sample : optional
            Id of the sample, as in `explain`. Needed where `X` has several samples.
        output : str, optional
            Class whose probability is explained; by default the positive one of two classes, the
            most probable one of several, and the first outcome in regression.
        most : int, default=50
            Largest number of features of a view that are listed one by one.
        """
        if sample is None:
            _chosen_sample(sample_names(X), sample)
        return cls.from_explanation(
            model.explain(X, most=most), sample, output, probability=hasattr(model, "classes_")
        )

    @classmethod
    def from_explanation(
        cls,
        table: pd.DataFrame,
        sample: Any = None,
        output: str | None = None,
        *,
        probability: bool | None = None,
    ) -> Self:
        """Show one sample and output of a table that `explain` returned.

        Parameters
        ----------
        table : DataFrame
        sample, output, probability
            As in `from_estimator`; by default probabilities where the table has the row
            "(uncertainty)", which regressions do not have.
        """
        name = _chosen_sample(list(dict.fromkeys(table["sample"])), sample)
        rows = table[table["sample"] == name]
        outputs = rows["output"].astype(str)
        if output is None:
            output = rows.groupby(outputs)["contribution"].sum().idxmax()
        if str(output) not in set(outputs):
            raise InputError(
                f"There is no output {output!r} in the explanation, only {list(outputs.unique())}."
            )
        if probability is None:
            probability = bool((rows["feature"] == UNCERTAINTY).any())
        rows = rows[outputs == str(output)]
        return cls(rows, probability=probability, sample=str(name), output=str(output))

    @property
    def value(self) -> float:
        """The prediction: log odds, or units of the outcome in regression."""
        return float(self.table["end"].iloc[-1])

    def _sentence(self) -> str:
        terms = self.table.iloc[1:-1]
        of = f" of {plain(self.output)}" if self.output else ""
        end = number(self.value)
        if self.probability:
            end = f"a probability{of} of {expit(self.value):.1%} (log odds {end})"
        start = float(self.table["end"].iloc[0])
        begin = f"{expit(start):.1%}" if self.probability else number(start)
        order = np.argsort(-np.abs(terms["contribution"].to_numpy(dtype=float)), kind="stable")
        largest = "; ".join(
            f"{plain(full_name(*_pair(row)))} {fixed(row['contribution'], sign=True)}"
            for row in terms.iloc[order[:3]].to_dict("records")
        )
        why = f", the largest contributions being {largest}" if largest else ""
        return f"From the average person's {begin} to {end}{why}."

    def _draw(self, style: Style, *, most: int = 14) -> None:
        """Draw a bar per term; each starts at the end of the previous one."""
        shown = self._shown(most)
        height = row_height(len(shown), 1.3 if self.probability else 0.9)
        main = self._axes(style, height)[0]
        self._bars(main, shown, style)
        name_features(main, [_pair(r) for r in shown.to_dict("records")], style)
        main.set_xlabel("Log odds" if self.probability else "Predicted outcome")
        low, high = self._range(shown)
        main.set_xlim(low, high)
        if self.probability:
            self._probability_axis(main, low, high, style)

    def _shown(self, most: int) -> pd.DataFrame:
        """Return the rows that are drawn, the smallest terms joined; the ends do not change."""
        terms = self.table.iloc[1:-1]
        if len(terms) > most:
            size = np.abs(terms["contribution"].to_numpy(dtype=float))
            # The effect of the uncertainty is always drawn.
            size = np.where(terms["feature"] == UNCERTAINTY, np.inf, size)
            keep = np.sort(np.argsort(-size, kind="stable")[: most - 1])
            rest = np.setdiff1d(np.arange(len(terms)), keep)
            joined = {
                "view": "", "feature": f"{len(rest):,} {_SMALL}",
                "contribution": float(terms["contribution"].iloc[rest].sum()),
                "lower": np.nan, "upper": np.nan,
            }  # fmt: skip
            large = terms.iloc[keep]
            last = large["feature"] == UNCERTAINTY
            terms = pd.concat([large[~last], pd.DataFrame([joined]), large[last]])
        table = pd.concat([self.table.iloc[:1], terms], ignore_index=True)
        return _walk(table, self.probability)

    def _bars(self, ax: Any, shown: pd.DataFrame, style: Style) -> None:
        up, down = style.colour(1), style.colour(0)
        for i, row in enumerate(shown.to_dict("records")):
            last = i == len(shown) - 1
            if i == 0 or last:
                ax.plot(
                    [row["end"]], [i], marker="D" if last else "o", color=style.ink, markersize=6.5,
                    linestyle="none",
                )  # fmt: skip
            else:
                rises = row["contribution"] >= 0
                ax.barh(
                    [i], [row["contribution"]], left=[row["start"]], height=0.62,
                    color=up if rises else down, hatch="" if rises else "///",
                    edgecolor=style.rc()["hatch.color"], linewidth=0.0,
                )  # fmt: skip
                ends = [row["start"] + row[k] for k in ("lower", "upper")]
                if np.isfinite(ends).all():
                    ax.plot(ends, [i, i], color=style.ink, linewidth=1.0, solid_capstyle="butt")
            if not last:
                ax.plot([row["end"]] * 2, [i, i + 1], color=style.faint, linewidth=0.8, zorder=0)
        end = f"{expit(self.value):.0%}" if self.probability else number(self.value)
        ax.annotate(
            end, (self.value, len(shown) - 1), xytext=(8, 0), textcoords="offset points",
            va="center", fontweight="bold", color=style.ink,
        )  # fmt: skip

    def _range(self, shown: pd.DataFrame) -> tuple[float, float]:
        starts, limits = shown["start"].to_numpy(dtype=float)[:, None], shown[["lower", "upper"]]
        ends = np.r_[shown["end"].to_numpy(dtype=float), np.ravel(starts + limits.to_numpy(float))]
        ends = ends[np.isfinite(ends)]
        low, high = float(ends.min()), float(ends.max())
        room = max(high - low, 0.5 if self.probability else 1e-6)
        # The prediction is written to the right of the last marker.
        return low - 0.06 * room, high + 0.16 * room

    def _probability_axis(self, ax: Any, low: float, high: float, style: Style) -> None:
        top = ax.twiny()
        top.set_xlim(low, high)
        inside = [p for p in _PROBABILITIES if low <= logit(p) <= high]
        if len(inside) < 2:
            inside = sorted({*inside, *(round(float(expit(v)), 3) for v in (low, high))})
            inside = [p for p in inside if 0 < p < 1 and low <= logit(p) <= high]
        apart = (high - low) * (0.15 if not style.narrow else 0.22)
        chosen: list[float] = []
        for p in sorted(inside, key=lambda p: abs(p - 0.5)):
            if all(abs(logit(p) - logit(q)) >= apart for q in chosen):
                chosen.append(p)
        chosen.sort()
        top.set_xticks([logit(p) for p in chosen], [f"{100 * p:g} %" for p in chosen])
        top.spines["top"].set_visible(True)
        top.spines["left"].set_visible(False)
        of = f" of {label(self.output, 14 if style.narrow else 24)}" if self.output else ""
        top.set_xlabel(f"Probability{of}", loc="right")


def _walk(table: pd.DataFrame, probability: bool) -> pd.DataFrame:
    """Return the terms from the average person to the prediction, with start and end of each."""
    table = table[table["feature"] != PREDICTION].reset_index(drop=True)
    for column in ("lower", "upper"):
        if column not in table:
            table[column] = np.nan
    first = (table["feature"] == AVERAGE).to_numpy()
    last = (table["feature"] == UNCERTAINTY).to_numpy()
    if not first.any():
        raise InputError(
            f"The contributions have no row {AVERAGE!r}, which is their starting point. Pass the "
            "rows of one sample and output of explain()."
        )
    order = np.lexsort((np.arange(len(table)), last, ~first))
    table = table.iloc[order][["view", "feature", "contribution", "lower", "upper"]]
    end = np.cumsum(table["contribution"].to_numpy(dtype=float))
    total = {"view": "", "feature": PREDICTION, "contribution": end[-1]}
    table = pd.concat([table, pd.DataFrame([total])], ignore_index=True)
    table["start"] = np.r_[0.0, end[:-1], 0.0]
    table["end"] = np.r_[end, end[-1]]
    if probability:
        table["probability"] = expit(table["end"])
    return table


def _chosen_sample(known: list[Any], sample: Any) -> Any:
    """Return the sample to show: the given one, or the only one."""
    listed = ", ".join(repr(str(s)) for s in known[:5]) + (", ..." if len(known) > 5 else "")
    if sample is None:
        if len(known) != 1:
            raise InputError(
                f"The figure shows one sample, but there are {len(known)}. Say which one with "
                f"sample=; the samples are {listed}."
            )
        return known[0]
    named = [s for s in known if str(s) == str(sample)]
    if not named:
        raise InputError(f"There is no sample {str(sample)!r}; the samples are {listed}.")
    return named[0]


def _pair(row: dict[Any, Any]) -> tuple[str, str]:
    """Return view and feature of a term, as names in the figure; the view of a total is empty."""
    feature = str(row["feature"])
    if feature in (AVERAGE, UNCERTAINTY, PREDICTION) or feature.endswith(_SMALL):
        return "", feature.strip("()").replace("(", "")
    return str(row["view"]), "other features" if feature == OTHERS else feature
