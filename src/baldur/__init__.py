"""Bayesian classification and regression from several data views."""

from baldur.classifier import BaldurClassifier
from baldur.regressor import BaldurRegressor
from baldur.views.container import MultiView

__version__ = "0.1.0.dev0"

__all__ = ["BaldurClassifier", "BaldurRegressor", "MultiView", "__version__"]
