"""Figures of held-out predictions: discrimination, calibration and clinical usefulness.

What comes in: a `NestedResult` or the path of a results folder, or a table of curves as
`baldur.evaluation.clinical` computes it. What goes out: a Display object.

``ranking.py``           what ROC and precision-recall curves share
``roc.py``               sensitivity against the false-positive rate
``precision_recall.py``  precision against sensitivity
``calibration.py``       observed against predicted
``decision.py``          net benefit over threshold probabilities

May import ``baldur.plots.drawing``, the tables of ``baldur.plots.results``, and the curves of
``baldur.evaluation.clinical``.
"""
