"""
How few measurements are enough?
================================

The submodel path shows what would be lost with fewer features, on held-out people. A number of
features can also be asked for.
"""

# %%
# 127 measurements of 333 people. The path goes from nothing to everything. The files
# people.csv, csf.csv and proteins.csv are in
# :download:`tutorial.zip </_generated/run/tutorial.zip>`, which the tutorial of the documentation
# offers. To run this script elsewhere, unpack it there and set ``folder = Path()``.

from pathlib import Path

import pandas as pd

from baldur import BaldurClassifier, MultiView
from baldur.plots import PathDisplay

folder = Path("../data/ad_csf")
y = pd.read_csv(folder / "people.csv", index_col="id")["diagnosis"].to_numpy()
X = MultiView(
    {
        "csf": pd.read_csv(folder / "csf.csv", index_col="id"),
        "proteins": pd.read_csv(folder / "proteins.csv", index_col="id"),
    }
)
model = BaldurClassifier().fit(X, y)
path = PathDisplay.from_estimator(model).plot()

# %%
# Each step of the path with its held-out loss and AUC. Intervals of the AUC come from the inner
# folds, and do not contain that one step was chosen by them. The step of 124 features is the view
# of proteins without the other view.

columns = ["n_features", "loss", "auc", "auc_lower", "auc_upper", "selected"]
steps = model.sparsity_path_.drop_duplicates("n_features").sort_values("n_features")
print(steps[columns].round(3).to_string(index=False))

# %%
# A model of exactly five features, without fitting again. `BaldurClassifier(n_features=5)` gives
# the same.

five = model.submodel(5)
print(five.summary())
