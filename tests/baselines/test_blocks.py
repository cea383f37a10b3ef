"""Gram-based front-ends against the explicit matrices they stand for."""

import numpy as np
import pytest

from baldur.baselines import BASELINES, MCCDClassifier, SGPARDClassifier
from baldur.baselines.blocks import (
    Block,
    available_memory,
    count_components,
    gram_eigh,
    reduce_block,
    reduce_gram,
)
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.views import MultiView


def test_signs_and_rank_of_eigenvectors_are_settled():
    X = np.random.default_rng(0).normal(size=(6, 2))
    U, S = gram_eigh(X @ X.T)
    assert U.shape == (6, 2)
    assert (U[np.abs(U).argmax(axis=0), [0, 1]] > 0).all()
    np.testing.assert_allclose((U * S**2) @ U.T, X @ X.T, atol=1e-12)
    assert gram_eigh(np.zeros((3, 3)))[1].size == 0
    wide = np.random.default_rng(1).normal(size=(5, 40))
    np.testing.assert_allclose(gram_eigh(wide @ wide.T)[1], np.linalg.svd(wide)[1], rtol=1e-10)


@pytest.mark.parametrize("v", [0, 1, 2])
def test_exact_reduction_reproduces_gram_and_weights(views, v):
    X = views[0][v]
    features, lift = reduce_gram(X @ X.T)
    np.testing.assert_allclose(features @ features.T, X @ X.T, atol=1e-10)
    w = np.random.default_rng(0).standard_normal((features.shape[1], 2))
    np.testing.assert_allclose(X @ (X.T @ (lift @ w)), features @ w, atol=1e-9)
    assert features.shape[1] == min(X.shape[1], len(X) - 1)


def test_pca_scores_and_new_rows_equal_the_svd(views):
    X = views[0][1]
    Z = np.random.default_rng(1).standard_normal((5, X.shape[1]))
    _, lift = reduce_gram(X @ X.T, "pca", 6)
    _, _, Vt = np.linalg.svd(X, full_matrices=False)
    ours, theirs = Z @ X.T @ lift, Z @ Vt[:6].T
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-9)


def test_kernel_front_end_is_the_scaled_kernel_up_to_rotation(views):
    X = views[0][2]
    K = X @ X.T
    scaled = K / (np.trace(K) / len(K))
    Z = np.random.default_rng(1).standard_normal((5, X.shape[1]))
    features, lift = reduce_gram(K, "linear_kernel")
    np.testing.assert_allclose(features @ features.T, scaled @ scaled.T, atol=1e-10)
    np.testing.assert_allclose(
        (Z @ X.T @ lift) @ features.T, (Z @ X.T / (np.trace(K) / len(K))) @ scaled.T
    )


@pytest.mark.parametrize("reduction", [None, "pca", "linear_kernel"])
def test_narrow_views_give_the_same_from_their_own_side(reduction):
    rng = np.random.default_rng(2)
    narrow = rng.standard_normal((50, 12))
    narrow[:, -1] = narrow[:, 0] - narrow[:, 1]  # rank 11
    mv = MultiView({"narrow": narrow, "wide": rng.standard_normal((50, 90))})
    preparation = Preparation()
    for view in preparation.fit_transform(mv).values():
        b = Block(view, preparation)
        ours, literal = reduce_block(b, reduction, 0.9), reduce_gram(b.gram(), reduction, 0.9)
        (features, lift), (literal_features, literal_lift) = ours, literal
        assert features.shape == literal_features.shape
        for one, other in [
            (features, literal_features),
            (b.project(lift), b.project(literal_lift)),
        ]:
            np.testing.assert_allclose(np.abs(one), np.abs(other), atol=1e-9)
        np.testing.assert_allclose(lift @ features.T, literal_lift @ literal_features.T, atol=1e-9)


def test_component_counts():
    s = np.sqrt([8.0, 1.0, 0.6, 0.4])
    assert count_components(0.8, s, 10) == 1
    assert count_components(0.95, s, 10) == 3
    assert count_components(3, s, 10) == 3
    assert count_components(100, s, 10) == 4
    assert count_components("n-1", s, 4) == 3


@pytest.mark.parametrize(
    "settings",
    [{"n_components": "most"}, {"n_components": 0}, {"n_components": -1.0}, {"reduction": "ica"}],
)
def test_illegal_reductions_are_named(settings, common):
    with pytest.raises(InputError, match=f"{next(iter(settings))} must be"):
        MCCDClassifier(**{"reduction": "pca", **settings}).fit(*common(0, n=30, dims=(3, 3, 3)))


def test_constant_view_keeps_no_direction():
    features, lift = reduce_gram(np.zeros((4, 4)))
    assert features.shape == (4, 0)
    assert lift.shape == (4, 0)


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr("baldur.baselines.blocks.available_memory", lambda: 1000)


@pytest.mark.parametrize("row", ["RF", "Boosted trees"])
def test_a_fit_too_large_for_memory_says_how_much_it_needs(little_memory, row):
    X = MultiView({"x": np.zeros((10, 50))})
    with pytest.raises(InputError, match=r"10 rows and 50 features needs about .* GB"):
        BASELINES[row].make().fit(X, np.arange(10) % 2)


def test_memory_of_processes_is_stated_and_refused(common, little_memory):
    pytest.importorskip("torch")
    mv, y = common(0, n=60, dims=(5, 30, 5))
    with pytest.raises(InputError, match=r"needs about .* GB.*ard=\"view\""):
        SGPARDClassifier().fit(mv, y)
    SGPARDClassifier(ard="view", max_iter=2).fit(mv, y)


def test_available_memory_is_plausible():
    found = available_memory()
    assert found is None or 2**26 < found < 2**50
