"""Are new rows on the scale of the training rows? Asked of the columns that predictions use."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from baldur.exceptions import ShiftWarning
from baldur.views.container import MultiView
from baldur.views.validate import some

__all__ = ["columns_off_scale", "warn_off_scale"]

MOST_COLUMNS = 500
"""Columns of a view that are looked at; a view in other units shows in any of them."""
MOST_ROWS = 500


def columns_off_scale(
    scaling: Any, mv: MultiView, needed: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return for each view the columns whose values are beyond reason.

    A column is off scale if the middle one of its new values lies further outside the training
    range than that range is wide: other units, another transformation, a sentinel for missing. A
    few extreme people do not move the middle.

    Parameters
    ----------
    scaling : Scaling
        Fitted.
    mv : MultiView
        New rows, with the features of fit in their order.
    needed : dict of str to bool array
        Columns that count.

    Returns
    -------
    dict of str to int array
        Views with such columns only.
    """
    found = {}
    for name, mask in needed.items():
        view = mv.view(name)
        at = np.flatnonzero(mask & ~scaling.constant_[name])
        if view.dtype == np.int8 or not len(at):
            continue  # genotypes are 0, 1 and 2 in any cohort
        at = at[np.linspace(0, len(at) - 1, min(len(at), MOST_COLUMNS)).astype(np.intp)]
        rows = np.flatnonzero(view.present)
        if not len(rows):
            continue
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(np.intp)]
        cells = mv[rows].view(name).read(at)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns without a value
            middle = np.nanmedian(cells, axis=0)
        low, high = (
            np.asarray(part[name], dtype=float)[at] for part in (scaling.minimum_, scaling.maximum_)
        )
        width = high - low
        with np.errstate(invalid="ignore"):
            off = (middle < low - width) | (middle > high + width)
        if off.any():
            found[name] = at[off]
    return found


def warn_off_scale(scaling: Any, mv: MultiView, needed: Mapping[str, np.ndarray]) -> None:
    """Warn about views with columns on another scale, by name.

    Parameters
    ----------
    scaling, mv, needed
        As in `columns_off_scale`.
    """
    for name, at in columns_off_scale(scaling, mv, needed).items():
        view, d = mv.view(name), int(at[0])
        low, high = scaling.minimum_[name][d], scaling.maximum_[name][d]
        middle = float(np.nanmedian(view.read(np.array([d]))))
        warnings.warn(
            f"View {name!r}: {some(view.names_of(at).tolist())} lie far outside of what training "
            f"had; the middle value of the first is {middle:.4g}, and training had {low:.4g} to "
            f"{high:.4g}. Check the units, the transformation and the code of missing values.",
            ShiftWarning,
            stacklevel=2,
        )
