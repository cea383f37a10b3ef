"""
A continuous outcome
====================

`BaldurRegressor` predicts numbers, with a standard deviation and an interval for each of them.
"""

# %%
# Progression of diabetes one year after the baseline, of 442 people. A DataFrame is divided into
# views by the names of its columns.

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score

from baldur import BaldurRegressor
from baldur.plots import ForestDisplay

X, y = load_diabetes(as_frame=True, return_X_y=True)
views = {"clinical": ["age", "sex", "bmi", "bp"], "serum": "s*"}
model = BaldurRegressor(views=views).fit(X[:300], y[:300])
forest = ForestDisplay.from_estimator(model).plot()

# %%
# The interval is for the number itself: it contains the noise of the outcome as well as the
# uncertainty of the weights. About 95 % of new outcomes should lie inside.

predicted = model.predict(X[300:])
lower, upper = model.predict_interval(X[300:])
inside = np.mean((lower <= y[300:]) & (y[300:] <= upper))
print("R2", round(r2_score(y[300:], predicted), 2), "share inside", round(inside, 2))
