"""The scikit-learn estimators of the default model, and what all estimators of the package share.

In come views of samples (a `MultiView`, a DataFrame or an array) with labels or outcomes. An
estimator checks its parameters, turns targets into outputs, has its `Preparation` and a posterior
fitted, and stores the predictor. Out go fitted attributes in the units of the input, predictions
with their uncertainty, tables that explain them, and model files, cards and reports.

- `classifier` and `regressor`: the two estimators, with their targets; `base`: what they share.
- `default_fit`: what each argument must be, the default fit, its tables with the names of features,
  and its submodels.
- `summary`: the features that were selected; `contributions`: what each prediction is made of.

It may import `core`, `views`, `preparation`, `model` and `inference`. None of these imports it. The
paper's own estimators in `baldur.paper` build on it.
"""
