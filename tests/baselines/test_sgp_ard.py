"""SGP+ARD: our predictive equations against GPyTorch's, both ARD modes, and the scaling trap."""

import numpy as np
import pytest

from baldur.baselines import SGPARDClassifier
from baldur.baselines.sgp_ard import fit_sgp
from preparation.literal import literal

gpytorch = pytest.importorskip("gpytorch")
torch = pytest.importorskip("torch")


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 7)) / np.sqrt(7)
    y = (X[:, 0] + 0.1 * rng.standard_normal(40) > 0).astype(float)
    return X, y


def kernel(A, B, ell):
    return np.exp(-0.5 * (((A[:, None] - B[None]) / ell) ** 2).sum(axis=2))


def literal_elbo(X, y, Z, fit):
    """Gauss-Hermite expectation of log Phi minus KL of the whitened q(u) to N(0, I)."""
    from scipy.special import log_ndtr

    mean, var = fit.predict(kernel(Z, Z, fit.lengthscale), kernel(X, Z, fit.lengthscale))
    nodes, weights = np.polynomial.hermite.hermgauss(40)
    f = mean[:, None] + np.sqrt(2 * var)[:, None] * nodes
    expected = (log_ndtr((2 * y - 1)[:, None] * f) * weights).sum(axis=1) / np.sqrt(np.pi)
    S = fit.L @ fit.L.T
    m = len(fit.m)
    kl = 0.5 * (np.trace(S) + fit.m @ fit.m - m - np.linalg.slogdet(S)[1])
    return (expected.sum() - kl) / len(y)


def test_bound_rises_and_equals_the_formula(data):
    X, y = data
    inducing = np.arange(0, 40, 4)
    # Step k reports the bound of step k-1's parameters, so a further step shows ours.
    short = fit_sgp(X, inducing, y, max_iter=30, tol=0.0)
    longer = fit_sgp(X, inducing, y, max_iter=31, tol=0.0)
    assert longer.elbo[30] == pytest.approx(literal_elbo(X, y, X[inducing], short), abs=2e-4)
    assert short.elbo[-1] > short.elbo[0]


def test_view_mode_is_feature_mode_with_tied_length_scales(data):
    X, y = data
    d = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    tied = fit_sgp(d[None], np.arange(0, 40, 5), y, distances=True, max_iter=1, tol=0.0)
    free = fit_sgp(X, np.arange(0, 40, 5), y, max_iter=1, tol=0.0)
    assert tied.elbo[0] == pytest.approx(free.elbo[0], abs=1e-8)


@pytest.mark.parametrize("inducing", [np.arange(0, 40, 5), np.arange(40)])
def test_training_equals_automatic_gradients_of_one_view_per_feature(data, inducing):
    X, y = data
    d = (X.T[:, :, None] - X.T[:, None]) ** 2  # (D, n, n): distances along each feature
    literal_fit = fit_sgp(d, inducing, y, distances=True, max_iter=15, tol=0.0)
    ours = fit_sgp(X, inducing, y, max_iter=15, tol=0.0)
    np.testing.assert_allclose(ours.elbo, literal_fit.elbo, atol=1e-8)
    np.testing.assert_allclose(ours.lengthscale, literal_fit.lengthscale, atol=1e-8)
    np.testing.assert_allclose(ours.m, literal_fit.m, atol=1e-8)
    np.testing.assert_allclose(ours.L, literal_fit.L, atol=1e-8)


@pytest.mark.parametrize("ard", ["feature", "view"])
def test_predictions_follow_the_model_equations(common, ard):
    mv, y = common(0, n=60, dims=(5, 30, 5))
    model = SGPARDClassifier(15, ard, max_iter=20, random_state=0).fit(mv, y)
    fit = model.models_[0]
    blocks = [
        literal(mv.view(v).read(), np.arange(60), scale="clipped") / np.sqrt(mv.n_features[v])
        for v in mv.view_names
    ]
    X = np.hstack(blocks) / np.sqrt(model.unit_)
    ell = fit.lengthscale
    if ard == "view":
        ell = np.repeat(ell, [b.shape[1] for b in blocks])
        Z = np.vstack([model.inducing_[v] for v in mv.view_names]).T / np.sqrt(model.unit_)
    else:
        Z = model.inducing_
    s2 = fit.outputscale
    Kzz = s2 * kernel(Z, Z, ell) + fit.jitter * np.eye(len(Z))
    Kxz = s2 * kernel(X, Z, ell)
    A = np.linalg.cholesky(Kzz)
    m, S = A @ fit.m, A @ fit.L @ fit.L.T @ A.T  # un-whitened q(u)
    inv = np.linalg.inv(Kzz)
    mean = fit.mean + Kxz @ inv @ m
    var = s2 - np.einsum("ij,jk,ik->i", Kxz, inv @ (Kzz - S) @ inv, Kxz)
    np.testing.assert_allclose(model.decision_function(mv), mean / np.sqrt(1 + var), atol=1e-5)
    assert model.ard_ == ard


def test_plain_length_scale_start_predicts_the_majority(common):
    mv, y = common(0)
    settings = {"max_iter": 60, "block_scale": False, "random_state": 0}
    plain = SGPARDClassifier(scale_inputs=False, **settings).fit(mv[:140], y[:140])
    scaled = SGPARDClassifier(**settings).fit(mv[:140], y[:140])
    assert np.mean(plain.predict(mv[140:]) == 1) > 0.95
    assert np.mean(scaled.predict(mv[140:]) == y[140:]) > 0.9


def test_relevance_ranks_signal_columns(common):
    mv, y = common(0, n=150, dims=(20, 50, 30))
    model = SGPARDClassifier(random_state=0, max_iter=80).fit(mv, y)
    top = np.argsort(model.relevance_["a"])[-3:]
    assert set(top) == {0, 1, 2}
    assert all(m.all() for m in model.selected_features_.values())


def test_global_generator_is_left_alone(common):
    mv, y = common(0, n=40, dims=(5, 10, 5))
    torch.manual_seed(3)
    before = torch.rand(1)
    torch.manual_seed(3)
    SGPARDClassifier(max_iter=2, random_state=0).fit(mv, y)
    assert torch.equal(torch.rand(1), before)
