"""Eigenvectors through the Gram matrix equal those of the singular value decomposition."""

import numpy as np

from baldur.views.standardised_blocks import gram_eigh


def test_signs_and_rank_are_settled():
    X = np.random.default_rng(0).normal(size=(6, 2))
    U, S = gram_eigh(X @ X.T)
    assert U.shape == (6, 2)
    assert (U[np.abs(U).argmax(axis=0), [0, 1]] > 0).all()
    np.testing.assert_allclose((U * S**2) @ U.T, X @ X.T, atol=1e-12)
    assert gram_eigh(np.zeros((3, 3)))[1].size == 0
    wide = np.random.default_rng(1).normal(size=(5, 40))
    np.testing.assert_allclose(gram_eigh(wide @ wide.T)[1], np.linalg.svd(wide)[1], rtol=1e-10)
