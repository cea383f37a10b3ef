"""Brain maps: the selected voxels or regions of each image view, and their overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.io.nifti import to_nifti
from baldur.plots.display import Display
from baldur.plots.drawing import empty, legend
from baldur.plots.results_tables import one_model, results_of
from baldur.plots.style import Style, count, imaging, label, matplotlib, number, plain, style_of

# Dark blue below zero and light orange above, which differ in grey too. Zero is not drawn.
_COLOURS = ("#00345c", "#0072B2", "#9cc7e3", "#fbe3b5", "#f3b94a", "#E69F00")


# Inches of the title above a row of slices, and of the legend below the last.
_TITLE, _LEGEND = 0.32, 0.5


class BrainDisplay(Display):
    """Weights on slices of the brain, a row per view and one for the overlap.

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

        Returns
        -------
        BrainDisplay
        """
        parts, grids = [], {}
        names = [str(c) for c in getattr(model, "classes_", [])]
        for view in model.view_names_:
            info = model.feature_info_.get(view)
            if info is None or not {"shape", "affine"} <= set(info.attrs):
                continue
            coef = model.coef_scaled_[view]
            row = names.index(output) if output in names and len(coef) > 1 else len(coef) - 1
            chosen = np.flatnonzero(model.selected_features_[view])
            part = info.iloc[chosen].reset_index(drop=True)
            part.attrs = {}
            part = part.assign(
                view=view,
                feature=np.asarray(model.feature_names_[view])[chosen].astype(str),
                weight=coef[row, chosen],
            )
            parts.append(part)
            grids[view] = dict(info.attrs)
        if not grids:
            raise InputError("No view of the model is made of images.")
        return cls(pd.concat(parts, ignore_index=True), grids)

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

        Returns
        -------
        BrainDisplay
        """
        found = results_of(result)
        grids = found.grids()
        if not grids:
            raise InputError("No view of these results is made of images.")
        selection = found.table("selection")
        name = one_model(selection, model, "selected features")
        rows = selection[(selection["model"] == name) & (selection["feature"] != "*")]
        rows = rows[rows["frequency"].astype(float) >= least]
        rows = rows.drop_duplicates(["view", "feature"], keep="last")
        places = found.table("feature_locations")
        columns = ["view", "feature", "mean_weight", "frequency"]
        table = rows[rows["view"].isin(list(grids))][columns].merge(places, on=["view", "feature"])
        table = table.rename(columns={"mean_weight": "weight"})
        return cls(table, grids, value="Mean weight per s.d.")

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
        for number_, view in enumerate(self.views[1:], start=2):
            other = self.image(view)
            marks = nib.Nifti1Image(
                (np.asarray(other.dataobj) != 0).astype(np.float32), other.affine
            )
            if other.shape != first.shape or not np.allclose(other.affine, first.affine):
                marks = image.resample_to_img(
                    marks, first, interpolation="nearest", force_resample=True, copy_header=True
                )
            step = number_ if len(self.views) == 2 else 1
            total += step * (np.asarray(marks.dataobj) > 0.5).astype(np.int16)
        return nib.Nifti1Image(total, first.affine)

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        said = []
        for view in self.views:
            part = self.table[self.table["view"] == view]
            what = "region" if self.grids[view].get("kind") == "regions" else "voxel"
            text = f"{count(len(part), what)} of {plain(view)}"
            if len(part) and part["weight"].notna().any():
                low, high = part["weight"].min(), part["weight"].max()
                text += f" with weights from {number(low)} to {number(high)}"
            said.append(text)
        return f"Brain slices showing {' and '.join(said)}{self._shared()}."

    def _shared(self) -> str:
        if len(self.views) != 2 or not len(self.table):
            return ""
        both = int((np.asarray(self.overlap().dataobj) == 3).sum())
        return f"; both views select {both:,} voxels of the first one's grid"

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | None = None,
        width: float | None = None,
        cut_coords: Sequence[float] | None = None,
        background: Any = "mni",
    ) -> Self:
        """Draw three slices of each view, and of the overlap where there are several views.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.
        cut_coords : three floats, optional
            Position of the slices in millimetres; by default through the largest weights.
        background : "mni", image, or None
            Image below the weights: the template that comes with nilearn, another image, or none.

        Returns
        -------
        BrainDisplay
        """
        shown = [v for v in self.views if (self.table["view"] == v).any()]
        rows = len(shown) + (1 if len(shown) > 1 else 0)
        height = (
            style_of(theme, width).width * 0.31 * max(1, rows)
            + _TITLE * max(1, rows)
            + (_LEGEND if rows > 1 else 0.0)
        )
        with self._drawing(ax, theme, width, height, (1.0,), (1.0,) * max(1, rows)) as (
            axes,
            style,
        ):
            if not shown:
                empty(axes[0], "No voxel was selected.", style)
                return self
            self._place_axes(axes)
            under = self._background(background)
            cuts = tuple(cut_coords) if cut_coords is not None else self._cuts(shown)
            for panel, view in zip(axes, shown, strict=False):
                self._weights(panel, view, cuts, under, style)
            if len(shown) > 1:
                self._both(axes[-1], shown, cuts, under, style)
        return self

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

    def _background(self, background: Any) -> Any:
        if not isinstance(background, str) or background != "mni":
            return background
        datasets = imaging("nilearn.datasets")
        return datasets.load_mni152_template(resolution=2)

    def _cuts(self, views: Sequence[str]) -> tuple[float, ...]:
        """Return the mean over the views of the voxel nearest to the centre of the weights."""
        sums, total = np.zeros(3), 0.0
        for view in views:
            made = self.image(view)
            size = np.abs(np.asarray(made.dataobj, dtype=float))
            at = np.argwhere(size > 0)
            mass = size[tuple(at.T)]
            points = at @ np.asarray(made.affine)[:3, :3].T + np.asarray(made.affine)[:3, 3]
            # The centre itself may lie between two clusters.
            centre = (mass[:, None] * points).sum(axis=0) / mass.sum()
            sums += points[int(np.argmin(((points - centre) ** 2).sum(axis=1)))]
            total += 1.0
        return tuple(float(c) for c in sums / max(total, 1.0))

    def _draw(
        self, panel: Any, made: Any, cuts: tuple[float, ...], under: Any, style: Style, **look: Any
    ) -> Any:
        plotting = imaging("nilearn.plotting")
        drawn = plotting.plot_stat_map(
            made, bg_img=under, figure=self.figure_, axes=panel, display_mode="ortho",
            cut_coords=cuts, black_bg=False, annotate=True,
            draw_cross=False, threshold=1e-12, resampling_interpolation="nearest", **look,
        )  # fmt: skip
        for cut in drawn.axes.values():
            cut.ax.set_facecolor("none")
            for text in cut.ax.texts:
                text.set(color=style.ink, fontsize=style.size - 2, bbox=None)
        drawn.frame_axes.set_facecolor("none")
        panel.set_axis_off()
        return drawn

    def _weights(
        self, panel: Any, view: str, cuts: tuple[float, ...], under: Any, style: Style
    ) -> None:
        colors = matplotlib("colors")
        made = self.image(view)
        top = float(np.abs(np.asarray(made.dataobj)).max()) or 1.0
        colours = colors.LinearSegmentedColormap.from_list("baldur", _COLOURS)
        drawn = self._draw(
            panel, made, cuts, under, style, cmap=colours, vmin=-top, vmax=top, colorbar=True
        )
        ticks = getattr(drawn, "_cbar", None)
        if ticks is not None:
            ticks.ax.tick_params(colors=style.ink, labelsize=style.size - 2)
        panel.set_title(label(view), loc="left")

    def _both(
        self,
        panel: Any,
        views: Sequence[str],
        cuts: tuple[float, ...],
        under: Any,
        style: Style,
    ) -> None:
        """Draw two views as a filling and an outline, or the number of views with a voxel."""
        colors = matplotlib("colors")
        Patch = matplotlib("patches").Patch
        made = BrainDisplay(self.table, {v: self.grids[v] for v in views}).overlap()
        if len(views) > 2:
            most = int(np.asarray(made.dataobj).max())
            # From light to dark, which grey prints show too.
            shades = [colors.to_hex(c) for c in _steps(most)]
            names, notes = [count(k, "view") for k in range(1, most + 1)], None
            handles = [Patch(facecolor=shade) for shade in shades]
            look = {"vmin": 0.5, "vmax": most + 0.5, "colorbar": False}
            self._draw(panel, made, cuts, under, style, cmap=colors.ListedColormap(shades), **look)
        else:
            first, second = (_marks(made, codes) for codes in ((1, 3), (2, 3)))
            fill, line = style.colour(0), style.colour(1)
            look = {"vmin": 0.0, "vmax": 1.0, "colorbar": False}
            cmap = colors.ListedColormap([fill])
            drawn = self._draw(panel, first, cuts, under, style, cmap=cmap, **look)
            drawn.add_contours(second, levels=[0.5], colors=[line], linewidths=2.0)
            handles = [Patch(facecolor=fill), Patch(facecolor="none", edgecolor=line, linewidth=2)]
            names, notes = list(views), [" (filled)", " (outlined)"]
        panel.set_title("overlap", loc="left")
        below = legend(panel, handles, names, style, notes=notes)
        below.set_loc("upper left")
        below.set_bbox_to_anchor((0.0, -0.02), panel.transAxes)


def _marks(made: Any, codes: Sequence[int]) -> Any:
    """Return an image with 1 where the given image has one of some codes."""
    nib = imaging("nibabel")
    return nib.Nifti1Image(np.isin(np.asarray(made.dataobj), codes).astype(np.float32), made.affine)


def _steps(count: int) -> np.ndarray:
    """Return so many colours from light to dark."""
    colormaps = matplotlib().colormaps
    return np.asarray(colormaps["cividis_r"](np.linspace(0.1, 1.0, max(count, 1))))
