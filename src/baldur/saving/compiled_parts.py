"""Checks of estimators whose predictions run compiled code that trusts what was stored.

scikit-learn's compiled code follows indices of trees and support vectors without looking where they
lead: a forged model could read foreign memory or crash the process. `check_archive` looks at an
archive of skops before anything in it is built, `check_parts` at what was built, before it is used.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from baldur.exceptions import InputError

_DEPTH = 12
"""Levels below an estimator that are looked at: a forest has its trees at the third."""

_NODES = 2_000_000
"""Values in the description of an archive; a forest of 300 trees has 30,000."""

_JOBS = 1000
"""Most workers a stored estimator may ask for."""

_REFUSED = (GradientBoostingClassifier, GradientBoostingRegressor, SVR, NuSVR, OneClassSVM)
"""Their compiled code trusts more than is checked here; HistGradientBoosting can be saved."""


def check_archive(raw: bytes) -> None:
    """Refuse a skops archive that could expand, or crash while its objects are built."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        entries = archive.infolist()
        # As skops writes them. What is not compressed cannot grow.
        sound = all(
            one.compress_type == zipfile.ZIP_STORED and one.file_size == one.compress_size
            for one in entries
        )
        if not sound or sum(one.file_size for one in entries) > len(raw):
            raise InputError("an archive that is compressed, or has parts that overlap")
        text = archive.read("schema.json")
        if sum(map(text.count, (b",", b"[", b"{"))) > _NODES:
            raise InputError(f"an archive whose description has more than {_NODES:,} values")
        nodes = _described_parts(json.loads(text))
        _check_ids(nodes)
        for node in nodes:
            if node.get("__loader__") == "TreeNode" or node.get("__class__") == "Tree":
                _check_constructor(node, archive)


