"""Printable models: a card in words and numbers, and scorers that do not need this package.

In: a fitted estimator. Out: a `Card`, its files, or the bytes of an ONNX graph.

- `about`: what is known about a model; `numbers`: what the scorers compute with; `gaussian`: the
  joint posterior of the printed weights.
- `markdown`, `r_code` and `onnx_model`: these facts and numbers in their formats.
- `card`: puts the files together.
- ``score.py``, ``score.R`` and ``score.js``: the scorers, which are copied into every model folder.

May import: everything below `baldur.saving`, but nothing of `baldur.saving` itself.
"""

from baldur.saving.cards.card import Card, make_card, scorer
from baldur.saving.cards.numbers import printable

__all__ = ["Card", "make_card", "printable", "scorer"]
