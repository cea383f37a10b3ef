"""
Is it better than other models?
===============================

Nested cross-validation compares models on the same folds. Whether one is better is decided by the
interval of the difference, not by two numbers side by side.
"""

# %%
# BALDUR, two baselines, and a scikit-learn estimator under a name of our own.

from sklearn.naive_bayes import GaussianNB

from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.plots import ComparisonDisplay, FoldWeightsDisplay

sim = make_multiview(
    150, {"clinical": 10, "genes": 150}, informative={"clinical": 2, "genes": 3}, random_state=5
)
models = {"BALDUR": None, "LSVM-l1": None, "Naive Bayes": GaussianNB(), "Dummy": None}
result = nested_cv(models, sim.data, sim.target, outer=4, inner=3)
print(result.table()[["model", "auc_pooled", "auc_low", "auc_high"]].round(3).to_string())

# %%
# Metrics with 95 % intervals.

comparison = ComparisonDisplay.from_result(result, metrics=["auc", "log_loss", "brier"]).plot()

# %%
# Paired differences on the pooled held-out predictions.

differences = result.evaluation().differences
print(differences[differences["metric"] == "auc"].round(3).to_string())

# %%
# Features selected in each fold. A feature that every fold selects is marked.

folds = FoldWeightsDisplay.from_result(result, model="BALDUR").plot()
