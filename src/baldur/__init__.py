"""Bayesian classification and regression from several data views."""

__version__ = "0.1.0.dev0"

__all__ = ["__version__"]
