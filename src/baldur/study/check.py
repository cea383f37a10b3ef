"""check_study: the plan of a study, its estimated time, and suspicious data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
import pandas as pd

from baldur.estimators.default_fit import duration
from baldur.evaluation.design import Comparison
from baldur.evaluation.preview import Preview, preview
from baldur.exceptions import InputError
from baldur.preparation.categories import feature_counts, level_columns
from baldur.study.comparison import folds_problem, open_study
from baldur.study.config import COVARIATES, StudyConfig
from baldur.study.data import StudyData, read_study
from baldur.study.suspicious_data import (
    SENTINELS,
    Finding,
    RowHashes,
    beyond_chance,
    category_findings,
    column_finding,
    constant_columns,
    copying_classes,
    copying_numbers,
    dated,
    lost_ids,
    missing_option,
    names,
    number_findings,
    repeats,
    sentinel_cells,
    sentinels,
    site_predicts,
    variants,
)
from baldur.views import View
from baldur.views.validate import counted

# Dates are large numbers: smaller columns need no closer look.
_LEAST_DATE = 20_000.0


def find_problems(
    config: StudyConfig, study: StudyData, folds: Sequence[Any], scheme: str
) -> list[Finding]:
    """Run all checks on the data of a study, and return the findings."""
    findings = lost_ids(study.data.sample_ids)
    if isinstance(study.y, np.ndarray):
        outcomes = {config.outcome.column: study.y}
        findings += _about_labels(config, study.y)
    else:
        outcomes = {str(name): study.y[name].to_numpy() for name in study.y}
    if study.sites is not None and config.samples.site is not None:
        findings += variants("samples.site", config.samples.site, np.unique(study.sites).tolist())
        for outcome, y in outcomes.items():
            findings += site_predicts(study.sites, y, outcome, config.classification, scheme)
    if config.classification:
        outcomes = {name: np.unique(y, return_inverse=True)[1] for name, y in outcomes.items()}
    equal_rows = {}
    for name in study.data.view_names:
        view = study.data.view(name)
        key = "covariates.include" if name == COVARIATES else f"views.{name}"
        findings += _categories(key, view)
        findings_in_view, equal_rows[key] = _look_at(key, view, config, outcomes, study.sites)
        findings += findings_in_view
    for name in config.covariates.regress_out:
        assert study.data.samples is not None
        findings += _about_covariate(study.data.samples[name], config.samples.missing)
    return findings + repeats(equal_rows, study.data.sample_ids, folds)


def _about_labels(config: StudyConfig, y: np.ndarray) -> list[Finding]:
    """Check the values of a single outcome; those of several are yes and no."""
    outcome = config.outcome.column
    if not config.classification:
        return number_findings("outcome.column", outcome, y, config.samples.missing)
    labels = np.unique(y).tolist()
    codes = [label for label in labels if label in {f"{s:.0f}" for s in SENTINELS}]
    return variants("outcome.column", outcome, labels) + [
        Finding(
            "outcome.column",
            f"{label!r} is a class of {counted(int(np.sum(y == label)), 'sample')}",
            f"write {missing_option('outcome', codes, config.samples.missing)} if it stands "
            "for a missing value",
        )
        for label in codes
    ]


def _about_covariate(column: pd.Series, given: Sequence[str] | None) -> list[Finding]:
    """Check a covariate to regress out; `given` are codes of missing cells in the study file."""
    key, name = "covariates.regress_out", str(column.name)
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return number_findings(key, name, column.to_numpy(dtype=float), given)
    return category_findings(key, name, sorted(map(str, column.cat.categories)))


def _categories(key: str, view: View) -> list[Finding]:
    """Check the levels of the categories of a view, which have a column each."""
    findings = []
    for category, columns in level_columns(view).items():
        levels = view.feature_info["level"].to_numpy()[columns].tolist()  # type: ignore[index]
        findings += category_findings(key, category, levels)
    return findings


def _look_at(
    key: str,
    view: View,
    config: StudyConfig,
    outcomes: Mapping[str, np.ndarray],
    sites: np.ndarray | None,
) -> tuple[list[Finding], list[tuple[int, int]]]:
    """Read a view once, block by block; return findings in its columns, and pairs of equal rows.

    Shapes: outcomes (n_samples,) each, classes as numbers; sites (n_samples,).
    """
    width = view.shape[1]
    hashes = RowHashes(view.present)
    sentinel_counts: defaultdict[float, dict[str, int]] = defaultdict(dict)
    # Names of suspicious columns, by kind of finding and outcome.
    columns: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    constant: dict[str, str] = {}  # column to the site at which it is constant
    # Codes of genotypes are neither dates nor sentinels.
    is_measured = view.dtype != np.int8
    for cols, block in view.iter_blocks():
        hashes.add(block)
        if is_measured:
            for j in np.flatnonzero(np.isin(block, SENTINELS).any(axis=0)).tolist():
                for value, count in sentinel_cells(block[:, j]).items():
                    sentinel_counts[value][_names(view, cols, [j])[0]] = count
            with np.errstate(invalid="ignore"):
                large = np.flatnonzero((block >= _LEAST_DATE).any(axis=0))
            columns["dates", ""] += [
                name
                for j, name in zip(large, _names(view, cols, large), strict=True)
                if dated(block[:, j].astype(np.float64), name)
            ]
        for outcome, y in outcomes.items():
            if config.classification:
                copying = copying_classes(block, y, width)
            else:
                copying = copying_numbers(block, y)
            columns["copies", outcome] += _names(view, cols, np.flatnonzero(copying))
            if config.classification and is_measured:
                revealing = _revealing_by_missing(block[view.present], y[view.present], width)
                columns["missing copies", outcome] += _names(view, cols, revealing)
        if sites is not None:
            for j, site in constant_columns(block, sites, width):
                constant.setdefault(_names(view, cols, [j])[0], site)
    section = config.samples if view.name == COVARIATES else config.views.get(view.name)
    counts = beyond_chance(sentinel_counts, view)
    findings = sentinels(key, counts, getattr(section, "missing", None))
    for (kind, outcome), listed in columns.items():
        findings += column_finding(kind, key, listed, outcome=outcome)
    at_sites = sorted(set(constant.values()))
    where = f"at site {at_sites[0]!r}" if len(at_sites) == 1 else f"at sites {names(at_sites)}"
    findings += column_finding("constant in site", key, list(constant), where=where)
    return findings, hashes.pairs()


def _names(view: View, cols: slice, at: Any) -> list[str]:
    """Return the names of some columns of a block."""
    return [str(name) for name in view.names_of(cols.start + np.asarray(at, dtype=np.intp))]


def _revealing_by_missing(block: np.ndarray, codes: np.ndarray, width: int) -> list[int]:
    """Return the columns whose missing cells tell the class, among samples that have the view.

    Shapes: block (n_samples, b) of a view of `width` columns, codes of classes (n_samples,).
    """
    missing = np.isnan(block)
    with_missing = np.flatnonzero(missing.any(axis=0))
    if not len(with_missing) or len(np.unique(codes)) < 2:
        return []
    copying = copying_classes(missing[:, with_missing].astype(float), codes, width)
    return with_missing[copying].tolist()


@dataclass
class StudyCheck:
    """Plan of a study: samples, views, folds, jobs and time, and findings in the data.

    Attributes
    ----------
    data : StudyData
        The data of the study.
    comparison : Comparison
        Its models and folds, applied to the data.
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
        study, preparation = self.data, self.data.preparation
        widths = feature_counts(study.data, () if preparation is None else preparation.steps)
        return [
            _samples(study),
            *(_view(study, view, width) for view, width in widths.items()),
            _folds(self.plan),
            _jobs(self.plan, self.n_jobs),
        ]

    def refuse_findings(self, config: StudyConfig) -> None:
        """Raise the first finding as an error, as ``--strict`` asks for."""
        if self.findings:
            more = len(self.findings) - 1
            first = self.findings[0]
            rest = f" ({more} more with --check)" if more else ""
            raise config.problem(first.key, first.what, first.fix + rest)


