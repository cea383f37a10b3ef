"""Samples in the latent space, its loadings, and patterns of missing views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.plots.display import Display, results_of
from baldur.plots.drawing import (
    draw_cells,
    fit_ticks,
    legend,
    legend_height,
    name_columns,
    name_rows,
    row_height,
    stacked_bars,
)
from baldur.plots.style import (
    Style,
    count,
    label,
    matplotlib,
    number,
    plain,
    sample_names,
    short_names,
)

if TYPE_CHECKING:
    from baldur.views.container import MultiView

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
        """Return the share of the variance of each factor that the labels explain, 0 without."""
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
        text = f"{count(len(self.table), 'sample')} in {count(len(self.factors), 'latent factor')}"
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
        plane = len(factors) > 1
        height = style.width * 0.8 + 0.4
        if self.continuous:
            self._outcome(self._axes(style, height)[0], factors, style)
        elif plane:
            height += legend_height(self.classes, style)
            self._plane(self._axes(style, height)[0], factors, style)
        else:
            height = row_height(2 * max(1, len(self.classes)), 0.8)
            self._strips(self._axes(style, height)[0], factors[0], style)

    def _strips(self, ax: Any, factor: str, style: Style) -> None:
        # The same random heights on every run.
        up = np.random.default_rng(0).uniform(-0.3, 0.3, len(self.table))
        for i, mine in enumerate(self._groups()):
            x = self.table[factor].to_numpy(dtype=float)[mine]
            ax.plot(
                x, i + up[mine], linestyle="none", marker=style.marker(i), markersize=4.5,
                color=style.colour(i), alpha=0.65, markeredgewidth=0.0,
                rasterized=len(x) > MOST_VECTOR,
            )  # fmt: skip
            ax.plot([x.mean()] * 2, [i - 0.38, i + 0.38], color=style.ink, linewidth=2.0)
        name_rows(ax, self.classes or ["all"], style, 0.34)
        ax.set_xlabel(f"{label(factor)} (line: mean)")

    def _groups(self) -> list[np.ndarray]:
        """Return a mask of the samples of each class, or of all samples without labels."""
        if not self.labelled:
            return [np.ones(len(self.table), dtype=bool)]
        labels = self.table["label"].astype(str).to_numpy()
        return [labels == name for name in self.classes]

    def _plane(self, ax: Any, factors: Sequence[str], style: Style) -> None:
        handles = []
        for i, mine in enumerate(self._groups()):
            part = self.table[mine]
            (drawn,) = ax.plot(
                part[factors[0]], part[factors[1]], linestyle="none", marker=style.marker(i),
                markersize=5, color=style.colour(i), alpha=0.7, markeredgewidth=0.0,
                rasterized=len(part) > MOST_VECTOR,
            )  # fmt: skip
            handles.append(drawn)
        ax.set_xlabel(label(factors[0]))
        ax.set_ylabel(label(factors[1]))
        if self.labelled:
            self._legend(handles, self.classes, style)

    def _outcome(self, ax: Any, factors: Sequence[str], style: Style) -> None:
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
            bar = ax.figure.colorbar(drawn, ax=ax, pad=0.02)
            bar.set_label("Outcome")
            bar.locator = matplotlib("ticker").MaxNLocator(5)
            bar.update_ticks()
            ax.set_ylabel(label(factors[1]))
        ax.set_xlabel(label(factors[0]))


def _combinations(y: Any, model: Any) -> np.ndarray:
    """Return the labels that every sample has, as one text; rare combinations as one."""
    if not hasattr(model, "classes_"):
        raise InputError(
            "y: the latent space is drawn for one numeric outcome; give one column of y."
        )
    names = [str(c) for c in getattr(y, "columns", model.classes_)]
    rows = np.asarray(y).astype(bool)
    each = [" + ".join(n for n, has in zip(names, row, strict=True) if has) for row in rows]
    texts = pd.Series([text or NO_LABEL for text in each])
    frequent = texts.value_counts(sort=True).index[: MOST_COMBINATIONS - 1]
    if texts.nunique() > MOST_COMBINATIONS:
        texts = texts.where(texts.isin(frequent), OTHER_LABELS)
    return texts.to_numpy(dtype=str)


OUTPUT, VIEW = "output", "view"
"""Kinds of rows: a loading of an output, or the share of a view."""
_SHARED = 0.1
"""Share of a factor from which on a view is named among its sources."""


class LoadingsDisplay(Display):
    """Outputs by factors (loadings), and views by factors (share of each view in each factor).

    Parameters
    ----------
    table : DataFrame
        factor, features (its strongest ones), kind ("output" or "view"), name (of the output or
        view), value: the loading of an output, or the share of a view in the variance of the
        factor.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import LoadingsDisplay
    >>> table = pd.DataFrame({"factor": "factor0", "features": "clinic age",
    ...                       "kind": ["output", "output", "view", "view"],
    ...                       "name": ["stroke", "pain", "clinic", "genes"],
    ...                       "value": [0.9, -0.2, 0.95, 0.05]})
    >>> print(LoadingsDisplay(table).alt_text)
    2 outputs on 1 latent factor: factor0 moves stroke most (0.9) and comes from clinic 95%.
    """

    columns = ("factor", "features", "kind", "name", "value")
    nothing = (
        "Loadings: the model has no latent factors.",
        "The model has no latent factors.",
    )

    @classmethod
    def from_estimator(cls, model: Any, outputs: Sequence[str] | None = None) -> Self:
        """Show the latent factors of a fitted model.

        Parameters
        ----------
        model : fitted estimator
        outputs : list of str, optional
            Names of the outputs; by default classes, or the numbers of labels or targets.
        """
        loadings = np.asarray(model.loadings_, dtype=float)
        names = _output_names(model, len(loadings)) if outputs is None else list(map(str, outputs))
        if len(names) != len(loadings):
            raise InputError(f"outputs: expected {len(loadings)} names, but got {len(names)}.")
        shares = model.factor_relevance_
        rows = []
        for k, (factor, features) in enumerate(zip(shares.index, model.factor_names_, strict=True)):
            start = (str(factor), str(features))
            rows += [(*start, OUTPUT, name, loadings[c, k]) for c, name in enumerate(names)]
            rows += [(*start, VIEW, str(v), float(shares.loc[factor, v])) for v in shares.columns]
        return cls(pd.DataFrame(rows, columns=cls.columns))

    @property
    def factors(self) -> list[str]:
        """The factors, by falling variance."""
        return list(dict.fromkeys(self.table["factor"].astype(str)))

    def wide(self, kind: str) -> pd.DataFrame:
        """Return outputs or views by factors.

        Parameters
        ----------
        kind : {"output", "view"}

        Returns
        -------
        DataFrame
        """
        part = self.table[self.table["kind"] == kind]
        wide = part.pivot_table(index="name", columns="factor", values="value", sort=False)
        return wide.reindex(columns=self.factors)

    def _sentence(self) -> str:
        factors = self.factors
        loadings, shares = self.wide(OUTPUT), self.wide(VIEW)
        if len(factors) == 1 and len(loadings) == 1:
            return "The model has one output and one factor, which is its score."
        texts = []
        for factor in factors[:4]:
            column = loadings[factor].astype(float)
            best = str(column.abs().idxmax())
            views = shares[factor].sort_values(ascending=False)
            used = views[views >= _SHARED]
            source = ", ".join(f"{plain(v)} {s:.0%}" for v, s in used.items()) or "no view"
            texts.append(
                f"{factor} moves {plain(best)} most ({number(float(column[best]))}) and "
                f"comes from {source}"
            )
        more = f"; {len(factors) - 4} more" if len(factors) > 4 else ""
        return (
            f"{count(len(loadings), 'output')} on {count(len(factors), 'latent factor')}: "
            f"{'; '.join(texts)}{more}."
        )

    def _draw(self, style: Style) -> None:
        """Draw the loadings above the shares of views, with a column for each factor."""
        loadings, shares = self.wide(OUTPUT), self.wide(VIEW)
        heights = (max(2.0, len(loadings)) + 1.0, max(2.0, len(shares)) + 1.6)
        height = row_height(int(sum(heights)), 1.0)
        axes = self._axes(style, height, (1.0,), heights)
        self._panel(axes[0], loadings, style, "Loading")
        self._panel(axes[1], shares, style, "Share", share=True)
        axes[0].tick_params(axis="x", labelbottom=False)
        axes[1].set_xlabel("Latent factor, by falling variance")

    def _panel(
        self, ax: Any, wide: pd.DataFrame, style: Style, called: str, *, share: bool = False
    ) -> None:
        values, limit = wide.to_numpy(dtype=float), 1.0 if share else None
        draw_cells(ax, values, style, called, limit=limit, written=number, signed=not share)
        name_rows(ax, list(wide.index), style, 0.3)
        ax.set_ylim(len(wide) - 0.5, -0.5)
        name_columns(ax, list(map(str, wide.columns)), style, 0.5)


def _output_names(model: Any, n: int) -> list[str]:
    classes = getattr(model, "classes_", None)
    if classes is not None:
        names = [str(c) for c in classes]
        # One output for two classes, which points to the second.
        return names if len(names) == n else names[-1:]
    return ["outcome"] if n == 1 else [f"target {c}" for c in range(n)]


_HAS, _LABEL = "has_", "n_"
MOST_LABELS = 10


class MissingViewsDisplay(Display):
    """Patterns of present and missing views, with the number of samples of each.

    ``plot(most=12)`` draws so many patterns at most, the most frequent first.

    Parameters
    ----------
    presence : DataFrame
        One row per sample: a column ``has_<view>`` of 0 and 1 for each view and, in
        classification, label; as ``presence.csv`` has it.
    by_label : bool, optional
        Divide the bars by label; by default where there are at most ten labels.

    Attributes
    ----------
    table : DataFrame
        One row per pattern, the most frequent first: ``has_<view>``, people, and ``n_<label>``.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur import MultiView
    >>> from baldur.plots import MissingViewsDisplay
    >>> data = MultiView({"clinic": np.ones((4, 2)), "genes": np.ones((4, 3))},
    ...                  present={"genes": [True, True, False, False]})
    >>> MissingViewsDisplay.from_data(data).alt_text
    'Of 4 samples, 2 have all 2 views; 2 have no genes.'
    """

    nothing = ("", "There are no samples.")

    def __init__(self, presence: pd.DataFrame, by_label: bool | None = None) -> None:
        presence = pd.DataFrame(presence)
        columns = [c for c in presence.columns if str(c).startswith(_HAS)]
        self.views = [str(c).removeprefix(_HAS) for c in columns]
        labels = presence["label"].astype(str) if "label" in presence else pd.Series(dtype=str)
        if by_label is None:
            by_label = labels.nunique() <= MOST_LABELS
        self.labels = sorted(labels.unique()) if by_label else []
        table = presence[columns].astype(int).assign(people=1)
        for name in self.labels:
            table[f"{_LABEL}{name}"] = (labels == name).astype(int)
        table = table.groupby(columns, as_index=False).sum()
        super().__init__(table.sort_values("people", ascending=False, kind="stable"))

    @classmethod
    def from_data(cls, data: MultiView, y: Any = None) -> Self:
        """Show the patterns of some data.

        Parameters
        ----------
        data : MultiView
        y : array-like of shape (n_samples,), optional
            Labels.
        """
        has = {f"{_HAS}{v}": data.view(v).present.astype(int) for v in data.view_names}
        table = pd.DataFrame(has)
        if y is not None:
            table["label"] = np.asarray(y)
        return cls(table)

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """Show the patterns of the data of a comparison."""
        results = results_of(result)
        return cls(results.table("presence"), by_label=bool(results.classes))

    @property
    def people(self) -> int:
        """Number of samples over all patterns."""
        return int(self.table["people"].sum())

    def present(self, view: str) -> int:
        """Return the number of samples that have a view."""
        return int((self.table[f"{_HAS}{view}"] * self.table["people"]).sum())

    def _sentence(self) -> str:
        columns = [f"{_HAS}{v}" for v in self.views]
        whole = self.table[self.table[columns].all(axis=1)]["people"].sum()
        lacking = ", ".join(
            f"{missing:,} {'has' if missing == 1 else 'have'} no {plain(v)}"
            for v in self.views
            if (missing := self.people - self.present(v))
        )
        text = f"Of {count(self.people, 'sample')}, {int(whole):,} have all "
        text += count(len(self.views), "view")
        return f"{text}; {lacking}." if lacking else f"{text}."

    def _draw(self, style: Style, *, most: int = 12) -> None:
        """Draw a row per pattern: filled dots for present views, and a bar with the count."""
        shown = self.table.head(most)
        # Names of views are written vertically above the dots.
        high = 0.09 * max((min(len(v), 22) + 5 for v in self.views), default=5)
        height = max(1.8, 0.3 * len(shown) + high + 0.8)
        dots, bars = self._axes(style, height, (max(1.0, 0.28 * len(self.views)), 2.2))
        self._dots(dots, shown, style)
        self._bars(bars, shown, style)
        bars.set_ylim(dots.get_ylim())
        more = len(self.table) - len(shown)
        note = f"\n({more:,} rarer patterns not drawn)" if more else ""
        bars.set_xlabel(f"Samples{note}", loc="right")

    def _dots(self, ax: Any, shown: pd.DataFrame, style: Style) -> None:
        has = shown[[f"{_HAS}{v}" for v in self.views]].to_numpy(dtype=bool)
        y, x = np.mgrid[: has.shape[0], : has.shape[1]]
        ax.plot(x[has], y[has], linestyle="none", marker="o", markersize=7, color=style.colour(0))
        ax.plot(
            x[~has], y[~has], linestyle="none", marker="o", markersize=7, markerfacecolor="none",
            markeredgecolor=style.faint,
        )  # fmt: skip
        short = short_names(self.views, 22)
        names = [f"{n} ({self.present(v):,})" for n, v in zip(short, self.views, strict=True)]
        ax.xaxis.tick_top()
        ax.set_xticks(range(len(names)), names, rotation=90)
        ax.set_yticks([])
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.tick_params(length=0)
        for side in ax.spines.values():
            side.set_visible(False)

    def _bars(self, ax: Any, shown: pd.DataFrame, style: Style) -> None:
        parts = [shown[f"{_LABEL}{name}"] for name in self.labels] or [shown["people"]]
        handles = stacked_bars(ax, parts, style, height=0.62)
        for row, people in enumerate(shown["people"]):
            ax.text(
                people, row, f" {people:,}", va="center", color=style.ink, fontsize=style.size - 1
            )
        ax.set_xlim(0.0, float(shown["people"].max()) * 1.25)
        ax.set_yticks([])
        ax.locator_params(axis="x", integer=True)
        fit_ticks(ax, style, 0.5, most=4)
        if self.labels:
            legend(ax, handles, self.labels, style)
