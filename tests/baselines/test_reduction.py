"""Gram-based front-ends against the explicit matrices they stand for."""

import numpy as np
import pytest

from baldur.baselines import MCCDClassifier
from baldur.baselines.reduction import count_components, reduce_block, reduce_gram
from baldur.exceptions import InputError
from baldur.views import MultiView


@pytest.mark.parametrize("v", [0, 1, 2])
def test_exact_reduction_reproduces_gram_and_weights(views, v):
    X = views[0][v]
    red = reduce_gram(X @ X.T)
    np.testing.assert_allclose(red.features @ red.features.T, X @ X.T, atol=1e-10)
    w = np.random.default_rng(0).standard_normal((red.features.shape[1], 2))
    np.testing.assert_allclose(X @ (X.T @ (red.lift @ w)), red.features @ w, atol=1e-9)
    assert red.features.shape[1] == min(X.shape[1], len(X) - 1)


def test_pca_scores_and_new_rows_equal_the_svd(views):
    X = views[0][1]
    Z = np.random.default_rng(1).standard_normal((5, X.shape[1]))
    red = reduce_gram(X @ X.T, "pca", 6)
    _, _, Vt = np.linalg.svd(X, full_matrices=False)
    ours, theirs = Z @ X.T @ red.lift, Z @ Vt[:6].T
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-9)


def test_kernel_front_end_is_the_scaled_kernel_up_to_rotation(views):
    X = views[0][2]
    K = X @ X.T
    scaled = K / (np.trace(K) / len(K))
    Z = np.random.default_rng(1).standard_normal((5, X.shape[1]))
    red = reduce_gram(K, "linear_kernel")
    np.testing.assert_allclose(red.features @ red.features.T, scaled @ scaled.T, atol=1e-10)
    np.testing.assert_allclose(
        (Z @ X.T @ red.lift) @ red.features.T, (Z @ X.T / (np.trace(K) / len(K))) @ scaled.T
    )


@pytest.mark.parametrize("reduction", [None, "pca", "linear_kernel"])
def test_narrow_views_give_the_same_from_their_own_side(reduction):
    rng = np.random.default_rng(2)
    narrow = rng.standard_normal((50, 12))
    narrow[:, -1] = narrow[:, 0] - narrow[:, 1]  # rank 11
    mv = MultiView({"narrow": narrow, "wide": rng.standard_normal((50, 90))})
    for b in MCCDClassifier()._prepare(mv):
        ours, literal = reduce_block(b, reduction, 0.9), reduce_gram(b.gram(), reduction, 0.9)
        assert ours.features.shape == literal.features.shape
        for one, other in [
            (ours.features, literal.features),
            (b.project(ours.lift), b.project(literal.lift)),
        ]:
            np.testing.assert_allclose(np.abs(one), np.abs(other), atol=1e-9)
        np.testing.assert_allclose(
            ours.lift @ ours.features.T, literal.lift @ literal.features.T, atol=1e-9
        )


def test_component_counts():
    s = np.sqrt([8.0, 1.0, 0.6, 0.4])
    assert count_components(0.8, s, 10) == 1
    assert count_components(0.95, s, 10) == 3
    assert count_components(3, s, 10) == 3
    assert count_components(100, s, 10) == 4
    assert count_components("n-1", s, 4) == 3
    with pytest.raises(InputError, match="n_components"):
        count_components("most", s, 10)
    with pytest.raises(InputError, match="reduction"):
        reduce_gram(np.eye(3), "ica")


def test_constant_view_keeps_no_direction():
    red = reduce_gram(np.zeros((4, 4)))
    assert red.features.shape == (4, 0)
    assert red.lift.shape == (4, 0)
