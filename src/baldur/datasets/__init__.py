"""Simulated data with known truth.

What comes in: sizes and a seed. What goes out: a Bunch with the data as a `MultiView`, the labels
and the truth behind them. May import the views and what is below them.

=====================  ==========================================================================
`make_multiview`       Gaussian views of any width with chosen signal, correlation, missing cells
`make_biofind_like`    five views, one of 841,685 genotypes; signal in seven sleep items
`make_adni_like`       two smooth image views sharing one signal, three tables that summarise them
=====================  ==========================================================================

``simulated_outcomes`` has the steps that the simulators share.
"""

from baldur.datasets.adni import make_adni_like
from baldur.datasets.biofind import make_biofind_like
from baldur.datasets.multiview import make_multiview

__all__ = [
    "make_adni_like",
    "make_biofind_like",
    "make_multiview",
]
