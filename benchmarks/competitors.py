"""Competitors of the benchmark scripts: ridge, l1 and elastic-net logistic regression, base rate.

All get the concatenated views, missing cells at the training mean, standardised on the training
rows; "clipped" ones are then held within 3 standard deviations and standardised again, except
columns of two values and genotypes, as BALDUR does. Penalties are chosen by 5-fold cross-validated
log-loss on the training rows, over grids that reach from an empty model to a nearly free one.

``python benchmarks/competitors.py`` checks the solvers against scikit-learn's.
"""

import warnings

import numpy as np
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import ElasticNet, LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

RIDGE_GRID = np.logspace(-6, 2, 17)
RATIOS = {"l1": (1.0,), "elastic net": (0.1, 0.5, 0.9)}
N_PENALTIES = 25
LEAST_SHARE = 5e-3
"""Smallest penalty, as a share of that at which the model is empty."""
FLOOR = 1e-5
"""Smallest p and 1 - p in the quadratic approximation of the logistic loss."""


def concatenate(data, train, test, clipped=False):
    """Return training and test rows (n, D) as standardised matrices."""
    X = np.concatenate([data.view(name).read().astype(float) for name in data.view_names], axis=1)
    X, X_new = X[train], X[test]
    steps = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    Z, Z_new = steps.fit_transform(X), steps.transform(X_new)
    if not clipped:
        return Z, Z_new
    hold = np.array([_spread_out(column) for column in X.T])
    Z[:, hold], Z_new[:, hold] = np.clip(Z[:, hold], -3, 3), np.clip(Z_new[:, hold], -3, 3)
    again = StandardScaler().fit(Z)
    return again.transform(Z), again.transform(Z_new)


def _spread_out(column):
    """Whether a column is neither two-valued nor a genotype."""
    values = np.unique(column[np.isfinite(column)])
    return len(values) > 2 and not (len(values) == 3 and np.array_equal(values, [0, 1, 2]))


def inner_folds(y, groups=None):
    """Return up to five folds of the training rows, with groups kept together."""
    n = max(2, min(5, int(np.unique(y, return_counts=True)[1].min())))
    if groups is None:
        splitter = StratifiedKFold(n, shuffle=True, random_state=1)
        return list(splitter.split(np.zeros(len(y)), y))
    splitter = StratifiedGroupKFold(n, shuffle=True, random_state=1)
    return list(splitter.split(np.zeros(len(y)), y, groups))


