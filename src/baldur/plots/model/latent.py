"""Samples in the latent space, by class or outcome where that is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.libraries import matplotlib
from baldur.plots.drawing.names import count, label, number, plain, sample_names
from baldur.plots.drawing.parts import empty, legend_height, name_rows, row_height
from baldur.plots.drawing.style import Style, style_of

MOST_VECTOR = 4000
"""Samples drawn as vectors; more of them are rasterised."""
MOST_COMBINATIONS = 6
"""Combinations of labels with a colour of their own."""
NO_LABEL, OTHER_LABELS = "no label", "other combinations"


class LatentDisplay(Display):
    """Latent factors of samples: a strip per class for one factor, a plane for several.

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

        Returns
        -------
        LatentDisplay
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
    def factors(self) -> list[str]:
        """Names of the columns of the table that are factors."""
        return [c for c in self.table.columns if str(c).startswith("factor")]

    @property
    def classes(self) -> list[str]:
        """Labels in alphabetical order; empty without labels."""
        return sorted(self.table["label"].astype(str).unique()) if self.labelled else []

    def separation(self) -> pd.Series:
        """Return the share of the variance of each factor that the labels explain, 0 without."""
        found = dict.fromkeys(self.factors, 0.0)
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
            found[name] = float(np.nan_to_num(share))
        return pd.Series(found, dtype=float)

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        text = f"{count(len(self.table), 'sample')} in {count(len(self.factors), 'latent factor')}"
        if not len(self.table) or not self.factors or not self.labelled:
            return text + "."
        share = self.separation()
        best = str(share.idxmax())
        text += f"; the outcome explains {share[best]:.0%} of {best}"
        if not self.continuous and len(self.classes) <= 5:
            means = self.table.groupby(self.table["label"].astype(str))[best].mean()
            listed = ", ".join(f"{plain(c)} {number(means[c])}" for c in self.classes)
            text += f", with means {listed}"
        return text + "."

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | None = None,
        width: float | None = None,
        factors: Sequence[str] | None = None,
    ) -> Self:
        """Draw the samples.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.
        factors : list of two str, optional
            Axes of the plane; by default the two factors that the labels explain best, or the
            first two without labels.

        Returns
        -------
        LatentDisplay
        """
        known = self.factors
        if factors is None:
            factors = [str(f) for f in self.separation().nlargest(2).index] if known else []
            factors = sorted(factors, key=known.index)
        wrong = [f for f in factors if f not in known]
        if wrong:
            raise InputError(
                f"The latent space has no factor {wrong[0]!r}; its factors are {known}."
            )
        plane = len(factors) > 1
        wide = style_of(theme, width).width
        strips = not plane and not self.continuous
        height = row_height(2 * max(1, len(self.classes)), 0.8) if strips else wide * 0.8 + 0.4
        if plane and not self.continuous:
            height += legend_height(self.classes, style_of(theme, width))
        with self._drawing(ax, theme, width, height) as (axes, style):
            main = axes[0]
            if not factors or not len(self.table):
                empty(main, "There are no samples in the latent space.", style)
            elif strips:
                self._strips(main, factors[0], style)
            elif self.continuous:
                self._outcome(main, factors, style)
            else:
                self._plane(main, factors, style)
        return self

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
