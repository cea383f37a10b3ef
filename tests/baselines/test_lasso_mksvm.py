"""Lasso-MkSVM against SVC on the selected columns, and its kernel weights."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.svm import SVC

from baldur.baselines import LassoMkSVMClassifier, lasso_mksvm
from baldur.baselines.blocks import Block
from baldur.baselines.lasso_mksvm import fit_mkl, lasso_support, simplex_grid, svm_dual
from baldur.baselines.linear import solve_on_working_set
from baldur.preparation import Preparation
from baldur.views import MultiView


@pytest.fixture
def kernels():
    rng = np.random.default_rng(2)
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    X = [rng.standard_normal((60, d)) for d in (4, 6, 5)]
    X[0][:, 0] += y
    X[1][:, :2] += y[:, None]
    K = [x @ x.T for x in X]
    return [k / np.trace(k) * len(k) for k in K], y


def standardise(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_one_view_equals_svc_on_the_selected_scaled_columns(common):
    mv, y = common(1, n=120, dims=(40, 5, 5))
    X = np.asarray(mv.view("a").read())
    model = LassoMkSVMClassifier(fraction=0.3, C=2.0).fit(X, y)
    mask = model.selected_features_["X"]
    Z = standardise(X)[:, mask]
    Z = Z / np.sqrt(np.mean(np.sum(Z**2, axis=1)))
    oracle = SVC(kernel="linear", C=2.0).fit(Z, y)
    np.testing.assert_allclose(model.decision_function(X), oracle.decision_function(Z), atol=1e-6)
    lasso = Lasso(
        alpha=0.3 * np.abs(standardise(X).T @ (2.0 * y - 1 - np.mean(2 * y - 1))).max() / 120
    )
    np.testing.assert_array_equal(lasso.fit(standardise(X), 2.0 * y - 1).coef_ != 0, mask)


def svm_objective(beta, kernels, y, C):
    """Primal value ``0.5 sum_v ||w_v||^2 / beta_v + C sum_i hinge_i``."""
    K = np.tensordot(beta, np.asarray(kernels), axes=1)
    alpha, offset = svm_dual(K, y, C)
    f = K @ alpha
    return 0.5 * alpha @ f + C * np.sum(np.maximum(0.0, 1.0 - y * (f + offset)))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_beta_on_the_p_norm_sphere_and_objective_falls(kernels, p):
    K, y = kernels
    beta = fit_mkl(K, y, 1.0, p)
    assert np.sum(beta**p) ** (1 / p) == pytest.approx(1.0)
    assert np.all(beta >= 0)
    uniform = np.full(3, (1.0 / 3.0) ** (1.0 / p))
    steps = [uniform, *(fit_mkl(K, y, 1.0, p, max_iter=n) for n in range(1, 12))]
    history = [svm_objective(weights, K, y, 1.0) for weights in steps]
    # SVC stops at its own tolerance of 1e-3; the descent is exact up to that.
    assert np.all(np.diff(history) <= 1e-3 * history[0])
    assert history[-1] < history[0]


def test_noise_view_is_dropped_at_p_one(kernels):
    K, y = kernels
    beta = fit_mkl(K, y, 0.1, 1.0, max_iter=300)
    assert beta[2] < 0.05 < beta[1]


def test_working_set_finds_the_support_of_the_full_lasso(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 900))
    y = np.where(X[:, :4].sum(axis=1) > 0, 1.0, -1.0)
    mv = MultiView({"x": X})
    preparation = Preparation().fit(mv)
    block = Block(preparation.transform(mv)["x"], preparation)
    full = lasso_support(block, y, 0.2)

    def forced(*args, **options):
        return solve_on_working_set(*args, **{**options, "dense_limit": 64})

    monkeypatch.setattr(lasso_mksvm, "solve_on_working_set", forced)
    np.testing.assert_array_equal(lasso_support(block, y, 0.2), full)
    assert 4 <= full.sum() < 50


def test_empty_selection_keeps_the_best_column(common):
    mv, y = common(0, n=80, dims=(10, 20, 5))
    model = LassoMkSVMClassifier(fraction=1.5).fit(mv, y)
    assert sum(m.sum() for m in model.selected_features_.values()) == 1
    assert model.selected_features_["a"][:3].sum() == 1


def test_grid_selects_inside_folds_and_stays_on_the_simplex(common):
    mv, y = common(0, n=100, dims=(10, 60, 10))
    model = LassoMkSVMClassifier(weights="grid", cv=3, random_state=0).fit(mv[:80], y[:80])
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert np.mean(model.predict(mv[80:]) == y[80:]) >= 0.8
    uniform = LassoMkSVMClassifier(weights="uniform", p=2.0).fit(mv, y)
    assert np.sum(uniform.view_weights_**2) == pytest.approx(1.0)


def test_grid_sizes():
    assert simplex_grid(5, 0.1).shape == (1001, 5)
    assert simplex_grid(5, 0.2).shape == (126, 5)
    np.testing.assert_allclose(simplex_grid(4, 0.25).sum(axis=1), 1.0)


def test_dropped_views_leave_the_mask_but_not_the_raw_count(common):
    mv, y = common(3, n=140, dims=(20, 50, 30))
    model = LassoMkSVMClassifier(fraction=0.4, p=1.0, C=0.1).fit(mv, y)
    kept = sum(int(m.sum()) for m in model.selected_features_.values())
    assert kept <= model.n_lasso_features_
    dead = model.view_weights_[0] <= 1e-6
    for name, gone in zip(mv.view_names, dead, strict=True):
        if gone:
            assert not model.selected_features_[name].any()
