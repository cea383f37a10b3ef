"""Input of all estimators: a MultiView, or a 2-D matrix with `views=`, to a MultiView."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from baldur.exceptions import InputError, InputTypeError
from baldur.views.container import MultiView
from baldur.views.table_encoding import is_numeric
from baldur.views.validate import check_columns, rename_hint
from baldur.views.view import locate_columns


def as_multiview(
    X: Any, views: Mapping[str, Any] | None = None, *, estimator_name: str = "This estimator"
) -> MultiView:
    """Return a MultiView, or a matrix or DataFrame with its columns in `views`, as a MultiView.

    Without `views`, a matrix is one view called "X". `estimator_name` is for messages.
    """
    if isinstance(X, MultiView):
        if views is not None:
            raise InputError(
                f"{estimator_name}: views= describes the columns of a 2-D X, but X is a MultiView "
                f"that already has the views {X.view_names}. Leave views=None, or use "
                "X.select([...]) to choose among them."
            )
        return X
    if isinstance(X, (list, tuple, Mapping)):
        converter = "MultiView.from_dict(X)"
        if not isinstance(X, Mapping):
            converter = "MultiView.from_dict({'name': matrix, ...}), or np.asarray(X) for one view"
        raise InputError(
            f"{estimator_name} expects a MultiView, or a 2-D array or DataFrame, but got a "
            f"{type(X).__name__}. Convert it with {converter}."
        )
    if getattr(X, "ndim", None) == 1:
        raise InputError(
            f"{estimator_name} expects a 2-D array (samples by features), but got a 1-D array of "
            f"length {len(X)}. Reshape your data: X.reshape(-1, 1) for one feature, "
            "X.reshape(1, -1) for one sample."
        )
    return MultiView.from_columns(X, views)


def open_views(estimator: Any, X: Any, *, reset: bool) -> MultiView:
    """Return `X` as a MultiView; matrices get scikit-learn's own checks first.

    With `reset`, in `fit`, the estimator learns `n_features_in_` and `feature_names_in_`; without,
    in prediction, `X` is compared with them.
    """
    name = type(estimator).__name__
    rows_of_numbers = isinstance(X, (list, tuple)) and len(X) > 0 and np.ndim(X[0]) == 1
    is_matrix = rows_of_numbers or issparse(X)  # one sparse format is a dictionary as well
    if isinstance(X, (MultiView, list, tuple, Mapping)) and not is_matrix:
        mv = as_multiview(X, estimator.views, estimator_name=name)
        if reset:
            estimator.n_features_in_ = int(mv.shape[1])
            if hasattr(estimator, "feature_names_in_"):
                del estimator.feature_names_in_
        return mv
    checks: dict[str, Any] = {
        "accept_sparse": ("csr", "csc"),
        "dtype": "numeric",
        "ensure_all_finite": "allow-nan",
        "ensure_min_samples": 2 if reset else 1,
    }
    if isinstance(X, pd.DataFrame):
        check_columns(X, name)
        if not is_numeric(X):
            # Names and number of columns; cells are looked at where they are encoded.
            if len(X) < checks["ensure_min_samples"]:
                raise InputError(
                    f"Found array with {len(X)} sample(s) (shape={X.shape}) while a minimum of "
                    f"{checks['ensure_min_samples']} is required by {name}."
                )
            checks = {"skip_check_array": True}
    if np.ma.isMaskedArray(X):  # whose mask scikit-learn would forget
        X = np.ma.filled(X.astype(np.float64), np.nan)
    from sklearn.utils.validation import validate_data  # slow; pages need the names of views only

    try:
        # Its sum over all cells, a quick look for infinities, may overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            checked = validate_data(estimator, X, reset=reset, **checks)
    except ValueError as error:
        # scikit-learn's words, which its own checks look for, in an error that is also ours.
        columns = X.columns if isinstance(X, pd.DataFrame) else None
        hint = _infinity_hint(error, X)
        hint += rename_hint(columns, getattr(estimator, "feature_names_in_", None))
        raise InputError(f"{error}{hint}") from error
    except TypeError as error:
        raise InputTypeError(str(error)) from error
    # A frame keeps its column names, which ``views`` may refer to.
    is_frame = hasattr(X, "columns") and not issparse(X)
    if not is_frame and not reset and estimator.views is not None and not issparse(X):
        # An array after a fit on a frame has its columns, of which scikit-learn has warned.
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None:
            checked = pd.DataFrame(checked, columns=names)
    return as_multiview(X if is_frame else checked, estimator.views, estimator_name=name)


def input_columns(estimator: Any) -> dict[str, np.ndarray]:
    """Return for every view of a fitted estimator which input column each of its features is.

    Levels of a category belong to the column that they were encoded from.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and estimator.views is not None:
        return locate_columns(estimator.views, estimator.n_features_in_)
    columns = {}
    start = 0
    for view, features in estimator.feature_names_.items():
        columns[view] = np.arange(start, start + len(features))
        start += len(features)
        if names is not None:
            info = estimator.feature_info_.get(view)
            encoded = info is not None and "column" in info
            owners = info["column"].astype(str).to_numpy() if encoded else features
            columns[view] = pd.Index(names).get_indexer(pd.Index(owners))
    return columns


def _infinity_hint(error: ValueError, X: Any) -> str:
    """Return advice about infinities, where scikit-learn's error is about these."""
    if "infinity" not in str(error):
        return ""
    dtype = getattr(X, "dtype", None)
    narrow = dtype in (np.float16, np.float32)
    wider = f" {dtype} holds nothing larger; read the data as float64." if narrow else ""
    return (
        " Replace infinite cells by NaN for missing, or transform the columns that produced them "
        f"(a logarithm of 0, a division by 0).{wider}"
    )
