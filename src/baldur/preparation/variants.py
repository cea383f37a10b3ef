"""Variants: their filter, and alleles of new genotypes matched to those of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import pandas as pd

from baldur.core.state import (
    Boolean,
    ByName,
    Flags,
    Integer,
    Names,
    Number,
    OrNone,
    Sizes,
    Texts,
    need,
    stored,
)
from baldur.exceptions import InputError
from baldur.preparation.column_statistics import column_statistics
from baldur.preparation.steps import ColumnFilter
from baldur.views.container import MultiView
from baldur.views.sources import MISSING_INT8, Source
from baldur.views.validate import some
from baldur.views.view import View


@dataclass(eq=False, repr=False)
class VariantFilter(ColumnFilter):
    """Drop rare, poorly called and monomorphic variants, judged on training rows.

    Parameters
    ----------
    views : str or sequence of str, optional
        Views of allele counts (0, 1, 2). By default those with a chromosome in their
        `feature_info`, as `read_plink` makes them; other views pass unchanged.
    min_maf : float, default=0
        Smallest frequency of the rarer allele among called genotypes.
    max_missing : float, default=1
        Largest share of people without a call.
    drop_monomorphic : bool, default=True
        Drop variants with one genotype only, or without any call.

    Attributes
    ----------
    kept_ : dict of str to bool array
        For each view, which variants remain.
    dropped_ : dict of str to dict of str to int
        For each view, how many variants were dropped and why: ``monomorphic``, ``rare``,
        ``missing``; a variant counts under the first reason that applies.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from baldur import MultiView
    >>> from baldur.preparation import VariantFilter
    >>> G = np.array([[0, 1, 2], [0, 1, -127], [0, 2, -127], [0, 0, 1]], dtype=np.int8)
    >>> info = pd.DataFrame({"chromosome": [1, 1, 2]})
    >>> X = MultiView({"snps": G}, feature_info={"snps": info})
    >>> step = VariantFilter(max_missing=0.1).fit(X)
    >>> step.dropped_
    {'snps': {'monomorphic': 1, 'rare': 0, 'missing': 1}}
    >>> step.transform(X).feature_names["snps"].tolist()
    ['snps_1']
    """

    kind = "variant filter"
    what = "variants"

    views: str | Sequence[str] | None = stored(OrNone(Names(or_text=True)), default=None)
    _: KW_ONLY
    min_maf: float = stored(Number(low=0.0, high=0.5), default=0.0)
    max_missing: float = stored(Number(low=0.0, high=1.0), default=1.0)
    drop_monomorphic: bool = stored(Boolean(), default=True)
    kept_: dict[str, np.ndarray] = stored(ByName(Flags("?")), init=False)
    dropped_: dict[str, dict[str, int]] = stored(ByName(ByName(Integer())), init=False)
    _names: dict[str, np.ndarray] = stored(ByName(Texts("?")), init=False)

    def _check_options(self) -> None:
        if not 0 <= self.min_maf <= 0.5 or not 0 <= self.max_missing <= 1:
            raise InputError(
                "VariantFilter: min_maf must lie between 0 and 0.5 and max_missing between 0 and "
                f"1, but got {self.min_maf!r} and {self.max_missing!r}."
            )

    def _fit(self, X: MultiView) -> None:
        self.dropped_ = {}
        super()._fit(X)
        self._names = {name: X.view(name).names_of(at) for name, at in self.columns_.items()}

    def _is_default(self, view: View) -> bool:
        return view.feature_info is not None and "chromosome" in view.feature_info

    def _judge(self, view: View) -> np.ndarray:
        """Return which variants pass all filters, and count those that each filter drops."""
        statistics = column_statistics(view)
        n_people = int(view.present.sum())
        # The mean of counts 0, 1 and 2 is twice the frequency of the counted allele.
        frequency = np.minimum(statistics.mean / 2, 1 - statistics.mean / 2)
        monomorphic = statistics.constant & self.drop_monomorphic
        rare = (frequency < self.min_maf) & ~monomorphic
        fewest = (1 - self.max_missing) * n_people - 1e-9  # calls, but for rounding
        missing = (statistics.count < fewest) & ~monomorphic & ~rare
        kept = ~(monomorphic | rare | missing)
        reasons = {"monomorphic": monomorphic, "rare": rare, "missing": missing}
        self.dropped_[view.name] = {reason: int(mask.sum()) for reason, mask in reasons.items()}
        if not kept.any():
            raise InputError(
                f"View {view.name!r}: the filters leave none of {view.shape[1]:,} variants "
                f"({self.dropped_[view.name]}, judged on {n_people} people). Loosen min_maf or "
                "max_missing, or leave the view out."
            )
        return kept

    def _transform(self, X: MultiView) -> MultiView:
        filtered = super()._transform(X)
        for name, names in self._names.items():
            if (filtered.view(name).feature_names != names).any():
                raise InputError(
                    f"View {name!r}: expected the variants of fit in the same order, but their "
                    "names differ. Read both sets from files with the same list of variants."
                )
        return filtered

    def check_state(self, sizes: Sizes) -> None:
        """Refuse stored parts that are not of the same views and variants."""
        for part in ("dropped_", "_names"):
            same = list(getattr(self, part)) == list(self.kept_)
            need(same, "expected one entry for each view", part)
        for name, mask in self.kept_.items():
            fits = len(self._names[name]) == mask.sum()
            need(fits, f"expected {mask.sum()} names", "_names", name)


ALLELE_COLUMNS = ("allele_1", "allele_2")
"""Of ``feature_info``: the allele that is counted, and the other one."""


_UNNAMED_ALLELES = ("0", ".", "", "NAN")


_PAIRS = str.maketrans("ACGTacgt", "TGCAtgca")


class FlippedSource(Source):
    """Genotypes of which some columns count the other allele: 2 - x, missing cells as they are."""

    def __init__(self, base: Source, flip: np.ndarray) -> None:
        self.base = base
        self.flip = flip
        self.shape = base.shape
        self.dtype = base.dtype

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the allele counts of `rows` (None: all) and `cols`, with some columns flipped.

        Somebody who has x copies of one of two alleles has 2 - x of the other.
        """
        cells = np.array(self.base.read(rows, cols))
        flipped = np.flatnonzero(self.flip[cols])
        counts = cells[:, flipped]
        # NaN stays NaN by itself; the code of a missing int8 cell has to be left out.
        known = counts != MISSING_INT8 if cells.dtype == np.int8 else np.full(counts.shape, True)
        cells[:, flipped] = np.where(known, 2 - counts, counts)
        return cells


