"""Fewer factors than outputs after ``sparsity="auto"``: V learned on the features it kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from baldur.inference.features import Index
from baldur.inference.fitted import Fitted, Views, from_run
from baldur.inference.predictive import Moments, mixture_moments
from baldur.inference.run import run_structured
from baldur.inference.screening import Problem
from baldur.inference.shapes import starting_loadings, structured_data
from baldur.views.products import PreparedView


def fit_auto_with_factors(
    problem: Problem, full: Fitted, n_factors: int, *, max_iter: int, tol: float
) -> Fitted:
    """Learn `n_factors` factors on the kept features, with one precision per view and factor.

    The loadings start at the leading directions of the linear predictors that the kept features
    give with one factor per output.
    """
    if not any(mask.any() for mask in full.selected):
        return full
    kept = [
        view.take_columns(np.flatnonzero(mask))
        for view, mask in zip(problem.views, full.selected, strict=True)
        if mask.any()
    ]
    data = structured_data(kept, problem.likelihood, np.inf)
    eta, _ = mixture_moments(full.moments(problem.views), full.weights)
    V = starting_loadings(eta, n_factors)
    run = run_structured(data, V=V, max_iter=max_iter, tol=tol, prune=True)
    small = from_run(run, full.sparsity)
    return _full_width(small, full, [bool(mask.any()) for mask in full.selected])


def _full_width(small: Fitted, full: Fitted, used: list[bool]) -> Fitted:
    """Put the answer on kept columns back into the width of the views."""
    places = iter(range(len(small.selected)))
    at = [next(places) if use else None for use in used]
    masks = [mask.copy() for mask in full.selected]
    signal = np.zeros((len(used), small.signal.shape[1]))
    C = len(small.intercept)
    coef = [np.zeros((C, len(mask))) for mask in masks]
    coef_std = [np.zeros((C, len(mask))) for mask in masks]
    columns = [np.flatnonzero(mask) for mask in masks]
    for m, place in enumerate(at):
        if place is not None:
            coef[m][:, columns[m]] = small.coef[place]
            coef_std[m][:, columns[m]] = small.coef_std[place]
            masks[m][columns[m]] = small.selected[place]
            signal[m] = small.signal[place]
    narrow = _Narrow(columns, used)
    return replace(
        small,
        latent=_Through(small.latent, narrow),
        moments=_Through(small.moments, narrow),
        selected=masks,
        coef=coef,
        coef_std=coef_std,
        signal=signal,
        spaces=full.spaces,
        history=full.history + small.history,
        answer=full.answer,
    )


class _Narrow:
    """Cuts new rows to the columns that were kept."""

    def __init__(self, columns: Index, used: list[bool]) -> None:
        self.columns = columns
        self.used = used

    def __call__(self, views: Views) -> list[PreparedView]:
        return [
            view.take_columns(columns)
            for view, columns, use in zip(views, self.columns, self.used, strict=True)
            if use
        ]


class _Through:
    """A prediction after a cut; a class so that fitted models can be pickled."""

    def __init__(self, inner: Callable[[Views], Moments], narrow: _Narrow) -> None:
        self.inner = inner
        self.narrow = narrow

    def __call__(self, views: Views) -> Moments:
        return self.inner(self.narrow(views))
