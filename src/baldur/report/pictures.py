"""The figures of a page: which ones, in which section, drawn as SVG."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from baldur import plots
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.results import HAS, Results
from baldur.exceptions import InputError, MissingExtraError
from baldur.report.fitted import FittedModel
from baldur.report.formatting import plain, short

CURVES = 3
"""Models whose curves share a figure; more are hard to distinguish."""
LARGEST_SVG = 600_000
"""Characters of an SVG drawing, above which a PNG is embedded instead."""
MOST_ROWS = 60
"""Rows of a figure's numbers on the page; the files have them all."""


@dataclass
class Numbers:
    """The first rows of the numbers of a figure, as text."""

    columns: list[str]
    rows: list[list[str]]
    note: str = ""


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
    table: Numbers | None = field(default=None)


def numbers_of(frame: pd.DataFrame) -> Numbers | None:
    """Return the first rows of a figure's table, as text, without identifiers of people."""
    frame = frame.drop(columns="sample", errors="ignore")
    if not len(frame):
        return None
    shown = frame.head(MOST_ROWS)
    columns = [_texts(shown.iloc[:, j]) for j in range(shown.shape[1])]
    rows = [list(row) for row in zip(*columns, strict=True)]
    left = len(frame) - len(shown)
    return Numbers([str(c) for c in frame.columns], rows, f"{left:,} more rows." if left else "")


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
    make: Callable[[], Any]  # Returns the Display, or None where it does not apply
    wide: bool = False
    optional: bool = False  # Left out without a note where it does not apply


def plans_of(run: Results | None, main: str | None, model: FittedModel | None) -> list[Plan]:
    """Return the figures of a page, in their order."""
    made: list[Plan] = []
    if run is not None and main is not None:
        made += _plans_of_run(run, main)
    if model is not None and model.inner is not None:
        # The outer folds of a study answer the same question without having chosen anything.
        own = _plans_of_model(model)
        made += own if run is None else [p for p in own if p.id != "few-features-fit"]
    return made


def _plans_of_run(run: Results, main: str) -> list[Plan]:
    results, classes = run, run.classes
    name, few = short(main), _shown_models(run, main)
    some = _left_out(run, few)
    curves = [
        Plan(
            "roc", "models", f"ROC curves{some}",
            lambda: plots.RocDisplay.from_result(results, few),
        ),
        Plan(
            "precision-recall", "models", f"Precision and recall{some}",
            lambda: plots.PrecisionRecallDisplay.from_result(results, few),
        ),
    ]  # fmt: skip
    calibration = (
        "Calibration: predicted and observed" if classes else "Predicted and observed outcomes"
    ) + some
    made = [
        Plan(
            "missing-views", "studied", "Samples with missing views",
            lambda: plots.MissingViewsDisplay.from_result(results),
        ),
        Plan(
            "comparison", "models", "Models with their intervals",
            lambda: plots.ComparisonDisplay.from_result(results), wide=True,
        ),
        *(curves if classes else []),
        Plan(
            "forest-folds", "features", f"Weights of {name} over the folds",
            lambda: plots.ForestDisplay.from_result(results, main),
        ),
        Plan(
            "few-features", "features", f"Accuracy of {name} with few features",
            lambda: plots.FewFeaturesDisplay.from_result(results, main), optional=True,
        ),
        Plan(
            "fold-weights", "features", f"Features of {name} in every fold",
            lambda: plots.FoldWeightsDisplay.from_result(results, main), optional=True,
        ),
        Plan(
            "manhattan-folds", "features", "Variants along the chromosomes, over the folds",
            lambda: plots.ManhattanDisplay.from_result(results, main), optional=True,
        ),
        Plan(
            "brain-folds", "features", "Where in the brain, over the folds",
            lambda: plots.BrainDisplay.from_result(results, main), wide=True, optional=True,
        ),
        Plan(
            "view-share-folds", "views", f"Share of each view in {name}, fold by fold",
            lambda: plots.ViewShareDisplay.from_result(results, main),
        ),
        Plan(
            "calibration", "usefulness", calibration,
            lambda: plots.CalibrationDisplay.from_result(results, few),
        ),
    ]  # fmt: skip
    # Where every sample has every view there is nothing to show.
    if not len(run.people) or run.people.filter(regex=f"^{HAS}").to_numpy(dtype=float).all():
        made = made[1:]
    if len(run.record.get("views", [])) < 2:
        made = [plan for plan in made if plan.id != "view-share-folds"]
    if len(run.table("added_value")):
        made.append(
            Plan(
                "added", "added", "Sets of views: how well they predict, and what each view adds",
                lambda: plots.AddedValueDisplay.from_result(results), wide=True,
            )
        )  # fmt: skip
    if len(run.table("decision")):
        made.append(
            Plan(
                "decision", "usefulness",
                f"Decision curve: net benefit of using the predictions{some}",
                lambda: plots.DecisionDisplay.from_result(results, few),
            )
        )  # fmt: skip
    if len(run.table("learning_curve")):
        made.append(
            Plan(
                "learning", "usefulness", "Learning curve: performance by number of people",
                lambda: plots.LearningCurveDisplay.from_result(results, few),
            )
        )  # fmt: skip
    return made


