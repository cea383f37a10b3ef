"""The figures of a page: which ones, in which section, drawn as SVG."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from baldur import plots
from baldur.evaluation.participants import HAS
from baldur.evaluation.results import Results
from baldur.exceptions import InputError, MissingExtraError
from baldur.report.fitted import FittedModel
from baldur.report.formatting import Cell, Column, Table, plain, short

CURVES = 3
"""Models whose curves share a figure; more are hard to distinguish."""
LARGEST_SVG = 600_000
"""Characters of an SVG drawing, above which a PNG is embedded instead."""
MOST_ROWS = 60
"""Rows of a figure's numbers on the page; the files have them all."""


@dataclass
class Picture:
    """A figure of the page: SVG, caption, alternative text and numbers."""

    id: str
    section: str
    caption: str
    alt: str
    svg: Any = ""  # Or empty, for a figure with too many marks
    image: str = ""  # Then a data address
    wide: bool = False
    table: Table | None = None


def numbers_of(caption: str, frame: pd.DataFrame) -> Table | None:
    """Return the first rows of a figure's numbers as text, without identifiers of people."""
    frame = frame.drop(columns="sample", errors="ignore")
    shown = frame.head(MOST_ROWS)
    columns = [map(Cell, _texts(shown.iloc[:, j])) for j in range(shown.shape[1])]
    rows = [list(row) for row in zip(*columns, strict=True)]
    note = f"{len(frame) - len(shown):,} more rows." if len(frame) > len(shown) else ""
    return Table("", caption, [Column(str(c)) for c in frame], rows, note=note) if rows else None


def _texts(column: pd.Series) -> list[str]:
    """Return a column as text: whole numbers without decimals, a dash for what is not known."""
    if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
        return ["–" if v is None or v != v else str(v) for v in column]
    return ["–" if np.isnan(v) else plain(v) for v in column.to_numpy(dtype=float).tolist()]


@dataclass(frozen=True)
class Plan:
    """A figure that a page may have: its section, title and how it is drawn."""

    id: str
    section: str
    caption: str
    make: Callable[[], Any]  # Returns the Display
    wide: bool = False
    optional: bool = False  # Left out without a note where it cannot be drawn
    when: bool = True  # Whether there is something to show


def _planner(source: str, subject: Any) -> Callable[..., Plan]:
    """Return a function that plans a figure of some class of `plots`, without drawing it yet.

    The class method `source` makes its Display, from `subject` (results or an estimator) and
    `more` arguments; `options` are fields of `Plan`.
    """

    def plan(
        display: Any, section: str, name: str, caption: str, *more: Any, **options: Any
    ) -> Plan:
        make = partial(getattr(display, source), subject, *more)
        return Plan(name, section, caption, make, **options)

    return plan


def plans_of(run: Results | None, main: str | None, model: FittedModel | None) -> list[Plan]:
    """Return the figures of a page, in their order."""
    plans: list[Plan] = []
    if run is not None and main is not None:
        plans += _plans_of_run(run, main)
    if model is not None and model.inner is not None:
        # The outer folds of a study answer the same question without having chosen anything.
        of_model = _plans_of_model(model)
        plans += of_model if run is None else [p for p in of_model if p.id != "few-features-fit"]
    return plans


def _plans_of_run(run: Results, main: str) -> list[Plan]:
    """Return the figures of a comparison; curves are those of the main model and a few others."""
    plan, name = _planner("from_result", run), short(main)
    drawn = _shown_models(run, main)
    which = _left_out(run, drawn)
    calibration = "Calibration: predicted and observed"
    calibration = calibration if run.classes else "Predicted and observed outcomes"
    every_view = run.people.filter(regex=f"^{HAS}").to_numpy(dtype=float).all()
    return [
        plan(plots.MissingViewsDisplay, "studied", "missing-views", "Samples with missing views",
             when=len(run.people) > 0 and not every_view),
        plan(plots.ComparisonDisplay, "models", "comparison", "Models with their intervals",
             wide=True),
        *_curves(run, drawn, "models", f"ROC curves{which}", which),
        plan(plots.ForestDisplay, "features", "forest-folds", f"Weights of {name} over the folds",
             main),
        plan(plots.FewFeaturesDisplay, "features", "few-features",
             f"Accuracy of {name} with few features", main, optional=True),
        plan(plots.FoldWeightsDisplay, "features", "fold-weights",
             f"Features of {name} in every fold", main, optional=True),
        plan(plots.ManhattanDisplay, "features", "manhattan-folds",
             "Variants along the chromosomes, over the folds", main, optional=True),
        plan(plots.BrainDisplay, "features", "brain-folds", "Where in the brain, over the folds",
             main, optional=True, wide=True),
        plan(plots.ViewShareDisplay, "views", "view-share-folds",
             f"Share of each view in {name}, fold by fold", main,
             when=len(run.record.get("views", [])) > 1),
        plan(plots.CalibrationDisplay, "usefulness", "calibration", calibration + which, drawn),
        plan(plots.AddedValueDisplay, "added", "added",
             "Sets of views: how well they predict, and what each view adds", wide=True,
             when=len(run.table("added_value")) > 0),
        _decision(run, drawn, which),
        plan(plots.LearningCurveDisplay, "usefulness", "learning",
             "Learning curve: performance by number of people", drawn,
             when=len(run.table("learning_curve")) > 0),
    ]  # fmt: skip


