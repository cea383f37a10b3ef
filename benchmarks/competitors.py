"""Competitors of the benchmark scripts: ridge and l1 logistic regression, a random forest.

All get the concatenated views, missing cells at the training mean, standardised on the training
rows. Penalties are chosen by 5-fold cross-validated log-loss on the training rows.
"""

import warnings

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

L1 = {"l1_ratio": 1.0} if sklearn.__version__ >= "1.8" else {"penalty": "l1"}
RIDGE_GRID = np.logspace(-6, 2, 17)
L1_GRID = np.logspace(-2, 1.5, 15)


def concatenate(data, train, test):
    """Return training and test rows (n, D) as standardised matrices."""
    X = np.concatenate([data.view(name).read() for name in data.view_names], axis=1)
    prepare = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    return prepare.fit_transform(X[train].astype(float)), prepare.transform(X[test].astype(float))


def cross_validated(model, grid, X, t):
    """Fit `model` at the C of least cross-validated log-loss."""
    inner = StratifiedKFold(5, shuffle=True, random_state=1)
    search = GridSearchCV(model, {"C": grid}, scoring="neg_log_loss", cv=inner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return search.fit(X, t).best_estimator_


def ridge_scores(X, t, X_new):
    """Ridge logistic: log-odds of new rows; solved on principal scores, which is exact."""
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    keep = s > 1e-9 * s[0]
    V = Vt[keep].T
    model = cross_validated(LogisticRegression(max_iter=2000), RIDGE_GRID, U[:, keep] * s[keep], t)
    return model.decision_function(X_new @ V)


def l1_scores(X, t, X_new):
    """l1 logistic: log-odds of new rows, and how many features it keeps."""
    base = LogisticRegression(solver="liblinear", max_iter=1000, random_state=0, **L1)
    model = cross_validated(base, L1_GRID, X, t)
    return model.decision_function(X_new), int(np.count_nonzero(model.coef_.any(axis=0)))


def forest(X, t):
    """Random forest of 500 trees."""
    return RandomForestClassifier(500, random_state=0).fit(X, t)
