"""Manhattan plot: one number per variant along the chromosomes, thinned to what can be seen."""

from __future__ import annotations

import re
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.plots.display import Display
from baldur.plots.drawing import empty
from baldur.plots.results_tables import one_model, results_of
from baldur.plots.style import Style, count, label, number, plain

# Horizontal and vertical cells of a figure that can be distinguished; one point of each is drawn.
_ACROSS, _UP = 900, 120
_NAMED = 5
"""Number of variants that are named in the figure."""
COLUMNS = ["feature", "chromosome", "position", "place", "value", "selected"]


class ManhattanDisplay(Display):
    """One number per variant, along the genome.

    Parameters
    ----------
    table : DataFrame
        feature, chromosome, position, value, selected; one row per variant. Without a chromosome
        the variants are drawn in the order of the rows.
    value : str, default="Inclusion probability"
        Meaning of the numbers.
    view : str, optional
        Name of the view.

    Attributes
    ----------
    table : DataFrame
        The variants that are drawn, with their place along the genome: all selected variants, and
        the highest of the others in each cell of the figure.
    total : int
        Number of variants before thinning.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import ManhattanDisplay
    >>> table = pd.DataFrame({"feature": ["rs1", "rs2", "rs3"], "chromosome": ["1", "1", "X"],
    ...                       "position": [100, 900, 50], "value": [0.02, 0.91, 0.1],
    ...                       "selected": [False, True, False]})
    >>> ManhattanDisplay(table, view="snps").alt_text
    'Manhattan plot of 3 variants of view snps on 2 chromosomes, 1 of them selected: rs2 0.91.'
    """

    def __init__(
        self,
        table: pd.DataFrame,
        *,
        value: str = "Inclusion probability",
        view: str | None = None,
    ) -> None:
        table = pd.DataFrame(table).reset_index(drop=True)
        self.value, self.view, self.total = value, view, len(table)
        self.bounds: list[tuple[str, float, float]] = []
        if len(table):
            table["place"], self.bounds = _places(table)
            table = table.iloc[_thinned(table)].reset_index(drop=True)
        super().__init__(table.reindex(columns=COLUMNS))

    @classmethod
    def from_estimator(
        cls, model: Any, view: str | None = None, output: str | None = None, weights: bool = False
    ) -> Self:
        """Show the variants of one view of a fitted model.

        Parameters
        ----------
        model : fitted estimator
        view : str, optional
            Default: the view whose features have a chromosome.
        output : str, optional
            Class whose weights are shown; by default the largest over the classes.
        weights : bool, default=False
            Show absolute weights per standard deviation, also where the model has inclusion
            probabilities.

        Returns
        -------
        ManhattanDisplay
        """
        view = _genotypes(dict(model.feature_info_), view, list(model.view_names_))
        inside = getattr(model, "inclusion_probability_", None)
        coef = np.abs(model.coef_scaled_[view])
        if output is not None:
            names = [str(c) for c in getattr(model, "classes_", [])]
            if output not in names:
                raise InputError(f"There is no class {output!r}, only {names}.")
            coef = coef[[names.index(output) if len(coef) > 1 else 0]]
        by_weight = weights or inside is None or output is not None
        value = coef.max(axis=0) if by_weight or inside is None else np.asarray(inside[view])
        table = _located(
            np.asarray(model.feature_names_[view]).astype(str), model.feature_info_.get(view)
        )
        table["value"], table["selected"] = value, model.selected_features_[view]
        called = "|weight| per s.d." if by_weight else "Inclusion probability"
        return cls(table, value=called, view=view)

    @classmethod
    def from_result(cls, result: Any, model: str | None = None, view: str | None = None) -> Self:
        """Show the share of folds that select each variant.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        model : str, optional
            Default: the first.
        view : str, optional
            Default: the view whose features have a chromosome.

        Returns
        -------
        ManhattanDisplay
        """
        found = results_of(result)
        places = found.table("feature_locations")
        if not len(places) or "chromosome" not in places:
            raise InputError("No selected feature of these results has a chromosome.")
        located = places[places["chromosome"].fillna("").astype(str) != ""]
        named = [v for v in dict.fromkeys(located["view"]) if view is None or v == view]
        if not named:
            raise InputError(f"No selected feature of view {view!r} has a chromosome.")
        selection = found.table("selection")
        name = one_model(selection, model, "selected features")
        rows = selection[(selection["model"] == name) & (selection["view"] == named[0])]
        rows = rows[rows["feature"] != "*"].drop_duplicates("feature")
        table = located[located["view"] == named[0]].merge(
            rows[["feature", "frequency"]], on="feature"
        )
        table = table.rename(columns={"frequency": "value"}).assign(selected=True)
        return cls(table, value="Share of folds that select it", view=named[0])

    @property
    def selected(self) -> pd.DataFrame:
        """The selected variants, the highest first."""
        chosen = self.table[self.table["selected"].astype(bool)]
        return chosen.sort_values("value", ascending=False, kind="stable")

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        of = f" of view {plain(self.view)}" if self.view else ""
        text = f"Manhattan plot of {count(self.total, 'variant')}{of}"
        text += f" on {count(len(self.bounds), 'chromosome')}"
        top = self.selected
        listed = "; ".join(
            f"{plain(r['feature'])} {number(r['value'])}" for r in top.head(3).to_dict("records")
        )
        if not len(top):
            return f"{text}, none of them selected."
        more = ", and more" if len(top) > 3 else ""
        return f"{text}, {len(top):,} of them selected: {listed}{more}."

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw the variants; selected ones are large, and the highest five are named."""
        with self._drawing(ax, theme, width, 3.0) as (axes, style):
            main = axes[0]
            if not len(self.table):
                empty(main, "There are no variants.", style)
                return
            shades = (style.colour(0), style.faint)
            order = {name: i for i, (name, _, _) in enumerate(self.bounds)}
            at = self.table["chromosome"].astype(str).map(order).fillna(0).to_numpy(dtype=int) % 2
            chosen = self.table["selected"].to_numpy(dtype=bool)
            place, value = (self.table[c].to_numpy(dtype=float) for c in ("place", "value"))
            for parity in (0, 1):
                mine = (at == parity) & ~chosen
                main.plot(
                    place[mine], value[mine], linestyle="none", marker=".", markersize=3,
                    color=shades[parity], rasterized=True,
                )  # fmt: skip
            main.plot(
                place[chosen], value[chosen], linestyle="none", marker="D", markersize=5.5,
                color=style.colour(1), markeredgecolor=style.ink, markeredgewidth=0.5, zorder=3,
            )  # fmt: skip
            self._names(main, style)
            self._chromosomes(main, style)
            main.set_ylabel(self.value)
            top = float(np.nanmax(value)) if np.isfinite(value).any() else 1.0
            main.set_ylim(-0.02 * (top or 1.0), (top or 1.0) * 1.15)

    def _names(self, ax: Any, style: Style) -> None:
        left, right = self.bounds[0][1], self.bounds[-1][2]
        taken: list[tuple[float, float, float]] = []
        top = float(self.table["value"].max()) or 1.0
        for row in self.selected.head(_NAMED).to_dict("records"):
            x, y = float(row["place"]), float(row["value"])
            text = label(row["feature"], 16)
            wide = (right - left) * len(text) / style.characters(1.0)
            side = "right" if x > (left + right) / 2 else "left"
            start = x - wide if side == "right" else x
            # Of two names that would overlap only the higher one is written.
            if any(start < b and a < start + wide and abs(y - h) < 0.08 * top for a, b, h in taken):
                continue
            taken.append((start, start + wide, y))
            ax.annotate(
                text, (x, y), xytext=(-5 if side == "right" else 5, 4),
                textcoords="offset points", ha=side, fontsize=style.size - 2.5, color=style.ink,
            )  # fmt: skip

    def _chromosomes(self, ax: Any, style: Style) -> None:
        left, right = self.bounds[0][1], self.bounds[-1][2]
        span = max(right - left, 1.0)
        ax.set_xlim(left - 0.01 * span, right + 0.01 * span)
        if len(self.bounds) == 1 and not self.bounds[0][0]:
            ax.set_xlabel("Feature")
            return
        ticks, names, last = [], [], -np.inf
        room = span * (0.045 if not style.narrow else 0.07)
        for name, start, end in self.bounds:
            middle = (start + end) / 2
            # Only as many names as fit beside each other.
            if middle - last >= room:
                ticks.append(middle)
                names.append(label(name, 6))
                last = middle
        ax.set_xticks(ticks, names)
        ax.tick_params(axis="x", length=0)
        ax.set_xlabel("Chromosome")


def _genotypes(info: dict[str, Any], view: str | None, views: list[str]) -> str:
    if view is not None:
        if view not in views:
            raise InputError(f"There is no view {view!r} in the model, only {views}.")
        return view
    placed = [v for v in views if info.get(v) is not None and "chromosome" in info[v]]
    if not placed:
        raise InputError(
            "No view has features with a chromosome; say which one to show with view=."
        )
    return placed[0]


def _located(names: np.ndarray, info: pd.DataFrame | None) -> pd.DataFrame:
    table = pd.DataFrame({"feature": names})
    for column in ("chromosome", "position"):
        if info is not None and column in info:
            table[column] = info[column].to_numpy()
    return table


def _rank(name: str) -> tuple[int, int, str]:
    """Order chromosomes by number, then X, Y and the rest."""
    bare = re.sub(r"^chr(omosome)?", "", name, flags=re.IGNORECASE).upper()
    if bare.isdigit():
        return 0, int(bare), bare
    letters = {"X": 0, "Y": 1, "XY": 2, "MT": 3, "M": 3}
    return 1 if bare in letters else 2, letters.get(bare, 0), bare


def _places(table: pd.DataFrame) -> tuple[np.ndarray, list[tuple[str, float, float]]]:
    """Return the place of each variant, and name, start and end of each chromosome."""
    n = len(table)
    if "chromosome" not in table:
        table["chromosome"] = ""
    if "position" not in table:
        table["position"] = np.arange(n)
    codes, names = pd.factorize(table["chromosome"].astype(str), sort=False)
    position = pd.to_numeric(table["position"], errors="coerce").to_numpy(dtype=float)
    place = np.zeros(n)
    bounds: list[tuple[str, float, float]] = []
    start = 0.0
    lengths = {}
    for c in range(len(names)):
        mine = position[codes == c]
        # Without positions the order of the rows is used.
        if not np.isfinite(mine).all():
            mine = np.arange(len(mine), dtype=float)
        lengths[c] = (mine - mine.min(), float(np.ptp(mine)))
    gap = 0.01 * sum(length for _, length in lengths.values()) if len(names) > 1 else 0.0
    for c in sorted(range(len(names)), key=lambda c: _rank(str(names[c]))):
        inside, length = lengths[c]
        place[codes == c] = start + inside
        bounds.append((str(names[c]), start, start + length))
        start += length + gap
    return place, bounds


def _thinned(table: pd.DataFrame) -> np.ndarray:
    """Return the rows to draw: selected variants, and the highest one in each cell."""
    place, value = (table[c].to_numpy(dtype=float) for c in ("place", "value"))
    known = np.isfinite(value)
    span, top = max(float(np.ptp(place)), 1e-12), float(np.max(value[known], initial=0.0))
    across = ((place - place.min()) / span * (_ACROSS - 1)).astype(np.int64)
    up = (np.nan_to_num(value) / (top or 1.0) * (_UP - 1)).astype(np.int64)
    cell = across * _UP + up
    order = np.argsort(-np.nan_to_num(value), kind="stable")
    _, first = np.unique(cell[order], return_index=True)
    chosen = np.zeros(len(table), dtype=bool)
    chosen[order[first]] = True
    chosen &= known
    return np.flatnonzero(chosen | table["selected"].to_numpy(dtype=bool))
