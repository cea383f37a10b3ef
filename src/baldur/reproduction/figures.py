"""The figures of the page: features in every fold, and brain maps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from baldur import plots
from baldur.report.formatting import count, number
from baldur.report.pictures import Plan, draw
from baldur.reproduction.document import Cell, Figure, Table
from baldur.reproduction.evidence import Evidence
from baldur.reproduction.protocol import DEFAULT, PAPER

__all__ = ["FIGURES", "NAMES", "brain_maps", "selected_features"]

NAMES = {PAPER: "BALDUR, the paper's posterior", DEFAULT: "BALDUR, our default"}
"""What our two rows are called on the page."""
FIGURES = "figures"
"""Folder of the figures of the Markdown page."""
_DPI = 110  # about 570 pixels wide, and some tens of kilobytes


def selected_features(evidence: Evidence, folder: Path) -> list[Any]:
    """Return the table of selected features by view, and the figure of each fold's features.

    Parameters
    ----------
    evidence : Evidence
        The figures of the run.
    folder : Path
        Where they are written as PNG files, below ``figures``.

    Returns
    -------
    list
        Blocks of a page.
    """
    models = [m for m in (PAPER, DEFAULT) if m in evidence.table.index]
    plans = [
        Plan(
            _figure_id(evidence, "features", m), "", _fold_caption(m),
            _fold_weights(evidence, m), wide=True,
        )
        for m in models
    ]  # fmt: skip
    views = list(evidence.result.data.n_features)
    rows: list[list[Cell | str]] = []
    for model in models:
        counts = evidence.selected(model)
        cells = [Cell(number(counts[v].mean(), 1), _used(counts[v])) for v in views]
        rows.append([NAMES[model], *cells])
    table = Table(
        "Selected features of each view: mean over folds, and number of folds that use the view",
        ["Model", *views],
        rows,
    )
    return [table, *_figures(plans, folder)]


def _figure_id(evidence: Evidence, what: str, model: str) -> str:
    return f"{evidence.protocol.name}-{what}-{'paper' if model == PAPER else 'default'}"


def _used(counts: Any) -> str:
    return f"{int((counts > 0).sum())} of {count(len(counts), 'fold')}"


def _fold_caption(model: str) -> str:
    return (
        f"{NAMES[model]}: features selected in each fold and their absolute weights, as in the "
        "paper's figure of features per fold"
    )


def _fold_weights(evidence: Evidence, model: str) -> Callable[[], Any]:
    return lambda: plots.FoldWeightsDisplay.from_result(evidence.result, model)


def brain_maps(evidence: Evidence, folder: Path) -> list[Any]:
    """Return the figures of the selected voxels of both images.

    Parameters
    ----------
    evidence : Evidence
        The figures of the run.
    folder : Path
        Where they are written as PNG files, below ``figures``.

    Returns
    -------
    list
        Blocks of a page.
    """
    models = [m for m in (PAPER, DEFAULT) if m in evidence.table.index]
    plans = [
        Plan(
            _figure_id(evidence, "brain", m), "",
            f"{NAMES[m]}: voxels that at least one fold selects, with mean weights, and their "
            "overlap, as in the paper's figure of brain regions",
            _brain_map(evidence, m), wide=True,
        )
        for m in models
    ]  # fmt: skip
    lead = "The figures show slices through the centre of the weights."
    if evidence.simulated:
        lead += (
            " The simulated brain is an ellipsoid; the template below it only serves orientation. "
            "Signal was put into two patches at the hippocampi in both images, one at the "
            "ventricles in the intensities, and one in the cerebellum in grey matter."
        )
    return [lead, *_figures(plans, folder)]


def _brain_map(evidence: Evidence, model: str) -> Callable[[], Any]:
    return lambda: plots.BrainDisplay.from_result(evidence.result, model)


def _figures(plans: list[Plan], folder: Path) -> list[Any]:
    """Draw the figures for both pages; one that cannot be drawn is said in words."""
    pictures, left = draw(plans)
    blocks: list[Any] = []
    for picture in pictures:
        plan = next(p for p in plans if p.id == picture.id)
        file = f"{FIGURES}/{plan.id}.png"
        plan.make().plot(theme="light").save(folder / file, dpi=_DPI)
        blocks.append(Figure(picture, file))
    return [*blocks, *([[f"Not drawn: {text}" for text in left]] if left else [])]
