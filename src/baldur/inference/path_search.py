"""The order in which features enter the submodel path, and the metric they are projected in.

A projection uses the covariance Sigma of the features among people (in the metric of the row
weights H). The rows at hand know Sigma only roughly: where features outnumber them, unrelated
features look correlated, and a projection in the sample's own covariance moves the noise of the
ensemble into the selected features. So correlations are shrunk by the share `a` of them that is
sampling noise (Ledoit and Wolf, 2004; Schaefer and Strimmer, 2005):

    Sigma = (1 - a) X^T H X + a diag(X^T H X)       (columns centred in the metric H)
    u_S   = Sigma_S. w = (1 - a) X_S^T H eta + a diag w_S

a is 0 with many rows or strong correlations (the usual projection of the linear predictors), 1 for
independent features (weights are kept as they are).

With costs, the next feature is the one with the largest gain, in explained loss of the ensemble,
per unit of what it costs at that moment. The cost of a view is paid once, when the first of its
features enters, as the cost of a scan is paid once whatever is read from it. The cost of a feature
is paid when it enters; levels of one category are one feature. With the first feature of a view
that has a cost, all features of the view that cost nothing themselves become available; so its gain
is that of their whole part of the ensemble's linear predictor. What is paid for already is not
weighed against further costs: such features enter first, as long as each gains something.

Shapes: F folds, C outputs, n training rows, L candidate columns, K features of the path, M views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from baldur.core.types import Array, IntArray, Mask
from baldur.inference.design import marked_columns
from baldur.model.likelihood import take_folds

COLLINEAR = 1e-3
"""Part of a column's variance that must be left after taking out the features before it: below that
it says what they say, and its weight could not be told from theirs."""
SEARCHED = 256
"""Columns that the search looks at, where there are more: so many with the largest gain on their
own, and so many with the largest weights in the ensemble. Twice the longest path."""
SEARCH_BYTES = 1 << 23
"""Working memory of one search over several folds: about a processor's cache."""


@dataclass(frozen=True)
class Basis:
    """Features in the order of the path, with the metric they are projected in."""

    order: IntArray  # (F, K); columns, first to last; shorter paths repeat column 0
    ends: list[IntArray]  # rising numbers of features at which no group is cut
    R_inverse: Array  # (F, C, K + 1, K + 1); upper triangles
    # For the projection: u = forms^T eta + e w_S, the intercept first
    forms: Array  # (F, C, n, K + 1)
    e: Array  # (F, C, K)


def whole_groups(ends: IntArray, size: int) -> int:
    """Return the smallest number of features from `size` on that does not divide a group.

    Shapes: ends (G,).
    """
    later = ends[ends >= size]
    return int(later[0] if len(later) else ends[-1]) if len(ends) else 0


def correlation_noise(X: Array, H: Array, real: Array) -> Array:
    """Return the share of the squared correlations of columns that is sampling noise, (F,).

    a = sum_{i != j} Var r_ij / sum_{i != j} r_ij^2, both from sample space: with rows q of
    standardised cells weighted p, sum_ij r_ij^2 is the squared norm of their Gram matrix.

    Shapes: X (F, n, L), H (F, n) row weights, real (F, L) 0 for columns that are left out.
    """
    out = np.zeros(len(X))
    for f in range(len(X)):
        p = H[f] / H[f].sum()
        centred = X[f] - p @ X[f]
        squares = centred * centred
        variance = p @ squares
        inverse = np.where((variance > 0) & (real[f] > 0), variance, np.inf) ** -1
        L = int((inverse > 0).sum())
        if L < 2:
            continue
        squares *= inverse  # z^2
        scaled = centred * np.sqrt(inverse)
        scaled *= np.sqrt(p)[:, None]
        gram = scaled @ scaled.T
        total = float(np.vdot(gram, gram))  # sum of all r_ij^2, of which those of i = j are L
        concentration = float(p @ p)
        power = squares.sum(axis=1)
        noise = float(p**2 @ power**2) - concentration * total
        noise -= float(p**2 @ np.einsum("nl,nl->n", squares, squares)) - concentration * L
        correlations = total - L
        out[f] = np.clip(noise / correlations, 0.0, 1.0) if correlations > 0 else 1.0
    return out


