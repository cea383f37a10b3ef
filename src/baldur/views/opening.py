"""How an estimator opens what it is given: scikit-learn's checks, then a MultiView."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from baldur.views.columns import as_multiview
from baldur.views.container import MultiView

__all__ = ["open_views"]


def open_views(estimator: Any, X: Any, *, reset: bool) -> MultiView:
    """Return `X` as a MultiView; matrices get scikit-learn's own checks first.

    Parameters
    ----------
    estimator : estimator with a ``views`` parameter
        Gets ``n_features_in_`` (and ``feature_names_in_`` for frames) when `reset`.
    X : MultiView, array, sparse matrix or DataFrame
        The data; a bare list of matrices or a dictionary is refused with advice.
    reset : bool
        True in ``fit``, False where the estimator is already fitted.

    Returns
    -------
    MultiView
    """
    name = type(estimator).__name__
    rows_of_numbers = isinstance(X, (list, tuple)) and len(X) > 0 and np.ndim(X[0]) == 1
    matrix = rows_of_numbers or issparse(X)  # one sparse format is a dictionary as well
    if isinstance(X, (MultiView, list, tuple, Mapping)) and not matrix:
        mv = as_multiview(X, estimator.views, estimator_name=name)
        if reset:
            estimator.n_features_in_ = int(mv.shape[1])
            if hasattr(estimator, "feature_names_in_"):
                del estimator.feature_names_in_
        return mv
    checked = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse=("csr", "csc"),
        dtype="numeric",
        ensure_all_finite="allow-nan",
        ensure_min_samples=2 if reset else 1,
    )
    # A frame keeps its column names, which ``views`` may refer to.
    framed = hasattr(X, "columns") and not issparse(X)
    return as_multiview(X if framed else checked, estimator.views, estimator_name=name)