def alleles_of(view: View) -> np.ndarray | None:
    """Return counted and other allele of every variant, (2, D); None for other views."""
    info = view.feature_info
    if info is None or not set(ALLELE_COLUMNS) <= set(info.columns):
        return None
    # As objects: one long insertion would make an array of text as wide as itself everywhere.
    return np.stack([_upper(info[c]) for c in ALLELE_COLUMNS])


def _upper(column: pd.Series) -> np.ndarray:
    """Return alleles in capital letters; "0" in a category is one that nobody has."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        names = np.array([str(v).upper() for v in column.cat.categories] + ["0"], dtype=object)
        return names[column.cat.codes.to_numpy()]
    return np.array([str(v).upper() for v in column], dtype=object)


def match_alleles(
    mv: MultiView,
    fit_alleles: Mapping[str, np.ndarray],
    needed: Mapping[str, np.ndarray],
) -> MultiView:
    """Return rows whose genotypes count the alleles that were counted in fit.

    Only variants that are `needed` are compared. Shapes by view: fit_alleles (2, n_features), the
    counted allele first; needed (n_features,).
    """
    flipped = []
    for name, old in fit_alleles.items():
        view = mv.view(name)
        new = alleles_of(view)
        if new is None or (old is new) or (old == new).all():
            continue
        flip, unclear, other = _compare_alleles(old, new, needed[name])
        if unclear.any() or other.any():
            raise _alleles_error(view, old, new, unclear, other)
        if flip.any():
            flipped.append(replace(view, source=FlippedSource(view.source, flip)))
    return mv.replace_views(flipped)


def _compare_alleles(
    old: np.ndarray, new: np.ndarray, needed: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return masks of variants that count the other allele, undecided ones, and other variants.

    Shapes: old and new (2, n_variants), the counted allele first; needed (n_variants,).
    """
    flip, unclear, other = (np.zeros(old.shape[1], dtype=bool) for _ in range(3))
    for d in np.flatnonzero((old != new).any(axis=0) & needed):
        (old1, old2), (new1, new2) = old[:, d], new[:, d]
        if _fits(new1, old1) and _fits(new2, old2):
            continue
        if _other_strand(old1) == old2:
            unclear[d] = True  # A/T and C/G read the same on both strands
        elif _fits(new1, old2) and _fits(new2, old1):
            flip[d] = True
        else:
            new1, new2 = _other_strand(new1), _other_strand(new2)
            if not (_fits(new1, old1) and _fits(new2, old2)):
                flip[d] = _fits(new1, old2) and _fits(new2, old1)
                other[d] = not flip[d]
    return flip, unclear, other


def _fits(first: str, second: str) -> bool:
    """Return whether two alleles may be the same; an allele that nobody has is unnamed."""
    return first == second or first in _UNNAMED_ALLELES or second in _UNNAMED_ALLELES


def _other_strand(allele: str) -> str:
    """Return the allele as it reads on the other strand."""
    return allele.translate(_PAIRS)[::-1]


def _alleles_error(
    view: View, old: np.ndarray, new: np.ndarray, unclear: np.ndarray, other: np.ndarray
) -> InputError:
    """Return the error about variants whose alleles cannot be matched to those of fit."""
    at = np.flatnonzero(unclear | other)
    d = int(at[0])
    why = (
        "it cannot be decided whether the alleles or the strand are swapped"
        if unclear[d]
        else "these are not the alleles of fit on either strand"
    )
    return InputError(
        f"View {view.name!r}: {len(at):,} variants cannot be matched to those of fit, "
        f"{some(view.names_of(at).tolist())}; the first was {'/'.join(old[:, d])} and is now "
        f"{'/'.join(new[:, d])}: {why}. Write the new files with the alleles of the training files "
        "(plink2 --ref-allele or --flip), or leave these variants out."
    )
