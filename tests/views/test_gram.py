"""Principal components through the Gram matrix equal those of the singular value decomposition."""

import numpy as np
import pytest

from baldur import MultiView
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.views.gram import GramPCA, gram_eigh


@pytest.fixture
def split():
    rng = np.random.default_rng(0)
    mv = MultiView({"g": rng.integers(0, 3, (30, 400)).astype(np.int8)})
    preparation = Preparation().fit(mv[:20])
    return preparation.transform(mv[:20])["g"], preparation.transform(mv[20:])["g"]


def test_scores_and_new_rows_equal_the_svd(split):
    train, new = split
    X, Z = train.dense(), new.dense()
    pca = GramPCA(train)
    U, S, Vt = np.linalg.svd(X, full_matrices=False)
    assert pca.S.shape == (19,)
    np.testing.assert_allclose(pca.S, S[:19], rtol=1e-10)
    sign = np.sign(np.sum(U[:, :19] * pca.U, axis=0))
    np.testing.assert_allclose(pca.scores, X @ Vt[:19].T * sign, atol=1e-9)
    np.testing.assert_allclose(pca.transform(new), Z @ Vt[:19].T * sign, atol=1e-9)
    np.testing.assert_allclose(pca.transform(train), pca.scores, atol=1e-9)
    np.testing.assert_allclose(pca.kernel(new), Z @ X.T, atol=1e-9)
    np.testing.assert_allclose(pca.scores @ pca.scores.T, pca.gram, atol=1e-9)


def test_weights_on_scores_become_weights_on_features(split):
    train, new = split
    pca = GramPCA(train, 6)
    beta = np.random.default_rng(1).normal(size=(6, 2))
    np.testing.assert_allclose(new.apply(pca.coef(beta)), pca.transform(new) @ beta, atol=1e-9)
    np.testing.assert_allclose(pca.coef(beta[:, 0]), pca.coef(beta)[:, 0], atol=1e-12)


def test_number_of_components(split):
    train, _ = split
    everything = GramPCA(train).S
    assert GramPCA(train, 5).scores.shape == (20, 5)
    assert GramPCA(train, 500).scores.shape == (20, 19)
    share = np.cumsum(everything**2) / np.sum(everything**2)
    kept = len(GramPCA(train, 0.8).S)
    assert share[kept - 1] >= 0.8 > share[kept - 2]
    for wrong in (0, 1.5, -2, "all"):
        with pytest.raises(InputError, match="n_components"):
            GramPCA(train, wrong)


def test_signs_and_rank_are_settled():
    X = np.random.default_rng(0).normal(size=(6, 2))
    U, S = gram_eigh(X @ X.T)
    assert U.shape == (6, 2)
    assert (U[np.abs(U).argmax(axis=0), [0, 1]] > 0).all()
    np.testing.assert_allclose((U * S**2) @ U.T, X @ X.T, atol=1e-12)
    assert gram_eigh(np.zeros((3, 3)))[1].size == 0
