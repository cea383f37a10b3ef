"""The real data sets of the benchmarks, with the transforms their README asks for.

They are looked for in ``$BALDUR_SHARED_DATA`` or ``../shared/data``. Counts of genera become log1p
of 10,000 x relative abundance, metabolites log1p, handwriting times a signed log1p, gene expression
log2 with a floor at 1. These work cell by cell or row by row, so nothing is learned from them;
everything learned is learned on training rows.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from baldur import MultiView

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


def read_labels(cohort):
    """Return the table of labels of a cohort's folder, all columns as text."""
    return pd.read_csv(cohort / "labels.csv", dtype=str, keep_default_na=False)


def read_views(cohort):
    """Return cells and feature names of every view in a cohort's folder."""
    views = {}
    for view, entry in json.loads((cohort / "meta.json").read_text())["views"].items():
        with np.load(cohort / entry["file"]) as archive:
            views[view] = archive["X"], archive["features"].astype(str).tolist()
    return views


def load(name):
    """Return a set by its name."""
    labels = read_labels(folder() / name)
    y = np.unique(labels["label"], return_inverse=True)[1]
    if name == "hapmap3_plink":
        from baldur.io import read_plink

        return Cohort(read_plink(folder() / name / "hapmap3.bed"), y, None, None)
    views = {
        view: transform(name, view, X.astype(float))
        for view, (X, _) in read_views(folder() / name).items()
    }
    groups, split = (labels[c].to_numpy(str) if c in labels else None for c in ("group", "split"))
    return Cohort(MultiView(views), y, groups, split)


def five_folds(y, groups, shuffle):
    """Return the folds that every model shares, families kept together."""
    if groups is None:
        splitter = StratifiedKFold(5, shuffle=True, random_state=shuffle)
    else:
        splitter = StratifiedGroupKFold(5, shuffle=True, random_state=shuffle)
    return list(splitter.split(np.zeros(len(y)), y, groups))


def read_fold(name, shuffle, fold):
    """Return a set, and the training and test rows of one of its folds."""
    cohort = load(name)
    return cohort, *five_folds(cohort.y, cohort.groups, shuffle)[fold]


def training(cohort, rows):
    """Return what `fit` is given of these rows: the views, the labels, and groups or None."""
    groups = None if cohort.groups is None else cohort.groups[rows]
    return cohort.data[rows], cohort.y[rows], groups
