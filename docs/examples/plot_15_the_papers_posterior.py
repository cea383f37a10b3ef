"""
The paper's own posterior
=========================

`PaperClassifier` has the fully factorised posterior of the paper, with its lower bound and its
pruning of features, views and factors.
"""

# %%
# A small cohort shaped as BioFIND, in which seven sleep items decide.

from baldur.datasets import make_biofind_like
from baldur.paper import PaperClassifier
from baldur.plots import ForestDisplay, HistoryDisplay

cohort = make_biofind_like(scale=0.001, random_state=0)
model = PaperClassifier(space=["primal"] * 4 + ["dual"]).fit(cohort.data, cohort.target)
print(f"{model.n_factors_} factor, lower bound {model.elbo_:.1f}")
print({name: int(mask.sum()) for name, mask in model.selected_features_.items()})

# %%
# The lower bound never falls. Features are dropped while it rises.

history = HistoryDisplay.from_estimator(model).plot()

# %%
# The weights of the features that are left.

forest = ForestDisplay.from_estimator(model).plot()
