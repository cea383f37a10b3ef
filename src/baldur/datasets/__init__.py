"""Simulated data with known truth, and a loader for folders of prepared data sets.

=====================  ==========================================================================
`make_multiview`       Gaussian views of any width; signal, correlation and gaps as asked
`make_biofind_like`    five views, one of 841,685 genotypes; signal in seven sleep items
`make_adni_like`       two smooth image views sharing one signal, three tables that summarise them
`load_shared`          a folder with ``view_*.npz``, ``labels.csv`` and ``meta.json``
=====================  ==========================================================================

Each simulator returns the data, the labels and a `Truth`.
"""

from baldur.datasets.adni import make_adni_like
from baldur.datasets.biofind import make_biofind_like
from baldur.datasets.multiview import make_multiview
from baldur.datasets.shared import load_shared
from baldur.datasets.truth import Truth

__all__ = [
    "Truth",
    "load_shared",
    "make_adni_like",
    "make_biofind_like",
    "make_multiview",
]