@dataclass(frozen=True)
class _Columns:
    """The columns of some folds, with what the search knows of them before it begins."""

    X: Array  # (F, n, L)
    H: Array  # H, eta: (F, C, n); row weights, linear predictor of the ensemble
    eta: Array
    w: Array  # (F, C, L); weights of the ensemble
    agree: Array  # (F, C, L); u, covariance of each column with the ensemble's linear predictor
    left: Array  # (F, C, L); variance of each column, times the sum of row weights
    centre: Array  # (F, C, L); mean of each column
    noise: Array  # (F,); share of the correlations that is noise
    count: Array  # (F,); training rows
    groups: IntArray  # groups, always, owner: (F, L)
    always: Mask
    owner: IntArray
    price: Array | None  # (F, L); cost of the feature of each column, or None

    def chosen(self, columns: IntArray, used: Array) -> _Columns:
        """Return some columns (F, K) of each fold; `used` (F, K) is 0 for padding."""

        def take(values: Any) -> Any:  # (F, L) or (F, C, L)
            at = columns if values.ndim == 2 else columns[:, None]
            return np.take_along_axis(values, at, axis=-1)

        return replace(
            self,
            X=self.X if columns.shape[1] == self.X.shape[2] else take(self.X),
            w=take(self.w) * used[:, None],
            agree=take(self.agree),
            left=take(self.left) * used[:, None],
            centre=take(self.centre),
            groups=take(self.groups),
            always=take(self.always),
            owner=take(self.owner),
            price=None if self.price is None else take(self.price),
        )