def validation_plans(run: Results, main: str) -> list[Plan]:
    """Return the figures of a validation, in their order."""
    results, few = run, [main]
    made = []
    if run.classes:
        made += [
            Plan(
                "roc", "cohort", "ROC curve", lambda: plots.RocDisplay.from_result(results, few)
            ),
            Plan(
                "precision-recall", "cohort", "Precision and recall",
                lambda: plots.PrecisionRecallDisplay.from_result(results, few),
            ),
        ]  # fmt: skip
    made.append(
        Plan(
            "calibration", "usefulness", "Calibration: predicted and observed",
            lambda: plots.CalibrationDisplay.from_result(results, few), optional=True,
        )
    )  # fmt: skip
    if len(run.record.get("views", [])) < 2:
        made = [plan for plan in made if plan.id != "view-share-folds"]
    if len(run.table("decision")):
        made.append(
            Plan(
                "decision", "usefulness",
                "Decision curve: net benefit of using the predictions",
                lambda: plots.DecisionDisplay.from_result(results, few),
            )
        )  # fmt: skip
    return made


def _shown_models(run: Results, main: str) -> list[str]:
    """Return the models that curves are drawn of: the main one, and the two best others.

    With several classes the main one alone, which has a curve for each of them.
    """
    if len(run.classes) > 2:
        return [main]
    metric = str(run.record.get("select_by", ""))
    table = run.table("table")
    others = [m for m in run.with_all_views if m != main]
    if f"{metric}_pooled" in table and metric in METRICS:
        values = table.set_index("model")[f"{metric}_pooled"].astype(float)
        sign = -1.0 if METRICS[metric].greater_is_better else 1.0
        others = [m for m in others if np.isfinite(values.get(m, np.nan))]
        others.sort(key=lambda m: sign * float(values[m]))
    return [main, *others[: CURVES - 1]]


def _left_out(run: Results, drawn: list[str]) -> str:
    """Return which part of the models curves are drawn of; nothing where it is all of them."""
    n = len(run.finished)
    if len(drawn) == n:
        return ""
    which = "one" if len(drawn) == 1 else f"{len(drawn)}"
    return f", {which} of {n} models"


def _plans_of_model(model: FittedModel) -> list[Plan]:
    inner, X, y = model.inner, model.X, model.y
    made = [
        Plan(
            "forest", "features", "Weights of the fit on all people",
            lambda: _with_names(plots.ForestDisplay.from_estimator(inner), model),
        ),
        Plan(
            "path", "features", "Submodel path: held-out loss against the number of features",
            lambda: plots.PathDisplay.from_estimator(inner) if len(model.path()) else None,
        ),
        Plan(
            "few-features-fit", "features", "Accuracy with few features, on the inner folds",
            lambda: plots.FewFeaturesDisplay.from_estimator(inner), optional=True,
        ),
        Plan(
            "costs", "features", "Which tests give which accuracy, on the inner folds",
            lambda: plots.CostDisplay.from_estimator(inner), optional=True,
        ),
        Plan(
            "manhattan", "features", "Variants along the chromosomes",
            lambda: plots.ManhattanDisplay.from_estimator(inner), optional=True,
        ),
        Plan(
            "brain", "features", "Where in the brain",
            lambda: plots.BrainDisplay.from_estimator(inner), wide=True, optional=True,
        ),
        Plan(
            "view-share", "views", "Share of each view in the fit on all people",
            lambda: plots.ViewShareDisplay.from_estimator(inner),
        ),
        *latent_plans(model, "views"),
        Plan(
            "history", "repeat", "Convergence of the fit",
            lambda: plots.HistoryDisplay.from_estimator(inner), optional=True,
        ),
    ]  # fmt: skip
    # A wrapper transforms its input first; without one, people are as they were given.
    if X is not None and inner is model.estimator:
        made += [
            Plan(
                "correlation", "features", "Correlations of the selected features",
                lambda: plots.CorrelationDisplay.from_estimator(inner, X), optional=True,
            ),
            Plan(
                "latent", "people", "Latent scores of these people",
                lambda: plots.LatentDisplay.from_estimator(inner, X, y), optional=True,
            ),
        ]  # fmt: skip
    return made


def latent_plans(model: FittedModel, section: str) -> list[Plan]:
    """Return the figure of the latent factors of a model with several outputs."""
    inner = model.inner
    loadings = getattr(inner, "loadings_", None)
    if loadings is None or len(loadings) < 2:
        return []
    names = model.classes if len(model.classes) == len(loadings) else None
    return [
        Plan(
            "loadings", section, "Latent factors: loadings of the outputs, and shares of the views",
            lambda: plots.LoadingsDisplay.from_estimator(inner, names),
        )
    ]  # fmt: skip


def _with_names(display: plots.Display, model: FittedModel) -> plots.Display:
    display.table = model.named(display.table)
    return display


def draw(plans: Sequence[Plan]) -> tuple[list[Picture], list[str]]:
    """Draw the figures; one that cannot be drawn is listed, and does not stop the page."""
    made, left = [], []
    for plan in plans:
        try:
            display = plan.make()
            picture = None if display is None else _picture(plan, display)
        except (InputError, MissingExtraError) as error:
            if not plan.optional:
                left.append(f"{plan.caption}: {short(error, 300)}")
            continue
        except Exception as error:
            # Tables of a stranger's folder may contradict each other in ways no check foresees.
            left.append(f"{plan.caption}: {type(error).__name__}, {short(error, 300)}")
            continue
        if picture is not None:
            made.append(picture)
    return made, left


def _picture(plan: Plan, display: plots.Display) -> Picture:
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
        table=numbers_of(display.table),
    )
