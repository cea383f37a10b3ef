"""Mean-field inference: the paper's fully factorised posterior, with its printed errors put right.

Pure functions on arrays; ``run_meanfield`` fits, ``predict_meanfield`` predicts.
"""

from baldur.model.meanfield.result import MeanFieldResult, latent_moments, predict_meanfield
from baldur.model.meanfield.run import run_meanfield

__all__ = ["MeanFieldResult", "latent_moments", "predict_meanfield", "run_meanfield"]
