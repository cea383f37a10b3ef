"""
Are the probabilities right?
============================

Of the people with a predicted probability of 0.3, three in ten should have the outcome. Calibration
checks this on held-out people, and a decision curve shows whether acting on predictions would help.
"""

# %%
# Held-out predictions of two models.

from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.plots import CalibrationDisplay, DecisionDisplay, RocDisplay

sim = make_multiview(
    260,
    {"clinical": 8, "genes": 80},
    informative={"clinical": 2, "genes": 3},
    weights=[0.7, 0.3],
    logit_sd=2.0,
    random_state=2,
)
result = nested_cv(["BALDUR", "RF"], sim.data, sim.target, outer=3, inner=3)
calibration = CalibrationDisplay.from_result(result).plot()

# %%
# Intercept (0 is right) and slope (1 is right) with intervals.

measures = result.evaluation().calibration
print(measures[measures["measure"].isin(["intercept", "slope"])].round(2).to_string())

# %%
# Net benefit over threshold probabilities, and the ROC curves.

decision = DecisionDisplay.from_result(result).plot()
roc = RocDisplay.from_result(result).plot()
