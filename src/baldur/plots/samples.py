"""Samples: their place in the latent space, and the prediction for one of them term by term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from baldur.estimators.contributions import AVERAGE, OTHERS, UNCERTAINTY
from baldur.evaluation.metric_table import fixed
from baldur.exceptions import InputError
from baldur.plots.display import Display
from baldur.plots.style import Style, row_height, spaced
from baldur.plots.text import full_name, label, number, plain, sample_names
from baldur.views.validate import counted

MOST_VECTOR = 4000
"""Samples drawn as vectors; more of them are rasterised."""
MOST_COMBINATIONS = 6
"""Combinations of labels with a colour of their own."""
NO_LABEL, OTHER_LABELS = "no label", "other combinations"


class LatentDisplay(Display):
    """Latent factors of samples: a strip per class for one factor, a plane for several.

    ``plot(factors=[...])`` names the two axes of the plane; by default these are the two factors
    that the labels explain best, or the first two without labels.

    Parameters
    ----------
    table : DataFrame
        sample, label (class or number; of a label matrix the labels that a sample has) where it is
        known, and one column per factor. Without a label nothing is drawn or said about the
        outcome.
    continuous : bool, default=False
        Whether the label is a number.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import LatentDisplay
    >>> table = pd.DataFrame({"sample": ["a", "b", "c", "d"], "label": ["HC", "HC", "PD", "PD"],
    ...                       "factor0": [-1.5, -0.5, 0.5, 1.5]})
    >>> LatentDisplay(table).alt_text
    '4 samples in 1 latent factor; the outcome explains 80% of factor0, with means HC -1, PD 1.'
    """

    nothing = ("", "There are no samples in the latent space.")

    def __init__(self, table: pd.DataFrame, *, continuous: bool = False) -> None:
        super().__init__(table)
        self.labelled = "label" in self.table
        self.continuous = continuous and self.labelled

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any = None) -> Self:
        """Show the samples in the latent space of a fitted model.

        Parameters
        ----------
        model : fitted estimator
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels), optional
            Labels or outcomes, in the order of the rows. Of a label matrix the most frequent
            combinations of labels are shown, and all others as one. Without labels the figure says
            nothing about the outcome.
        """
        Z = np.asarray(model.transform(X))
        table: dict[str, Any] = {"sample": sample_names(X)}
        if y is not None:
            label_of = np.asarray(y)
            if label_of.ndim == 2 and len(label_of) == len(Z) and label_of.shape[1] > 1:
                label_of = _combinations(y, model)
            if label_of.shape != (len(Z),):
                raise InputError(
                    f"y: expected {len(Z)} labels, one per row, but got shape {label_of.shape}."
                )
            table["label"] = label_of
        table.update({f"factor{k}": Z[:, k] for k in range(Z.shape[1])})
        return cls(pd.DataFrame(table), continuous=not hasattr(model, "classes_"))

    @property
    def _is_empty(self) -> bool:
        return not self.factors or not len(self.table)

    @property
    def factors(self) -> list[str]:
        """Names of the columns of the table that are factors."""
        return [c for c in self.table.columns if str(c).startswith("factor")]

    @property
    def classes(self) -> list[str]:
        """Labels in alphabetical order; empty without labels."""
        return sorted(self.table["label"].astype(str).unique()) if self.labelled else []

    def separation(self) -> pd.Series:
        """Return the share of each factor's variance that the labels explain; 0 without labels."""
        shares = dict.fromkeys(self.factors, 0.0)
        for name in self.factors if len(self.table) and self.labelled else []:
            values = self.table[name].to_numpy(dtype=float)
            total = float(np.var(values))
            if self.continuous:
                y = self.table["label"].to_numpy(dtype=float)
                usable = total > 0 and np.nanstd(y) > 0
                share = np.corrcoef(values, y)[0, 1] ** 2 if usable else 0.0
            else:
                mean = self.table.groupby(self.table["label"].astype(str))[name].transform("mean")
                share = float(np.var(mean)) / total if total > 0 else 0.0
            shares[name] = float(np.nan_to_num(share))
        return pd.Series(shares, dtype=float)

    def _sentence(self) -> str:
        """Return the alternative text: the factor that the labels explain best."""
        n, factors = counted(len(self.table), "sample"), counted(len(self.factors), "latent factor")
        text = f"{n} in {factors}"
        if self._is_empty or not self.labelled:
            return text + "."
        share = self.separation()
        best = str(share.idxmax())
        text += f"; the outcome explains {share[best]:.0%} of {best}"
        if not self.continuous and len(self.classes) <= 5:
            means = self.table.groupby(self.table["label"].astype(str))[best].mean()
            listed = ", ".join(f"{plain(c)} {number(means[c])}" for c in self.classes)
            text += f", with means {listed}"
        return text + "."

    def _draw(self, style: Style, *, factors: Sequence[str] | None = None) -> None:
        """Draw the samples."""
        known = self.factors
        if factors is None:
            best = self.separation().nlargest(2).index
            factors = sorted(map(str, best), key=known.index)
        wrong = [f for f in factors if f not in known]
        if wrong:
            raise InputError(
                f"The latent space has no factor {wrong[0]!r}; its factors are {known}."
            )
        height = style.width * 0.8 + 0.4
        if self.continuous:
            self._by_outcome(self._axes(style, height)[0], factors, style)
        elif len(factors) > 1:
            height += style.legend_height(self.classes)
            self._plane(self._axes(style, height)[0], factors, style)
        else:
            height = row_height(2 * max(1, len(self.classes)), 0.8)
            self._strips(self._axes(style, height)[0], factors[0], style)

    def _strips(self, ax: Any, factor: str, style: Style) -> None:
        """Draw one factor: a row of points with their mean for each class."""
        # The same random heights on every run.
        jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(self.table))
        for i, mask in enumerate(self._groups()):
            x = self.table[factor].to_numpy(dtype=float)[mask]
            ax.plot(
                x, i + jitter[mask], linestyle="none", marker=style.marker(i), markersize=4.5,
                color=style.colour(i), alpha=0.65, markeredgewidth=0.0,
                rasterized=len(x) > MOST_VECTOR,
            )  # fmt: skip
            ax.plot([x.mean()] * 2, [i - 0.38, i + 0.38], color=style.ink, linewidth=2.0)
        style.name_rows(ax, self.classes or ["all"], 0.34)
        ax.set_xlabel(f"{label(factor)} (line: mean)")

    def _groups(self) -> list[np.ndarray]:
        """Return a mask of the samples of each class, or of all samples without labels."""
        if not self.labelled:
            return [np.ones(len(self.table), dtype=bool)]
        labels = self.table["label"].astype(str).to_numpy()
        return [labels == name for name in self.classes]

    def _plane(self, ax: Any, factors: Sequence[str], style: Style) -> None:
        """Draw two factors, with a colour and a marker for each class."""
        handles = []
        for i, mask in enumerate(self._groups()):
            part = self.table[mask]
            handles += ax.plot(
                part[factors[0]], part[factors[1]], linestyle="none", marker=style.marker(i),
                markersize=5, color=style.colour(i), alpha=0.7, markeredgewidth=0.0,
                rasterized=len(part) > MOST_VECTOR,
            )  # fmt: skip
        ax.set_xlabel(label(factors[0]))
        ax.set_ylabel(label(factors[1]))
        if self.labelled:
            self._legend(handles, self.classes, style)

    def _by_outcome(self, ax: Any, factors: Sequence[str], style: Style) -> None:
        """Draw a numeric outcome against one factor, or as colours in the plane of two."""
        y = self.table["label"].to_numpy(dtype=float)
        x = self.table[factors[0]]
        if len(factors) == 1:
            ax.plot(
                x, y, linestyle="none", marker="o", markersize=4.5, color=style.colour(0),
                alpha=0.7, markeredgewidth=0.0,
            )  # fmt: skip
            ax.set_ylabel("Outcome")
        else:
            # A map that rises in lightness can be read in grey too.
            drawn = ax.scatter(x, self.table[factors[1]], c=y, cmap="cividis", s=22)
            style.colour_bar(ax, drawn, "Outcome")
            ax.set_ylabel(label(factors[1]))
        ax.set_xlabel(label(factors[0]))


