"""
A genome
========

Genotypes stay int8, in memory or on disk, and are read in blocks of columns. A Manhattan plot shows
the variants along the chromosomes.
"""

# %%
# A cohort shaped as BioFIND, with 4,208 of its 841,685 genotypes and four tables. Only sleep items
# have to do with the disease.

from baldur import BaldurClassifier
from baldur.datasets import make_biofind_like
from baldur.plots import ManhattanDisplay, ViewShareDisplay

cohort = make_biofind_like(scale=0.005, random_state=0)
print({name: cohort.data.view(name).shape for name in cohort.data.view_names})
model = BaldurClassifier().fit(cohort.data, cohort.target)
print(model.summary())

# %%
# Inclusion probabilities of the variants.

manhattan = ManhattanDisplay.from_estimator(model).plot()

# %%
# The share of each view in the prediction.

share = ViewShareDisplay.from_estimator(model).plot()
