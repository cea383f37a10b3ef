"""
Does MRI add anything?
======================

A view can predict well and still add nothing to the others. To find out, the model is fitted with
and without the view and compared on the same held-out people.
"""

# %%
# In this simulated cohort the clinical view has most of the signal, MRI a little of its own, and
# the genes have none. Models of MRI or genes alone warn that there is no evidence of signal, as
# expected; the warning is left out here.

import warnings

from baldur.datasets import make_multiview
from baldur.evaluation import added_value
from baldur.exceptions import NoSignalWarning
from baldur.plots import AddedValueDisplay

warnings.simplefilter("ignore", NoSignalWarning)
sim = make_multiview(
    220,
    {"clinical": 10, "mri": 40, "genes": 60},
    informative={"clinical": 4, "mri": 2},
    random_state=3,
)
added = added_value(sim.data, sim.target, baseline=["clinical"], outer=3)
print(added.summary())

# %%
# Each set of views with its interval, and what each view adds to the clinical one.

figure = AddedValueDisplay(added.table).plot()

# %%
# Differences on the same people. An interval that contains 0 shows no difference, which is not the
# same as showing that there is none.

columns = ["question", "view", "difference", "low", "high", "detectable", "outcome"]
differences = added.table.query("question in ['added', 'beyond the others'] and metric == 'auc'")
print(differences[columns].round(3).to_string(index=False))
