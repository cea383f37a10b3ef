"""Five baselines that are not in the paper.

What comes in and goes out: see `baldur.baselines`.

``ridge_logistic.py``  logistic regression with a ridge penalty
``elastic_net.py``     logistic regression with l1 and ridge penalties
``boosted_trees.py``   gradient-boosted trees
``stacking.py``        one ridge logistic model per view, combined by non-negative weights
``dummy.py``           class frequencies or the mean, whatever the features

May import ``baldur.baselines.shared``.
"""
