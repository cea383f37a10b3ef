"""report_run, report_result, report_model: one page from a folder, a result or a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from baldur.atomic_io import check_writable, write_atomically
from baldur.evaluation.result import NestedResult
from baldur.exceptions import InputError
from baldur.report.calculator import calculator_of
from baldur.report.facts import gather_facts
from baldur.report.fitted import FittedModel
from baldur.report.page import Page, check_extra, render
from baldur.report.pictures import draw, plans_of
from baldur.report.source import Run, open_run, run_of
from baldur.saving import SavedModel, load_model
from baldur.study.results import INDEX, REPORT, index_text

__all__ = ["report_folder", "report_model", "report_result"]

_MANIFEST = "manifest.json"


def report_folder(
    folder: str | Path,
    path: str | Path | None = None,
    *,
    model: str | Path | None = None,
    people: str = "hidden",
    title: str | None = None,
) -> Path:
    """Write the page of a results folder or a model folder.

    Parameters
    ----------
    folder : str or Path
        As `baldur evaluate` or `baldur fit` wrote it.
    path : str or Path, optional
        HTML file to write; ``report.html`` in the folder by default.
    model : str or Path, optional
        For results: the folder of the model fitted on all people, which adds intervals, stand-ins
        and the calculator.
    people : {"hidden", "named", "none"}, default="hidden"
        Show people without identifiers, with them, or not at all.
    title : str, optional

    Returns
    -------
    Path
        The file.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{place} is no folder; give one of results, or a model folder.")
    target = place / REPORT if path is None else Path(path)
    if (place / _MANIFEST).is_file():
        if model is not None:
            raise InputError(f"{place} is a model folder; --model goes with a folder of results.")
        fitted = FittedModel.of_saved(load_model(place))
        return _write(target, None, fitted, people, title)
    run = open_run(place)
    added = None if model is None else FittedModel.of_saved(load_model(model))
    written = _write(target, run, added, people, title)
    if path is None:
        # What to open first is now the page.
        names = {one.name for one in place.iterdir()}
        write_atomically(place / INDEX, index_text(run.record.get("title", ""), names).encode())
    return written


def report_result(
    result: NestedResult,
    path: str | Path,
    *,
    model: Any = None,
    people: str = "hidden",
    title: str | None = None,
) -> Path:
    """Write the page of a comparison in memory.

    Parameters
    ----------
    result : NestedResult
    path : str or Path
        HTML file to write.
    model : fitted estimator or SavedModel, optional
        Fitted on all people; adds intervals, stand-ins and the calculator.
    people, title
        As in `report_folder`.

    Returns
    -------
    Path
    """
    fitted = None
    if isinstance(model, SavedModel):
        fitted = FittedModel.of_saved(model)
    elif model is not None:
        fitted = FittedModel.of(model)
    return _write(Path(path), run_of(result), fitted, people, title)


def report_model(
    model: Any,
    path: str | Path,
    X: Any = None,
    y: Any = None,
    *,
    people: str = "hidden",
    title: str | None = None,
) -> Path:
    """Write the page of one fitted model.

    Parameters
    ----------
    model : fitted estimator
    path : str or Path
        HTML file to write.
    X : MultiView, array or DataFrame, optional
        People to show with what each feature contributes.
    y : array-like, optional
        Their outcomes.
    people, title
        As in `report_folder`.

    Returns
    -------
    Path
    """
    return _write(Path(path), None, FittedModel.of(model, X, y), people, title)


def _write(
    path: Path, run: Run | None, model: FittedModel | None, people: str, title: str | None
) -> Path:
    check_extra()
    if path.is_dir():
        path = path / REPORT
    check_writable(path.parent)
    page = make_page(run, model, people, title)
    write_atomically(path, render(page).encode("utf-8"))
    return path


def make_page(run: Run | None, model: FittedModel | None, people: str, title: str | None) -> Page:
    """Gather facts, figures and calculator of a page."""
    facts = gather_facts(run, model, people=people, title=title)
    figures, left = draw(plans_of(run, facts.main or None, model))
    absent = "No people were handed over with the model."
    if people == "none":
        absent = "People are left out of this page."
    elif run is not None:
        absent = "There are no predictions to show."
    return Page(
        facts=facts,
        figures=figures,
        calculator=calculator_of(model),
        hidden=people == "hidden",
        has_model=model is not None and model.inner is not None,
        people_absent=absent,
        left_figures=left,
    )
