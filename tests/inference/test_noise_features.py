"""A thousand features of pure noise hardly move the test AUC."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from baldur import BaldurClassifier, MultiView

SEEDS = 10


def simulate(seed, N=200, n_test=2000):
    """Two views of 20 and 30; signal in 5 features of the first and 2 of the second."""
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((N + n_test, 20)), rng.standard_normal((N + n_test, 30))
    noise = rng.standard_normal((N + n_test, 1000))
    w = rng.choice([-1, 1], 7) * rng.uniform(0.7, 1.3, 7)
    eta = A[:, :5] @ w[:5] + B[:, :2] @ w[5:]
    eta = 3.0 * eta / eta.std()
    y = (rng.random(N + n_test) < 1 / (1 + np.exp(-eta))).astype(int)
    return A, B, noise, y, np.arange(N), np.arange(N, N + n_test)


@pytest.mark.slow
def test_noise_features_hardly_move_the_auc():
    changes = []
    for seed in range(SEEDS):
        A, B, noise, y, train, test = simulate(seed)
        scores = []
        for second in (B, np.hstack([B, noise])):
            mv = MultiView({"A": A, "B": second})
            model = BaldurClassifier().fit(mv[train], y[train])
            scores.append(roc_auc_score(y[test], model.predict_proba(mv[test])[:, 1]))
        changes.append(scores[1] - scores[0])
        print(f"\n  seed {seed}: AUC {scores[0]:.4f} without noise, {scores[1]:.4f} with", end="")
    print(f"\n  mean change {np.mean(changes):+.4f}, mean size {np.mean(np.abs(changes)):.4f}")
    assert np.mean(np.abs(changes)) < 0.03
