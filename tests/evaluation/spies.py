"""Estimators that record what they are shown, or misbehave."""

import os

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from baldur.evaluation import nested_cv

SEEN = []
SEEDS = []


def seeds_seen(name, X, **how):
    """Return the seed that a model of this name gets on every outer fold."""
    SEEDS.clear()
    nested_cv({name: Spy()}, X, np.arange(len(X)) % 2, **how)
    return SEEDS.copy()


def folds_seen(X, y, outer, inner):
    """Return rows of every outer fold, (train, test, inner), as a model sees them; one repeat."""
    SEEN.clear()
    nested_cv({"spy": (Spy(), {"c": [1.0, 2.0]})}, X, y, outer=outer, inner=inner)
    seen = [(np.array(a, int), np.array(b, int), c)
            for (_, a, c), (_, b, _) in zip(SEEN[::2], SEEN[1::2], strict=True)]  # fmt: skip
    each = 2 * inner
    return [
        (train, test, [(a, b) for a, b, c in seen[i * each : (i + 1) * each] if c == 1.0])
        for i, (train, test, _) in enumerate(seen[-outer:])
    ]


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers the sample ids of every fit and predict, in order."""

    def __init__(self, c=1.0, views=None, random_state=None):
        self.c = c
        self.views = views
        self.random_state = random_state

    def fit(self, X, y):
        SEEN.append(("fit", tuple(X.sample_ids), self.c))
        SEEDS.append(self.random_state)
        self.classes_ = np.unique(y)
        self.selected_features_ = {v: np.ones(k, bool) for v, k in X.n_features.items()}
        return self

    def predict(self, X):
        return np.zeros(len(X), int)

    def predict_proba(self, X):
        SEEN.append(("predict", tuple(X.sample_ids), self.c))
        return np.tile([0.6, 0.4], (len(X), 1))


class Fails(Spy):
    """Fails always, or for one setting."""

    def __init__(self, c=1.0, when="always", views=None, random_state=None):
        super().__init__(c, views, random_state)
        self.when = when

    def fit(self, X, y):
        if self.when == "always" or self.c == 2.0:
            raise RuntimeError("the matrix is singular")
        return super().fit(X, y)


class NeedsTwoViews(Spy):
    """Fails with a single view."""

    def fit(self, X, y):
        if len(X.n_features) < 2:
            raise RuntimeError("there is one view only")
        return super().fit(X, y)


class PredictsNaN(Spy):
    """Fits, and predicts nothing of use."""

    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


class Dies(Spy):
    """Ends its process, as the system does with one that takes too much memory."""

    def fit(self, X, y):
        os._exit(9)
