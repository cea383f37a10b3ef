"""Latent factors that several outputs share, found by projecting the ensemble.

With C outputs the linear predictors eta_n (C values per sample) often vary in fewer than C
directions, as where four symptoms have two causes. The ensemble is projected, not fitted again:

    f_n   = R (eta_n - centre)        K latent factors,  R (K, C) with orthonormal rows
    eta_n = centre + R^T f_n          so the loadings are V = R^T

R has the leading principal directions of the linear predictors over the training rows. Every number
of factors is scored on held-out rows, with directions from the training rows of their fold:
directions beyond the true ones carry the noise of estimation alone, and a missing one costs far
more. If all C directions have the smallest loss, outputs share nothing, and the factors are the
outputs themselves (V = I). Otherwise the fewest factors whose loss is within one standard error of
the smallest are selected (the one-standard-error rule): a direction of noise costs so little that
the smallest loss alone often has one or two of them.

Departure from the paper: its loadings V have an ARD prior and a posterior of their own, whose
precisions prune factors. Under a logistic link V and W shrink together (both scale the logits), so
the number of factors that survives depends on the start. The projection keeps the posterior of the
weights, and prunes factors by prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from baldur.core.types import Array
from baldur.inference.fit_context import FitContext
from baldur.inference.predictor import Predictor, SharedFactors, Views, mean_squares
from baldur.inference.selection import mean_losses, paired_gap

RANKS = (*range(1, 17), 20, 24, 32, 48, 64, 96, 128)
"""Numbers of factors that are scored, besides one per output."""


def ranks_to_score(C: int) -> list[int]:
    """Return the numbers of factors to score for C outputs, the last one C."""
    return [rank for rank in RANKS if rank < C] + [C]


def principal_directions(eta: Array, counted: Array) -> tuple[Array, Array]:
    """Return means and principal directions of linear predictors, (F, C) and (F, C, C).

    Directions are rows, by falling variance.

    Shapes: eta (F, C, n), counted (F, n).
    """
    total = np.maximum(counted.sum(axis=1), 1.0)[:, None]
    centre = np.einsum("fcn,fn->fc", eta, counted) / total
    away = (eta - centre[..., None]) * counted[:, None]
    _, vectors = np.linalg.eigh(np.matmul(away, away.swapaxes(1, 2)))
    rows = np.ascontiguousarray(vectors[..., ::-1].swapaxes(1, 2))
    # The sign of an eigenvector is arbitrary; the largest loading of each factor is positive.
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=2)[..., None], axis=2)
    return centre, rows * np.where(largest < 0, -1.0, 1.0)


def select_rank(losses: Array, weight: Array) -> int:
    """Return the place of the selected number of factors.

    Shapes: losses (V, N), weight (N,).
    """
    best = int((losses @ weight).argmin())
    if best == len(losses) - 1:
        return best
    for place in range(best):
        gap = paired_gap(losses[place], losses[best], weight)
        if gap.mean <= gap.error:
            return place
    return best


def rank_moments(
    centre: Array,
    directions: Array,
    mean: Array,
    var: Array,
    ranks: Sequence[int],
    *,
    noisy: bool,
) -> tuple[Array, Array]:
    """Return held-out moments of the ensemble on fewer factors, each (V, F, C, p).

    Shapes: centre, directions (F, C), mean, var (F, C, p).
    """
    away = mean - centre[..., None]
    means, variances = [], []
    for rank in ranks:
        R = directions[:, :rank]
        P = np.matmul(R.swapaxes(1, 2), R)
        means.append(centre[..., None] + np.matmul(P, away))
        spread = var
        if rank < mean.shape[1] and not noisy:
            spread = np.matmul(P**2, var)
        variances.append(np.maximum(spread, 1e-12))
    return np.stack(means), np.stack(variances)


def share_factors(predictor: Predictor, views: Views, n_factors: int) -> Predictor:
    """Return the predictor with K factors behind its outputs.

    Where there is no variation to share, or as many factors as outputs, it is returned as it is.
    """
    if n_factors >= predictor.weights.shape[1]:
        return predictor
    eta = predictor.moments(views)[0].T[None]  # (1, C, n)
    if not np.ptp(eta, axis=2).any():
        return predictor
    centre, directions = principal_directions(eta, np.ones((1, eta.shape[2])))
    factors = SharedFactors(directions[0, :n_factors], centre[0])
    made = replace(predictor, factors=factors)
    coefs, _, _ = predictor.coefficients()
    index, _ = predictor.count_joint()
    # Only columns with a weight are read, so a submodel of few features costs little.
    parts = np.stack(
        [
            coef[:, used] @ view.columns(used).T
            if len(used) < view.shape[1]
            else view.apply(coef.T).T
            for view, coef, used in zip(views, coefs, index, strict=True)
        ]
    )  # (M, C, n)
    absent: Any = np.stack([view.absent for view in views], axis=1).astype(float)
    latent = np.matmul(factors.R, parts)
    made.signal = mean_squares(latent, absent)
    made.output_signal = mean_squares(np.matmul(factors.R.T, latent), absent)
    return made


def select_factors(fit: FitContext) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of latent factors, and the held-out losses that decided it."""
    weight, noisy = fit.weight, fit.task == "regression"
    ranks, found = ranks_to_score(fit.T.shape[1]), []
    parts = zip(fit.batches, fit.ensembles, fit.held_whole, strict=True)
    for b, (batch, ensemble, moments) in enumerate(parts):
        stacking = fit.stacking_of(b)
        weights = ensemble.point_weights(stacking.shares)
        pooled = np.einsum("jfc,jfcn->fcn", weights, ensemble.mean)
        base = ensemble.base_logit[..., None]
        eta = base + stacking.slope[:, None, None] * (pooled - base)
        directions = principal_directions(eta, batch.counted)
        found.append(rank_moments(*directions, *moments, ranks, noisy=noisy))
    losses = mean_losses(*fit.gather(found), fit.row, fit.T, fit.task)
    total = losses @ weight
    at = select_rank(losses, weight)
    records = []
    for place, (rank, loss) in enumerate(zip(ranks, losses, strict=True)):
        gap = paired_gap(loss, losses[-1], weight)
        records.append(
            {
                "n_factors": rank,
                "loss": float(total[place] / weight.sum()),
                "loss_difference": gap.mean,
                "standard_error": gap.error,
                "selected": place == at,
            }
        )
    return ranks[at], records
