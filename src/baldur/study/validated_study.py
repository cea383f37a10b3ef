"""ValidatedStudy: the results of a validation, and the main ones as lines of text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from baldur.evaluation import METRICS
from baldur.evaluation.clinical import Evaluation
from baldur.evaluation.clinical.metric_intervals import ALL
from baldur.evaluation.tables.formatting import fixed
from baldur.evaluation.validation.recalibration import Recalibrated
from baldur.safety.escape import one_line
from baldur.saving import SavedModel
from baldur.views.validate import counted

TITLE = "Title: "
"""How the line of ``validation.txt`` begins that has the title of the study file."""

_MEASURES = {
    "ici": "integrated calibration index",
    "brier": "Brier score",
    "miscalibration": "its part by miscalibration",
    "discrimination": "its part by discrimination, which is subtracted",
    "uncertainty": "its part by the outcome itself",
}
"""Names of measures of calibration on the screen."""


@dataclass
class ValidatedStudy:
    """Results of a model on a new cohort.

    Attributes
    ----------
    predictions : DataFrame
        As a study writes them, of the frozen model.
    scores : DataFrame
        Every metric on all rows.
    evaluation : Evaluation
        Intervals, calibration, usefulness and subgroups.
    shift_views, shift_features : DataFrame
        How the predictors differ from training; no rows where the model does not remember them.
    recalibrated : Recalibrated
        Parameters and predictions of recalibrated versions.
    recalibrated_evaluation : Evaluation or None
    folder : Path
    notes : list of str
    development : DataFrame
        metric, estimate, low, high of the model in its development study; no rows where that is
        not known.
    title : str
        Of the study file.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import fit_study, load_study, simulate_study, validate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> old = simulate_study("biofind", f"{folder.name}/old", scale=1e-5, models=["Dummy"])
    >>> new = simulate_study("biofind", f"{folder.name}/new", scale=1e-5, seed=1)
    >>> model, _ = fit_study(load_study(old))
    >>> done = validate_study(model, load_study(new, predicting=True))
    >>> done.scores[["model", "accuracy", "auc"]].round(3)
       model  accuracy  auc
    0  Dummy     0.553  0.5
    >>> done.shift_views["view"].tolist()
    ['neuropsychological', 'sleep', 'socio-economic', 'demographical', 'genetic']
    >>> folder.cleanup()
    """

    predictions: pd.DataFrame
    scores: pd.DataFrame
    evaluation: Evaluation
    shift_views: pd.DataFrame
    shift_features: pd.DataFrame
    recalibrated: Recalibrated
    recalibrated_evaluation: Evaluation | None
    folder: Path
    notes: list[str] = field(default_factory=list)
    development: pd.DataFrame = field(default_factory=pd.DataFrame)
    title: str = ""


def summary(done: ValidatedStudy, model: SavedModel) -> str:
    """Return the main results as lines of text."""
    name = done.predictions["model"].iloc[0]
    lines = [f"{TITLE}{one_line(done.title)}", ""] if done.title else []
    lines += [
        f"{name}, trained on {model.details.get('samples')} samples, unchanged, on "
        f"{counted(len(done.predictions), 'new one')}.",
        "",
        "Figures with 95 % intervals:",
        *_figures(done.evaluation, name, done.development),
    ]
    if len(done.evaluation.calibration):
        lines += ["", "Calibration (intercept 0 and slope 1 are right):"]
        lines += _calibration(done.evaluation.calibration, done.development)
    if len(done.shift_views):
        lines += ["", "Predictors against training (shift in training s.d.):"]
        for _, row in done.shift_views.iterrows():
            worst = (
                f"worst {row['worst']}, {fixed(row['worst_shift'], sign=True)}"
                if row["worst"]
                else "the model uses none"
            )
            lines.append(
                f"  {row['view']}: median shift {row['mean_shift']:.2f}, spread x "
                f"{row['spread_ratio']:.2f}, {row['outside']:.1%} of cells outside the range, "
                f"{row['far']} of {row['features']} columns far ({worst}), "
                f"{row['absent']:.0%} of samples without it"
            )
    if done.recalibrated_evaluation is not None:
        lines += ["", "Recalibrated on this cohort (cross-validated; a different model):"]
        for _, row in done.recalibrated.parameters.iterrows():
            lines.append(
                f"  {row['version']}: log odds = {fixed(row['intercept'], 3)} + "
                f"{fixed(row['slope'], 3)} x "
                "log odds of the model"
            )
            version = f"{name} (recalibrated: {row['version']})"
            lines += [f"  {line}" for line in _figures(done.recalibrated_evaluation, version)]
    lines += [
        f"Not recalibrated ({version}): {why}." for version, why in done.recalibrated.left_out
    ]
    if done.notes:
        lines += ["", *(f"Note: {note}." for note in done.notes)]
    return "\n".join(lines) + "\n"


def _figures(evaluation: Evaluation, name: str, before: pd.DataFrame | None = None) -> list[str]:
    frame = evaluation.intervals
    frame = frame[frame["model"] == name]
    if "site" in frame:
        frame = frame[frame["site"] == ALL]
    known = {} if before is None else {row["metric"]: row for _, row in before.iterrows()}
    lines = []
    for _, row in frame.iterrows():
        line = _interval(METRICS[row["metric"]].heading, row)
        if row["metric"] in known:
            line += f"; in development {_interval('', known[row['metric']]).removeprefix('  : ')}"
        lines.append(line)
    return lines


def _calibration(frame: pd.DataFrame, before: pd.DataFrame | None) -> list[str]:
    """Return the measures of calibration, of every class where there are more than two."""
    several = "class" in frame and frame["class"].nunique() > 1
    known = {} if before is None or several else {r["metric"]: r for _, r in before.iterrows()}
    lines = []
    for _, row in frame.iterrows():
        what = _MEASURES.get(row["measure"], row["measure"])
        line = _interval(f"{row['class']}, {what}" if several else what, row)
        if row["measure"] in known and row["measure"] not in METRICS:
            line += f"; in development {_interval('', known[row['measure']]).removeprefix('  : ')}"
        lines.append(line)
    return lines


def _interval(what: str, row: pd.Series) -> str:
    text = f"  {what}: {fixed(row['estimate'], 3)}"
    if np.isfinite(row["low"]) and np.isfinite(row["high"]):
        text += f" ({fixed(row['low'], 3)} to {fixed(row['high'], 3)})"
    return text
