"""The scikit-learn estimators of the default model, and what all estimators of the package share.

In come views of samples (a `MultiView`, a DataFrame or an array) with labels or outcomes. An
estimator checks its parameters, turns targets into outputs, has its `Preparation` and a posterior
fitted, and stores the predictor. Out go fitted attributes in the units of the input, predictions
with their uncertainty, tables that explain them, and model files, cards and reports.

- `classifier` and `regressor`: the two estimators; `base`: what they share; `parameters`: the table
  of constraints; `targets`: labels and outcomes to outputs, and moments back to predictions.
- `default_fit`: the default posterior, and the attributes that describe its selection.
- `explain` and `summary`: tables of contributions and of the features that were selected;
  `notebook`: the same as HTML.
- `progress`: lines that a fit prints; `save_mixins`: the methods that save and export.

It may import `hooks`, `views`, `preparation`, `model` and `inference`. None of these imports it.
The paper's own estimators in `baldur.paper` build on it, and the baselines share `save_mixins`.
"""
