"""Validation of a frozen model on a new cohort.

In: a fitted model or a description of its training rows, and data or predictions of new samples.
Out: data frames, and recalibrated probabilities with the parameters to apply them elsewhere.

- `drift`: how the predictors of the cohort differ from those of training, by feature and by view.
- `recalibration`: versions of the predictions with another intercept, or another intercept and
  slope, each judged by cross-validation on the new cohort.

It may import `clinical` and the views. The command that uses it is ``baldur validate``
(`baldur.study.validate`).
"""
