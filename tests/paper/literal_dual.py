"""The dual posterior q(A) exactly as the paper prints it, W^T = X~^T A, for comparison.

The prior of W scores D dimensions, but the entropy of q(A) counts only as many as X~ has
independent rows. For D > N every step of gamma therefore gains about (D - N)/2 per factor and unit
of ln gamma, without end: the functional has no maximum, is not a bound, and the weights go to zero
even from the true ones. `baldur.paper.weights.spectrum_dual` restores the missing dimensions.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from baldur.paper import updates
from baldur.paper.weights import Spectrum

LITERAL_RANK_TOLERANCE = 1e-11
"""Directions of X~ X~^T below this share of the largest are left out of q(A)."""


def spectrum_literal(view, index, gamma, weight, relevance):
    """Basis of the row space of X~ from E^T (X~ Lambda X~^T) E = I, E^T (X~ X^T X X~^T) E = S.

    Sigma_ak^-1 = <tau> X~ X^T X X~^T + <delta_k> X~ Lambda_<gamma> X~^T. Departure from the
    paper: centred or repeated rows make that matrix singular, so q(A) lives on the range of
    X~ X~^T; directions of A that leave W unchanged are not part of it.

    Shapes: index (d,), gamma (d,), weight (N,).
    """
    diagonal = np.zeros(view.shape[1])
    diagonal[index] = gamma
    prior = view.weighted_gram(diagonal)[np.ix_(relevance, relevance)]  # X~ Lambda X~^T
    diagonal[index] = 1.0
    cross = view.weighted_gram(diagonal)[:, relevance]  # X X~^T
    # The range of X~ does not depend on gamma, so the dimension of q(A) is the same all through.
    size, P = eigh(cross[relevance])
    P = P[:, size > LITERAL_RANK_TOLERANCE * max(size.max(initial=0.0), np.finfo(float).tiny)]
    m, rotation = eigh(P.T @ prior @ P)
    m = np.maximum(m, np.finfo(float).eps * m.max(initial=0.0))
    T = P @ rotation / np.sqrt(m)
    scores = cross @ T
    S, Q = eigh(scores.T @ (weight[:, None] * scores))
    left = np.zeros((view.shape[0], m.size))
    left[relevance] = T @ Q
    return Spectrum(
        index=index,
        scores=scores @ Q,
        S=np.maximum(S, 0.0),
        n_null=0,
        outside=0.0,
        logdet=-float(np.log(m).sum()),
        basis=None,
        left=left,
        scale=np.ones(index.size),
        null_scale=np.zeros(index.size),
    )


def use_literal_dual(monkeypatch):
    """Let dual views have q(A) as printed, whatever the number of their relevance vectors."""
    restored = updates.build_spectrum

    def build_spectrum(data, m, gamma, selected):
        if data.spaces[m] != "dual":
            return restored(data, m, gamma, selected)
        index, view = np.flatnonzero(selected), data.views[m]
        view.hold(index)
        return spectrum_literal(view, index, gamma, data.weight, data.relevance[m])

    monkeypatch.setattr(updates, "build_spectrum", build_spectrum)
