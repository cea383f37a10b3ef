"""CPM-Nets: its class loss, its exact latent solve, missing views, and independence of rows."""

import numpy as np
import pytest

from baldur.baselines import CPMNetsClassifier
from baldur.baselines.blocks import reduce_gram
from baldur.baselines.cpm_nets import adam_latent, class_similarity, fit_cpm, solve_latent
from baldur.views import MultiView

torch = pytest.importorskip("torch")


def test_class_similarity_equals_the_double_loop():
    rng = np.random.default_rng(0)
    H, codes = rng.standard_normal((12, 4)), np.array([0] * 5 + [1] * 6 + [2])
    ours = class_similarity(H, np.eye(3)[codes])
    for n in range(12):
        for c in range(3):
            others = [H[j] @ H[n] for j in range(12) if codes[j] == c and j != n]
            assert ours[n, c] == pytest.approx(np.mean(others) if others else 0.0)


def test_loss_falls_and_singleton_classes_are_finite(views):
    X, codes = views
    codes = codes.copy()
    codes[codes == 2] = 1
    codes[0] = 2  # one member only
    present = np.ones((30, 3), dtype=bool)
    _, _, _, loss = fit_cpm(X, present, codes, latent=8, lam=1.0, epochs=40)
    assert np.all(np.isfinite(loss))
    assert loss[-1] < 0.7 * loss[0]


def test_absent_cells_do_not_enter_the_loss(views):
    X, codes = views
    present = np.ones((30, 3), dtype=bool)
    present[:10, 1] = False
    spoiled = [x.copy() for x in X]
    spoiled[1][:10] = 1e6
    a = fit_cpm(X, present, codes, latent=6, lam=1.0, epochs=5)
    b = fit_cpm(spoiled, present, codes, latent=6, lam=1.0, epochs=5)
    np.testing.assert_array_equal(a[0], b[0])


def test_rotated_views_have_the_same_reconstruction(views):
    """Full-rank principal scores keep every distance, so losses at one (H, W R) agree."""
    X = views[0][1]
    features, lift = reduce_gram(X @ X.T)
    V = X.T @ lift  # (D, r): orthonormal columns, x = f V'
    rng = np.random.default_rng(0)
    H, W = rng.standard_normal((30, 5)), rng.standard_normal((5, features.shape[1]))
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-9)
    wide = np.sum((H @ W @ V.T - X) ** 2)
    assert np.sum((H @ W - features) ** 2) == pytest.approx(wide)


def test_exact_latent_solves_the_normal_equations_and_adam_approaches_it():
    rng = np.random.default_rng(0)
    W, X = rng.standard_normal((4, 20)), rng.standard_normal((6, 20))
    G, q = W @ W.T, X @ W.T
    exact = solve_latent(G, q, 0.0)
    oracle = np.linalg.lstsq(W.T, X.T, rcond=None)[0].T
    np.testing.assert_allclose(exact, oracle, atol=1e-10)
    slow = adam_latent(G, q, np.zeros(4), 4000, 0.01)
    np.testing.assert_allclose(slow, exact, atol=1e-3)


@pytest.mark.parametrize("solver", ["lstsq", "adam"])
def test_rows_are_predicted_independently(common, solver):
    mv, y = common(0, n=80, dims=(10, 40, 10))
    model = CPMNetsClassifier(8, solver=solver, n_epochs=10, random_state=0).fit(mv[:60], y[:60])
    together = model.decision_function(mv[60:])
    alone = np.concatenate([model.decision_function(mv[[i]]) for i in range(60, 80)])
    np.testing.assert_allclose(together, alone, atol=1e-10)


def test_a_sample_is_judged_by_the_views_it_has(common):
    mv, y = common(2, n=300, dims=(20, 100, 30))
    X = {v: mv.view(v).read().copy() for v in mv.view_names}
    X["b"][200:] = np.nan
    X["c"][200:] = np.nan
    part = MultiView(X)
    model = CPMNetsClassifier(random_state=0).fit(mv[:200], y[:200])
    assert np.mean(model.predict(part[200:]) == y[200:]) > 0.8
    X["a"][299] = np.nan
    with np.errstate(all="raise"):
        nothing = model.decision_function(MultiView(X)[[299]])
    assert nothing[0] == 0.0


def test_switches_to_the_authors_behaviour_run(common):
    mv, y = common(0, n=80, dims=(10, 40, 10))
    model = CPMNetsClassifier(
        16, hidden=20, dropout=0.1, margin="code", n_retune=0, solver="adam", random_state=0
    ).fit(mv, y)
    assert np.mean(model.predict(mv) == y) > 0.8


def test_block_scaling_decides_the_outcome(fitted_common):
    scaled, mv, y = fitted_common("CPM-Nets", 0)
    plain = CPMNetsClassifier(block_scale=False, random_state=0).fit(mv[:140], y[:140])
    right = [np.mean(model.predict(mv[140:]) == y[140:]) for model in (scaled, plain)]
    assert right[0] > right[1] + 0.05
