"""
What if a view is missing?
==========================

Not everybody gets every measurement. People with a missing view take part in training, and the
prediction for a person without MRI uses the other views and is less certain.
"""

# %%
# A quarter of the people have no MRI, a tenth have no blood sample.

import numpy as np
import pandas as pd

from baldur import BaldurClassifier, MultiView
from baldur.datasets import make_multiview
from baldur.plots import MissingViewsDisplay

sim = make_multiview(
    300,
    {"clinical": 8, "mri": 60, "blood": 30},
    informative={"clinical": 2, "mri": 3, "blood": 2},
    missing_views={"mri": 0.25, "blood": 0.1},
    random_state=1,
)
X, y = sim.data, sim.target
pattern = MissingViewsDisplay.from_data(X, y).plot()

# %%
# Nothing special has to be done to fit.

model = BaldurClassifier().fit(X[:250], y[:250])

# %%
# To predict for somebody without MRI, leave the columns of that view missing (NaN). Here the same
# people are predicted with and without their MRI.

complete = [i for i in range(250, 300) if all(mask[i] for mask in X.present.values())][:5]
seen = X[complete]
views = {name: seen.view(name).read().astype(float) for name in seen.view_names}
without = MultiView(
    {**views, "mri": np.full_like(views["mri"], np.nan)},
    feature_names=X.feature_names,
    sample_ids=seen.sample_ids,
)
table = {}
for name, people in (("with MRI", seen), ("without MRI", without)):
    lower, upper = model.predict_interval(people)
    table[name] = model.predict_proba(people)[:, 1]
    table[f"width {name}"] = (upper - lower)[:, 1]
print(pd.DataFrame(table, index=seen.sample_ids).round(2))

# %%
# Which views each prediction used:

print(model.views_used(without))
