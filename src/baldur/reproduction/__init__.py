"""The paper's two studies, run again on simulated cohorts of the same shape or on a user's files.

What comes in: "biofind" or "adni", a scale (or a folder with the real data) and a folder to write.
What goes out: an ordinary study with its results folder, and one page about it, as HTML and as
Markdown: our table beside the printed one, the paper's figures, and which of its claims hold.

- `printed`: the two tables of the paper as data, and what can be checked in them.
- `protocol`: views, folds, models and grids of the two studies.
- `cohort`: the study file, with simulated data or a user's own.
- `evidence`: the figures of a finished run that claims are decided by; `differences`: between one
  model and several others, with simultaneous intervals.
- `claims`: each claim of the paper, and whether the run reproduces it; `default_claims`: those of
  this package; `verdicts`: the rules that decide them.
- `contents`, `tables` and `figures`: what is on the page, as blocks; `document` writes blocks as
  HTML and Markdown.
- `run`: `reproduce`, which does all of it and continues after an interruption.

May import: every part but the command line.
"""

from baldur.reproduction.run import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
