"""
Which features decide?
======================

A fit ends with a selection: the few features that predict as well as all of them, each with a
weight, an interval and the probability that it has an effect at all.
"""

# %%
# Two views of 250 simulated people. Of 20 clinical features 3 have an effect, of 300 genes 4.

from baldur import BaldurClassifier
from baldur.datasets import make_multiview
from baldur.plots import ForestDisplay

sim = make_multiview(
    250,
    {"clinical": 20, "genes": 300},
    informative={"clinical": 3, "genes": 4},
    random_state=0,
)
model = BaldurClassifier().fit(sim.data, sim.target)
print(model.summary())

# %%
# The forest plot has weights per standard deviation, so that features can be compared.

forest = ForestDisplay.from_estimator(model).plot()

# %%
# Features that carry nearly the same information cannot be told apart by the data. The credible set
# of a selected feature lists those that could be in its place.

print(model.credible_sets_.head(10).to_string())
