"""The equations: likelihoods, predictions and the Gaussian posterior of the weights.

In come arrays: columns or Gram matrices of views, outcomes, sites and prior precisions, most of
them for several fits at once. Out go arrays and small dataclasses: expectations, posterior moments
and terms of the lower bound. Nothing iterates until convergence here; that is the task of
`baldur.inference` and `baldur.paper`.

- `likelihood`: logistic likelihood of labels and Gaussian likelihood of continuous outcomes.
- `predictions`: probabilities, intervals and densities, given a Gaussian linear predictor.
- `posterior`: Gaussian posteriors of the weights, by a solver over samples and one over features.

It may import `core.types`, and no other part of the package.
"""
