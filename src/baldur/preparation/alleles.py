"""Match new genotypes to those of fit: files may count either of the two alleles.

===================================================  ========================================
in fit A/G, now A/G or, on the other strand, T/C     as it is
in fit A/G, now G/A or C/T                           the other allele is counted: 2 - x
in fit A/T (or C/G), now T/A                         refused: swapped alleles and the other
                                                     strand look the same
in fit A/G, now A/C                                  refused: another variant
===================================================  ========================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.views.container import MultiView
from baldur.views.sources import MISSING_INT8, Source
from baldur.views.validate import some
from baldur.views.view import View

COLUMNS = ("allele_1", "allele_2")
"""Of ``feature_info``: the allele that is counted, and the other one."""

_UNKNOWN = ("0", ".", "", "NAN")
_PAIRS = str.maketrans("ACGTacgt", "TGCAtgca")


class FlippedSource(Source):
    """Genotypes of which some columns count the other allele: 2 - x, missing cells as they are."""

    def __init__(self, base: Source, flip: np.ndarray) -> None:
        self.base = base
        self.flip = flip
        self.shape = base.shape
        self.dtype = base.dtype

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`."""
        cells = np.array(self.base.read(rows, cols))
        at = np.flatnonzero(self.flip[cols])
        part = cells[:, at]
        known = part != MISSING_INT8 if cells.dtype == np.int8 else np.ones(part.shape, dtype=bool)
        cells[:, at] = np.where(known, 2 - part, part)
        return cells


def alleles_of(view: View) -> np.ndarray | None:
    """Return counted and other allele of every variant, (2, D); None for other views."""
    info = view.feature_info
    if info is None or not set(COLUMNS) <= set(info.columns):
        return None
    # As objects: one long insertion would make an array of text as wide as itself everywhere.
    return np.stack([_upper(info[c]) for c in COLUMNS])


def _upper(column: pd.Series) -> np.ndarray:
    if isinstance(column.dtype, pd.CategoricalDtype):
        names = np.array([str(v).upper() for v in column.cat.categories] + ["0"], dtype=object)
        return names[column.cat.codes.to_numpy()]
    return np.array([str(v).upper() for v in column], dtype=object)


def match_alleles(
    mv: MultiView,
    known: Mapping[str, np.ndarray],
    needed: Mapping[str, np.ndarray],
) -> MultiView:
    """Return rows whose genotypes count the alleles that were counted in fit.

    Shapes: known (2, n_features).
    """
    made: dict[str, Any] = {}
    for name, old in known.items():
        view = mv.view(name)
        new = alleles_of(view)
        if new is None or (old is new) or (old == new).all():
            continue
        flip, unclear, other = _compare(old, new, needed[name])
        if unclear.any() or other.any():
            raise _refused(view, old, new, unclear, other)
        if flip.any():
            table = mv.table(name)
            made[name] = replace(table, source=FlippedSource(table.source, flip))
    return mv.replace_tables(made) if made else mv


def _compare(
    old: np.ndarray, new: np.ndarray, needed: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return variants that count the other allele, undecided ones, and other variants."""
    flip, unclear, other = (np.zeros(old.shape[1], dtype=bool) for _ in range(3))
    for d in np.flatnonzero((old != new).any(axis=0) & needed):
        (k1, k2), (n1, n2) = old[:, d], new[:, d]
        if _fits(n1, k1) and _fits(n2, k2):
            continue
        if _strand(k1) == k2:
            unclear[d] = True  # A/T and C/G read the same on both strands
        elif _fits(n1, k2) and _fits(n2, k1):
            flip[d] = True
        elif not (_fits(_strand(n1), k1) and _fits(_strand(n2), k2)):
            flip[d] = _fits(_strand(n1), k2) and _fits(_strand(n2), k1)
            other[d] = not flip[d]
    return flip, unclear, other


def _fits(one: str, two: str) -> bool:
    """Return whether two alleles may be the same; an allele that nobody has is unnamed."""
    return one == two or one in _UNKNOWN or two in _UNKNOWN


def _strand(allele: str) -> str:
    """The allele as it reads on the other strand."""
    return allele.translate(_PAIRS)[::-1]


def _refused(
    view: View, old: np.ndarray, new: np.ndarray, unclear: np.ndarray, other: np.ndarray
) -> InputError:
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