def _combinations(y: Any, model: Any) -> np.ndarray:
    """Return the labels of each row of a label matrix as text, as "a + b"; rare ones as one."""
    if not hasattr(model, "classes_"):
        raise InputError(
            "y: the latent space is drawn for one numeric outcome; give one column of y."
        )
    names = [str(c) for c in getattr(y, "columns", model.classes_)]
    rows = np.asarray(y).astype(bool)
    joined = [" + ".join(n for n, has in zip(names, row, strict=True) if has) for row in rows]
    texts = pd.Series([text or NO_LABEL for text in joined])
    frequent = texts.value_counts(sort=True).index[: MOST_COMBINATIONS - 1]
    if texts.nunique() > MOST_COMBINATIONS:
        texts = texts.where(texts.isin(frequent), OTHER_LABELS)
    return texts.to_numpy(dtype=str)


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
        """Return the alternative text: the prediction, and the three largest terms."""
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
        style.name_features(main, [_pair(r) for r in shown.to_dict("records")])
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
            # In the order of the table; one row is left for the others.
            keep = np.sort(np.argsort(-size, kind="stable")[: most - 1])
            rest = np.setdiff1d(np.arange(len(terms)), keep)
            joined = {
                "view": "", "feature": f"{len(rest):,} {_SMALL}",
                "contribution": float(terms["contribution"].iloc[rest].sum()),
            }  # fmt: skip
            large = terms.iloc[keep]
            is_last = large["feature"] == UNCERTAINTY
            terms = pd.concat([large[~is_last], pd.DataFrame([joined]), large[is_last]])
        table = pd.concat([self.table.iloc[:1], terms], ignore_index=True)
        return _walk(table, self.probability)

    def _bars(self, ax: Any, shown: pd.DataFrame, style: Style) -> None:
        """Draw a bar per term with its interval, and markers at the first and the last row."""
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
        """Return the ends of the axis: around all bars and intervals."""
        starts = shown["start"].to_numpy(dtype=float)[:, None]
        intervals = starts + shown[["lower", "upper"]].to_numpy(dtype=float)
        edges = np.r_[shown["end"].to_numpy(dtype=float), np.ravel(intervals)]
        edges = edges[np.isfinite(edges)]
        low, high = float(edges.min()), float(edges.max())
        room = max(high - low, 0.5 if self.probability else 1e-6)
        # The prediction is written to the right of the last marker.
        return low - 0.06 * room, high + 0.16 * room

    def _probability_axis(self, ax: Any, low: float, high: float, style: Style) -> None:
        """Draw an axis of probabilities above the axis of log odds, which goes from low to high."""
        top = ax.twiny()
        top.set_xlim(low, high)
        inside = [p for p in _PROBABILITIES if low <= logit(p) <= high]
        if len(inside) < 2:
            # A narrow range: its ends, rounded, unless that puts them outside.
            inside = sorted({*inside, *(round(float(expit(v)), 3) for v in (low, high))})
            inside = [p for p in inside if 0 < p < 1 and low <= logit(p) <= high]
        distance = (high - low) * (0.15 if not style.narrow else 0.22)
        # Those next to 50 % first.
        ticks = sorted(spaced(sorted(map(logit, inside), key=abs), distance))
        top.set_xticks(ticks, [f"{100 * expit(tick):g} %" for tick in ticks])
        top.spines["top"].set_visible(True)
        top.spines["left"].set_visible(False)
        of = f" of {label(self.output, 14 if style.narrow else 24)}" if self.output else ""
        top.set_xlabel(f"Probability{of}", loc="right")


