"""The study that ``baldur demo`` runs: small, BioFIND-like, BALDUR and four quick baselines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from baldur.study.examples.simulate import simulate_study

DEMO_MODELS: list[dict[str, Any]] = [
    {"name": "LSVM-l1", "grid": {"c_ratio": [3.0, 10.0]}},
    {"name": "RF", "settings": {"n_estimators": 100}, "grid": {"max_features": ["sqrt", 0.1]}},
    {"name": "MV-PLS", "grid": {"n_components": [1, 2]}},
    {"name": "Lasso-MkSVM", "settings": {"p": 1.0}, "grid": {"fraction": [0.2, 0.4]}},
    {"name": "BALDUR"},
]


def write_demo(folder: str | Path, seed: int = 0) -> Path:
    """Write the demonstration study."""
    return simulate_study(
        "biofind",
        folder,
        scale=0.002,
        seed=seed,
        models=DEMO_MODELS,
        folds={"outer": 5, "inner": 3},
    )
