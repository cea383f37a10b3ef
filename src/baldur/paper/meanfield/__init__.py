"""Mean-field inference: the paper's fully factorised posterior, with its printed errors corrected.

In: standardised views, outputs and hyperparameters. Out: a `MeanFieldResult`. `run_meanfield` fits
and `predict_meanfield` predicts; everything is a pure function of arrays. May import `priors` and
`ard` of `baldur.paper`, `baldur.model`, `baldur.state`, `baldur.types` and `baldur.exceptions`.

======================  =======================================================================
`inputs`, `products`    checks, and what is asked of a view: products over blocks of columns
`weights`               q(W) and q(A) from one eigendecomposition per gamma step
`primal`, `dual`        the eigendecomposition for weights, and for relevance vectors
`literal_dual`          the dual as the paper prints it, for comparison
`latent`, `labels`      q(Z), q(tau), q(V), q(b), q(psi); q(Y) and xi
`dropped`               the posterior of dropped features, which the bound still counts
`state`, `updates`      all posteriors, and one function per update
`bound`                 the lower bound, one function per term
`prune`                 which features, views and factors are dropped
`starts`, `run`         where an optimisation begins, and its loop
`result`                the fitted posterior and its predictions
======================  =======================================================================

Every sample pays for its own Z and Y, so unless the evidence of the weights exceeds that price the
bound prefers V = 0 and the base rate is predicted. ``docs/understand/paper.md`` has the figures.
"""

from baldur.paper.meanfield.result import (
    MeanFieldResult,
    latent_moments,
    noise_variance,
    predict_meanfield,
    predictor_moments,
)
from baldur.paper.meanfield.run import run_meanfield

__all__ = [
    "MeanFieldResult",
    "latent_moments",
    "noise_variance",
    "predict_meanfield",
    "predictor_moments",
    "run_meanfield",
]
