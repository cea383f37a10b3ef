"""Validation of a frozen model on a new cohort.

In: a fitted model or a description of its training rows, and data or predictions of new samples.
Out: how the predictors differ from training (`drift`), and recalibrated versions of the predicted
probabilities with the parameters to apply them (`recalibration`).

It may import `clinical`; the command that uses it is `baldur validate` (`baldur.study`).
"""
