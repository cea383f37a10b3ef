"""Selected features: what one fitted model selects, and how far the outer folds agree.

In: fitted estimators (`fitted_model`), or the fits of all outer folds (`features`).
Out: tables of selected features with weights, of the share of every view, and Nogueira's stability.

`feature_locations` and `correlations` describe the selected features by the data: where they lie in
a genome or an image, and how they are correlated.

It may import views, estimators and baselines; no other part of the evaluation.
"""
