"""Preparation of views, learned on training rows only."""

from baldur.prepare.preparation import Preparation

__all__ = ["Preparation"]
