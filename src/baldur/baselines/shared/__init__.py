"""Base classes, dense copies, reductions and working sets that several baselines use.

What comes in: a `MultiView` or a matrix, and labels. What goes out: standardised blocks of columns
for a method, and fitted attributes that refer to the columns of the input.

``base.py``            base classes: opening data, preparation, labels, predictions
``checked_answers.py`` checks of predictions from saved baselines
``dense.py``           dense copies of views, after a check of the memory
``reduction.py``       small feature matrices computed from the Gram matrix of a view
``working_set.py``     l1 problems over many columns, solved over few of them

May import the views, the preparation and the base of the estimators, and no baseline.
"""
