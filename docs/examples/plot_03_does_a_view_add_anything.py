"""
Does MRI add anything?
======================

A view can predict well and still add nothing to the others. To find out, compare the model with
and without the view, on the same held-out people.
"""

# %%
# In this simulated cohort the clinical view has most of the signal, MRI a little of its own, and
# the genes have none.

from baldur.datasets import make_multiview
from baldur.evaluation import make_model, nested_cv
from baldur.plots import ViewShareDisplay

sim = make_multiview(
    220,
    {"clinical": 10, "mri": 40, "genes": 60},
    informative={"clinical": 4, "mri": 2},
    random_state=3,
)
models = [
    make_model("BALDUR"),
    make_model("BALDUR", views=["clinical", "genes"]),
    make_model("BALDUR", views=["clinical", "mri"]),
]
result = nested_cv(models, sim.data, sim.target, outer=3)
print(result.table()[["model", "auc_pooled", "auc_low", "auc_high"]].round(3).to_string())

# %%
# Differences between models on the same people, with 95 % intervals. An interval that contains 0
# shows no difference, which is not the same as showing that there is none.

differences = result.evaluation().differences
print(differences[differences["metric"].isin(["auc", "log_loss"])].round(3).to_string())

# %%
# The share of a view in the prediction answers another question: where the prediction comes from,
# not what would be lost without the view.

share = ViewShareDisplay.from_result(result, model="BALDUR").plot()
