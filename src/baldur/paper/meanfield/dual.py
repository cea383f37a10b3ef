"""The paper's dual posterior q(A), W^T = X~^T A, with X~ some or all training rows.

Kept because the paper describes it. It collapses: the prior of W scores D dimensions, the
entropy of q(A) only as many as X~ has independent rows, so for D > N every step of gamma gains
about (D - N)/2 per factor and unit of ln gamma, without end. Started at the true weights it
slides to zero. "auto" never chooses it; ``primal.spectrum_samples`` is the exact posterior at
the same cost.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from baldur.paper.meanfield.products import ViewProducts
from baldur.paper.meanfield.weights import Array, Index, Spectrum

RANK_TOLERANCE = 1e-11
"""Directions of X~ X~^T below this share of the largest are left out of q(A)."""


def spectrum_dual(
    view: ViewProducts, index: Index, gamma: Array, weight: Array, relevance: Index
) -> Spectrum:
    """Basis of the row space of X~ from E^T (X~ Lambda X~^T) E = I, E^T (X~ X^T X X~^T) E = S.

    Sigma_ak^-1 = <tau> X~ X^T X X~^T + <delta_k> X~ Lambda_<gamma> X~^T. Departure from the
    paper: centred or repeated rows make that matrix singular, so q(A) lives on the range of
    X~ X~^T; directions of A that leave W unchanged are not part of it.

    Parameters
    ----------
    view : ViewProducts
    index : (d,) integer array
        Kept features.
    gamma : (d,) array
        <gamma_d> of the kept features.
    weight : (N,) array
        Sample weights.
    relevance : integer array
        Rows of X that serve as relevance vectors X~.
    """
    diagonal = np.zeros(view.shape[1])
    diagonal[index] = gamma
    prior = view.weighted_gram(diagonal)[np.ix_(relevance, relevance)]  # X~ Lambda X~^T
    diagonal[index] = 1.0
    cross = view.weighted_gram(diagonal)[:, relevance]  # X X~^T
    # The range of X~ does not depend on gamma, so the dimension of q(A) is the same all through.
    size, P = eigh(cross[relevance])
    P = P[:, size > RANK_TOLERANCE * max(size[-1], np.finfo(float).tiny)]
    m, rotation = eigh(P.T @ prior @ P)
    m = np.maximum(m, np.finfo(float).eps * m.max(initial=0.0))
    T = P @ rotation / np.sqrt(m)
    scores = cross @ T
    S, Q = eigh(scores.T @ (weight[:, None] * scores))
    left = np.zeros((view.shape[0], m.size))
    left[relevance] = T @ Q
    return Spectrum(
        space="dual",
        index=index,
        scores=scores @ Q,
        S=np.maximum(S, 0.0),
        n_null=0,
        logdet=-float(np.log(m).sum()),
        basis=None,
        left=left,
        scale=np.ones(index.size),
        null_scale=np.zeros(index.size),
    )