def ridge(X, y, X_new, groups=None):
    """Ridge logistic: probabilities of new rows, and features kept (all).

    Solved on principal scores, which is exact, with several classes jointly.
    """
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    keep = s > 1e-9 * s[0]
    model = LogisticRegressionCV(
        Cs=RIDGE_GRID, cv=inner_folds(y, groups), scoring="neg_log_loss", max_iter=2000
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence at weak penalties, and of future names
        model.fit(U[:, keep] * s[keep], y)
    return model.predict_proba(X_new @ Vt[keep].T), X.shape[1]


def penalised_path(X, t, ratio, penalties):
    """Yield (coef, intercept) of elastic-net logistic regression at falling penalties.

    min mean logloss + penalty (ratio |w|_1 + (1 - ratio)/2 |w|^2): quadratic approximations of the
    loss, each minimised by scikit-learn's coordinate descent from the solution before it. The
    intercept is free.
    """
    model = ElasticNet(l1_ratio=ratio, warm_start=True, max_iter=2000, tol=1e-5)
    rate = t.mean()
    w, b = np.zeros(X.shape[1]), np.log(rate / (1 - rate))
    for penalty in penalties:
        for _ in range(25):
            eta = X @ w + b
            p = np.clip(expit(eta), FLOOR, 1 - FLOOR)
            h = p * (1 - p)
            # scikit-learn divides the squares by the sum of the weights, and we by N.
            model.set_params(alpha=penalty / h.mean())
            model.fit(X, eta + (t - p) / h, sample_weight=h)
            moved = np.abs(X @ (model.coef_ - w) + model.intercept_ - b).max()
            w, b = model.coef_.copy(), float(model.intercept_)
            if moved < 1e-3:
                break
        yield w, b


def _empty_at(X, t):
    """Return the penalty, times the ratio, from which on every weight is zero."""
    return np.abs(X.T @ (t - t.mean())).max() / len(t)


def sparse_binary(X, t, X_new, ratios, folds):
    """Return P(t = 1) of new rows and the features kept, penalty by cross-validated log-loss."""
    shares = np.geomspace(1.0, LEAST_SHARE, N_PENALTIES)
    scores = np.zeros((len(ratios), N_PENALTIES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence at weak penalties
        for r, ratio in enumerate(ratios):
            for rows, held in folds:
                penalties = shares * _empty_at(X, t) / ratio
                path = penalised_path(X[rows], t[rows], ratio, penalties)
                for i, (w, b) in enumerate(path):
                    eta = X[held] @ w + b
                    scores[r, i] += np.sum(np.logaddexp(0, eta) - t[held] * eta)
        r, i = np.unravel_index(scores.argmin(), scores.shape)
        penalties = shares[: i + 1] * _empty_at(X, t) / ratios[r]
        *_, (w, b) = penalised_path(X, t, ratios[r], penalties)
    return expit(X_new @ w + b), w != 0


def sparse(X, y, X_new, groups=None, ratios=(1.0,)):
    """l1 or elastic net: probabilities of new rows and how many features are kept.

    More than two classes: each against the rest, with its own penalty, then normalised.
    """
    folds = inner_folds(y, groups)
    classes = np.unique(y)
    if len(classes) == 2:
        p, used = sparse_binary(X, (y == classes[1]).astype(float), X_new, ratios, folds)
        return np.column_stack([1 - p, p]), int(used.sum())
    parts = [sparse_binary(X, (y == c).astype(float), X_new, ratios, folds) for c in classes]
    p = np.column_stack([part[0] for part in parts])
    return p / p.sum(axis=1, keepdims=True), int(np.any([part[1] for part in parts], axis=0).sum())


def base_rate(X, y, X_new, groups=None):
    """The frequencies of the training rows, for everybody."""
    frequency = np.unique(y, return_counts=True)[1] / len(y)
    return np.tile(frequency, (len(X_new), 1)), 0


def competitor(name):
    """Return the function (X, y, X_new, groups) -> (probabilities, features kept) of a name."""
    if name in RATIOS:
        return lambda X, y, X_new, groups=None: sparse(X, y, X_new, groups, RATIOS[name])
    return {"ridge": ridge, "base rate": base_rate}[name]


def forest(X, t):
    """Random forest of 500 trees."""
    return RandomForestClassifier(500, random_state=0).fit(X, t)


def main():
    """Compare the solvers with scikit-learn's own on one problem."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 60))
    t = (rng.random(120) < expit(1.0 + 2 * X[:, 0] - X[:, 1])).astype(float)
    print("largest difference of the linear predictor from scikit-learn's saga:")
    for ratio in (0.1, 0.5, 1.0):
        for share in (0.5, 0.1, 0.02):
            penalty = share * _empty_at(X, t) / ratio
            *_, (w, b) = penalised_path(X, t, ratio, [penalty])
            saga = LogisticRegression(
                C=1 / (penalty * len(t)), l1_ratio=ratio, solver="saga", max_iter=100_000, tol=1e-8
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                saga.set_params(penalty="elasticnet").fit(X, t)
            gap = np.abs(X @ w + b - saga.decision_function(X)).max()
            print(f"  ratio {ratio}, penalty {share:g} of the largest: {gap:.1e}")
    X_new = rng.standard_normal((2000, 60))
    y_new = (rng.random(2000) < expit(1.0 + 2 * X_new[:, 0] - X_new[:, 1])).astype(int)
    for name in ("base rate", "ridge", *RATIOS):
        p, kept = competitor(name)(X, t.astype(int), X_new)
        loss = -np.mean(np.log(p[np.arange(2000), y_new]))
        print(f"  {name}: test log-loss {loss:.3f}, {kept} of 60 features (2 true)")


if __name__ == "__main__":
    main()
