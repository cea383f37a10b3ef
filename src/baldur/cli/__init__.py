"""The command ``baldur``: arguments to the calls of `baldur.study`.

In: the arguments of the command line. Out: files that the called functions write, lines on the
screen, and an exit code that is not 0 where something failed.

- `app`: the command itself, with ``init``, ``models`` and ``simulate``, and how it ends.
- `commands`: ``evaluate``, ``report``, ``demo`` and ``reproduce``, which concern a whole study, and
  ``fit``, ``predict`` and ``validate``, which concern a saved model.
- `screen`: progress with the time left, notes, and the table of results.

It computes nothing itself. It may import every other part, and no part imports it. The numerics
are imported inside the commands, so that ``baldur --help`` is quick.
"""

from baldur.cli.entry_point import app, main

__all__ = ["app", "main"]
