"""Figures of a comparison of models by nested cross-validation.

What comes in: a `NestedResult` or the path of a results folder. What goes out: a Display object.

``tables.py``                           reads or computes the tables of a comparison
``comparison.py``                       metrics of the models
``fold_weights.py``, ``fold_heatmap.py``  selected features in each fold
``fold_table.py``                       the table behind these two
``learning_curve.py``                   scores against the number of training samples
``missing_views.py``                    patterns of present and missing views

May import ``baldur.plots.drawing``.
"""
