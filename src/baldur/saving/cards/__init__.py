"""Printable models: a card in words and numbers, and scorers that need no software of ours."""

from baldur.saving.cards.card import CARD_FILES, Card, make_card, scorer
from baldur.saving.cards.numbers import printable

__all__ = ["CARD_FILES", "Card", "make_card", "printable", "scorer"]
