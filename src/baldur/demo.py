"""A first run on simulated data: ``python -m baldur.demo``."""

import sys

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score


def main() -> None:
    """Simulate two views, fit on 200 rows, and print the test AUC."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 120))
    logit = 3.0 * X[:, :5] @ rng.uniform(0.7, 1.3, 5) / np.sqrt(5.0)
    y = rng.random(1200) < 1.0 / (1.0 + np.exp(-logit))
    model = LogisticRegression(C=0.1).fit(X[:200], y[:200])
    auc = roc_auc_score(y[200:], model.decision_function(X[200:]))
    sys.stdout.write(f"test AUC on 1000 simulated rows: {auc:.3f}\n")


if __name__ == "__main__":
    main()
