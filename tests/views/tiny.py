"""The smallest classifier that accepts a MultiView, importable by worker processes."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from baldur.views import MultiView


class Tiny(ClassifierMixin, BaseEstimator):
    """Scores samples by the correlation of each feature with the label."""

    def __init__(self, power=1.0, views=None):
        self.power = power
        self.views = views

    def _cells(self, X):
        mv = X if isinstance(X, MultiView) else MultiView.from_columns(X, self.views)
        return mv, np.hstack([np.nan_to_num(mv.view(v).read()) for v in mv.view_names])

    def fit(self, X, y):
        mv, cells = self._cells(X)
        self.classes_ = np.unique(y)
        self.mean_ = cells.mean(axis=0)
        side = np.where(y == self.classes_[1], 1.0, -1.0)
        link = (cells - self.mean_).T @ side
        self.coef_ = np.sign(link) * np.abs(link) ** self.power
        self.mapped_ = [not mv.view(v).source.in_memory for v in mv.view_names]
        self.seen_ = mv.sample_ids
        return self

    def predict(self, X):
        _, cells = self._cells(X)
        return self.classes_[((cells - self.mean_) @ self.coef_ > 0).astype(int)]
