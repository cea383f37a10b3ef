"""FitResult: what a default fit returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baldur.inference.credible_sets import CredibleSet
from baldur.inference.per_view import StoredPath
from baldur.inference.predictor import Predictor
from baldur.inference.selection import Gap
from baldur.inference.submodels import Submodel, column_masks
from baldur.types import Array, Mask


@dataclass
class FitResult:
    """Result of a fit: the selected submodel, the ensemble and the evidence of signal."""

    chosen: Submodel  # the one that was selected
    submodels: list[Submodel]  # from the base rate to the largest one that is stored
    n_features: int  # features of the selected views, a category counted once
    inclusion: list[Array]  # (D_m,); inclusion probability of each feature
    share: Array  # (M,); learned share of included features
    stacking: dict[str, float]  # weight of each member's linear predictor
    signal: Gap  # what the ensemble gains over the base rate per held-out row
    path: list[dict[str, Any]]  # one per submodel
    stored_path: StoredPath  # for submodels with a number of features per view
    cost_path: list[dict[str, Any]]  # one per cost that is paid; empty without costs
    factor_path: list[dict[str, Any]]
    credible_sets: list[CredibleSet]  # one per selected feature; empty where all are used
    history: list[dict[str, Any]]  # the record of the fit on all rows
    converged: bool
    solver: str  # "feature" or "sample"

    @property
    def predictor(self) -> Predictor:
        """The predictor of the selected submodel."""
        return self.chosen.predictor

    @property
    def selected(self) -> list[Mask]:
        """The selected columns of each view, (D_m,) bool arrays."""
        return column_masks(self.chosen)
