"""
How few measurements are enough?
================================

The submodel path shows what would be lost with fewer features, on held-out people. A number of
features can also be asked for.
"""

# %%
# 132 measurements of 333 people. The path goes from nothing to everything.

import pandas as pd

from baldur import BaldurClassifier, MultiView
from baldur.plots import PathDisplay

y = pd.read_csv("../data/ad_csf/people.csv", index_col="id")["diagnosis"].to_numpy()
X = MultiView(
    {
        "csf": pd.read_csv("../data/ad_csf/csf.csv", index_col="id"),
        "proteins": pd.read_csv("../data/ad_csf/proteins.csv", index_col="id"),
    }
)
model = BaldurClassifier().fit(X, y)
path = PathDisplay.from_estimator(model).plot()

# %%
# Each step of the path with its held-out loss and AUC. Intervals of the AUC come from the inner
# folds, and do not contain that one step was chosen by them.

columns = ["n_features", "loss", "auc", "auc_low", "auc_high", "selected"]
steps = model.sparsity_path_
print(steps[[c for c in columns if c in steps]].head(12).round(3).to_string())

# %%
# A model of exactly five features, without fitting again. `BaldurClassifier(n_features=5)` gives
# the same.

five = model.submodel(5)
print(five.summary())