def _walk(table: pd.DataFrame, probability: bool) -> pd.DataFrame:
    """Return the terms from the average person to the prediction, with start and end of each."""
    table = table[table["feature"] != PREDICTION]
    is_first = (table["feature"] == AVERAGE).to_numpy()
    is_last = (table["feature"] == UNCERTAINTY).to_numpy()
    if not is_first.any():
        raise InputError(
            f"The contributions have no row {AVERAGE!r}, which is their starting point. Pass the "
            "rows of one sample and output of explain()."
        )
    table = table.iloc[np.lexsort((is_last, ~is_first))]
    table = table.reindex(columns=["view", "feature", "contribution", "lower", "upper"])
    end = np.cumsum(table["contribution"].to_numpy(dtype=float))
    total = {"view": "", "feature": PREDICTION, "contribution": end[-1]}
    table = pd.concat([table, pd.DataFrame([total])], ignore_index=True)
    table["start"] = np.r_[0.0, end[:-1], 0.0]
    table["end"] = np.r_[end, end[-1]]
    if probability:
        table["probability"] = expit(table["end"])
    return table


def _chosen_sample(ids: list[Any], sample: Any) -> Any:
    """Return the id of the sample to show: the given one, or the only one."""
    listed = ", ".join(repr(str(s)) for s in ids[:5]) + (", ..." if len(ids) > 5 else "")
    if sample is None:
        if len(ids) != 1:
            raise InputError(
                f"The figure shows one sample, but there are {len(ids)}. Say which one with "
                f"sample=; the samples are {listed}."
            )
        return ids[0]
    named = [s for s in ids if str(s) == str(sample)]
    if not named:
        raise InputError(f"There is no sample {str(sample)!r}; the samples are {listed}.")
    return named[0]


def _pair(row: dict[Any, Any]) -> tuple[str, str]:
    """Return view and feature of a term, as names in the figure; the view of a total is empty."""
    feature = str(row["feature"])
    if feature in (AVERAGE, UNCERTAINTY, PREDICTION) or feature.endswith(_SMALL):
        return "", feature.strip("()").replace("(", "")
    return str(row["view"]), "other features" if feature == OTHERS else feature
