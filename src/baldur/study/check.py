"""check_study: what a study is going to do, what it would refuse, and what looks wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

import joblib
import numpy as np

from baldur.evaluation import Comparison, Design, Preview, open_comparison, preview
from baldur.exceptions import InputError, StudyError
from baldur.study.checks.finding import Finding, names
from baldur.study.checks.labels import variants
from baldur.study.checks.run import find_problems
from baldur.study.data import StudyData, read_study
from baldur.study.load import Study
from baldur.study.settings import settings_of, split_advice

__all__ = ["StudyCheck", "check_study", "duration", "folds_problem"]


@dataclass
class StudyCheck:
    """What a study is going to do.

    Attributes
    ----------
    data : StudyData
        What was read.
    comparison : Comparison
        The study's design applied to its data.
    plan : Preview
        Folds, jobs and times.
    findings : list of Finding
        What looks wrong, each with what to do.
    n_jobs : int
        Processes the time is estimated for.
    """

    data: StudyData
    comparison: Comparison
    plan: Preview
    findings: list[Finding] = field(default_factory=list)
    n_jobs: int = 1

    def lines(self) -> list[str]:
        """Return samples, classes, views, folds, jobs and time, a line each."""
        found = self.data
        made = [_samples(found)]
        for view, width in found.data.n_features.items():
            made.append(_view(found, view, width))
        made.append(_folds(self.plan))
        made.append(_jobs(self.plan, self.n_jobs))
        return made

    def refuse_findings(self, study: Study) -> None:
        """Raise the first finding as an error, as ``--strict`` asks for."""
        if self.findings:
            more = len(self.findings) - 1
            first = self.findings[0]
            rest = f" ({more} more with --check)" if more else ""
            raise study.problem(first.key, first.what, first.fix + rest)


def check_study(study: Study, *, n_jobs: int = 1, trial: bool = True) -> StudyCheck:
    """Read a study, refuse what running it would refuse, and look for wrong data.

    Parameters
    ----------
    study : Study
        As `load_study` returns it.
    n_jobs : int, default=1
        Processes the time is estimated for.
    trial : bool, default=True
        Fit each model once on some of the columns, to estimate the time.

    Returns
    -------
    StudyCheck

    Raises
    ------
    StudyError
        One line that names the key and the fix.
    """
    found = read_study(study)
    n_jobs = int(joblib.effective_n_jobs(n_jobs))
    try:
        parts = len(study.report["learning_curve"] or [])
        design = Design(**settings_of(study, found))
        comparison = open_comparison(design, study.models, found.data, found.y)
        plan = preview(comparison, trial=trial, parts=parts)
    except InputError as error:
        if study.classification:
            # Two ways of writing one class may be why there are too few of it.
            for twin in variants("outcome.column", study.outcome["column"], np.unique(found.y)):
                raise study.problem(*twin) from error
        raise folds_problem(study, error) from error
    findings = find_problems(study, found, plan.folds, plan.scheme)
    if study.classification:
        findings += _absent_classes(found.y, plan)
    findings += [
        Finding(f"models.{model}", f"a trial fit failed: {reason.rstrip('.')}", "correct the model")
        for model, reason in plan.failures.items()
    ]
    return StudyCheck(found, comparison, plan, findings, n_jobs)


def folds_problem(study: Study, error: InputError) -> StudyError:
    """Return what the comparison refuses as an error about the study file."""
    return study.problem("folds", *split_advice(str(error)))


def _absent_classes(y: np.ndarray, plan: Preview) -> list[Finding]:
    """Report folds that have to predict a class which none of their training rows has."""
    lacking: dict[str, int] = {}
    for fold in plan.folds:
        for label in np.setdiff1d(y[fold.test], y[fold.train]).tolist():
            lacking[label] = lacking.get(label, 0) + 1
    return [
        Finding(
            "folds",
            f"{count} of {len(plan.folds)} folds have no training row of class {label!r}, which "
            "then gets probability 0",
            "merge classes, sites or groups if that is not what you want to know",
        )
        for label, count in lacking.items()
    ]


def _samples(found: StudyData) -> str:
    n = len(found.data)
    if found.y.dtype.kind == "f" or found.y.dtype.kind in "iu":
        return f"{n} samples, outcome {found.y.min():.4g} to {found.y.max():.4g}"
    classes, counts = np.unique(found.y, return_counts=True)
    positive = found.positive if found.positive is not None else classes[-1]
    parts = [
        f"{count} {c}" + (" (positive)" if len(classes) == 2 and c == positive else "")
        for c, count in zip(classes.tolist(), counts.tolist(), strict=True)
    ]
    return f"{n} samples: {', '.join(parts)}"


def _view(found: StudyData, view: str, width: int) -> str:
    line = f"  {view}: {width:,} features"
    absent = found.data.sample_ids[~found.data.view(view).present].astype(str).tolist()
    gone = [i for i in found.lacking.get(view, []) if i not in set(absent)]
    if absent:
        line += f"; {len(absent)} samples lack it ({names(absent)})"
    if gone:
        line += f"; not in its file and left out: {len(gone)} samples ({names(gone)})"
    return line


def _folds(plan: Preview) -> str:
    sizes = [len(f.test) for f in plan.folds]
    train = [len(f.train) for f in plan.folds]
    return (
        f"Folds: {plan.scheme}, {len(plan.folds)} outer ({_span(train)} training and "
        f"{_span(sizes)} test rows), {plan.n_inner} inner"
    )


def _span(values: list[int]) -> str:
    return f"{min(values)}" if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _jobs(plan: Preview, n_jobs: int) -> str:
    models = len(plan.jobs)
    line = (
        f"{models} {'model' if models == 1 else 'models'}, {sum(plan.jobs.values()):,} jobs, "
        f"{sum(plan.fits.values()):,} fits"
    )
    seconds = plan.total_seconds(n_jobs)
    if seconds is None:
        return line
    processes = "one process" if n_jobs == 1 else f"{n_jobs} processes"
    slowest = max(plan.seconds, key=lambda m: plan.fits[m] * plan.seconds[m])
    share = plan.fits[slowest] * plan.seconds[slowest] / max(seconds * n_jobs, 1e-9)
    most = f", {100 * share:.0f} % of it {slowest}" if models > 1 else ""
    return f"{line}; about {duration(seconds)} with {processes}{most} (judged from small fits)"


def duration(seconds: float) -> str:
    """Return a time for reading: seconds, minutes or hours."""
    if seconds < 60:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
