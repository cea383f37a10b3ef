"""Regress covariates out of a view: least squares with intercept, learned on training rows.

With the design C = [1, covariates] of the training samples that have the view and X its
standardised cells, B = C^+ X (q x D). Every row, old or new, becomes x - c B; for training rows
this is (I - H) X with H = C C^+. Only B is stored, and c B is subtracted tile by tile inside the
products, so a wide view is never copied. Missing cells count as the training mean while B is
learned and are 0 afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.views.blocks import tile_width
from baldur.views.standardised import FARTHEST, Standardised

__all__ = ["ConfoundDesign", "learn_confounds"]

# A column whose residual spread is below this share of its own is explained by the covariates.
_EXPLAINED = 1e-4


@dataclass(frozen=True)
class ConfoundDesign:
    """Turns covariates into the design [1, standardised covariates] with training statistics."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(
        cls, confounds: Any, n_samples: int, weight: np.ndarray | None = None
    ) -> ConfoundDesign:
        """Learn centre and scale of the covariates."""
        cells = _as_matrix(confounds, n_samples)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.average(cells, axis=0, weights=weight)
            scale = np.sqrt(np.average((cells - mean) ** 2, axis=0, weights=weight))
        if not np.isfinite(scale).all():
            raise InputError(
                "confounds: some columns hold numbers too large to be squared in float64. Rescale "
                "them before fitting."
            )
        scale[scale <= 1e-12 * np.maximum(1, np.abs(cells).max(axis=0, initial=0))] = 1.0
        return cls(mean, scale)

    def design(self, confounds: Any, n_samples: int) -> np.ndarray:
        """Return [1, standardised covariates] of shape (n_samples, q)."""
        cells = _as_matrix(confounds, n_samples)
        if cells.shape[1] != len(self.mean):
            raise InputError(
                f"confounds: expected {len(self.mean)} columns, as in fit, but got "
                f"{cells.shape[1]}."
            )
        with np.errstate(over="ignore"):
            scaled = (cells - self.mean) / self.scale
        return np.column_stack([np.ones(n_samples), np.clip(scaled, -FARTHEST, FARTHEST)])


def _as_matrix(confounds: Any, n_samples: int) -> np.ndarray:
    if isinstance(confounds, pd.Series):
        confounds = confounds.to_frame()
    if isinstance(confounds, pd.DataFrame):
        text = [c for c in confounds if not pd.api.types.is_numeric_dtype(confounds[c].dtype)]
        if text:
            raise InputError(
                f"confounds: expected numbers, but {text} are not. Encode them, for example with "
                "pandas.get_dummies(..., drop_first=True)."
            )
    try:
        cells = np.asarray(confounds, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"confounds: expected a numeric matrix, but got {type(confounds).__name__} that "
            f"cannot be read as numbers ({error}). Encode categories as numbers."
        ) from error
    if cells.ndim == 1:
        cells = cells[:, None]
    if cells.ndim != 2 or cells.shape[0] != n_samples:
        raise InputError(
            f"confounds: expected one row per sample ({n_samples}), but got shape {cells.shape}."
        )
    if not np.isfinite(cells).all():
        raise InputError(
            "confounds: expected finite numbers, but some are missing or infinite. Fill them or "
            "leave these samples out."
        )
    return cells


def learn_confounds(
    cells: Standardised, design: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return B (q x D) and the spread of each column after it is subtracted, in two passes.

    Parameters
    ----------
    cells : Standardised
        Training rows, standardised and without confounds.
    design : ndarray of shape (n_samples, q)
    weight : ndarray of shape (n_samples,), optional
        How much each row counts.

    Returns
    -------
    coef : ndarray of shape (q, n_features)
    spread : ndarray of shape (n_features,)
        Standard deviation of the residuals; 0 where the covariates explain the column.
    """
    n, d = cells.shape
    mass = np.where(cells.absent, 0.0, 1.0 if weight is None else weight)
    root = np.sqrt(mass)
    solve = np.linalg.pinv(root[:, None] * design) * root
    coef, spread = np.empty((design.shape[1], d)), np.empty(d)
    exact = replace(cells, dtype=np.dtype(np.float64))
    width = tile_width(n, 8, cells.source.dtype.itemsize, cells.max_bytes)
    for cols, tile in exact.tiles(width):
        coef[:, cols] = solve @ tile
    left = replace(exact, design=design, confound_coef=coef)
    for cols, tile in left.tiles(width):
        spread[cols] = np.sqrt(mass @ tile**2 / mass.sum())
    spread[spread < _EXPLAINED] = 0
    return coef, spread
