"""Views too wide for one array, and other storage, give the posterior of the dense float one."""

import numpy as np
import pytest

from baldur import BaldurClassifier, MultiView
from baldur.inference import fitted as fitted_module
from baldur.inference import wide_outputs
from baldur.inference.fitted import fit_shape
from baldur.inference.wide_outputs import WideOutputs
from baldur.model.likelihood import QuadratureLogistic
from baldur.prepare import Preparation
from model.structured.problems import make_data


def fit(monkeypatch, limit, shape, n_factors, prune=True):
    monkeypatch.setattr(fitted_module, "DENSE_BYTES", limit)
    data = make_data("multiclass", "sample", N=24, sizes=(4, 40), absent=True)
    options = {"max_iter": 6, "tol": 1e-6, "prune": prune}
    return data, fit_shape(data.views, data.likelihood, shape=shape, n_factors=n_factors, **options)


@pytest.mark.parametrize("n_factors", [None, 2], ids=["V = I", "V learned"])
@pytest.mark.parametrize("shape", [0.5, np.inf])
def test_wide_predictions_are_the_dense_ones(monkeypatch, shape, n_factors):
    data, dense = fit(monkeypatch, 1 << 30, shape, n_factors)
    _, wide = fit(monkeypatch, 0, shape, n_factors)
    assert isinstance(wide.moments.__self__.members[0].outputs, WideOutputs)
    assert not isinstance(dense.moments.__self__.members[0].outputs, WideOutputs)
    new = make_data("multiclass", "sample", N=24, sizes=(4, 40), absent=True, seed=7).views
    for views in (data.views, new):
        for a, b in ((dense.moments, wide.moments), (dense.latent, wide.latent)):
            np.testing.assert_allclose(a(views)[0], b(views)[0], rtol=1e-7, atol=1e-8)
    for name in ("coef", "coef_std", "selected"):
        for a, b in zip(getattr(dense, name), getattr(wide, name), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(dense.intercept, wide.intercept, rtol=1e-7)
    np.testing.assert_allclose(dense.signal, wide.signal, rtol=1e-9)
    assert dense.elbo == wide.elbo


def test_wide_predictions_by_blocks_of_rows(monkeypatch):
    data, wide = fit(monkeypatch, 0, np.inf, None)
    whole = wide.moments(data.views)[0]
    monkeypatch.setattr(wide_outputs, "ROWS_AT_ONCE", 7)
    np.testing.assert_allclose(wide.moments(data.views)[0], whole, rtol=1e-10, atol=1e-12)


def genotypes(N=50, D=80, seed=0):
    rng = np.random.default_rng(seed)
    G = rng.binomial(2, rng.uniform(0.1, 0.5, D), (N, D)).astype(np.int8)
    clinic = rng.standard_normal((N, 3))
    y = (clinic[:, 0] + G[:, 0] - G[:, 0].mean() + 0.5 * rng.standard_normal(N) > 0).astype(int)
    return G, clinic, y


@pytest.mark.parametrize("N", [50, 120], ids=["sample side", "feature side"])
def test_int8_views_fit_as_float_ones(N):
    """The products over int8 blocks and over the dense float array end at one posterior."""
    G, clinic, y = genotypes(N)
    answers = []
    for block in (G, G.astype(float)):
        mv = MultiView({"clinic": clinic, "genes": block})
        prepared = Preparation().fit_transform(mv)
        views = [prepared[name] for name in mv.view_names]
        T = y[:, None].astype(float)
        likelihood = QuadratureLogistic(T, np.ones_like(T))
        found = fit_shape(
            views, likelihood, shape=0.5, n_factors=None, max_iter=6, tol=1e-6, prune=True
        )
        answers.append((views, found))
    (views, a), (others, b) = answers
    assert not views[1].kept
    assert others[1].kept
    assert a.elbo == pytest.approx(b.elbo, rel=1e-8)
    np.testing.assert_allclose(a.moments(views)[0], b.moments(others)[0], atol=1e-6)
    for x, z in zip(a.coef, b.coef, strict=True):
        np.testing.assert_allclose(x, z, atol=1e-6)


def test_int8_missing_cells_are_nan():
    G, clinic, y = genotypes()
    holes = np.random.default_rng(1).random(G.shape) < 0.1
    coded = np.where(holes, np.int8(-127), G)
    as_float = np.where(holes, np.nan, G.astype(float))
    proba = []
    for block in (coded, as_float):
        mv = MultiView({"clinic": clinic, "genes": block})
        model = BaldurClassifier(sparsity=float("inf"), max_iter=10, tol=1e-2).fit(mv, y)
        proba.append(model.predict_proba(mv))
    np.testing.assert_allclose(*proba, atol=1e-6)
