"""Printable models: a card in words and numbers, and scorers that need no software of ours."""

from baldur.cards.card import CARD_FILES, Card, make_card, scorer
from baldur.cards.numbers import printable

__all__ = ["CARD_FILES", "Card", "make_card", "printable", "scorer"]
