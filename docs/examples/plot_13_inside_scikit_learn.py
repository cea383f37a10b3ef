"""
Inside scikit-learn
===================

The estimators follow scikit-learn: they can be cloned, searched, cross-validated and put at the
end of a pipeline. A DataFrame is divided into views by its column names.
"""

# %%
# A table with two kinds of columns.

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from baldur import BaldurClassifier

rng = np.random.default_rng(0)
X = pd.DataFrame(
    rng.standard_normal((150, 30)),
    columns=[f"clinical_{i}" for i in range(5)] + [f"gene_{i}" for i in range(25)],
)
y = np.where(X["clinical_0"] - X["gene_3"] + rng.standard_normal(150) > 0, "case", "control")
views = {"clinical": "clinical_*", "genes": "gene_*"}

# %%
# Cross-validation of a quick, dense fit.

dense = BaldurClassifier(views=views, members=("per_view", "pooled"))
print(cross_val_score(dense, X, y, cv=3, scoring="roc_auc").round(2))

# %%
# A search over the margin of the selection.

search = GridSearchCV(
    BaldurClassifier(views=views), {"margin": [0.05, 0.2]}, cv=3, scoring="roc_auc"
)
print(search.fit(X, y).best_params_)

# %%
# Behind another step. The imputer is not needed: missing cells are filled with training means.

pipeline = make_pipeline(SimpleImputer().set_output(transform="pandas"), dense)
print(pipeline.fit(X, y).predict(X[:3]))
