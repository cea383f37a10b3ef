"""Where selected features lie: brain maps, and variants along the chromosomes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.plots.display import Display, results_of, rows_of_model
from baldur.plots.style import Style, imaging, matplotlib, spaced
from baldur.plots.text import label, listed, number, plain
from baldur.views.validate import counted

# Dark blue below zero and light orange above, which differ in grey too. Zero is not drawn.
_COLOURS = ("#00345c", "#0072B2", "#9cc7e3", "#fbe3b5", "#f3b94a", "#E69F00")

# Inches of the title above a row of slices, and of the legend below the last.
_TITLE, _LEGEND = 0.32, 0.5


def _weights(model: Any, view: str, output: str | None) -> np.ndarray:
    """Return the weights of a view for one class (`output`), or for all of them.

    Shapes: returns (classes, features); two classes share one row.
    """
    weights = np.asarray(model.coef_scaled_[view])
    if output is None:
        return weights
    names = [str(c) for c in getattr(model, "classes_", [])]
    if output not in names:
        raise InputError(f"There is no class {output!r}, only {names}.")
    place = names.index(output)
    if len(weights) > 1:
        return weights[[place]]
    # The weights of two classes are those of the second; of the first they have the other sign.
    return weights if place else -weights


class BrainDisplay(Display):
    """Weights on slices of the brain, a row per view and one for the overlap.

    ``plot(cut_coords=(x, y, z))`` sets the position of the slices in millimetres; by default they
    go through the largest weights. ``plot(background=...)`` sets the image below the weights: "mni"
    for the template that comes with nilearn (default), another image, or None.

    Parameters
    ----------
    table : DataFrame
        One row per selected voxel or region: view, feature, weight, and i, j, k (voxels) or label
        (regions).
    grids : dict of str to dict
        For each view shape and affine of its images, and for regions kind ("regions") and atlas;
        as in the attrs of `feature_info` of a view read by `read_nifti`.
    value : str, default="Weight per s.d."
        Meaning of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from baldur.plots import BrainDisplay
    >>> table = pd.DataFrame({"view": "grey", "feature": ["v0", "v1"], "weight": [-0.5, 0.2],
    ...                       "i": [0, 1], "j": [1, 1], "k": [0, 1]})
    >>> BrainDisplay(table, {"grey": {"shape": (2, 2, 2), "affine": np.eye(4)}}).alt_text
    'Brain slices showing 2 voxels of grey with weights from -0.5 to 0.2.'
    """

    nothing = ("", "No voxel was selected.")

    def __init__(
        self,
        table: pd.DataFrame,
        grids: Mapping[str, Mapping[str, Any]],
        *,
        value: str = "Weight per s.d.",
    ) -> None:
        super().__init__(table)
        self.grids = {name: dict(grid) for name, grid in grids.items()}
        self.value = value

    @classmethod
    def from_estimator(cls, model: Any, output: str | None = None) -> Self:
        """Show the selected voxels or regions of a fitted model.

        Parameters
        ----------
        model : fitted estimator
            With at least one view read by `read_nifti`.
        output : str, optional
            Class whose weights are shown; by default the positive or the last one.
        """
        parts, grids = [], {}
        for view in model.view_names_:
            info = model.feature_info_.get(view)
            if info is None or not {"shape", "affine"} <= set(info.attrs):
                continue
            grids[view] = dict(info.attrs)
            selected = np.flatnonzero(model.selected_features_[view])
            part = info.iloc[selected].assign(
                view=view,
                feature=np.asarray(model.feature_names_[view])[selected].astype(str),
                weight=_weights(model, view, output)[-1, selected],
            )
            part.attrs = {}
            parts.append(part)
        if not grids:
            raise InputError("No view of the model is made of images.")
        return cls(pd.concat(parts), grids)

    @classmethod
    def from_result(cls, result: Any, model: str | None = None, least: float = 0.0) -> Self:
        """Show the voxels or regions that the folds of one model select, with mean weights.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        model : str, optional
            Default: the first.
        least : float, default=0
            Smallest share of folds that select a voxel.
        """
        results = results_of(result)
        grids = results.grids
        if not grids:
            raise InputError("No view of these results is made of images.")
        selection, _ = rows_of_model(results, "selection", model, "selected features")
        rows = selection[(selection["feature"] != "*") & selection["view"].isin(list(grids))]
        rows = rows[rows["frequency"].astype(float) >= least]
        rows = rows.drop_duplicates(["view", "feature"], keep="last")
        rows = rows[["view", "feature", "mean_weight", "frequency"]]
        table = rows.merge(results.table("feature_locations"), on=["view", "feature"])
        table = table.rename(columns={"mean_weight": "weight"})
        return cls(table, grids, value="Mean weight per s.d.")

    @property
    def _is_empty(self) -> bool:
        return not self._drawn

    @property
    def _drawn(self) -> list[str]:
        """Views with selected voxels."""
        return [v for v in self.views if (self.table["view"] == v).any()]

    @property
    def views(self) -> list[str]:
        """Names of the views made of images."""
        return list(self.grids)

    def image(self, view: str) -> Any:
        """Return the weights of a view as an image, with 0 where nothing was selected."""
        if view not in self.grids:
            raise InputError(f"There is no view {view!r} of images, only {self.views}.")
        part = pd.DataFrame(self.table[self.table["view"] == view].reset_index(drop=True))
        # A model that selects features without weights gets 1 instead.
        weight = part["weight"].astype(float).fillna(1.0).to_numpy()
        for axis in "ijk":
            if axis in part:
                part[axis] = pd.to_numeric(part[axis], errors="coerce").fillna(-1).astype(int)
        if "label" in part and self.grids[view].get("kind") == "regions":
            part["label"] = pd.to_numeric(part["label"]).astype(int)
        part.attrs.update(self.grids[view])
        from baldur.io.nifti import to_nifti

        return to_nifti(weight, part)

    def overlap(self) -> Any:
        """Return an image of the views that select a voxel: 1 the first, 2 the second, 3 both.

        With more than two views the image has the number of views. Views on other grids are
        resampled to the grid of the first one.
        """
        image = imaging("nilearn.image")
        nib = imaging("nibabel")
        first = self.image(self.views[0])
        total = (np.asarray(first.dataobj) != 0).astype(np.int16)
        for number_of_view, view in enumerate(self.views[1:], start=2):
            other = self.image(view)
            marks = nib.Nifti1Image(
                (np.asarray(other.dataobj) != 0).astype(np.float32), other.affine
            )
            marks = image.resample_to_img(
                marks, first, interpolation="nearest", force_resample=False, copy_header=True
            )
            # Codes 1 and 2 add up to 3; of more views the selecting ones are counted.
            code = number_of_view if len(self.views) == 2 else 1
            total += code * (np.asarray(marks.dataobj) > 0.5).astype(np.int16)
        return nib.Nifti1Image(total, first.affine)

    def _sentence(self) -> str:
        """Return the alternative text: voxels or regions of each view, and their overlap."""
        texts = []
        for view in self.views:
            part = self.table[self.table["view"] == view]
            what = "region" if self.grids[view].get("kind") == "regions" else "voxel"
            text = f"{counted(len(part), what)} of {plain(view)}"
            if len(part) and part["weight"].notna().any():
                low, high = part["weight"].min(), part["weight"].max()
                text += f" with weights from {number(low)} to {number(high)}"
            texts.append(text)
        shared = ""
        if len(self.views) == 2 and len(self.table):
            both = int((np.asarray(self.overlap().dataobj) == 3).sum())
            shared = f"; both views select {both:,} voxels of the first one's grid"
        return f"Brain slices showing {' and '.join(texts)}{shared}."

    def _draw(
        self, style: Style, *, cut_coords: Sequence[float] | None = None, background: Any = "mni"
    ) -> None:
        """Draw three slices of each view, and of the overlap where there are several views."""
        views = self._drawn
        has_overlap = len(views) > 1
        rows = len(views) + has_overlap
        height = (style.width * 0.31 + _TITLE) * rows + has_overlap * _LEGEND
        axes = self._axes(style, height, (1.0,), (1.0,) * rows)
        self._place_axes(axes)
        if isinstance(background, str) and background == "mni":
            background = imaging("nilearn.datasets").load_mni152_template(resolution=2)
        cuts = tuple(cut_coords) if cut_coords is not None else self._cuts(views)
        look = {"bg_img": background, "cut_coords": cuts}  # arguments of nilearn
        for panel, view in zip(axes, views, strict=False):
            self._draw_view(panel, view, style, look)
        if has_overlap:
            self._draw_overlap(axes[-1], views, style, look)

    def _place_axes(self, axes: list[Any]) -> None:
        """Fix the positions of the axes now, because nilearn adds its own axes at them."""
        if not self._own_figure:
            self.figure_.draw_without_rendering()
            return
        self.figure_.set_layout_engine("none")
        inches = self.figure_.get_size_inches()[1]
        # The overlap has a legend below it, each row a title above it.
        below, title = (_LEGEND / inches if len(axes) > 1 else 0.0), _TITLE / inches
        row = (1.0 - below) / len(axes)
        for i, panel in enumerate(axes):
            panel.set_position((0.01, 1.0 - (i + 1) * row, 0.98, row - title))

    def _cuts(self, views: Sequence[str]) -> tuple[float, ...]:
        """Return the mean over the views of the voxel nearest to the centre of the weights."""
        nearest = []
        for view in views:
            image = self.image(view)
            size = np.abs(np.asarray(image.dataobj, dtype=float))
            voxels = np.argwhere(size > 0)
            mass = size[tuple(voxels.T)]
            affine = np.asarray(image.affine)
            points = voxels @ affine[:3, :3].T + affine[:3, 3]  # in millimetres
            # The centre itself may lie between two clusters.
            centre = (mass[:, None] * points).sum(axis=0) / mass.sum()
            nearest.append(points[int(np.argmin(((points - centre) ** 2).sum(axis=1)))])
        return tuple(np.mean(nearest, axis=0).tolist())

    def _slices(self, panel: Any, image: Any, style: Style, **look: Any) -> Any:
        """Draw three slices of an image by nilearn, with its texts in the colours of the style."""
        plotting = imaging("nilearn.plotting")
        drawn = plotting.plot_stat_map(
            image, figure=self.figure_, axes=panel, display_mode="ortho", black_bg=False,
            annotate=True, draw_cross=False, threshold=1e-12,  # only 0 is not drawn
            resampling_interpolation="nearest", **look,
        )  # fmt: skip
        for cut in drawn.axes.values():
            cut.ax.set_facecolor("none")
            for text in cut.ax.texts:
                text.set(color=style.ink, fontsize=style.size - 2, bbox=None)
        drawn.frame_axes.set_facecolor("none")
        panel.set_axis_off()
        return drawn

    def _draw_view(self, panel: Any, view: str, style: Style, look: dict[str, Any]) -> None:
        """Draw the weights of one view, in colours that are symmetric about zero."""
        image = self.image(view)
        largest = float(np.abs(np.asarray(image.dataobj)).max()) or 1.0
        cmap = matplotlib("colors").LinearSegmentedColormap.from_list("baldur", _COLOURS)
        drawn = self._slices(
            panel, image, style, cmap=cmap, vmin=-largest, vmax=largest, colorbar=True, **look
        )
        ticks = getattr(drawn, "_cbar", None)
        if ticks is not None:
            ticks.ax.tick_params(colors=style.ink, labelsize=style.size - 2)
        panel.set_title(label(view), loc="left")

    def _draw_overlap(
        self, panel: Any, views: list[str], style: Style, look: dict[str, Any]
    ) -> None:
        """Draw two views as a filling and an outline, or the number of views with a voxel."""
        colors, Patch = matplotlib("colors"), matplotlib("patches").Patch
        image = BrainDisplay(self.table, {v: self.grids[v] for v in views}).overlap()
        notes: list[str] | None = None
        if len(views) > 2:
            most = int(np.asarray(image.dataobj).max())
            # From light to dark, which grey prints show too.
            ramp = matplotlib().colormaps["cividis_r"](np.linspace(0.1, 1.0, max(most, 1)))
            shades = [colors.to_hex(colour) for colour in ramp]
            names = [counted(k, "view") for k in range(1, most + 1)]
            handles = [Patch(facecolor=shade) for shade in shades]
            cmap, ends = colors.ListedColormap(shades), {"vmin": 0.5, "vmax": most + 0.5}
            self._slices(panel, image, style, cmap=cmap, colorbar=False, **ends, **look)
        else:
            first, second = (_marks(image, codes) for codes in ((1, 3), (2, 3)))
            fill, line = style.colour(0), style.colour(1)
            cmap, ends = colors.ListedColormap([fill]), {"vmin": 0.0, "vmax": 1.0}
            drawn = self._slices(panel, first, style, cmap=cmap, colorbar=False, **ends, **look)
            drawn.add_contours(second, levels=[0.5], colors=[line], linewidths=2.0)
            handles = [Patch(facecolor=fill), Patch(facecolor="none", edgecolor=line, linewidth=2)]
            names, notes = views, [" (filled)", " (outlined)"]
        panel.set_title("overlap", loc="left")
        below = style.legend(panel, handles, names, notes=notes)
        below.set_loc("upper left")
        below.set_bbox_to_anchor((0.0, -0.02), panel.transAxes)


def _marks(image: Any, codes: Sequence[int]) -> Any:
    """Return an image with 1 where the given image has one of some codes."""
    nib = imaging("nibabel")
    cells = np.isin(np.asarray(image.dataobj), codes).astype(np.float32)
    return nib.Nifti1Image(cells, image.affine)


# Horizontal and vertical cells of a figure that can be distinguished; one point of each is drawn.
_ACROSS, _UP = 900, 120
_NAMED = 5
"""Number of variants that are named in the figure."""


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

    columns = ("feature", "chromosome", "position", "place", "value", "selected")
    nothing = ("", "There are no variants.")

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
            chromosome, position = table.get("chromosome", ""), table.get("position", table.index)
            table = table.assign(chromosome=chromosome, position=position)
            table["place"], self.bounds = _places(table)
            table = _thinned(table)
        super().__init__(table.reindex(columns=list(self.columns)))

    @classmethod
    def from_estimator(
        cls, model: Any, view: str | None = None, output: str | None = None, weights: bool = False
    ) -> Self:
        """Return the figure of one view of a fitted model; `plot` draws it.

        The values are inclusion probabilities, or absolute weights per standard deviation where
        the model has no such probabilities, or where `output` or `weights` asks for weights.

        Parameters
        ----------
        model : fitted estimator
        view : str, optional
            Default: the first view whose features have a chromosome.
        output : str, optional
            Class whose weights are shown; by default the largest over the classes.
        weights : bool, default=False
            Show absolute weights per standard deviation, also where the model has inclusion
            probabilities.
        """
        views, infos = list(model.view_names_), dict(model.feature_info_)
        located = [v for v in views if infos.get(v) is not None and "chromosome" in infos[v]]
        if view is None and not located:
            raise InputError(
                "No view has features with a chromosome; say which one to show with view=."
            )
        view = located[0] if view is None else view
        if view not in views:
            raise InputError(f"There is no view {view!r} in the model, only {views}.")
        size = np.abs(_weights(model, view, output)).max(axis=0)  # over the classes
        table = pd.DataFrame({"feature": np.asarray(model.feature_names_[view]).astype(str)})
        if (info := infos.get(view)) is not None:
            columns = [c for c in ("chromosome", "position") if c in info]
            table[columns] = info[columns].to_numpy()
        inclusion = getattr(model, "inclusion_probability_", {})
        by_weight = weights or not inclusion or output is not None
        table["value"] = size if by_weight else np.asarray(inclusion[view])
        table["selected"] = model.selected_features_[view]
        value = "|weight| per s.d." if by_weight else "Inclusion probability"
        return cls(table, value=value, view=view)

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
        """
        results = results_of(result)
        places = results.table("feature_locations")
        if not len(places) or "chromosome" not in places:
            raise InputError("No selected feature of these results has a chromosome.")
        located = places[places["chromosome"].fillna("").astype(str) != ""]
        named = [v for v in dict.fromkeys(located["view"]) if view is None or v == view]
        if not named:
            raise InputError(f"No selected feature of view {view!r} has a chromosome.")
        selection, _ = rows_of_model(results, "selection", model, "selected features")
        rows = selection[(selection["view"] == named[0]) & (selection["feature"] != "*")]
        rows = rows.drop_duplicates("feature")[["feature", "frequency"]]
        table = located[located["view"] == named[0]].merge(rows, on="feature")
        table = table.rename(columns={"frequency": "value"}).assign(selected=True)
        return cls(table, value="Share of folds that select it", view=named[0])

    @property
    def selected(self) -> pd.DataFrame:
        """The selected variants, the highest first."""
        chosen = self.table[self.table["selected"].astype(bool)]
        return chosen.sort_values("value", ascending=False, kind="stable")

    def _sentence(self) -> str:
        """Return the alternative text: the numbers of variants, and the highest selected."""
        of = f" of view {plain(self.view)}" if self.view else ""
        text = f"Manhattan plot of {counted(self.total, 'variant')}{of}"
        text += f" on {counted(len(self.bounds), 'chromosome')}"
        top = self.selected
        if not len(top):
            return f"{text}, none of them selected."
        rows = top.head(4).to_dict("records")
        highest = [f"{plain(r['feature'])} {number(r['value'])}" for r in rows]
        return f"{text}, {len(top):,} of them selected: {listed(highest)}."

    def _draw(self, style: Style) -> None:
        """Draw the variants; selected ones are large, and the highest five are named."""
        main = self._axes(style, 3.0)[0]
        shades = (style.colour(0), style.faint)
        order = {name: i for i, (name, _, _) in enumerate(self.bounds)}
        # Neighbouring chromosomes have different shades.
        shade_of = self.table["chromosome"].astype(str).map(order).to_numpy(dtype=int) % 2
        chosen = self.table["selected"].to_numpy(dtype=bool)
        place, value = (self.table[c].to_numpy(dtype=float) for c in ("place", "value"))
        for parity, shade in enumerate(shades):
            part = (shade_of == parity) & ~chosen
            main.plot(
                place[part], value[part], linestyle="none", marker=".", markersize=3,
                color=shade, rasterized=True,
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
        """Write the names of the highest selected variants beside them, where there is room."""
        left, right = self.bounds[0][1], self.bounds[-1][2]
        taken: list[tuple[float, float, float]] = []  # start, end and height of each name
        top = float(self.table["value"].max()) or 1.0
        for row in self.selected.head(_NAMED).to_dict("records"):
            x, y = float(row["place"]), float(row["value"])
            text = label(row["feature"], 16)
            length = (right - left) * len(text) / style.characters(1.0)
            side = "right" if x > (left + right) / 2 else "left"
            start = x - length if side == "right" else x
            end = start + length
            # Of two names that would overlap only the higher one is written.
            if any(start < b and a < end and abs(y - h) < 0.08 * top for a, b, h in taken):
                continue
            taken.append((start, end, y))
            ax.annotate(
                text, (x, y), xytext=(-5 if side == "right" else 5, 4),
                textcoords="offset points", ha=side, fontsize=style.size - 2.5, color=style.ink,
            )  # fmt: skip

    def _chromosomes(self, ax: Any, style: Style) -> None:
        """Write the names of the chromosomes below their middle."""
        left, right = self.bounds[0][1], self.bounds[-1][2]
        span = max(right - left, 1.0)
        ax.set_xlim(left - 0.01 * span, right + 0.01 * span)
        if len(self.bounds) == 1 and not self.bounds[0][0]:
            ax.set_xlabel("Feature")
            return
        names = {(start + end) / 2: label(name, 6) for name, start, end in self.bounds}
        # Only as many names as fit beside each other.
        ticks = spaced(names, span * (0.045 if not style.narrow else 0.07))
        ax.set_xticks(ticks, [names[tick] for tick in ticks])
        ax.tick_params(axis="x", length=0)
        ax.set_xlabel("Chromosome")


def _rank(name: str) -> tuple[int, int, str]:
    """Order chromosomes by number, then X, Y and the rest."""
    bare = re.sub(r"^chr(omosome)?", "", name, flags=re.IGNORECASE).upper()
    if bare.isdigit():
        return 0, int(bare), bare
    letters = {"X": 0, "Y": 1, "XY": 2, "MT": 3, "M": 3}
    return 1 if bare in letters else 2, letters.get(bare, 0), bare


def _places(table: pd.DataFrame) -> tuple[pd.Series, list[tuple[str, float, float]]]:
    """Return the place of each variant along the genome, and the bounds of the chromosomes.

    Chromosomes lie one after the other with gaps between them; bounds are name, start and end.
    """
    chromosome = table["chromosome"].astype(str)
    position = pd.to_numeric(table["position"], errors="coerce").astype(float)
    # Where a position of a chromosome is not known, the order of its rows is used.
    are_known = (position.abs() < np.inf).groupby(chromosome).transform("all")
    inside = position.where(are_known, position.groupby(chromosome).cumcount().astype(float))
    inside -= inside.groupby(chromosome).transform("min")
    lengths = inside.groupby(chromosome).max()
    lengths = lengths[sorted(lengths.index, key=_rank)]
    gap = 0.01 * lengths.sum() if len(lengths) > 1 else 0.0
    starts = (lengths + gap).shift(fill_value=0.0).cumsum()
    bounds = zip(lengths.index, starts.tolist(), (starts + lengths).tolist(), strict=True)
    return chromosome.map(starts) + inside, list(bounds)


def _thinned(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows to draw: selected variants, and the highest one in each cell."""
    place, value = table["place"].astype(float), table["value"].astype(float)
    value = value[np.isfinite(value)]
    span, top = max(float(np.ptp(place)), 1e-12), max(0.0, float(value.max()))
    across = ((place - place.min()) / span * (_ACROSS - 1)).astype(np.int64)
    up = (value / (top or 1.0) * (_UP - 1)).astype(np.int64)
    highest = value.groupby([across[value.index], up]).idxmax()
    return table[table.index.isin(highest) | table["selected"].astype(bool)]
