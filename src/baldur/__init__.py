"""Bayesian classification and regression from several data views."""

from baldur.views.container import MultiView

__version__ = "0.1.0.dev0"

__all__ = ["MultiView", "__version__"]
