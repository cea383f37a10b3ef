"""The paper's two studies, run again on simulated cohorts of the same shape or on a user's files.

What comes in: "biofind" or "adni", a scale (or a folder with the real data) and a folder to write.
What goes out: an ordinary study with its results folder, and one page about it, as HTML and as
Markdown: our table beside the printed one, the paper's figures, and which of its claims hold.

- `printed`: the two tables of the paper as data, and what can be checked in them.
- `protocol`: views, folds, models and grids of the two studies, and their study files.
- `evidence`: the figures of a finished run that claims are decided by.
- `claims`: the claims of the paper and of this package, and whether the run reproduces them.
- `page`: the page, with the report's tables and figures; its texts are a template.
- `run`: `reproduce`, which does all of it and continues after an interruption.

May import: every part but the command line.
"""

from baldur.reproduction.run import reproduce

__all__ = ["reproduce"]
