"""Inner folds: repeated, balanced, stratified by label, whole groups held out together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state

from baldur.exceptions import InputError
from baldur.inference.predictive import Task
from baldur.types import IntArray

N_FOLDS, FEWER_FOLDS = 5, 3
MOST_REPEATS, SMALL, MORE, CHEAP = 8, 100, 3 / 2, 1200
"""How rows fall into folds is chance, and the answer should not depend on it: folds are repeated
eight times, 3/2 as often in samples of up to 100, and less often where repeats times N^2, times the
number of outputs, would exceed 1,200^2: large samples are steadier by themselves, and their fits
are not cheap. Where one repeat of five folds would exceed it, there is one of three."""


def inner_folds(
    labels: NDArray[Any], task: Task, groups: Any, random_state: Any
) -> list[tuple[IntArray, IntArray]]:
    """Return (training rows, held-out rows) of every fold of every repeat.

    Shapes: labels (n_samples,), groups (n_samples,).
    """
    n = len(labels)
    stratified = task in ("binary", "multiclass")
    outputs = len(np.unique(labels)) if task == "multiclass" else int(np.prod(np.shape(labels)[1:]))
    repeats = CHEAP**2 // (n**2 * outputs)
    n_folds = min(N_FOLDS if repeats else FEWER_FOLDS, n)
    if stratified:
        n_folds = max(2, min(n_folds, int(np.unique(labels, return_counts=True)[1].min())))
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (n,):
            raise InputError(f"groups must have {n} entries, but has shape {groups.shape}.")
        n_folds = min(n_folds, len(np.unique(groups)))
        if n_folds < 2:
            raise InputError("groups: inner folds need at least two groups, but there is one.")
    random = check_random_state(random_state)
    repeats = n_repeats(n, outputs)
    if groups is None and n_folds in (2, 3, 5):
        strata = np.unique(labels, return_inverse=True)[1] if stratified else np.zeros(n, dtype=int)
        assigned = balanced_folds(strata, n_folds, repeats, random)
        pairs = [(fold != k, fold == k) for fold in assigned for k in range(n_folds)]
        folds = [(np.flatnonzero(train), np.flatnonzero(held)) for train, held in pairs]
    else:
        if groups is None:
            kind = StratifiedKFold if stratified else KFold
        else:
            kind = StratifiedGroupKFold if stratified else GroupKFold
        folds = []
        for _ in range(repeats):
            splitter = kind(n_folds, shuffle=True, random_state=random.randint(2**31 - 1))
            folds += splitter.split(np.zeros(n), labels if stratified else None, groups)
    return [(rows, held) for rows, held in folds if len(held) and len(rows)]


def n_repeats(n: int, outputs: int = 1) -> int:
    """Return how often the folds of n rows are repeated."""
    most = int(MORE * MOST_REPEATS) if n <= SMALL else MOST_REPEATS
    return int(np.clip(CHEAP**2 // (n**2 * outputs), 1, most))


def balanced_folds(
    strata: IntArray, n_folds: int, repeats: int, random: np.random.RandomState
) -> list[IntArray]:
    """Return the fold of every row in each repeat, such that repeats are orthogonal to each other.

    Folds that are drawn anew for each repeat hold some pairs of rows out together often and others
    never. Here each row has a vector v of digits modulo the prime number p of folds, and repeat r
    holds it out in fold a_r . v modulo p with vectors a_r that are pairwise independent: any fold
    of one repeat has an equal share of the rows of any fold of another one. The first digit of
    a_r is 1, so p rows in a row of one stratum are in p different folds.

    Shapes: strata (n,).
    """
    p, n = n_folds, len(strata)
    digits = 3
    while p**digits < n:
        digits += 1
    found: list[IntArray] = []
    while len(found) < repeats:
        v = np.zeros((n, digits), dtype=np.intp)
        for stratum in np.unique(strata):
            rows = random.permutation(np.flatnonzero(strata == stratum))
            places = np.arange(len(rows))
            v[rows] = (places[:, None] // p ** np.arange(digits)) % p
            v[rows] += random.randint(p, size=digits)  # which folds get one row more
        for r in range(min(p * p, repeats - len(found))):
            b, t = r % p, r // p
            a = np.array([1, b, b * b + t, *(b**k + k * t for k in range(3, digits))])
            found.append((v @ a) % p)
    return found
