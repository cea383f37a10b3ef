"""Preparation of views, learned on training rows only."""

from baldur.prepare.preparation import Preparation
from baldur.prepare.scale import SCALES

__all__ = ["SCALES", "Preparation"]