def check_study(config: StudyConfig, *, n_jobs: int = 1, trial: bool = True) -> StudyCheck:
    """Read the data of a study, plan its jobs, and look for suspicious data.

    Parameters
    ----------
    config : StudyConfig
        As `load_study` returns it.
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
    >>> folder = tempfile.TemporaryDirectory()
    >>> config = load_study(simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"]))
    >>> for line in check_study(config, trial=False).lines():
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
    data = read_study(config)
    comparison = open_study(config, data)
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
    return StudyCheck(data, comparison, plan, findings, int(joblib.effective_n_jobs(n_jobs)))


def _absent_classes(y: np.ndarray, plan: Preview) -> list[Finding]:
    """Report folds that have to predict a class which does not occur in their training rows."""
    absent = Counter(
        label for fold in plan.folds for label in np.setdiff1d(y[fold.test], y[fold.train]).tolist()
    )
    return [
        Finding(
            "folds",
            f"{count} of {len(plan.folds)} folds have no training row of class {label!r}, which "
            "then gets probability 0",
            "merge classes, sites or groups if that is not what you want to know",
        )
        for label, count in absent.items()
    ]


def _samples(study: StudyData) -> str:
    """Return the line of the plan about samples and outcome."""
    n = len(study.data)
    if isinstance(study.y, pd.DataFrame):
        cases = ", ".join(f"{int(study.y[c].sum())} {c}" for c in study.y)
        return f"{n} samples, {study.y.shape[1]} outcomes: {cases}"
    if study.y.dtype.kind == "f" or study.y.dtype.kind in "iu":
        return f"{n} samples, outcome {study.y.min():.4g} to {study.y.max():.4g}"
    classes, counts = np.unique(study.y, return_counts=True)
    positive = study.positive if study.positive is not None else classes[-1]
    parts = [
        f"{count} {c}" + (" (positive)" if len(classes) == 2 and c == positive else "")
        for c, count in zip(classes.tolist(), counts.tolist(), strict=True)
    ]
    return f"{n} samples: {', '.join(parts)}"


def _view(study: StudyData, view: str, width: int) -> str:
    """Return the line of the plan about a view: its width, and the samples without it."""
    line = f"  {view}: {counted(width, 'feature')}"
    absent = study.data.sample_ids[~study.data.view(view).present].astype(str).tolist()
    # Samples that the study does not use, because of this view or of others.
    left_out = [i for i in study.missing_samples.get(view, []) if i not in set(absent)]
    if absent:
        line += f"; missing for {counted(len(absent), 'sample')} ({names(absent)})"
    if left_out:
        what = counted(
            len(left_out),
            "sample is not in its file and is left out",
            "samples are not in its file and are left out",
        )
        line += f"; {what} ({names(left_out)})"
    return line


def _folds(plan: Preview) -> str:
    sizes = [len(f.test) for f in plan.folds]
    train = [len(f.train) for f in plan.folds]
    return (
        f"Folds: {plan.scheme}, {len(plan.folds)} outer ({_span(train)} training and "
        f"{_span(sizes)} test rows), {plan.n_inner} inner"
    )


def _span(values: list[int]) -> str:
    return " to ".join(map(str, sorted({min(values), max(values)})))


def _jobs(plan: Preview, n_jobs: int) -> str:
    """Return the line of the plan about jobs, their estimated time and the slowest model."""
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
