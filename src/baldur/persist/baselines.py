"""Baselines as skops writes them: their parts are of listed types, and no other is ever built."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from baldur.exceptions import InputError

__all__ = ["TRUSTED", "pack_baseline", "unpack_baseline"]

TRUSTED = (
    "baldur.baselines.awdr.AWDRClassifier",
    "baldur.baselines.boosted_trees.BoostedTreesClassifier",
    "baldur.baselines.boosted_trees.BoostedTreesRegressor",
    "baldur.baselines.cpm_nets.CPMNetsClassifier",
    "baldur.baselines.dummy.MeanRegressor",
    "baldur.baselines.dummy.PriorClassifier",
    "baldur.baselines.elastic_net.ElasticNetLogisticClassifier",
    "baldur.baselines.lasso_mksvm.LassoMkSVMClassifier",
    "baldur.baselines.lsvm_l1.L1SVMClassifier",
    "baldur.baselines.mccd.MCCDClassifier",
    "baldur.baselines.mv_pls.MVPLSClassifier",
    "baldur.baselines.mv_pls.MVPLSRegressor",
    "baldur.baselines.pb_mvboost.Ensemble",
    "baldur.baselines.pb_mvboost.PBMVBoostClassifier",
    "baldur.baselines.random_forest.ForestClassifier",
    "baldur.baselines.random_forest.ForestRegressor",
    "baldur.baselines.ridge_logistic.RidgeLogisticClassifier",
    "baldur.baselines.sgp_ard.SGPARDClassifier",
    "baldur.baselines.sgp_bound.SGPFit",
    "baldur.baselines.stacking.StackingClassifier",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
)
"""Types beside those that skops itself trusts (scikit-learn's public estimators, NumPy, SciPy)."""


def pack_baseline(estimator: Any) -> np.ndarray | None:
    """Return a baseline or scikit-learn estimator as bytes; None for any other object."""
    if not isinstance(estimator, BaseEstimator):
        return None
    from skops.io import dumps, get_untrusted_types

    name = type(estimator).__name__
    try:
        content = dumps(estimator)
        others = sorted(set(get_untrusted_types(data=content)) - set(TRUSTED))
    except Exception as error:  # whatever skops meets inside of a foreign estimator
        raise InputError(
            f"{name} cannot be saved: skops does not know a part of it ({error}). Save the data "
            "and the settings, and fit it again where it is needed."
        ) from error
    if others:
        raise InputError(
            f"{name} cannot be saved: it holds {', '.join(others[:3])}, which model files do not "
            "trust. Save the data and the settings, and fit it again where it is needed."
        )
    return np.frombuffer(content, dtype=np.uint8)


def unpack_baseline(content: np.ndarray) -> Any:
    """Build a baseline from bytes; anything that is not of a trusted type is an InputError."""
    from skops.io import loads

    raw = content.tobytes()
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            # As `dumps` writes them; what is not compressed cannot grow.
            plain = all(i.compress_type == zipfile.ZIP_STORED for i in archive.infolist())
        made = loads(raw, trusted=list(TRUSTED)) if plain else None
    except Exception as error:  # a damaged archive fails in any way it likes
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"a baseline that skops refuses ({said})") from None
    if not isinstance(made, BaseEstimator):
        raise InputError("a baseline that is no estimator")
    _check_trees(made, 0, set())
    return made


def _check_trees(part: Any, depth: int, seen: set[int]) -> None:
    """Refuse trees that point outside of themselves: compiled code would follow them."""
    if id(part) in seen or depth > 12:
        return
    seen.add(id(part))
    if type(part).__module__ == "sklearn.tree._tree":
        n, leaf = part.node_count, part.children_left == -1
        for children in (part.children_left, part.children_right):
            inner = children[~leaf]
            # Children come after their parent, so there is no circle either.
            after = inner > np.flatnonzero(~leaf)
            if not (after.all() and (inner < n).all()):
                raise InputError("a tree whose branches lead nowhere")
        features = part.feature[~leaf]
        if features.size and (features.min() < 0 or features.max() >= part.n_features):
            raise InputError("a tree that asks for features that are not there")
        return
    if type(part).__name__ == "TreePredictor":
        nodes = part.nodes
        inner = nodes[nodes["is_leaf"] == 0]
        at = np.flatnonzero(nodes["is_leaf"] == 0)
        for side in ("left", "right"):
            if not ((inner[side] > at).all() and (inner[side] < len(nodes)).all()):
                raise InputError("a tree whose branches lead nowhere")
        return
    if isinstance(part, dict):
        children_of = list(part.values())
    elif isinstance(part, (list, tuple)):
        children_of = list(part)
    elif isinstance(part, np.ndarray):
        children_of = part.ravel().tolist() if part.dtype == object else []
    else:
        children_of = list(getattr(part, "__dict__", {}).values())
        tree = getattr(part, "tree_", None)
        children_of += [] if tree is None else [tree]
    for child in children_of:
        _check_trees(child, depth + 1, seen)
