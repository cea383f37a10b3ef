"""The protocol of the paper's two studies: views, folds, models, and the settings to search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from baldur.baselines import BASELINES
from baldur.exceptions import InputError
from baldur.reproduction.printed import METRICS

PAPER = "BALDUR (mean-field)"
"""Our row of the paper's BALDUR."""
DEFAULT = "BALDUR"
"""Our row of the default estimator, which the paper does not have."""
START_FACTORS = 4
"""Factors at the start of the fit that counts the live ones, as in the authors' script. The row of
the paper's BALDUR starts with one per outcome, which could not show that one is enough."""


QUICK: Mapping[str, Mapping[str, Any]] = MappingProxyType({
    "CPM-Nets": {"n_epochs": 20},
    "PB-MVBoost": {"n_rounds": 10},
    "RF": {"n_estimators": 100},
})  # fmt: skip
"""Settings of a quick run where the default takes minutes; PB-MVBoost has the rounds of `GRIDS`."""
QUICK_FOLDS = (5, 3)
"""Outer and inner folds of a quick run; inner ones only calibrate the scores of some models."""


@dataclass(frozen=True)
class Protocol:
    """One study of the paper."""

    name: str
    cohort: str
    disease: str
    positive: str  # positive, negative: Classes in the outcome column of a user's files
    negative: str
    counts: tuple[int, int]  # (int, int)
    views: Mapping[str, int]  # Names and widths of the views in the paper
    folds: int  # Outer folds, and inner folds of each
    scale: float
    quick_scale: float

    def sections(self, quick: bool) -> dict[str, Any]:
        """Return the sections of the study file that follow from the protocol."""
        outer, inner = QUICK_FOLDS if quick else (self.folds, self.folds)
        return {
            "folds": {"scheme": "stratified", "outer": outer, "inner": inner},
            "report": {"metrics": [*METRICS, "log_loss", "brier"]},
            "models": [_entry(name, quick) for name in self.rows],
        }

    @property
    def rows(self) -> list[str]:
        """Models of the study: the paper's eleven baselines, its BALDUR, and our default."""
        return [*(name for name, entry in BASELINES.items() if entry.in_paper), PAPER, DEFAULT]


GRIDS: Mapping[str, Mapping[str, list[Any]]] = MappingProxyType({
    "LSVM-l1": {"c_ratio": [1.5, 3.0, 10.0, 30.0]},
    "RF": {"max_features": ["sqrt"], "min_samples_leaf": [1, 5]},
    "PCA-MCCD": {"g1": [1e-2, 1.0, 1e2], "g2": [0.0, 1.0], "n_components": [0.95]},
    "K-MCCD": {"g1": [1e-2, 1.0], "g2": [0.0, 1.0]},
    "PCA-AWDR": {"g": [1e-2, 1.0, 1e2], "n_neighbors": [9], "n_components": [10, 0.95]},
    "K-AWDR": {"g": [1e-2, 1.0, 1e2], "n_neighbors": [3, 9]},
    "PB-MVBoost": {"n_rounds": [10], "max_depth": [1, 2]},
    "MV-PLS": {"n_components": [1, 2, 3, 5, 8], "block_scale": [True]},
    "Lasso-MkSVM": {"fraction": [0.1, 0.2, 0.4], "C": [1.0, 10.0]},
})  # fmt: skip
"""Settings that are searched on inner folds.

The paper says that settings were "validated within standard ranges" and lists none. These are at
most six of each model's own grid, so that 10 times 10 folds of 11 baselines end within hours.
PB-MVBoost has the rounds and the two depths of its authors' example and default."""

FIXED: Mapping[str, Mapping[str, Any]] = MappingProxyType({
    "LSVM-l1": {"class_weight": "none"},
    "RF": {"n_estimators": 300},
    "SGP+ARD": {"n_inducing": 50, "learning_rate": 0.05},
    "CPM-Nets": {"n_latent": 32, "lam": 1.0},
})  # fmt: skip
"""Settings that are not searched: one fit of SGP+ARD or CPM-Nets takes as long as ten or more of
the others."""


def _entry(name: str, quick: bool) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name}
    if name in BASELINES:
        grid = {} if quick else GRIDS.get(name, {})
        made["grid"] = {key: list(values) for key, values in grid.items()}
        settings = {**FIXED.get(name, {}), **(QUICK.get(name, {}) if quick else {})}
        made |= {"settings": settings} if settings else {}
    return made


PROTOCOLS: Mapping[str, Protocol] = MappingProxyType({
    "biofind": Protocol(
        name="biofind", cohort="BioFIND", disease="Parkinson's disease against healthy controls",
        positive="PD", negative="control", counts=(119, 96),
        views=MappingProxyType({
            "neuropsychological": 18, "sleep": 19, "socio-economic": 2, "demographical": 8,
            "genetic": 841_685,
        }),
        folds=5, scale=1.0, quick_scale=0.005,
    ),
    "adni": Protocol(
        name="adni", cohort="ADNI", disease="late against early mild cognitive impairment",
        positive="LMCI", negative="EMCI", counts=(661, 402),
        views=MappingProxyType({
            "t1_intensity": 37_643, "grey_matter": 37_643, "grey_matter_volume": 136,
            "white_matter_volume": 136, "csf_volume": 136,
        }),
        folds=10, scale=0.2, quick_scale=0.01,
    ),
})  # fmt: skip
"""Name of a study to its protocol."""


def protocol_of(name: str) -> Protocol:
    """Return the protocol of a study."""
    if name not in PROTOCOLS:
        raise InputError(f"The paper's studies are {' and '.join(PROTOCOLS)}, but got {name!r}.")
    return PROTOCOLS[name]
