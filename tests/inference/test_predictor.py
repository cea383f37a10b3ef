"""What a fit leaves: weights, latent factors and predictions say the same thing."""

import pickle
import warnings

import numpy as np
import pytest
from baldur.inference.auto import fit_auto
from baldur.inference.fitted import from_answer
from baldur.inference.reference import MEMBERS

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.exceptions import NotConvergedWarning
from baldur.inference.factors import fit_factors_on_selected
from baldur.inference.predictive import mixture_moments
from baldur.model.loadings import Loadings
from inference.problems import few_repeats, make_problem  # noqa: F401


def check_consistent(fitted, views):
    """<eta> is the weights times the data, and is V times the latent factors."""
    eta = sum(v.apply(w.T) for v, w in zip(views, fitted.coef, strict=True)) + fitted.intercept
    mean, var = mixture_moments(fitted.moments(views), fitted.weights)
    np.testing.assert_allclose(mean, eta, atol=1e-6)
    assert (var > 0).all()
    for mask, w, std in zip(fitted.selected, fitted.coef, fitted.coef_std, strict=True):
        assert not w[:, ~mask].any()
        assert not std[:, ~mask].any()


def test_learned_loadings_spread_the_predictions_as_draws_do():
    """Mean and variance of eta = b + v.f for independent Gaussians, against draws."""
    rng = np.random.default_rng(0)
    C, K, n = 3, 2, 4
    A = rng.standard_normal((C, K, K))
    loadings = Loadings(
        rng.standard_normal((C, K)),
        0.2 * A @ A.transpose(0, 2, 1),
        rng.standard_normal(C),
        rng.uniform(0.1, 0.5, C),
    )
    mean, var = rng.standard_normal((n, K)), rng.uniform(0.1, 1, (n, K))
    got_mean, got_var = loadings.combine(mean, var)
    R = 200_000
    f = rng.normal(mean, np.sqrt(var), (R, n, K))
    for c in range(C):
        v = rng.multivariate_normal(loadings.V[c], loadings.V_cov[c], R)
        b = rng.normal(loadings.b[c], np.sqrt(loadings.b_var[c]), R)
        eta = b[:, None] + np.einsum("rnk,rk->rn", f, v)
        np.testing.assert_allclose(got_mean[:, c], eta.mean(axis=0), atol=0.03)
        np.testing.assert_allclose(got_var[:, c], eta.var(axis=0), rtol=0.03)


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_fewer_factors_on_selected_features(task):
    problem, T, folds = make_problem(task, absent=True)
    full = from_answer(fit_auto(problem, T, folds, max_iter=40), "feature")
    small = fit_factors_on_selected(problem, full, 1, max_iter=30)
    check_consistent(small, problem.views)
    assert small.V.shape == (T.shape[1], 1)
    for few, many in zip(small.selected, full.selected, strict=True):
        assert not (few & ~many).any()
    assert [len(mask) for mask in small.selected] == [v.shape[1] for v in problem.views]
    assert small.answer is full.answer
    latent, _ = mixture_moments(small.latent(problem.views), small.factor_weights)
    mean, _ = mixture_moments(small.moments(problem.views), small.weights)
    level = mean - latent @ small.V.T
    np.testing.assert_allclose(level, np.tile(level[0], (len(T), 1)), atol=1e-6)
    again = pickle.loads(pickle.dumps(small))
    np.testing.assert_array_equal(again.moments(problem.views)[0], small.moments(problem.views)[0])


def test_nothing_selected_leaves_nothing_to_factorise():
    problem, T, folds = make_problem("multilabel", N=30, sizes=(4, 6))
    full = from_answer(fit_auto(problem, T, folds, max_iter=20), "feature")
    full.selected = [np.zeros_like(mask) for mask in full.selected]
    assert fit_factors_on_selected(problem, full, 1, max_iter=5) is full


# -- through the estimators -------------------------------------------------------------------


def tables(N=60, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    A = rng.normal(3.0, 2.0, (N, 4))
    B = rng.normal(-1.0, 0.3, (N, 15))
    eta = A[:, 0] - 3.0 + 3 * (B[:, 0] + 1.0)
    y = np.digitize(
        eta + 0.3 * rng.standard_normal(N), np.quantile(eta, [0.33, 0.67][: classes - 1])
    )
    return A, B, eta, y


@pytest.mark.parametrize(("members", "classes"), [(MEMBERS, 2), (("pooled",), 3)])
def test_order_of_features_and_views_does_not_matter(members, classes):
    """The answer is permuted with the input and is otherwise the same."""
    A, B, _, y = tables(classes=classes)
    cols = np.random.default_rng(1).permutation(15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model = BaldurClassifier(members=members, max_iter=15).fit(MultiView({"A": A, "B": B}), y)
        by_feature = BaldurClassifier(members=members[::-1], max_iter=15)
        by_feature.fit(MultiView({"B": B[:, cols], "A": A}), y)
    p = model.predict_proba(MultiView({"A": A, "B": B}))
    other = MultiView({"B": B[:, cols], "A": A})
    np.testing.assert_allclose(by_feature.predict_proba(other), p, atol=1e-5)
    np.testing.assert_allclose(by_feature.coef_["B"], model.coef_["B"][:, cols], atol=1e-5)
    for name in ("A", "B"):
        assert by_feature.view_relevance_[name] == pytest.approx(
            model.view_relevance_[name], abs=1e-5
        )


def test_coef_is_in_the_units_of_the_input():
    A, B, eta, y = tables()
    mv = MultiView({"A": A, "B": B})
    model = BaldurClassifier(scale="standard").fit(mv, y)
    linear = A @ model.coef_["A"].T + B @ model.coef_["B"].T + model.intercept_
    np.testing.assert_allclose(linear, model.transform(mv), atol=1e-8)
    # Without noise: the hard case for rounding.
    reg = BaldurRegressor(scale="standard").fit(mv, eta * 100 + 7)
    linear = A @ reg.coef_["A"].T + B @ reg.coef_["B"].T + reg.intercept_
    np.testing.assert_allclose(linear[:, 0], reg.predict(mv), rtol=1e-8)
