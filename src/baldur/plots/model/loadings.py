"""Loadings: how outputs depend on the latent factors, and which views each factor comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.plots.drawing.cells import draw_cells
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.names import count, number, plain
from baldur.plots.drawing.parts import empty, name_columns, name_rows, row_height
from baldur.plots.drawing.style import Style

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

    @classmethod
    def from_estimator(cls, model: Any, outputs: Sequence[str] | None = None) -> Self:
        """Show the latent factors of a fitted model.

        Parameters
        ----------
        model : fitted estimator
        outputs : list of str, optional
            Names of the outputs; by default classes, or the numbers of labels or targets.

        Returns
        -------
        LoadingsDisplay
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
        columns = ["factor", "features", "kind", "name", "value"]
        return cls(pd.DataFrame(rows, columns=columns))

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
        made = part.pivot_table(index="name", columns="factor", values="value", sort=False)
        return made.reindex(columns=self.factors)

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        factors = self.factors
        if not factors:
            return "Loadings: the model has no latent factors."
        loadings, shares = self.wide(OUTPUT), self.wide(VIEW)
        if len(factors) == 1 and len(loadings) == 1:
            return "The model has one output and one factor, which is its score."
        said = []
        for factor in factors[:4]:
            column = loadings[factor].astype(float)
            best = str(column.abs().idxmax())
            views = shares[factor].sort_values(ascending=False)
            used = views[views >= _SHARED]
            source = ", ".join(f"{plain(v)} {s:.0%}" for v, s in used.items()) or "no view"
            said.append(
                f"{factor} moves {plain(best)} most ({number(float(column[best]))}) and "
                f"comes from {source}"
            )
        more = f"; {len(factors) - 4} more" if len(factors) > 4 else ""
        return (
            f"{count(len(loadings), 'output')} on {count(len(factors), 'latent factor')}: "
            f"{'; '.join(said)}{more}."
        )

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw the loadings above the shares of views, with a column for each factor."""
        factors = self.factors
        loadings, shares = (self.wide(kind) for kind in (OUTPUT, VIEW))
        heights = (max(2.0, len(loadings)) + 1.0, max(2.0, len(shares)) + 1.6)
        height = row_height(int(sum(heights)), 1.0)
        with self._drawing(ax, theme, width, height, (1.0,), heights) as (axes, style):
            if not factors:
                for one in axes:
                    empty(one, "The model has no latent factors.", style)
                return
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
