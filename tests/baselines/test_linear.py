"""LSVM-l1, ridge and elastic net against scikit-learn on the standardised concatenation."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC, l1_min_c

from baldur.baselines import (
    BASELINES,
    ElasticNetLogisticClassifier,
    L1SVMClassifier,
    linear,
)
from baldur.baselines.linear import fit_elastic_net, solve_on_working_set
from baldur.exceptions import InputError, NotConvergedWarning
from preparation.literal import literal


@pytest.fixture
def wide():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((70, 900))
    codes = np.argmax(X[:, :3] + 0.5 * rng.standard_normal((70, 3)), axis=1)
    return X, codes


def standardise(X):
    return literal(X, np.arange(len(X)), scale="clipped")


@pytest.fixture
def small_working_set(monkeypatch):
    """Make the working set do the work although the data are small."""

    def forced(*args, **options):
        return solve_on_working_set(*args, **{**options, "dense_limit": 64})

    monkeypatch.setattr(linear, "solve_on_working_set", forced)


def svm_value(X, sign, coef, b, C):
    loss = np.maximum(0, 1 - sign * (X @ coef + b)) ** 2
    return np.abs(coef).sum() + abs(b) + C * loss.sum()


def test_lsvm_equals_linear_svc(wide):
    X, codes = wide
    y = codes == 0
    model = L1SVMClassifier(c_ratio=5.0, tol=1e-6, random_state=0).fit(X, y)
    Z = standardise(X)
    assert pytest.approx(5.0 * l1_min_c(Z, y, loss="squared_hinge")) == model.C_
    oracle = LinearSVC(
        penalty="l1", dual=False, C=model.C_, tol=1e-6, max_iter=5000, random_state=0
    )
    oracle.fit(Z, y)
    np.testing.assert_allclose(model.decision_function(X), oracle.decision_function(Z), atol=1e-3)
    np.testing.assert_array_equal(model.selected_features_["X"], oracle.coef_[0] != 0)


@pytest.mark.parametrize("ratio", [3.0, 30.0])
def test_lsvm_working_set_reaches_the_full_optimum(wide, small_working_set, ratio):
    X, codes = wide
    y = codes == 0
    model = L1SVMClassifier(c_ratio=ratio, tol=1e-5, max_iter=50000, random_state=0).fit(X, y)
    assert model.n_rounds_ > 1
    Z, sign = standardise(X), np.where(y, 1.0, -1.0)
    oracle = LinearSVC(
        penalty="l1", dual=False, C=model.C_, tol=1e-5, max_iter=50000, random_state=0
    )
    oracle.fit(Z, y)
    ours = svm_value(Z, sign, model.coef_["X"][0], model.intercept_[0], model.C_)
    best = svm_value(Z, sign, oracle.coef_[0], oracle.intercept_[0], model.C_)
    assert ours <= best * (1 + 1e-3)


def test_lsvm_below_the_smallest_c_is_empty_but_answers(wide):
    X, codes = wide
    model = L1SVMClassifier(c_ratio=0.5).fit(X, codes == 0)
    assert not model.selected_features_["X"].any()
    assert len(np.unique(model.predict(X))) == 1
    assert np.all(np.isfinite(model.decision_function(X)))


def test_lsvm_class_weights_use_the_users_labels():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 4)), np.repeat(["no", "yes"], [70, 20])
    X[y == "yes"] += 0.4
    plain = L1SVMClassifier(c_ratio=100).fit(X, y)
    heavy = L1SVMClassifier(c_ratio=100, class_weight={"no": 1.0, "yes": 10.0}).fit(X, y)
    balanced = L1SVMClassifier(c_ratio=100, class_weight="balanced").fit(X, y)
    shares = [np.mean(m.predict(X) == "yes") for m in (plain, balanced, heavy)]
    assert shares[0] < shares[1] < shares[2]


def test_ridge_equals_logistic_regression(wide):
    X, codes = wide
    for y in (codes, codes == 0):
        model = BASELINES["Ridge logistic"].make().set_params(C=0.01, block_scale=False)
        model.fit(X, y)
        Z = standardise(X)
        oracle = LogisticRegression(C=0.01, tol=1e-8, max_iter=5000).fit(Z, y)
        np.testing.assert_allclose(model.predict_proba(X), oracle.predict_proba(Z), atol=1e-5)
        np.testing.assert_allclose(model.coef_["X"], oracle.coef_.T, atol=1e-5)


@pytest.mark.parametrize("ratio", [0.3, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_elastic_net_optimum_satisfies_its_conditions(wide, ratio, classes):
    X, codes = wide
    X = standardise(X)[:, :200]
    Y = np.eye(3)[codes] if classes == 3 else (codes == 0)[:, None].astype(float)
    lam, n = 0.05, len(X)
    w, b, _ = fit_elastic_net(
        X,
        Y,
        lam,
        ratio,
        (np.zeros((200, Y.shape[1])), np.zeros(Y.shape[1])),
        tol=1e-7,
        max_iter=50000,
    )
    eta = X @ w + b
    if classes == 2:
        P = 1 / (1 + np.exp(-eta))
    else:
        P = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    g = X.T @ (P - Y) / n + lam * (1 - ratio) * w
    np.testing.assert_allclose(g[w != 0], -lam * ratio * np.sign(w[w != 0]), atol=1e-6)
    assert np.all(np.abs(g[w == 0]) <= lam * ratio + 1e-6)
    np.testing.assert_allclose((P - Y).mean(axis=0), 0.0, atol=1e-6)


def elastic_net_objective(X, Y, w, b, lam, ratio):
    """``mean logloss + lam (ratio ||w||_1 + (1 - ratio)/2 ||w||^2)`` of 0/1 outcomes Y (n, 1)."""
    eta = X @ w + b
    penalty = ratio * np.sum(np.abs(w)) + 0.5 * (1.0 - ratio) * np.sum(w**2)
    return np.mean(np.logaddexp(0.0, eta) - Y * eta) + lam * penalty


def test_elastic_net_working_set_reaches_the_full_optimum(wide, request):
    X, codes = wide
    y = codes == 0
    full = ElasticNetLogisticClassifier(fraction=0.1, tol=1e-5).fit(X, y)
    request.getfixturevalue("small_working_set")
    part = ElasticNetLogisticClassifier(fraction=0.1, tol=1e-5).fit(X, y)
    assert part.n_rounds_ > 1
    Z, Y = standardise(X), y[:, None].astype(float)
    values = [
        elastic_net_objective(Z, Y, m.coef_["X"], m.intercept_, m.penalty_, 0.5)
        for m in (full, part)
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-5)
    np.testing.assert_allclose(part.coef_["X"], full.coef_["X"], atol=1e-3)


def test_elastic_net_at_the_largest_penalty_is_empty(wide):
    X, codes = wide
    model = ElasticNetLogisticClassifier(fraction=1.01).fit(X, codes)
    assert not model.selected_features_["X"].any()
    np.testing.assert_allclose(
        model.predict_proba(X)[0], np.bincount(codes) / len(codes), atol=1e-3
    )


def test_messages(wide):
    X, codes = wide
    with pytest.raises(InputError, match="Ridge logistic"):
        ElasticNetLogisticClassifier(l1_ratio=0.0).fit(X, codes)
    with pytest.warns(NotConvergedWarning, match="max_iter=2"):
        ElasticNetLogisticClassifier(fraction=0.01, max_iter=2).fit(X, codes)
    with pytest.warns(NotConvergedWarning, match="c_ratio"):
        L1SVMClassifier(c_ratio=100, max_iter=1).fit(X, codes)


def test_working_set_warns_when_rounds_run_out():
    def solve(active):
        return np.ones(len(active))

    def wish(active, coef):
        return np.full(1000, 2.0)

    with pytest.warns(NotConvergedWarning, match="2 rounds"):
        solve_on_working_set(1000, solve, wish, np.ones(1000), dense_limit=8, max_rounds=2)
