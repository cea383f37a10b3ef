"""Inner folds: repeated, stratified by label, whole groups held out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state

from baldur.exceptions import InputError
from baldur.types import IntArray
from baldur.inference.predictive import Task

N_FOLDS = 5
MOST_REPEATS, SMALL, MORE, CHEAP = 12, 100, 5 / 3, 1200
"""How rows fall into folds is chance, and the answer should not hang on it: folds are repeated
twelve times (with ten, probabilities of 333 people moved by up to .16 with the seed; with twelve by
.11), 5/3 as often in samples of up to 100, and less often where repeats times N^2, times the number
of outputs, would exceed 1,200^2: large samples are steadier by themselves, and their fits are not
cheap."""


def inner_folds(
    labels: NDArray[Any], task: Task, groups: Any, random_state: Any
) -> list[tuple[IntArray, IntArray]]:
    """Return (training rows, held-out rows) of every fold of every repeat.

    Parameters
    ----------
    labels : array of shape (n_samples,) or (n_samples, n_outputs)
        Class labels, which every fold gets in like shares, or outputs.
    task : Task
    groups : array-like of shape (n_samples,), or None
        Samples of one group are held out together.
    random_state : int, RandomState or None
    """
    n = len(labels)
    stratified = task in ("binary", "multiclass")
    n_folds = min(N_FOLDS, n)
    if stratified:
        n_folds = max(2, min(N_FOLDS, int(np.unique(labels, return_counts=True)[1].min())))
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (n,):
            raise InputError(f"groups must have {n} entries, but has shape {groups.shape}.")
        n_folds = min(n_folds, len(np.unique(groups)))
        if n_folds < 2:
            raise InputError("groups: inner folds need at least two groups, but there is one.")
    if groups is None:
        kind = StratifiedKFold if stratified else KFold
    else:
        kind = StratifiedGroupKFold if stratified else GroupKFold
    random = check_random_state(random_state)
    folds: list[tuple[IntArray, IntArray]] = []
    most = int(MORE * MOST_REPEATS) if n <= SMALL else MOST_REPEATS
    outputs = len(np.unique(labels)) if task == "multiclass" else int(np.prod(np.shape(labels)[1:]))
    for _ in range(int(np.clip(CHEAP**2 // (n**2 * outputs), 1, most))):
        splitter = kind(n_folds, shuffle=True, random_state=random.randint(2**31 - 1))
        folds += splitter.split(np.zeros(n), labels if stratified else None, groups)
    return [(rows, held) for rows, held in folds if len(held)]
