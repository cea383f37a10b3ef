"""HarmonisedSource: a matrix whose cells are aligned between sites as they are read."""

from __future__ import annotations

import numpy as np

from baldur.preparation.steps.site_effects import Pooled
from baldur.views import View
from baldur.views.matrices.source import Source


class HarmonisedSource(Source):
    """Cells of a view, harmonised as they are read.

    `site` is the row of `shift` and `factor` for each sample; their last row changes nothing.
    """

    def __init__(
        self, view: View, pooled: Pooled, covariates: np.ndarray, site: np.ndarray,
        shift: np.ndarray, factor: np.ndarray,
    ) -> None:  # fmt: skip
        self.base, self.base_rows = view.source, view.rows
        self.pooled, self.covariates, self.site = pooled, covariates, site
        self.shift, self.factor = shift, factor
        self.shape = view.shape
        narrow = view.dtype in (np.float16, np.float32)
        self.dtype = np.dtype(np.float32 if narrow else np.float64)

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`."""
        inside = np.arange(self.shape[0]) if rows is None else np.asarray(rows)
        stored = inside if self.base_rows is None else self.base_rows[inside]
        x = self.base.read(None if rows is None and self.base_rows is None else stored, cols)
        x = x.astype(np.float64)
        site = self.site[inside]
        # Samples of unseen sites and columns that are not harmonised stay as they are.
        at = np.flatnonzero(site < len(self.shift) - 1)
        level = self.pooled.level[cols] + self.covariates[inside[at]] @ self.pooled.coef[:, cols]
        shift, factor = self.shift[site[at]][:, cols], self.factor[site[at]][:, cols]
        same = ((shift == 0) & (factor == 1)) | (x[at] == self.pooled.held[cols])
        x[at] = np.where(same, x[at], level + (x[at] - level - shift) * factor)
        return x.astype(self.dtype, copy=False)