def _described_parts(schema: Any) -> list[dict[str, Any]]:
    """Return every object in the description of an archive."""
    found, left = [], [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            found.append(node)
            left += node.values()
        elif isinstance(node, list):
            left += node
    return found


def _check_ids(nodes: list[dict[str, Any]]) -> None:
    """Refuse two descriptions under one id, of which skops would build only the first."""
    known: dict[Any, Any] = {}
    for node in nodes:
        if "__id__" not in node or node.get("__loader__") == "CachedNode":
            continue
        content = node.get("content") if node.get("is_json") else None
        said = [node.get(key) for key in ("__class__", "__module__", "__loader__", "file")]
        if known.setdefault(str(node["__id__"]), [*said, content]) != [*said, content]:
            raise InputError("two parts under one id")


def _check_constructor(node: Any, archive: zipfile.ZipFile) -> None:
    """Refuse a tree of several outcomes: its constructor reads as many numbers as it claims."""
    try:
        _, classes, outcomes = node["__reduce__"]["args"]["content"]
        counts = np.load(io.BytesIO(archive.read(classes["file"])), allow_pickle=False)
        sound = json.loads(outcomes["content"]) == 1 and counts.shape == (1,) and counts[0] > 0
    except (KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise InputError("a tree that is not of one outcome")


def check_parts(part: Any) -> None:
    """Refuse an estimator with a part that could make compiled code read invalid memory."""
    _check(part, 0, set())


def _check(part: Any, depth: int, seen: set[int]) -> None:
    if id(part) in seen or isinstance(part, (str, bytes, int, float, type(None))):
        return
    if depth > _DEPTH:
        raise InputError(f"parts within parts, more than {_DEPTH} levels deep")
    seen.add(id(part))
    if isinstance(part, np.ndarray):
        _check_array(part)
    if sparse.issparse(part):
        _check_sparse(part)
    if isinstance(part, _REFUSED):
        raise InputError(f"a {type(part).__name__}, which model files do not hold")
    if isinstance(part, (SVC, NuSVC)) and hasattr(part, "support_vectors_"):
        _check_support(part)
    if hasattr(part, "tree_"):
        _check_tree(part)
    if hasattr(part, "_predictors"):
        _check_histogram_trees(part)
    jobs = getattr(part, "n_jobs", None)
    if jobs is not None and not (type(jobs) is int and abs(jobs) <= _JOBS):
        raise InputError(f"an estimator with n_jobs={str(jobs)[:20]}")
    for child in _children(part):
        _check(child, depth + 1, seen)


def _children(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return list(part.values())
    if isinstance(part, (list, tuple, set)):
        return list(part)
    if isinstance(part, np.ndarray):
        return part.ravel().tolist() if part.dtype == object else []
    return list(getattr(part, "__dict__", {}).values())


def _check_array(array: np.ndarray) -> None:
    """Refuse booleans that are neither 0 nor 1: masks are counted by their bytes."""
    if array.dtype == bool and array.size and np.ascontiguousarray(array).view(np.uint8).max() > 1:
        raise InputError("booleans that are neither 0 nor 1")


def _check_sparse(matrix: Any) -> None:
    if matrix.format not in ("csr", "csc"):
        raise InputError(f"a sparse matrix of format {matrix.format}")
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"a sparse matrix that is damaged ({error})") from None


def _check_tree(owner: Any) -> None:
    tree = owner.tree_
    # The arrays below are as long as the count says, and the memory as the capacity says.
    if not 0 < tree.node_count <= tree.capacity:
        raise InputError("a tree whose node count does not match its nodes")
    if type(getattr(owner, "n_features_in_", None)) is not int:
        raise InputError("a tree of an unknown number of features")
    if tree.n_features != owner.n_features_in_:
        raise InputError("a tree of another number of features than its estimator")
    inner = tree.children_left != -1
    _check_branches(tree.children_left[inner], tree.children_right[inner], inner)
    _check_features(tree.feature[inner], tree.n_features)


def _check_histogram_trees(owner: Any) -> None:
    width = getattr(owner, "n_features_in_", None)
    if type(width) is not int:
        raise InputError("a tree of an unknown number of features")
    for row in owner._predictors:
        for predictor in row:
            nodes = predictor.nodes
            if type(predictor).__name__ != "TreePredictor" or not len(nodes):
                raise InputError("a tree without nodes")
            inner = nodes["is_leaf"] == 0
            _check_branches(nodes["left"][inner], nodes["right"][inner], inner)
            _check_features(nodes["feature_idx"][inner], width)
            if nodes["is_categorical"].any():
                raise InputError("a tree that splits by categories, which prepared columns are not")


def _check_branches(left: np.ndarray, right: np.ndarray, inner: np.ndarray) -> None:
    at = np.flatnonzero(inner)
    for children in (left, right):
        # Children come after their parent, so there is no circle either.
        if not ((children > at).all() and (children < len(inner)).all()):
            raise InputError("a tree whose branches lead to nodes that do not exist")


def _check_features(features: np.ndarray, width: int) -> None:
    if features.size and (features.min() < 0 or features.max() >= width):
        raise InputError("a tree that refers to features that do not exist")


def _check_support(svm: Any) -> None:
    """Refuse support vectors whose counts do not fit: libsvm takes all sizes from them."""
    vectors, counts = svm.support_vectors_, svm._n_support
    n, k = len(vectors), len(counts)
    pairs = k * (k - 1) // 2
    sizes = {
        "support_": (n,),
        "_dual_coef_": (k - 1, n),
        "_intercept_": (pairs,),
        "support_vectors_": (n, svm.n_features_in_),
    }
    sound = (
        not svm._sparse
        and svm.kernel in ("linear", "poly", "rbf", "sigmoid")
        and svm._impl in ("c_svc", "nu_svc")
        and k == len(svm.classes_)
        and (counts >= 0).all()
        and counts.sum() == n
        and all(np.shape(getattr(svm, name)) == size for name, size in sizes.items())
        and all(np.shape(one) in ((0,), (pairs,)) for one in (svm._probA, svm._probB))
        and np.shape(svm._probA) == np.shape(svm._probB)
    )
    if not sound:
        raise InputError("support vectors that do not fit together")
