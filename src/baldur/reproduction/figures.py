"""The figures of the page: features in every fold, and brain maps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from baldur import plots
from baldur.report.formatting import count, number
from baldur.report.pictures import Plan, draw
from baldur.reproduction.document import Cell, Figure, Table
from baldur.reproduction.evidence import Evidence
from baldur.reproduction.protocol import DEFAULT, PAPER

NAMES = {PAPER: "BALDUR, the paper's posterior", DEFAULT: "BALDUR, our default"}
"""What our two rows are called on the page."""
FIGURES = "figures"
"""Folder of the figures of the Markdown page."""
_DPI = 110  # about 570 pixels wide, and some tens of kilobytes

_KINDS: Mapping[str, tuple[Any, str]] = {
    "features": (
        plots.FoldWeightsDisplay,
        "features selected in each fold and their absolute weights, as in the paper's figure of "
        "features per fold",
    ),
    "brain": (
        plots.BrainDisplay,
        "voxels that at least one fold selects, with mean weights, and their overlap, as in the "
        "paper's figure of brain regions",
    ),
}
"""Kind of a figure to the class that draws it, and its caption."""


def selected_features(evidence: Evidence, folder: Path) -> list[Any]:
    """Return the table of selected features by view, and the figure of each fold's features."""
    views = list(evidence.result.data.n_features)
    rows: list[list[Cell | str]] = []
    for model in _drawn(evidence):
        counts = evidence.selected(model)
        cells = [Cell(number(counts[v].mean(), 1), _used(counts[v])) for v in views]
        rows.append([NAMES[model], *cells])
    table = Table(
        "Selected features: mean over folds (folds that use the view)",
        ["Model", *views],
        rows,
    )
    return [table, *_figures(evidence, "features", folder)]


def _drawn(evidence: Evidence) -> list[str]:
    return [model for model in NAMES if model in evidence.table.index]


def _used(counts: Any) -> str:
    return f"{int((counts > 0).sum())} of {count(len(counts), 'fold')}"


def brain_maps(evidence: Evidence, folder: Path) -> list[Any]:
    """Return the figures of the selected voxels of both images."""
    lead = "The figures show slices through the centre of the weights."
    if evidence.simulated:
        lead += (
            " The simulated brain is an ellipsoid; the template below it only serves orientation. "
            "Signal was put into two patches at the hippocampi in both images, one at the "
            "ventricles in the intensities, and one in the cerebellum in grey matter."
        )
    return [lead, *_figures(evidence, "brain", folder)]


def _figures(evidence: Evidence, kind: str, folder: Path) -> list[Any]:
    """Draw the figure of both models for both pages; say in words which cannot be drawn."""
    display, caption = _KINDS[kind]
    plans = {}
    for model in _drawn(evidence):
        name = f"{evidence.protocol.name}-{kind}-{'paper' if model == PAPER else 'default'}"
        make = partial(display.from_result, evidence.result, model)
        plans[name] = Plan(name, "", f"{NAMES[model]}: {caption}", make, wide=True)
    pictures, left = draw(list(plans.values()))
    blocks: list[Any] = []
    for picture in pictures:
        file = f"{FIGURES}/{picture.id}.png"
        plans[picture.id].make().plot(theme="light").save(folder / file, dpi=_DPI)
        blocks.append(Figure(picture, file))
    return [*blocks, *([[f"Not drawn: {text}" for text in left]] if left else [])]
