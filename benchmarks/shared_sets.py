"""The real data sets of the benchmarks, with the transforms their README asks for.

They are looked for in ``$BALDUR_SHARED_DATA`` or ``../shared/data``. Counts of genera become log1p
of 10,000 x relative abundance, metabolites log1p, handwriting times a signed log1p, gene expression
log2 with a floor at 1. These work cell by cell or row by row, so nothing is learned from them;
everything learned is learned on training rows.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from baldur import MultiView
from baldur.datasets.prepared_folder import load_shared

FOLDED = (
    "ad_csf",
    "darwin_handwriting",
    "autism_gut_kang",
    "pd_speech",
    "golub_leukemia",
    "prostate_singh",
    "ibd_families_jacobs",
    "nutrimouse",
    "hapmap3_plink",
)
"""Sets measured by cross-validation."""


class Cohort(NamedTuple):
    """A data set: views, labels 0, 1, ..., families or None, fixed split or None."""

    data: MultiView
    y: np.ndarray
    groups: np.ndarray | None
    split: np.ndarray | None


def folder():
    """Folder of the data sets."""
    root = Path(__file__).resolve().parents[1]
    return Path(os.environ.get("BALDUR_SHARED_DATA", root.parent / "shared" / "data"))


def transform(name, view, X):
    """Apply the fixed transform of one view."""
    if name in ("golub_leukemia", "prostate_singh"):
        return np.log2(np.maximum(X, 1.0))
    if view == "microbiome_genera":
        return np.log1p(1e4 * X / X.sum(axis=1, keepdims=True))
    if view == "metabolome":
        return np.log1p(X)
    if name == "darwin_handwriting":
        return np.sign(X) * np.log1p(np.abs(X))
    return X


def load(name):
    """Return a set by its name."""
    found = load_shared(folder() / name, labels_only=name == "hapmap3_plink")
    y = np.unique(found.target, return_inverse=True)[1]
    if found.data is None:
        from baldur.io import read_plink

        return Cohort(read_plink(folder() / name / "hapmap3.bed"), y, None, None)
    views = {
        v: transform(name, v, found.data.view(v).read().astype(float))
        for v in found.data.view_names
    }
    return Cohort(MultiView(views), y, found.groups, found.split)


def five_folds(y, groups, shuffle):
    """Return the folds that every model shares, families kept together."""
    if groups is None:
        splitter = StratifiedKFold(5, shuffle=True, random_state=shuffle)
    else:
        splitter = StratifiedGroupKFold(5, shuffle=True, random_state=shuffle)
    return list(splitter.split(np.zeros(len(y)), y, groups))
