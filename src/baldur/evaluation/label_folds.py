"""Folds and strata of the rows of a label matrix.

Rows are stratified iteratively, the rarest label first (`label_folds`); where groups must stay
together they are stratified by their combination of labels (`label_strata`).
"""

from __future__ import annotations

import numpy as np


def label_folds(Y: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return the fold of every row of a label matrix, with each label in about equal shares.

    Iterative stratification [1]_: the label whose rarer value has the fewest rows left is dealt
    with first. Each of these rows goes to the fold that lacks most of them, of equals to the one
    with most room. Rows without a rare value fill the folds at the end. Sizes of folds differ by
    one row at most; without this limit, which is ours, they may differ by many. Rare values are
    spread evenly; numbers of a frequent one, which is assigned late, may differ by several rows.

    Shapes: Y (n_samples, n_labels); returns (n_samples,).

    References
    ----------
    .. [1] K. Sechidis, G. Tsoumakas and I. Vlahavas, "On the stratification of multi-label data",
       ECML PKDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.evaluation.label_folds import label_folds
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0]])
    >>> fold = label_folds(Y, 2, np.random.default_rng(0))
    >>> [Y[fold == i].sum(axis=0).tolist() for i in range(2)]
    [[1, 1], [1, 1]]
    """
    Y = np.asarray(Y).astype(bool)
    rare = np.where(2 * Y.sum(axis=0) <= len(Y), Y, ~Y)
    wanted = np.repeat(rare.sum(axis=0)[:, None] / k, k, axis=1)
    room = np.bincount(np.arange(len(Y)) % k, minlength=k)
    fold = np.full(len(Y), -1)
    order = rng.permutation(len(Y))

    def assign(row: int, lacking: np.ndarray) -> None:
        fold[row] = np.lexsort((-room, -lacking, room == 0))[0]
        wanted[rare[row], fold[row]] -= 1
        room[fold[row]] -= 1

    while (left := rare[fold < 0].sum(axis=0)).any():
        label = np.where(left > 0, left, len(Y) + 1).argmin()
        for row in order[rare[order, label] & (fold[order] < 0)]:
            assign(row, wanted[label])
    for row in order[fold[order] < 0]:
        assign(row, room)
    return fold


def label_strata(Y: np.ndarray, least: int) -> np.ndarray:
    """Return a stratum of every row of a label matrix, where rows are drawn or grouped by stratum.

    A stratum is a combination of labels. Rows of a combination that fewer than `least` rows have
    are put together by the rarest label that they have, so that rare labels are spread over the
    folds as well. Where no stratum has `least` rows, all rows are one.

    Shapes: Y (n_samples, n_labels); returns (n_samples,).

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.evaluation.label_folds import label_strata
    >>> Y = np.array([[0, 0], [0, 0], [1, 0], [1, 0], [1, 1]])
    >>> label_strata(Y, 2).tolist()
    [0, 0, 1, 1, 2]
    """
    Y = np.asarray(Y).astype(bool)
    _, combination, count = np.unique(Y, axis=0, return_inverse=True, return_counts=True)
    combination = combination.reshape(-1)
    # Labels from the rarest to the most frequent; the first that a row has, or none.
    order = np.argsort(Y.sum(axis=0), kind="stable")
    rarest = np.where(Y.any(axis=1), order[Y[:, order].argmax(axis=1)], Y.shape[1])
    stratum = np.where(count[combination] < least, len(count) + rarest, combination)
    codes = np.unique(stratum, return_inverse=True)[1].reshape(-1)
    # Where all strata are that small, there is nothing to stratify by.
    return codes if np.bincount(codes).max() >= least else np.zeros_like(codes)
