"""Outer and inner folds: stratified, grouped, repeated, leave one site out, or fixed.

Groups (families, repeated visits) never lie on both sides of a split, in outer and inner folds
alike. In a leave-one-site-out study the inner folds keep sites together as well, unless groups
are named, so that settings are chosen for the question asked: how the model does elsewhere.

Rows of a label matrix are stratified as `label_folds` and `label_strata` describe.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from baldur.exceptions import InputError


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
    """
    Y = np.asarray(Y).astype(bool)
    has_rarer = np.where(2 * Y.sum(axis=0) <= len(Y), Y, ~Y)  # (n_samples, n_labels)
    # Rows with the rarer value that each fold lacks, (n_labels, k), and rows it has room for, (k,).
    wanted = np.repeat(has_rarer.sum(axis=0)[:, None] / k, k, axis=1)
    room = np.bincount(np.arange(len(Y)) % k, minlength=k)
    fold = np.full(len(Y), -1)
    order = rng.permutation(len(Y))

    def assign(row: int, lacking: np.ndarray) -> None:
        # Of the folds with room the one that lacks most, of equals that with most room.
        fold[row] = np.lexsort((-room, -lacking, room == 0))[0]
        wanted[has_rarer[row], fold[row]] -= 1
        room[fold[row]] -= 1

    while (left := has_rarer[fold < 0].sum(axis=0)).any():
        label = np.where(left > 0, left, len(Y) + 1).argmin()
        for row in order[has_rarer[order, label] & (fold[order] < 0)]:
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


_MOST_ROW_NUMBERS = 200_000_000
"""Of all outer folds together, 1.6 GB; a hundred repeats of ten folds of 100,000 rows have half."""

SCHEMES = ("stratified", "grouped", "leave-one-site-out", "fixed")
NEEDED = {"fixed": "split", "leave-one-site-out": "sites", "grouped": "groups"}
"""The column that a scheme needs; of the columns that are given, the first implies its scheme."""


@dataclass(frozen=True)
class Fold:
    """One outer split: its repeat and number (from 0), and the rows on each side."""

    repeat: int
    number: int
    train: np.ndarray
    test: np.ndarray


