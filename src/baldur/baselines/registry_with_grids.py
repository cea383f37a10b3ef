"""The registry: name of a competitor to its estimators and search grids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge

from baldur.baselines.awdr import AWDRClassifier
from baldur.baselines.base import BaselineClassifier, BaselineRegressor
from baldur.baselines.cpm_nets import CPMNetsClassifier
from baldur.baselines.lasso_mksvm import LassoMkSVMClassifier
from baldur.baselines.linear import ElasticNetLogisticClassifier, L1SVMClassifier
from baldur.baselines.mccd import MCCDClassifier
from baldur.baselines.mv_pls import MVPLSClassifier, MVPLSRegressor
from baldur.baselines.pb_mvboost import PBMVBoostClassifier
from baldur.baselines.plain import SideBySideClassifier, SideBySideRegressor
from baldur.baselines.sgp_ard import SGPARDClassifier
from baldur.baselines.stacking import StackingClassifier
from baldur.exceptions import InputError

DECADES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


@dataclass(frozen=True)
class Entry:
    """One competitor: its estimators, its search grids, and whether the paper has it.

    ``classifier`` and ``regressor`` are unfitted; None where the method has no such task. ``grid``
    is sized for a first run (at most twelve settings). ``full_grid`` is the search for a
    publication; where it is empty the two are the same. ``search`` has settings that are used
    only in the inner search, where a cheaper fit ranks the grid equally well. What the paper prints
    of a competitor is in `baldur.reproduction`.

    Examples
    --------
    >>> from baldur.baselines import BASELINES
    >>> entry = BASELINES["MV-PLS"]
    >>> entry.make()
    MVPLSClassifier()
    >>> entry.make(classification=False)
    MVPLSRegressor()
    >>> entry.settings_to_try()["n_components"], entry.in_paper
    ([1, 2, 3, 5, 8, 15], True)
    """

    classifier: BaselineClassifier | None = None
    regressor: BaselineRegressor | None = None
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    full_grid: Mapping[str, list[Any]] = field(default_factory=dict)
    in_paper: bool = True
    extra: str | None = None
    search: Mapping[str, Any] = field(default_factory=dict)

    def make(self, random_state: Any = None, *, classification: bool = True) -> Any:
        """Return a new, unfitted estimator, with the seed where it uses random numbers."""
        template = self.classifier if classification else self.regressor
        if template is None:
            other = self.regressor if classification else self.classifier
            name = type(getattr(other, "estimator", other)).__name__
            task = "classes" if classification else "a numeric outcome"
            raise InputError(f"{name} has no counterpart for {task}.")
        estimator = clone(template)
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=random_state)
        return estimator

    def settings_to_try(self, full: bool = False) -> Mapping[str, list[Any]]:
        """Return the grid of a first run, or the full grid."""
        return self.full_grid or self.grid if full else self.grid


# With max_features="sqrt" a small informative view is almost never drawn beside a wide one. More
# than 300 trees rarely change the result.
_FOREST: dict[str, Any] = {"n_estimators": 300, "max_features": 0.1}
# Studies have few rows: small trees, a ridge penalty on their leaves, a draw of columns at each
# split, and no rows held back to stop early.
_BOOSTED: dict[str, Any] = {
    "max_leaf_nodes": 15, "min_samples_leaf": 10, "l2_regularization": 1.0, "max_features": 0.3,
    "max_bins": "auto", "early_stopping": False,
}  # fmt: skip
# With block scaling each view has total variance 1, so that C = 10 is a weak penalty.
_LOGISTIC: dict[str, Any] = {"C": 10.0, "max_iter": 2000, "tol": 1e-6}
_SCORES: dict[str, Any] = {"layout": "scores", "block_scale": True}
# The values of the columns are not used, and the simplest scaling reads them once.
_NO_COLUMNS: dict[str, Any] = {"layout": "none", "scale": "standard"}
_COMPONENTS: list[Any] = [10, 25, 50, 100, "n-1", 0.95]
_MCCD_FULL: dict[str, list[Any]] = {"g1": list(DECADES), "g2": [0.0, *DECADES]}
_AWDR_FULL: dict[str, list[Any]] = {"g": list(DECADES), "n_neighbors": list(range(1, 18, 2))}

BASELINES: Mapping[str, Entry] = MappingProxyType(
    {
        "LSVM-l1": Entry(
            L1SVMClassifier(),
            grid={
                "c_ratio": [1.5, 3.0, 10.0, 30.0, 100.0, 300.0],
                "class_weight": [None, "balanced"],
            },
            full_grid={
                "c_ratio": [1.5, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0],
                "class_weight": [None, "balanced"],
            },
        ),
        "RF": Entry(
            SideBySideClassifier(RandomForestClassifier(**_FOREST), layout="float32"),
            SideBySideRegressor(RandomForestRegressor(**_FOREST), layout="float32"),
            grid={
                "max_features": ["sqrt", 0.1],
                "max_depth": [None, 5],
                "min_samples_leaf": [1, 3, 5],
            },
            full_grid={
                "n_estimators": [100, 300, 500],
                "max_features": ["sqrt", "log2", 0.01, 0.1],
                "max_depth": [None, 5, 10],
                "min_samples_leaf": [1, 3, 5],
            },
            # Fewer trees rank the settings equally well; the final forest has 300.
            search={"n_estimators": 100},
        ),
        "SGP+ARD": Entry(
            SGPARDClassifier(),
            grid={"n_inducing": [20, 50, 100], "learning_rate": [0.01, 0.05, 0.1]},
            extra="torch",
        ),
        "PCA-MCCD": Entry(
            MCCDClassifier(reduction="pca"),
            grid={"g1": [1e-2, 1.0, 1e2], "g2": [0.0, 1.0], "n_components": [10, 0.95]},
            full_grid={**_MCCD_FULL, "n_components": _COMPONENTS},
        ),
        "K-MCCD": Entry(
            MCCDClassifier(reduction="linear_kernel"),
            grid={"g1": [1e-2, 1e-1, 1.0, 1e2], "g2": [0.0, 1e-1, 1e1]},
            full_grid=_MCCD_FULL,
        ),
        "PCA-AWDR": Entry(
            AWDRClassifier(reduction="pca"),
            grid={"g": [1e-2, 1.0, 1e2], "n_neighbors": [3, 9], "n_components": [10, 0.95]},
            full_grid={**_AWDR_FULL, "n_components": _COMPONENTS},
        ),
        "K-AWDR": Entry(
            AWDRClassifier(reduction="linear_kernel"),
            grid={"g": [1e-2, 1e-1, 1.0, 1e2], "n_neighbors": [3, 9, 15]},
            full_grid=_AWDR_FULL,
        ),
        "CPM-Nets": Entry(
            CPMNetsClassifier(),
            grid={"n_latent": [32, 128], "lam": [0.1, 1.0, 10.0]},
            full_grid={"n_latent": [16, 32, 64, 128, 256], "lam": [0.1, 1.0, 10.0]},
            extra="torch",
        ),
        "PB-MVBoost": Entry(
            PBMVBoostClassifier(),
            grid={"n_rounds": [10, 50, 100], "max_depth": [1, 2, 3]},
            full_grid={"n_rounds": [10, 50, 100, 200], "max_depth": [1, 2, 3]},
        ),
        "MV-PLS": Entry(
            MVPLSClassifier(),
            MVPLSRegressor(),
            grid={"n_components": [1, 2, 3, 5, 8, 15], "block_scale": [True, False]},
            full_grid={
                "n_components": [1, 2, 3, 5, 8, 10, 15, 20],
                "block_scale": [True, False],
            },
        ),
        "Lasso-MkSVM": Entry(
            LassoMkSVMClassifier(),
            grid={"fraction": [0.1, 0.2, 0.4, 0.8], "C": [0.1, 1.0, 10.0]},
            full_grid={
                "fraction": [0.05, 0.1, 0.2, 0.4, 0.6, 0.8],
                "C": [0.1, 1.0, 10.0, 100.0],
                "p": [1.0, 1.5, 2.0],
            },
        ),
        "Ridge logistic": Entry(
            SideBySideClassifier(
                LogisticRegression(**_LOGISTIC), layout="scores", block_scale=True
            ),
            grid={"C": list(DECADES[:-1]), "block_scale": [True, False]},
            full_grid={"C": list(DECADES), "block_scale": [True, False]},
            in_paper=False,
        ),
        "Elastic-net logistic": Entry(
            ElasticNetLogisticClassifier(),
            grid={"fraction": [0.05, 0.1, 0.2, 0.4], "l1_ratio": [0.1, 0.5, 1.0]},
            full_grid={
                "fraction": [0.02, 0.05, 0.1, 0.2, 0.4, 0.7],
                "l1_ratio": [0.1, 0.5, 0.9, 1.0],
            },
            in_paper=False,
        ),
        "Ridge": Entry(
            regressor=SideBySideRegressor(Ridge(alpha=1.0), **_SCORES),
            grid={"alpha": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0], "block_scale": [True, False]},
            full_grid={"alpha": [*DECADES, 1e4, 1e5], "block_scale": [True, False]},
            in_paper=False,
        ),
        "Elastic net": Entry(
            # On standardised columns and outcome, the largest useful alpha times l1_ratio is the
            # largest correlation of a column with the outcome.
            regressor=SideBySideRegressor(
                ElasticNet(alpha=0.1, l1_ratio=0.5, max_iter=10000), unit_target=True
            ),
            grid={"alpha": [0.03, 0.1, 0.3, 1.0], "l1_ratio": [0.1, 0.5, 1.0]},
            full_grid={
                "alpha": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0],
                "l1_ratio": [0.1, 0.5, 0.9, 1.0],
            },
            in_paper=False,
        ),
        "Boosted trees": Entry(
            SideBySideClassifier(HistGradientBoostingClassifier(**_BOOSTED)),
            SideBySideRegressor(HistGradientBoostingRegressor(**_BOOSTED)),
            grid={"learning_rate": [0.03, 0.1, 0.3], "max_iter": [50, 100, 200]},
            in_paper=False,
        ),
        "Stacking": Entry(
            StackingClassifier(),
            grid={"penalty": [0.0, 0.003, 0.01, 0.03, 0.1]},
            in_paper=False,
        ),
        "Dummy": Entry(
            SideBySideClassifier(DummyClassifier(strategy="prior"), **_NO_COLUMNS),
            SideBySideRegressor(DummyRegressor(), **_NO_COLUMNS),
            in_paper=False,
        ),
    }
)
"""Name of a competitor, as in the tables, to its entry."""
