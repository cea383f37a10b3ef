"""Selected features: what one fitted model selects, and how far the outer folds agree.

In: fitted estimators (`fitted_model`), or the fits of all outer folds (`features`).
Out: tables of selected features with weights, of the share of every view, and Nogueira's stability.

- `fitted_model`: features, weights in two units, and the variance of every view, of one model.
- `features`: frequency, weights and shares of views over the outer folds.
- `stability`: Nogueira's stability of feature selection, with its interval.
- `feature_locations` and `correlations`: where selected features lie in a genome or an image, and
  how they are correlated.

It may import views, estimators and baselines; no other part of the evaluation.
"""
