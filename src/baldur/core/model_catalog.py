"""Names of the models that a study can compare, readable without importing the numerics."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

MODELS: Mapping[str, str] = MappingProxyType(
    {
        "BALDUR": "Bayesian multi-view model: probabilities, intervals, selected features",
        "BALDUR (mean-field)": "the model of the paper with its factorised posterior",
        "LSVM-l1": "linear support vector machine with an l1 penalty, views side by side",
        "RF": "random forest, views side by side",
        "SGP+ARD": "sparse Gaussian process with one length scale per feature",
        "PCA-MCCD": "regressions with parts that views share and do not, on principal components",
        "K-MCCD": "the same on linear kernels",
        "PCA-AWDR": "adaptively weighted discriminative regression on principal components",
        "K-AWDR": "the same on linear kernels",
        "CPM-Nets": "networks that reconstruct every view from one latent vector per sample",
        "PB-MVBoost": "boosting with learned weights of views (PAC-Bayes)",
        "MV-PLS": "multiblock partial least squares",
        "Lasso-MkSVM": "lasso, then a support vector machine with one kernel per view",
        "Ridge logistic": "logistic regression with a ridge penalty on all features",
        "Elastic-net logistic": "logistic regression with l1 and ridge penalties",
        "Ridge": "linear regression with a ridge penalty on all features, for numbers alone",
        "Elastic net": "linear regression with l1 and ridge penalties, for numbers alone",
        "Boosted trees": "gradient-boosted trees, views side by side",
        "Stacking": "one model per view, combined by a second model",
        "Dummy": "class frequencies (or mean) of the training samples, without features",
    }
)
"""Name of a model to a one-line description."""

SAVED_MODELS = ("BALDUR", "BALDUR (mean-field)")
"""Models that can be saved in a folder."""

CLASSIFICATION_MODELS = tuple(name for name in MODELS if name not in ("Ridge", "Elastic net"))
"""Models that predict classes."""

REGRESSION_MODELS = (
    "BALDUR", "BALDUR (mean-field)", "RF", "MV-PLS", "Ridge", "Elastic net", "Boosted trees",
    "Dummy",
)  # fmt: skip
"""Models that predict numbers."""

LINEAR_MODELS = (
    "BALDUR", "BALDUR (mean-field)", "LSVM-l1", "MV-PLS", "Ridge logistic", "Elastic-net logistic",
    "Ridge", "Elastic net",
)  # fmt: skip
"""Models whose score is linear in the prepared features."""

TREE_MODELS = ("RF", "Boosted trees")
"""Models of decision trees, which can use thresholds and interactions of features."""
