"""Latent factors that several labels share: their number, and what sharing is worth.

Usage::

    python benchmarks/latent.py [--part "4 labels, 2 factors"] [--seeds 10] [--jobs 2]

Simulated label matrices: 300 training and 1,000 test samples, 20 and 300 Gaussian features.
Each factor depends on three features of the first view and four of the second, and each label on a
random direction of the factors, or on one factor of its own ("no sharing").

Bars: the right number of factors in at least 8 of 10 cohorts, and a mean AUC not below that of one
factor per label (``n_factors`` equal to the number of labels). The mean and the least canonical
correlation between the estimated and the true factors on the test samples are printed, 0 counted
for a factor that is missing, and beside them the least one of a reference
that is told which features have an effect and fits a logistic regression to each label: a factor
that only few labels depend on cannot be estimated well from 300 samples.
"""

import numpy as np
from common import Bars, auc, header, loss, parse, row, run_parts
from sklearn.linear_model import LogisticRegression

from baldur import BaldurClassifier, MultiView

N_TRAIN, N_TEST, DIMS, STRENGTH = 300, 1000, (20, 300), 2.0
PARTS = {
    "4 labels, 2 factors": (4, 2),
    "6 labels, 3 factors": (6, 3),
    "4 labels, no sharing": (4, 4),
}


def simulate(seed, n_labels, n_factors):
    """Return views, labels and true factors."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_TRAIN + N_TEST, sum(DIMS)))
    W = np.zeros((sum(DIMS), n_factors))
    for k in range(n_factors):
        first = rng.choice(DIMS[0], 3, replace=False)
        second = DIMS[0] + rng.choice(DIMS[1], 4, replace=False)
        W[first, k], W[second, k] = rng.normal(size=3), rng.normal(size=4)
    factors = X @ W
    factors /= factors.std(axis=0)
    V = np.eye(n_labels)
    if n_factors < n_labels:
        V = rng.normal(size=(n_labels, n_factors))
        V /= np.linalg.norm(V, axis=1, keepdims=True)
    eta = STRENGTH * factors @ V.T
    y = (rng.random(eta.shape) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    views = MultiView({"clinical": X[:, : DIMS[0]], "genes": X[:, DIMS[0] :]})
    return views, y, factors, np.flatnonzero(W.any(axis=1))


def told(X, y, factors, used):
    """Return the least correlation of a model that is told the features with an effect."""
    cells = np.hstack([X.view(name).read() for name in X.view_names])[:, used]
    train, test = cells[:N_TRAIN], cells[N_TRAIN:]
    fits = [LogisticRegression().fit(train, column) for column in y[:N_TRAIN].T]
    seen, new = (
        np.column_stack([m.decision_function(part) for m in fits]) for part in (train, test)
    )
    directions = np.linalg.svd(seen - seen.mean(axis=0), full_matrices=False)[2]
    latent = (new - seen.mean(axis=0)) @ directions[: factors.shape[1]].T
    return float(canonical(latent, factors[N_TRAIN:]).min())


def canonical(A, B):
    """Return canonical correlations with the true factors, 0 for each one that is missing."""
    first, second = (np.linalg.qr(part - part.mean(axis=0))[0] for part in (A, B))
    found = np.linalg.svd(first.T @ second)[1]
    return np.append(found, np.zeros(B.shape[1] - len(found)))


def scores(model, X, y):
    """Return AUC and log-loss, means over the labels."""
    columns = np.asarray(model.predict_proba(X))
    pairs = [(y[:, c], np.column_stack([1 - p, p])) for c, p in enumerate(columns.T)]
    return [float(np.mean([score(*pair) for pair in pairs])) for score in (auc, loss)]


def one(part, seed):
    """Return number of factors, correlations, and scores with and without sharing."""
    n_labels, n_factors = PARTS[part]
    X, y, factors, used = simulate(seed, n_labels, n_factors)
    train, test = slice(0, N_TRAIN), slice(N_TRAIN, None)
    model = BaldurClassifier().fit(X[train], y[train])
    apart = BaldurClassifier(n_factors=n_labels).fit(X[train], y[train])
    found = canonical(model.transform(X[test]), factors[test])
    return (
        model.n_factors_,
        float(found.mean()),
        float(found.min()),
        told(X, y, factors, used),
        *scores(model, X[test], y[test]),
        *scores(apart, X[test], y[test]),
    )


def main():
    """Print a line per part and the bars."""
    given = parse(__doc__, PARTS, 10)
    bars = Bars()
    header(
        "cohorts", "right number", "mean correlation", "least", "least, features told", "AUC",
        "one each", "log-loss", "one each",
    )  # fmt: skip
    for part in given.part:
        table = run_parts(one, given, [part])[0]
        right = float((table[:, 0] == PARTS[part][1]).mean())
        mean = table.mean(axis=0)
        row(part, right, *mean[1:5], mean[6], mean[5], mean[7])
        bars.least(f"{part}: share with the right number of factors", right, 0.8)
        bars.least(f"{part}: AUC against one factor per label", mean[4], mean[6])
    bars.show()


if __name__ == "__main__":
    main()