def search(
    X: Array,
    H: Array,
    eta: Array,
    w: Array,
    size: int,
    *,
    allowed: Array,
    count: Array,
    groups: IntArray,
    always: Mask,
    owner: IntArray,
    most: IntArray | None = None,
    costs: EntryCosts | None = None,
) -> Basis:
    """Order features by greedy forward search: each explains most of what is left.

    An incomplete Cholesky factorisation of Sigma whose pivot is the feature that explains most of
    what is left of u, or most per unit of cost. With one column of a group the others follow at
    once, unless they say what is in already. `size` is the length of a path, but for its last
    group, and `most` the largest number of features of each view.

    Shapes: X (F, n, L) of F folds, n rows and L columns; for C outputs H row weights, eta the
    ensemble's linear predictor (F, C, n), w its weights (F, C, L); allowed (F, L) 0 for columns
    that cannot enter; count (F,) training rows; groups, always, owner (F, L); most (M,) of M views.
    """
    F, n, L = X.shape
    C = H.shape[1]
    by_view = most is not None or costs is not None
    most = np.full(int(owner.max(initial=0)) + 1, L) if most is None else most
    a = correlation_noise(X, H.mean(axis=1), allowed)
    total = H.sum(axis=-1)
    centre = np.matmul(H, X) / total[..., None]  # (F, C, L)
    left = np.matmul(H, X**2) - total[..., None] * centre**2
    left = np.maximum(left, 0.0) * allowed[:, None]  # variances, times total
    share = (1.0 - a)[:, None, None]
    weighted = H * eta
    # u of each column, shrunk as the correlations are.
    agree = share * (np.matmul(weighted, X) - weighted.sum(axis=-1)[..., None] * centre)
    agree += a[:, None, None] * left * w
    price = None if costs is None else costs.columns
    every = _Columns(X, H, eta, w, agree, left, centre, a, count, groups, always, owner, price)
    places, used = _most_promising(every, allowed, by_view=by_view)
    searched = every.chosen(places, used)
    per_fold = 8 * (n * places.shape[1] + C * places.shape[1] * min(size, n))
    step = max(1, SEARCH_BYTES // per_fold)
    paths: list[tuple[list[int], IntArray, Array]] = []
    for start in range(0, F, step):
        columns = take_folds(searched, slice(start, start + step))
        order_by = None if costs is None else CostOrder(columns, costs.views)
        paths += _pivots(columns, size, most, order_by)
    return _basis(every, places, paths)


def _most_promising(columns: _Columns, allowed: Array, *, by_view: bool) -> tuple[IntArray, Array]:
    """Return the columns that are searched, (F, K), ascending, and 1 where they are not padding.

    With `by_view` every view has its share among them.
    """
    left, w, owner, groups = columns.left, columns.w, columns.owner, columns.groups
    F, _, L = left.shape
    if L <= 2 * SEARCHED:
        return np.tile(np.arange(L), (F, 1)), allowed
    # A column without variance in a fold explains nothing there, whatever rounding says.
    gain = np.divide(columns.agree**2, left, out=np.zeros_like(left), where=left > 0).sum(axis=1)
    strength = (w**2 * left).sum(axis=1)  # of the weights in the ensemble
    n_views = int(owner.max()) + 1 if by_view else 0
    mask = np.zeros((F, L), dtype=bool)
    for score in (gain * allowed, strength * allowed):
        best = np.argpartition(-score, SEARCHED, axis=1)[:, :SEARCHED]
        np.put_along_axis(mask, best, True, axis=1)
        for m in range(n_views):
            of_view = np.where(owner == m, score, -1.0)
            best = np.argpartition(-of_view, SEARCHED // n_views, axis=1)[:, : SEARCHED // n_views]
            best_mask = np.zeros((F, L), dtype=bool)
            np.put_along_axis(best_mask, best, True, axis=1)
            mask |= best_mask & np.asarray(owner == m)
    mask |= columns.always
    mask &= allowed > 0
    for f in range(F):  # whole groups
        mask[f] |= np.isin(groups[f], groups[f][mask[f]]) & (allowed[f] > 0)
    return marked_columns(mask, least=1)


def _pivots(
    columns: _Columns, size: int, most: IntArray, order_by: CostOrder | None
) -> list[tuple[list[int], IntArray, Array]]:
    """Return for every fold the chosen columns, where groups end, and the rows of R, (C, K, L).

    R is the Cholesky factor of Sigma with the columns as pivots; `left` is what of a column's
    variance, and `agree` what of u, is left after those that are in. `most` (M,) limits the
    features of each view.
    """
    X, H, a = columns.X, columns.H, columns.noise
    groups, always, owner = columns.groups, columns.always, columns.owner
    F, _, L = X.shape
    C = H.shape[1]
    agree, left = columns.agree.copy(), columns.left.copy()
    group_size = np.stack([np.bincount(numbers)[numbers] for numbers in groups])  # (F, L)
    longest = np.clip(np.minimum(L, columns.count.astype(int) - 2), 0, None)
    wanted = np.minimum(size, longest)
    length = int(np.minimum(wanted + group_size.max(axis=1) - 1, longest).max())
    diagonal = left.copy()
    tiny = np.finfo(float).tiny
    rows = np.zeros((F, C, length, L))
    orders: list[list[int]] = [[] for _ in range(F)]
    ends: list[list[int]] = [[] for _ in range(F)]
    waiting = np.zeros((F, L), dtype=bool)  # others of a group that is begun
    usable: Mask = np.asarray((diagonal > 0).all(axis=1))  # not in, nor said by those that are
    going = np.ones(F, dtype=bool)  # folds whose path goes on
    share = (1.0 - a)[:, None, None]
    folds, outputs = np.arange(F), np.arange(C)[None, :]
    room = np.tile(np.append(most, 0), (F, 1))  # (F, M + 1), for more features; last: padding
    for k in range(length + 1):
        usable &= np.asarray((left > COLLINEAR * diagonal).all(axis=1))
        waiting &= usable
        in_group = np.asarray(waiting.any(axis=1))
        if k:
            for f in np.flatnonzero(going & ~in_group).tolist():
                ends[f].append(k)
        going &= in_group | (wanted > k)
        # Columns that may enter now: the rest of a group first.
        free = np.where(in_group[:, None], waiting, usable & (group_size <= (longest - k)[:, None]))
        free &= (np.take_along_axis(room, owner, axis=1) > 0) | waiting | always
        free_agree = np.where(free[:, None], agree, 0.0)  # left of the others may be 0
        gain = np.where(free, (free_agree**2 / np.maximum(left, tiny)).sum(axis=1), -1.0)
        # Those of every submodel come first, even if they add nothing.
        early: Mask = np.asarray(free & always & ~in_group[:, None])
        begins = early.any(axis=1, keepdims=True)
        gain = np.where(begins, np.where(early, gain + tiny, -1.0), gain)
        score = gain
        if order_by is not None:
            choose = ~in_group[:, None] & ~begins
            score = np.where(choose, order_by.score(gain, free_agree), gain)
        best = score.argmax(axis=1)
        going &= in_group | (gain[folds, best] > 0.0)
        if not going.any():
            break
        counted = going & ~in_group & ~always[folds, best]
        room[folds[counted], owner[folds, best][counted]] -= 1
        # The rest of its group follows, and the column becomes the next pivot.
        waiting |= (groups == groups[folds, best][:, None]) & going[:, None]
        waiting[folds, best] = False
        # Its row of R: covariances with all columns, less what the rows before account for.
        x = H * np.take_along_axis(X, best[:, None, None], axis=2)[:, None, :, 0]  # (F, C, n)
        column = share * (np.matmul(x, X) - x.sum(axis=-1)[..., None] * columns.centre)
        column[folds[:, None], outputs, best[:, None]] = diagonal[folds, :, best]
        if k:
            before = rows[folds, :, :k, best]  # (F, C, k)
            column -= np.matmul(before[:, :, None, :], rows[:, :, :k])[:, :, 0]
        pivot = left[folds, :, best]
        norm = np.sqrt(np.where(going[:, None], pivot, 1.0))[..., None]
        row = column / norm
        along = agree[folds, :, best][..., None] / norm
        rows[:, :, k] = np.where(going[:, None, None], row, 0.0)
        left = np.where(going[:, None, None], np.maximum(left - row**2, 0.0), left)
        agree = np.where(going[:, None, None], agree - row * along, agree)
        usable[folds[going], best[going]] = False
        if order_by is not None:
            order_by.enter(folds[going], best[going], row)
        for f in np.flatnonzero(going).tolist():
            orders[f].append(int(best[f]))
    return [
        (order, np.array(end, dtype=np.intp), rows[f])
        for f, (order, end) in enumerate(zip(orders, ends, strict=True))
    ]


def _basis(
    columns: _Columns, places: IntArray, paths: Sequence[tuple[list[int], IntArray, Array]]
) -> Basis:
    """Put the chosen columns of all folds side by side; paths that ended early are padded.

    `paths` are those among the `places` (F, K) that were searched, as `_pivots` returns them.
    """
    F, n, _ = columns.X.shape
    C = columns.H.shape[1]
    K = max(len(order) for order, _, _ in paths)
    order = np.zeros((F, K), dtype=np.intp)
    forms = np.zeros((F, C, n, K + 1))
    e = np.zeros((F, C, K))
    R_inverse = np.zeros((F, C, K + 1, K + 1))
    for f, (entered, _, triangle) in enumerate(paths):
        k, a = len(entered), columns.noise[f]
        at = places[f][entered]
        order[f, :k] = at
        e[f, :, :k] = a * columns.left[f][:, at]
        for c in range(C):
            h, centre = columns.H[f, c], columns.centre[f, c, at]
            norm = np.sqrt(h.sum())
            R = np.zeros((k + 1, k + 1))
            R[0, 0] = norm
            R[0, 1:] = centre * norm
            R[1:, 1:] = np.triu(triangle[c, :k][:, entered])
            R_inverse[f, c, : k + 1, : k + 1] = linalg.solve_triangular(R, np.eye(k + 1))
            forms[f, c, :, 0] = h / norm
            centred = columns.X[f][:, at] - centre
            forms[f, c, :, 1 : k + 1] = (1.0 - a) * h[:, None] * centred
    return Basis(order, [ends for _, ends, _ in paths], R_inverse, forms, e)


WORTH = 0.01
"""Part of what the ensemble explains that a feature must gain to enter because it costs nothing
more. Without a limit, the thousands of features of a view that is paid for would all enter before
a second test is ordered."""


@dataclass(frozen=True)
class EntryCosts:
    """What measurements cost."""

    views: Array  # (M,); paid with the first feature of each view
    columns: Array  # (..., L); cost of the feature of each column; the same for all its levels

    def take(self, columns: IntArray) -> EntryCosts:
        """Return the costs of some columns."""
        return EntryCosts(self.views, self.columns[columns])

    def payments(
        self, columns: IntArray, owner: IntArray, features: IntArray
    ) -> tuple[Array, Array]:
        """Return what is paid with each column of a path for its view and its feature, (K,).

        Shapes: columns, owner, features (K,).
        """
        of_views = _first_places(owner) * self.views[owner]
        return of_views, _first_places(features) * self.columns[columns]


def _first_places(values: IntArray) -> Mask:
    """Return where each value occurs for the first time."""
    first = np.zeros(len(values), dtype=bool)
    first[np.unique(values, return_index=True)[1]] = True
    return first


class CostOrder:
    """The order by gain per cost, in a search over several folds.

    `parts` are the weights of the features of each view that cost nothing themselves, `left` what
    is not explained of their variance.
    """

    def __init__(self, columns: _Columns, views: Array) -> None:
        """Take the columns that are searched, which have prices, and the costs of views (M,)."""
        assert columns.price is not None
        self.owner, self.price, a = columns.owner, columns.price, columns.noise
        H, eta, w, left = columns.H, columns.eta, columns.w, columns.left
        in_view = self.owner[:, None, None, :] == np.arange(len(views))[:, None]
        free = (self.price == 0)[:, None]
        self.parts = in_view * (w * free)[:, :, None, :]  # (F, C, M, L)
        rows = np.matmul(self.parts, columns.X.swapaxes(1, 2)[:, None])  # (F, C, M, n)
        rows -= np.matmul(self.parts, columns.centre[..., None])
        share, noise = 1.0 - a[:, None, None], a[:, None, None]
        self.first = share * np.einsum("fcmn,fcn->fcm", rows**2, H)
        self.first += noise * np.einsum("fcmk,fck->fcm", self.parts**2, left)
        self.left = self.first.copy()
        middle = (H * eta).sum(axis=-1) / H.sum(axis=-1)
        # What the ensemble explains, (F,).
        self.total = (1.0 - a) * np.einsum("fcn,fcn->f", H, (eta - middle[..., None]) ** 2)
        self.total += a * np.einsum("fck,fck->f", w**2, left)
        # What is due for each view, (F, M + 1). The last is for padding, which never enters.
        self.due = np.tile(np.append(views, 0.0), (len(self.owner), 1))

    def score(self, gain: Array, agree: Array) -> Array:
        """Return scores (F, L) whose largest is the next column; below 0 for none.

        Shapes: gain (F, L) of each of L columns, agree (F, C, L) what is left to explain.
        """
        due = np.take_along_axis(self.due, self.owner, axis=1)
        price = due + self.price
        # The gain of a view's part as one column, and for each column that would open its view.
        together = np.einsum("fcml,fcl->fcm", self.parts, agree) ** 2
        # Where next to nothing of the part is left, what is in already explains it.
        unexplained = self.left > 1e-9 * self.first
        together = np.divide(together, self.left, out=np.zeros_like(together), where=unexplained)
        of_view = np.append(together.sum(axis=1), np.zeros((len(gain), 1)), axis=1)
        shared = np.where(
            (due > 0) & (self.price == 0), np.take_along_axis(of_view, self.owner, axis=1), 0.0
        )
        per_cost = np.divide(
            np.maximum(gain, shared), price, out=np.full(gain.shape, -1.0), where=price > 0
        )
        useful = gain > 0
        ready = useful & (price == 0) & (gain >= WORTH * self.total[:, None])  # paid already
        costly = useful & (price > 0)
        best = np.where(costly, per_cost, -1.0).max(axis=1, keepdims=True)
        # Features that open one view tie: of these, the one that gains most by itself.
        leading = costly & (per_cost >= best * (1.0 - 1e-12))
        pick = np.where(
            ready.any(axis=1, keepdims=True),
            ready,
            np.where(costly.any(axis=1, keepdims=True), leading, useful),
        )
        return np.where(pick, gain, -1.0)

    def enter(self, folds: IntArray, columns: IntArray, row: Array) -> None:
        """Note that columns (P,) entered in folds (P,): views are paid. Row (F, C, L) is of R."""
        self.due[folds, self.owner[folds, columns]] = 0.0
        along = np.einsum("pcml,pcl->pcm", self.parts[folds], row[folds])
        self.left[folds] = np.maximum(self.left[folds] - along**2, 0.0)
