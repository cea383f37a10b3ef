"""preview: the jobs of a comparison and an estimate of its time, before it is run."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field

import numpy as np

from baldur.evaluation.clinical.logistic_fit import needs_platt
from baldur.evaluation.design import Comparison
from baldur.evaluation.engine.job import predict_rows
from baldur.evaluation.engine.run import seed_of
from baldur.evaluation.models import fit_with_groups
from baldur.evaluation.splits import Fold
from baldur.evaluation.threads import one_thread
from baldur.views import MultiView
from baldur.views.replace_columns import select_columns

__all__ = ["Preview", "preview"]

# A trial looks at no more columns than this in all, and its time is scaled to the full width:
# it has to cost little beside the study, and every model here grows about linearly with width.
_TRIAL_COLUMNS = 300


@dataclass
class Preview:
    """What a comparison is going to do.

    Attributes
    ----------
    scheme : str
        How outer folds are made.
    folds : list of Fold
        The outer folds.
    n_inner : int
        Inner folds of the first outer fold.
    jobs, fits : dict of str to int
        Jobs and single fits of every model.
    seconds : dict of str to float
        Time of one fit of every model, where it was tried.
    failures : dict of str to str
        Models whose trial failed, and why.
    """

    scheme: str
    folds: list[Fold]
    n_inner: int
    jobs: dict[str, int]
    fits: dict[str, int]
    seconds: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def total_seconds(self, n_jobs: int) -> float | None:
        """Estimate the time of the whole, or None where no model was tried with success."""
        if not self.seconds:
            return None
        return sum(self.fits[m] * s for m, s in self.seconds.items()) / max(n_jobs, 1)


def preview(comparison: Comparison, *, trial: bool = False, parts: int = 0) -> Preview:
    """Count the jobs of a comparison, and estimate its time from trial fits.

    Parameters
    ----------
    comparison : Comparison
        As `open_comparison` returns it.
    trial : bool, default=False
        Fit the first setting of every model once, on some of the columns, to estimate the time.
    parts : int, default=0
        How often the comparison is repeated on parts of the training rows, for a learning curve.

    Returns
    -------
    Preview

    Raises
    ------
    InputError
        Where the folds cannot be made.
    """
    folds = comparison.folds
    inner = [comparison.plan.inner_folds(comparison.y, fold) for fold in folds]
    runs = comparison.permutations + 1 + parts
    jobs, fits = {}, {}
    for model in comparison.models:
        settings = len(model.settings())
        tried = settings if settings > 1 else 0
        jobs[model.name] = runs * len(folds) * (tried + 1)
        fits[model.name] = runs * sum(tried * len(pairs) + 1 for pairs in inner)
        if needs_platt(model.estimator, comparison.n_classes):
            fits[model.name] += (1 + parts) * sum(len(pairs) for pairs in inner)
    found = Preview(comparison.plan.scheme, folds, len(inner[0]), jobs, fits)
    if trial:
        _try_models(comparison, folds[0], inner[0][0], found)
    return found


def _try_models(
    comparison: Comparison, fold: Fold, inner: tuple[np.ndarray, np.ndarray], found: Preview
) -> None:
    thin = _some_columns(comparison.data)
    factor = comparison.data.shape[1] / thin.shape[1]
    train, test = inner
    groups = comparison.plan.inner_groups
    for model in comparison.models:
        first, *others = model.settings()
        # Where a grid is searched, nearly all fits are those of the search.
        seed = seed_of(comparison, model, 0, fold)
        estimator = model.make(first, seed, searching=bool(others))
        started = time.perf_counter()
        try:
            with warnings.catch_warnings(), one_thread():
                warnings.simplefilter("ignore")
                inside = None if groups is None else groups[train]
                fitted = fit_with_groups(estimator, thin[train], comparison.y[train], inside)
                predict_rows(fitted, thin[test], comparison.n_classes)
        except Exception as error:  # a model may fail in any way; that is what is asked here
            found.failures[model.name] = " ".join(str(error).split()) or type(error).__name__
            continue
        found.seconds[model.name] = factor * (time.perf_counter() - started)


def _some_columns(mv: MultiView) -> MultiView:
    """Evenly spaced columns of every view, as many as a trial may look at."""
    total = mv.shape[1]
    if total <= _TRIAL_COLUMNS:
        return mv
    kept = {}
    for name, width in mv.n_features.items():
        # Narrow views stay whole, so that none of them vanishes beside a wide one.
        wanted = max(round(_TRIAL_COLUMNS * width / total), min(width, 20))
        kept[name] = np.unique(np.linspace(0, width - 1, min(wanted, width)).astype(np.intp))
    return select_columns(mv, kept)