def _curves(
    run: Results, models: list[str], section: str, title: str, which: str = ""
) -> list[Plan]:
    """Return the two curves of a classification; `which` says in the caption of which models."""
    plan, has_classes = _planner("from_result", run), bool(run.classes)
    return [
        plan(plots.RocDisplay, section, "roc", title, models, when=has_classes),
        plan(plots.PrecisionRecallDisplay, section, "precision-recall",
             f"Precision and recall{which}", models, when=has_classes),
    ]  # fmt: skip


def _decision(run: Results, models: list[str], which: str = "") -> Plan:
    plan, caption = _planner("from_result", run), "Decision curve: net benefit of using the "
    return plan(plots.DecisionDisplay, "usefulness", "decision", f"{caption}predictions{which}",
                models, when=len(run.table("decision")) > 0)  # fmt: skip


def validation_plans(run: Results, main: str) -> list[Plan]:
    """Return the figures of a validation, in their order."""
    plan = _planner("from_result", run)
    return [
        *_curves(run, [main], "cohort", "ROC curve"),
        plan(plots.CalibrationDisplay, "usefulness", "calibration",
             "Calibration: predicted and observed", [main], optional=True),
        _decision(run, [main]),
    ]  # fmt: skip


def _shown_models(run: Results, main: str) -> list[str]:
    """Return the models that curves are drawn of: the main one, and the two best others.

    With several classes the main one alone, which has a curve for each of them.
    """
    if len(run.classes) > 2:
        return [main]
    ranked, models = run.ranked, run.with_all_views
    best = ranked.index[np.isfinite(ranked)] if len(ranked) else models
    return [main, *[m for m in best if m in models and m != main][: CURVES - 1]]


def _left_out(run: Results, drawn: list[str]) -> str:
    """Return the end of a caption, such as ``, 3 of 9 models``; nothing where all are drawn."""
    n = len(run.finished)
    if len(drawn) == n:
        return ""
    which = "one" if len(drawn) == 1 else f"{len(drawn)}"
    return f", {which} of {n} models"


def _plans_of_model(model: FittedModel) -> list[Plan]:
    """Return the figures of a fitted model, and of the people passed with it."""
    inner, X, y = model.inner, model.X, model.y
    plan = _planner("from_estimator", inner)
    # A wrapper transforms its input first; without one, people are as they were given.
    with_people = X is not None and inner is model.estimator

    def weights() -> plots.Display:
        display = plots.ForestDisplay.from_estimator(inner)
        display.table = model.named(display.table)
        return display

    return [
        Plan("forest", "features", "Weights of the fit on all people", weights),
        plan(plots.PathDisplay, "features", "path",
             "Submodel path: held-out loss against the number of features",
             when=len(model.path()) > 0),
        plan(plots.FewFeaturesDisplay, "features", "few-features-fit",
             "Accuracy with few features, on the inner folds", optional=True),
        plan(plots.CostDisplay, "features", "costs",
             "Which tests give which accuracy, on the inner folds", optional=True),
        plan(plots.ManhattanDisplay, "features", "manhattan", "Variants along the chromosomes",
             optional=True),
        plan(plots.BrainDisplay, "features", "brain", "Where in the brain", wide=True,
             optional=True),
        plan(plots.ViewShareDisplay, "views", "view-share",
             "Share of each view in the fit on all people"),
        *latent_plans(model, "views"),
        plan(plots.HistoryDisplay, "repeat", "history", "Convergence of the fit", optional=True),
        plan(plots.CorrelationDisplay, "features", "correlation",
             "Correlations of the selected features", X, optional=True, when=with_people),
        plan(plots.LatentDisplay, "people", "latent", "Latent scores of these people", X, y,
             optional=True, when=with_people),
    ]  # fmt: skip


def latent_plans(model: FittedModel, section: str) -> list[Plan]:
    """Return the figure of the latent factors of a model with several outputs."""
    loadings = getattr(model.inner, "loadings_", None)
    if loadings is None or len(loadings) < 2:
        return []
    names = model.classes if len(model.classes) == len(loadings) else None
    caption = "Latent factors: loadings of the outputs, and shares of the views"
    plan = _planner("from_estimator", model.inner)
    return [plan(plots.LoadingsDisplay, section, "loadings", caption, names)]


def draw(plans: Sequence[Plan]) -> tuple[list[Picture], list[str]]:
    """Return the figures, and a text for each that could not be drawn, which stops no page."""
    pictures, not_drawn = [], []
    for plan in (plan for plan in plans if plan.when):
        try:
            pictures.append(_picture(plan, plan.make()))
        except (InputError, MissingExtraError) as error:
            if not plan.optional:
                not_drawn.append(f"{plan.caption}: {short(error, 300)}")
        except Exception as error:
            # Tables of a stranger's folder may contradict each other in ways no check foresees.
            not_drawn.append(f"{plan.caption}: {type(error).__name__}, {short(error, 300)}")
    return pictures, not_drawn


def _picture(plan: Plan, display: plots.Display) -> Picture:
    """Return a figure drawn as SVG, or as PNG where that would be too large, with its numbers."""
    svg = display.plot(theme="both").svg(prefix=f"{plan.id}-")
    image = ""
    if len(svg) > LARGEST_SVG:
        # Too many marks for an SVG: a PNG on white, which also prints.
        display.plot(theme="light")
        svg, image = "", f"data:image/png;base64,{base64.b64encode(display.png()).decode()}"
    return Picture(
        id=plan.id,
        section=plan.section,
        caption=plan.caption,
        alt=display.alt_text,
        svg=svg,
        image=image,
        wide=plan.wide,
        table=numbers_of(plan.caption, display.table),
    )
