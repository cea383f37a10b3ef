"""The paper's own posterior: mean-field, fully factorised, with double ARD priors.

In come prepared views and outputs, as for the default model. Out go `PaperClassifier` and
`PaperRegressor`. ``docs/understand/paper.md`` lists every equation of the paper with its code.

- `meanfield`: updates, bound, pruning and starts of the posterior, primal and dual.
- `priors`: the hyperparameters of the generative model; `ard`: updates of its ARD precisions.
- `predictor`: a fitted posterior in the form that estimators, cards and model files expect.
- `estimators`: the two estimators.

It may import the core (`views`, `preparation`, `model`, `inference`, `estimators`), which never
imports it. Evaluation, cards and saving may.
"""
