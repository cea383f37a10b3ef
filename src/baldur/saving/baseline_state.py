"""Competitors as skops stores them: their parts are of listed types, and no other is ever built.

The state of a baseline is its preparation, which is ours and validated like any other, and the
bytes of a skops archive with the rest of it. Loading a model of another kind does not import skops.
"""

from __future__ import annotations

import copy
import io
import zipfile
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.saving.setting_state import read_setting, setting_state
from baldur.state import Fields, State

__all__ = ["TRUSTED", "baseline_state", "is_baseline", "read_baseline"]

TRUSTED = (
    "baldur.baselines.paper.awdr.AWDRClassifier",
    "baldur.baselines.additional.boosted_trees.BoostedTreesClassifier",
    "baldur.baselines.additional.boosted_trees.BoostedTreesRegressor",
    "baldur.baselines.paper.cpm_nets.CPMNetsClassifier",
    "baldur.baselines.additional.dummy.MeanRegressor",
    "baldur.baselines.additional.dummy.PriorClassifier",
    "baldur.baselines.additional.elastic_net.ElasticNetLogisticClassifier",
    "baldur.baselines.paper.lasso_mksvm.LassoMkSVMClassifier",
    "baldur.baselines.paper.lsvm_l1.L1SVMClassifier",
    "baldur.baselines.paper.mccd.MCCDClassifier",
    "baldur.baselines.paper.mv_pls.MVPLSClassifier",
    "baldur.baselines.paper.mv_pls.MVPLSRegressor",
    "baldur.baselines.paper.pb_mvboost.Ensemble",
    "baldur.baselines.paper.pb_mvboost.PBMVBoostClassifier",
    "baldur.baselines.paper.random_forest.ForestClassifier",
    "baldur.baselines.paper.random_forest.ForestRegressor",
    "baldur.baselines.additional.ridge_logistic.RidgeLogisticClassifier",
    "baldur.baselines.paper.sgp_ard.SGPARDClassifier",
    "baldur.baselines.paper.sgp_bound.SGPFit",
    "baldur.baselines.additional.stacking.StackingClassifier",
    "baldur.evaluation.adapters.SideBySide",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
)
"""Types beside those that skops itself trusts (scikit-learn's public estimators, NumPy, SciPy)."""

_MODULES = ("baldur.baselines.", "baldur.evaluation.adapters.")
_DEPTH = 12
"""Levels below an estimator at which trees are looked for: a forest has them at the third."""


def is_baseline(estimator: Any) -> bool:
    """Return whether an estimator is stored as a baseline.

    Parameters
    ----------
    estimator : object

    Returns
    -------
    bool
    """
    kind = type(estimator)
    path = f"{kind.__module__}.{kind.__qualname__}"
    return path in TRUSTED and path.startswith(_MODULES)


def baseline_state(estimator: Any) -> State:
    """Return the state of a fitted baseline.

    Parameters
    ----------
    estimator : baseline
        Fitted, with a preparation.

    Returns
    -------
    dict
    """
    from skops.io import dumps, get_untrusted_types

    name = type(estimator).__name__
    rest = copy.copy(estimator)
    preparation = rest.__dict__.pop("preparation_")
    template = getattr(rest, "preparation", None)
    if template is not None:
        rest.preparation = None
    try:
        content = dumps(rest)
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
    return {
        "kind": "baseline",
        "class": name,
        "template": setting_state(template, "preparation"),
        "preparation": preparation.to_state(),
        "skops": np.frombuffer(content, dtype=np.uint8),
    }


def read_baseline(state: Any, read_preparation: Any) -> Any:
    """Build a baseline; anything that is not of a trusted type is an InputError.

    Parameters
    ----------
    state : dict
        As `baseline_state` returned it.
    read_preparation : callable
        Builds a preparation from its state.

    Returns
    -------
    baseline
        Fitted.
    """
    with Fields(state, "baseline") as read:
        name = read.text("class")
        preparation = read.part("preparation", read_preparation)
        template = read.part("template", read_setting) if read.has("template") else None
        sound = template is None or isinstance(template, Preparation)
        read.need(sound, "expected a template of a preparation", "template")
        content = read.array("skops", (None,), "int")
        read.need(content.dtype == np.uint8, "expected bytes", "skops")
        made = read.part("skops", _unpack)
        sound = is_baseline(made) and type(made).__name__ == name
        read.need(sound, "expected a baseline of the class that it names", "skops")
        read.need("preparation_" not in vars(made), "expected no second preparation", "skops")
    made.preparation_ = preparation
    if template is not None:
        made.preparation = template
    return made


def _unpack(content: np.ndarray) -> Any:
    from skops.io import loads

    raw = content.tobytes()
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            # As `dumps` writes them; what is not compressed cannot grow.
            stored = all(i.compress_type == zipfile.ZIP_STORED for i in archive.infolist())
        made = loads(raw, trusted=list(TRUSTED)) if stored else None
    except Exception as error:  # a damaged archive fails in any way it likes
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"an archive that skops refuses ({said})") from None
    _check_trees(made, 0, set())
    return made


def _check_trees(part: Any, depth: int, seen: set[int]) -> None:
    """Refuse trees that point outside of themselves: compiled code would follow them."""
    if id(part) in seen or depth > _DEPTH:
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
