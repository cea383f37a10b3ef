"""report_folder, report_study, report_result, report_model: write the page of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baldur.core.atomic_io import check_writable, write_atomically
from baldur.evaluation.result_files import REPORT
from baldur.evaluation.results import Results
from baldur.exceptions import InputError
from baldur.report.fitted import FittedModel
from baldur.report.pages import make_page
from baldur.report.render import Page, check_extra, render
from baldur.report.validation_page import is_validation, open_validation, validation_page
from baldur.study.results_folder import list_page

if TYPE_CHECKING:
    from baldur.evaluation import NestedResult
    from baldur.saving import SavedModel

_MANIFEST = "manifest.json"


def report_folder(
    folder: str | Path,
    path: str | Path | None = None,
    *,
    model: str | Path | None = None,
    people: str = "hidden",
    title: str | None = None,
) -> Path:
    """Write the page of a results folder, a validation folder or a model folder.

    Parameters
    ----------
    folder : str or Path
        As `baldur evaluate`, `baldur validate` or `baldur fit` wrote it.
    path : str or Path, optional
        HTML file to write; ``report.html`` in the folder by default.
    model : str or Path, optional
        For results: the folder of the model fitted on all people, which adds intervals, credible
        sets and the calculator.
    people : {"hidden", "named", "none"}, default="hidden"
        Show people without identifiers, with them, or not at all.
    title : str, optional
        Heading of the page; by default the title of the study.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import baldur
    >>> from baldur.datasets import make_multiview
    >>> from baldur.paper import PaperClassifier
    >>> from baldur.report import report_folder
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, random_state=0)
    >>> model = PaperClassifier(sparsity=0.5).fit(sim.data, sim.target)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report_folder(baldur.save(model, pathlib.Path(folder) / "model")).name
    'report.html'
    """
    source = Path(folder)
    if not source.is_dir():
        raise InputError(f"{source} is not a folder; give a folder of results, or a model folder.")
    # Without a path it is this name in the folder, whatever a stranger put there.
    target = source / REPORT if path is None else _file_at(Path(path))
    is_model, of_cohort = (source / _MANIFEST).is_file(), is_validation(source)
    if model is not None and (is_model or of_cohort):
        what = "a model folder" if is_model else "the folder of a validation"
        raise InputError(
            f"{source} is {what}; --model can be combined with a folder of results only."
        )
    fitted = None
    fitted_folder = source if is_model else model
    if fitted_folder is not None:
        from baldur.saving import load

        fitted = FittedModel.of(load(fitted_folder, study=True))
    if is_model:
        return _write(target, make_page, None, fitted, people=people, title=title)
    if of_cohort:
        return _write(target, validation_page, open_validation(source), people, title)
    results = Results.read(source)
    linked = path is None  # the page lies in the results folder
    _write(target, make_page, results, fitted, people=people, title=title, linked=linked)
    if linked:
        list_page(results)
    return target


def report_study(
    study: Results, *, model: SavedModel | None = None, people: str = "hidden"
) -> Path:
    """Write the page of a study into its results folder, from the tables in memory.

    Parameters
    ----------
    study : Results
        As `evaluate_study` returns it.
    model : SavedModel, optional
        Fitted on all people; adds intervals, credible sets and the calculator.
    people : {"hidden", "named", "none"}, default="hidden"
        Show people without identifiers, with them, or not at all.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.report import report_study
    >>> from baldur.study import evaluate_study, load_study, simulate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> config = load_study(simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"]))
    >>> study = evaluate_study(config)  # doctest: +SKIP
    >>> report_study(study).relative_to(folder.name).as_posix()  # doctest: +SKIP
    'results/report.html'
    >>> folder.cleanup()
    """
    fitted_model = None if model is None else FittedModel.of(model)
    # The study comes last: its page links to those of its outcomes, and is returned.
    for results in (*study.outcomes.values(), study):
        assert results.folder is not None
        fitted = fitted_model if results is study else None
        target = results.folder / REPORT
        page = _write(target, make_page, results, fitted, people=people, linked=True)
        list_page(results)
    return page


def report_result(
    result: NestedResult | Results,
    path: str | Path,
    *,
    model: Any = None,
    people: str = "hidden",
    title: str | None = None,
) -> Path:
    """Write the page of a comparison in memory.

    Parameters
    ----------
    result : NestedResult or Results
        What `nested_cv` returned, or its tables with the record of a study.
    path : str or Path
        HTML file to write.
    model : fitted estimator or SavedModel, optional
        Fitted on all people; adds intervals, credible sets and the calculator.
    people, title
        As in `report_folder`.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> from baldur.report import report_result
    >>> sim = make_multiview(60, {"a": 4}, n_classes=None, random_state=0)
    >>> result = nested_cv("Dummy", sim.data, sim.target, task="regression", outer=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report_result(result, pathlib.Path(folder) / "comparison.html").name
    'comparison.html'
    """
    fitted = None if model is None else FittedModel.of(model)
    results = result if isinstance(result, Results) else Results(result)
    return _write(_file_at(Path(path)), make_page, results, fitted, people=people, title=title)


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
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from baldur.baselines import BASELINES
    >>> from baldur.datasets import make_multiview
    >>> from baldur.report import report_model
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, random_state=0)
    >>> model = BASELINES["Ridge logistic"].make().fit(sim.data, sim.target)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = report_model(model, pathlib.Path(folder) / "model.html", title="Pilot")
    ...     print(page.name, "Pilot" in page.read_text(encoding="utf-8"))
    model.html True
    """
    fitted = FittedModel.of(model, X, y)
    return _write(_file_at(Path(path)), make_page, None, fitted, people=people, title=title)


def _file_at(path: Path) -> Path:
    """Return the file to write, where somebody may have named the folder for it."""
    return path / REPORT if path.is_dir() else path


def _write(path: Path, make: Callable[..., Page], *arguments: Any, **options: Any) -> Path:
    """Make a page from arguments of `make` and write it as HTML; first check for its libraries."""
    check_extra()
    text = render(make(*arguments, **options))
    check_writable(path.parent)
    write_atomically(path, text.encode("utf-8"))
    return path
