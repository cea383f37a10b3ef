"""Mean-field inference: the paper's fully factorised posterior, with its printed errors put right.

Pure functions on arrays; ``run_meanfield`` fits, ``predict_meanfield`` predicts.

When it collapses. Every row pays for its own Z and Y, so unless the evidence of the weights
exceeds that price the bound prefers V = 0 and the base rate is predicted. Measured with
N = 200, views of 20 and 2,000 features, a = 1e-6 and K = 1, test AUC over 5 seeds:

- signal in 5 of the 20 narrow features: 0.912 from the flat start alone, 0.884 by the best bound
  of the four default starts, which then keeps 2.2 false features on average;
- signal in 10 of the 2,000 wide features: the flat start collapses every time (0.500), the
  screened starts reach 0.821;
- signal in both, 3 and 5: flat 0.670 (wide features lost, one seed in five empty), screened
  starts 0.817;
- no signal: everything is dropped, 0.500.

Dense signal (a = inf) collapses unless rows are many: with 26 features it did at N = 150 and not
at N = 400 (one seed each). The best bound is not always the best prediction. Pure ARD keeps noise
features in regression: with 206 features and N = 150 its 95 % intervals covered 82 to 87 %,
against 94 to 95 % with a = inf, 26 features and N = 600 (3 seeds each).

The paper's dual (``spaces="dual"`` for the wide view, 2 seeds) reached 0.900, 0.500 and 0.589 in
the first three cases: the wide view's weights go to zero whatever the data say. Its features are
never dropped, for its functional gains from every one of them.
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
