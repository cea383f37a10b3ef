"""The paper's own posterior: mean-field, fully factorised, with double ARD priors.

In come prepared views and outputs, as for the default model. Out go `PaperClassifier` and
`PaperRegressor`. ``docs/understand/paper.md`` lists every equation of the paper with its code.

- `estimators`: the two estimators; `predictor`: a fitted posterior in the form that estimators,
  cards and model files expect.
- `run`: the fit from several `starts`, with `updates`, the lower `bound`, and `pruning` by it.
- `state`, `weights`: the factors of the posterior.

It may import `core`, `views`, `preparation`, `model`, `inference` and `estimators`, which never
import it. Evaluation, cards and saving may.
"""

from baldur.paper.estimators import PaperClassifier, PaperRegressor

__all__ = ["PaperClassifier", "PaperRegressor"]