@dataclass(frozen=True)
class FoldPlan:
    """How a study splits its rows.

    Shapes: groups, sites, split (n_samples,).
    """

    scheme: str = "stratified"
    outer: int = 5
    inner: int = 5
    repeats: int = 1
    classification: bool = True
    groups: np.ndarray | None = None
    sites: np.ndarray | None = None
    split: np.ndarray | None = None
    seed: int = 0
    train_share: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.train_share <= 1:
            raise InputError(
                f"train_share must lie above 0 and up to 1, but got {self.train_share!r}."
            )
        if self.scheme not in SCHEMES:
            raise InputError(f"scheme must be one of {SCHEMES}, but got {self.scheme!r}.")
        for name, least in (("outer", 2), ("inner", 2), ("repeats", 1)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < least:
                raise InputError(
                    f"{name} must be a whole number of at least {least}, but got {value!r}."
                )
        what = NEEDED.get(self.scheme)
        if what is not None and getattr(self, what) is None:
            raise InputError(f"scheme {self.scheme!r} needs {what}, but none were given.")
        if self.scheme == "stratified" and self.groups is not None:
            raise InputError(
                "scheme 'stratified' would split groups between training and test rows; use "
                "scheme 'grouped', or leave the groups out."
            )

    @property
    def inner_groups(self) -> np.ndarray | None:
        """Return what inner folds must not split: groups, or sites under leave-one-site-out."""
        if self.groups is None and self.scheme == "leave-one-site-out":
            return self.sites
        return self.groups

    def outer_folds(self, y: np.ndarray) -> list[Fold]:
        """Return the outer splits of the rows of `y`, repeat by repeat.

        Shapes: y (n_samples,) or (n_samples, n_labels).
        """
        n = len(y)
        self._check_size(n)
        if self.scheme == "fixed":
            folds = [self._fixed(n)]
        elif self.scheme == "leave-one-site-out":
            folds = self._by_site(n)
        else:
            folds = []
            for repeat in range(self.repeats):
                seed = _seed(self.seed, 1, repeat)
                parts = self._k_fold(y, self.groups, self.outer, seed, "outer")
                folds += [Fold(repeat, i, *part) for i, part in enumerate(parts)]
        if self.train_share < 1:
            folds = [replace(fold, train=self._fewer(y, fold)) for fold in folds]
        for fold in folds:
            self._check_training(y, fold)
        return folds

    def _fewer(self, y: np.ndarray, fold: Fold) -> np.ndarray:
        """Return a subset of the training rows: whole groups, class shares preserved."""
        rows = fold.train
        units = rows if self.groups is None else self.groups[rows]
        names, first, unit = np.unique(units, return_index=True, return_inverse=True)
        # A group counts as its first row's class.
        stratum = np.zeros(len(names), dtype=int)
        if self.classification:
            stratum = (y if y.ndim == 1 else label_strata(y, 1))[rows][first]
        # The order does not depend on the share: smaller subsets lie within larger ones. The 5
        # keeps these random numbers apart from those of folds and models.
        rng = np.random.default_rng([self.seed, 5, fold.repeat, fold.number])
        order = rng.permutation(len(names))
        kept = np.zeros(len(names), dtype=bool)
        for s in np.unique(stratum):
            of_stratum = order[stratum[order] == s]
            kept[of_stratum[: int(np.ceil(self.train_share * len(of_stratum)))]] = True
        return rows[kept[unit]]

    def inner_folds(self, y: np.ndarray, fold: Fold) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the inner splits of one outer fold's training rows, as rows of the study.

        Shapes: y (n_samples,) or (n_samples, n_labels); returns row numbers (train, test).
        """
        groups = self.inner_groups
        train = fold.train
        of_train = None if groups is None else groups[train]
        k = self.inner
        if of_train is not None:
            k = min(k, len(np.unique(of_train)))
        seed = _seed(self.seed, 2, fold.repeat, fold.number)
        parts = self._k_fold(y[train], of_train, k, seed, "inner")
        return [(train[a], train[b]) for a, b in parts]

    # -- the schemes -----------------------------------------------------------------------

    def _fixed(self, n: int) -> Fold:
        """Return the split that was given, checked for n rows."""
        split = np.asarray(self.split, dtype=str)
        words = set(np.unique(split))
        if len(split) != n or words != {"train", "test"}:
            raise InputError(
                "A fixed split needs 'train' or 'test' for each row and both present, but the "
                f"values are {sorted(words)[:5]} over {len(split)} of {n} rows."
            )
        train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
        groups = np.arange(n) if self.groups is None else self.groups
        both = set(groups[train]) & set(groups[test])
        if both:
            raise InputError(
                f"The fixed split puts {len(both)} groups on both sides, for example "
                f"{sorted(map(str, both))[:3]}; move each group to one side."
            )
        return Fold(0, 0, train, test)

    def _by_site(self, n: int) -> list[Fold]:
        """Return a fold for each site, whose n rows together are test rows once."""
        sites = np.asarray(self.sites)
        if self.groups is not None:
            for group in np.unique(self.groups):
                at = np.unique(sites[self.groups == group])
                if len(at) > 1:
                    raise InputError(
                        f"Group {group!s} has rows at {len(at)} sites ({at[0]!s}, {at[1]!s}), so "
                        "leaving one site out would split it; correct the group or the site."
                    )
        if len(np.unique(sites)) < 3:
            raise InputError(
                f"Leaving one site out needs at least 3 sites, so that inner folds can leave one "
                f"out too, but there are {len(np.unique(sites))}."
            )
        parts = LeaveOneGroupOut().split(np.zeros((n, 1)), groups=sites)
        return [Fold(0, i, *part) for i, part in enumerate(parts)]

    def _k_fold(
        self, y: np.ndarray, groups: np.ndarray | None, k: int, seed: int, which: str
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return k random splits: groups stay whole, and classes have about equal shares.

        Shapes: y (n,) or (n, n_labels), groups (n,); returns row numbers (train, test).
        """
        rows = np.zeros((len(y), 1))
        if y.ndim == 2 and groups is None:
            self._check_classes(y, k, which)
            fold = label_folds(y, k, np.random.default_rng(seed))
            return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(k)]
        y = label_strata(y, k) if y.ndim == 2 else y
        splitter: Any
        if groups is not None:
            have = len(np.unique(groups))
            if have < k or k < 2:
                raise InputError(
                    f"{k} {which} folds need at least {max(k, 2)} groups, but there are {have}; "
                    f"ask for fewer {which} folds."
                )
            k_fold = StratifiedGroupKFold if self.classification else GroupKFold
            splitter = k_fold(n_splits=k, shuffle=True, random_state=seed)
        elif self.classification:
            self._check_classes(y, k, which)
            splitter = StratifiedKFold(n_splits=k, shuffle=True, random_state=seed)
        else:
            if len(y) < 2 * k:
                raise InputError(f"{k} {which} folds need {2 * k} rows, but there are {len(y)}.")
            splitter = KFold(n_splits=k, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            # Too few groups of a class: what follows from it is checked and said by us.
            warnings.simplefilter("ignore", UserWarning)
            return list(splitter.split(rows, y, groups))

    def _check_classes(self, y: np.ndarray, k: int, which: str) -> None:
        """Refuse more folds than there are rows of a class, or of either value of a label."""
        if y.ndim == 2:
            least = int(np.minimum(y.sum(axis=0), len(y) - y.sum(axis=0)).min())
            what, smallest = "rows with and without each label", "the rarest"
        else:
            least = int(np.bincount(y)[np.unique(y)].min())
            what, smallest = "rows of each class", "the smallest"
        if least < k:
            raise InputError(
                f"{k} {which} folds need at least {k} {what}, but {smallest} has {least}; ask for "
                f"fewer {which} folds."
            )

    def _check_size(self, n: int) -> None:
        """Refuse more outer folds than there is memory for, before they are made."""
        count = 1 if self.scheme == "fixed" else self.outer * self.repeats
        if self.scheme == "leave-one-site-out":
            count = len(np.unique(np.asarray(self.sites)))
        if count * n > _MOST_ROW_NUMBERS:
            raise InputError(
                f"{count:,} outer folds of {n:,} rows each do not fit into memory; ask for fewer "
                "folds or repeats, or merge sites."
            )

    def _check_training(self, y: np.ndarray, fold: Fold) -> None:
        """Refuse a fold whose training rows have one class; some classes may be missing.

        Of a label matrix every label needs both values.
        """
        if not self.classification:
            return
        rows = y[fold.train]
        if (rows == rows[0]).all(axis=0).any():
            constant = np.flatnonzero(np.atleast_1d((rows == rows[0]).all(axis=0)))
            what = "one class" if y.ndim == 1 else f"one value of label {constant[0] + 1}"
            raise InputError(
                f"Outer fold {fold.number + 1} has training rows of {what} only, because all "
                "others lie in the groups or sites left out; ask for more outer folds or merge "
                "groups."
            )


def _seed(*parts: int) -> int:
    """Return one 32-bit seed computed from several numbers."""
    return int(np.random.SeedSequence([int(p) for p in parts]).generate_state(1)[0])
