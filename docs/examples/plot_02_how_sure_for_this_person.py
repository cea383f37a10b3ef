"""
How sure is it for this person?
===============================

A probability of 0.7 can rest on much evidence or on little. The interval of a prediction says how
well the probability is known, and the contributions say what it is made of.
"""

# %%
# Cerebrospinal fluid of 333 people, read from three CSV files whose rows are in the same order:
# people.csv, csf.csv and proteins.csv of
# :download:`tutorial.zip </_generated/run/tutorial.zip>`, which the tutorial of the documentation
# offers. To run this script elsewhere, unpack it there and set ``folder = Path()``.

from pathlib import Path

import pandas as pd

from baldur import BaldurClassifier, MultiView
from baldur.plots import ContributionsDisplay

folder = Path("../data/ad_csf")
people = pd.read_csv(folder / "people.csv", index_col="id")
X = MultiView(
    {
        "csf": pd.read_csv(folder / "csf.csv", index_col="id"),
        "proteins": pd.read_csv(folder / "proteins.csv", index_col="id"),
    }
)
y = people["diagnosis"].to_numpy()
new, known = X[:6], X[6:]
model = BaldurClassifier(random_state=0).fit(known, y[6:])

# %%
# The probability of impairment of six people who were not used for training, with its 95 %
# interval. The interval contains the uncertainty of the weights. It does not say which outcome
# will occur: that is what the probability itself is for.

impaired = list(model.classes_).index("Impaired")
lower, upper = model.predict_interval(new)
print(
    pd.DataFrame(
        {
            "probability": model.predict_proba(new)[:, impaired],
            "lower": lower[:, impaired],
            "upper": upper[:, impaired],
            "diagnosis": y[:6],
        },
        index=new.sample_ids,
    ).round(2)
)

# %%
# What each feature adds for the first of them, compared with the average person.

why = ContributionsDisplay.from_estimator(model, new, sample=new.sample_ids[0]).plot()
