"""check_study: the plan of a study, its estimated time, and suspicious data."""

from __future__ import annotations

from dataclasses import dataclass, field

import joblib
import numpy as np
import pandas as pd

from baldur.estimators.progress import duration
from baldur.evaluation.design import Comparison
from baldur.evaluation.preview import Preview, preview
from baldur.exceptions import InputError
from baldur.preparation.steps.categories import feature_counts
from baldur.study.checks.finding import Finding, names
from baldur.study.checks.run import find_problems
from baldur.study.comparison import folds_problem
from baldur.study.config import StudyConfig
from baldur.study.data import StudyData
from baldur.views.validate import counted


@dataclass
class StudyCheck:
    """Plan of a study: samples, views, folds, jobs and time, and findings in the data.

    Attributes
    ----------
    data : StudyData
        The data of the study.
    plan : Preview
        Folds, jobs and times.
    findings : list of Finding
        What looks wrong, each with what to do.
    n_jobs : int
        Processes the time is estimated for.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import check_study, load_study, simulate_study
    >>> from baldur.study.comparison import open_study
    >>> from baldur.study.data import read_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> config = load_study(simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"]))
    >>> data = read_study(config)
    >>> check = check_study(config, data, open_study(config, data), trial=False)
    >>> check.plan.jobs, check.findings
    ({'Dummy': 5}, [])
    >>> folder.cleanup()
    """

    data: StudyData
    plan: Preview
    findings: list[Finding] = field(default_factory=list)
    n_jobs: int = 1

    def lines(self) -> list[str]:
        """Return samples, classes, views, folds, jobs and time, a line each."""
        found = self.data
        made = [_samples(found)]
        steps = () if found.preparation is None else found.preparation.steps
        for view, width in feature_counts(found.data, steps).items():
            made.append(_view(found, view, width))
        made.append(_folds(self.plan))
        made.append(_jobs(self.plan, self.n_jobs))
        return made

    def refuse_findings(self, config: StudyConfig) -> None:
        """Raise the first finding as an error, as ``--strict`` asks for."""
        if self.findings:
            more = len(self.findings) - 1
            first = self.findings[0]
            rest = f" ({more} more with --check)" if more else ""
            raise config.problem(first.key, first.what, first.fix + rest)


def check_study(
    config: StudyConfig,
    data: StudyData,
    comparison: Comparison,
    *,
    n_jobs: int = 1,
    trial: bool = True,
) -> StudyCheck:
    """Return the plan of a study, and look for suspicious data.

    Parameters
    ----------
    config : StudyConfig
        As `load_study` returns it.
    data : StudyData
        As `read_study` returns it.
    comparison : Comparison
        As `open_study` returns it.
    n_jobs : int, default=1
        Processes the time is estimated for.
    trial : bool, default=True
        Fit models on some of the data, to estimate the time.

    Returns
    -------
    StudyCheck

    Raises
    ------
    StudyError
        One line that names the key and the fix.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import check_study, load_study, simulate_study
    >>> from baldur.study.comparison import open_study
    >>> from baldur.study.data import read_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> config = load_study(simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"]))
    >>> data = read_study(config)
    >>> for line in check_study(config, data, open_study(config, data), trial=False).lines():
    ...     print(line)
    215 samples: 119 PD (positive), 96 control
      neuropsychological: 18 features
      sleep: 19 features
      socio-economic: 2 features
      demographical: 8 features
      genetic: 8 features
    Folds: stratified, 5 outer (172 training and 43 test rows), 5 inner
    1 model, 5 jobs, 5 fits
    >>> folder.cleanup()
    """
    try:
        parts = len(config.report.learning_curve or [])
        plan = preview(comparison, trial=trial, parts=parts)
    except InputError as error:
        raise folds_problem(config, data, error) from error
    findings = find_problems(config, data, plan.folds, plan.scheme)
    if config.classification and config.outcome.column:
        findings += _absent_classes(np.asarray(data.y), plan)
    findings += [
        Finding(f"models.{model}", f"a trial fit failed: {reason.rstrip('.')}", "correct the model")
        for model, reason in plan.failures.items()
    ]
    return StudyCheck(data, plan, findings, int(joblib.effective_n_jobs(n_jobs)))


def _absent_classes(y: np.ndarray, plan: Preview) -> list[Finding]:
    """Report folds that have to predict a class which does not occur in their training rows."""
    missing: dict[str, int] = {}
    for fold in plan.folds:
        for label in np.setdiff1d(y[fold.test], y[fold.train]).tolist():
            missing[label] = missing.get(label, 0) + 1
    return [
        Finding(
            "folds",
            f"{count} of {len(plan.folds)} folds have no training row of class {label!r}, which "
            "then gets probability 0",
            "merge classes, sites or groups if that is not what you want to know",
        )
        for label, count in missing.items()
    ]


def _samples(found: StudyData) -> str:
    n = len(found.data)
    if isinstance(found.y, pd.DataFrame):
        cases = ", ".join(f"{int(found.y[c].sum())} {c}" for c in found.y)
        return f"{n} samples, {found.y.shape[1]} outcomes: {cases}"
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
    line = f"  {view}: {counted(width, 'feature')}"
    absent = found.data.sample_ids[~found.data.view(view).present].astype(str).tolist()
    gone = [i for i in found.missing_samples.get(view, []) if i not in set(absent)]
    if absent:
        line += f"; missing for {counted(len(absent), 'sample')} ({names(absent)})"
    if gone:
        what = counted(
            len(gone),
            "sample is not in its file and is left out",
            "samples are not in its file and are left out",
        )
        line += f"; {what} ({names(gone)})"
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
        f"{counted(models, 'model')}, {counted(sum(plan.jobs.values()), 'job')}, "
        f"{counted(sum(plan.fits.values()), 'fit')}"
    )
    seconds = plan.total_seconds(n_jobs)
    if seconds is None:
        return line
    processes = "one process" if n_jobs == 1 else f"{n_jobs} processes"
    slowest = max(plan.seconds, key=lambda m: plan.fits[m] * plan.seconds[m])
    share = plan.fits[slowest] * plan.seconds[slowest] / max(seconds * n_jobs, 1e-9)
    most = f", {100 * share:.0f} % of it {slowest}" if models > 1 else ""
    return f"{line}; about {duration(seconds)} with {processes}{most} (estimated from small fits)"
