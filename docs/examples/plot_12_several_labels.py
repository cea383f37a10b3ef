"""
Several labels at once
======================

A person can have several diagnoses. A matrix with one column per label is a multi-label target;
its columns may share latent factors.
"""

# %%
# Four labels that two hidden factors drive.

import numpy as np

from baldur import BaldurClassifier, MultiView
from baldur.plots import LatentDisplay

rng = np.random.default_rng(4)
n = 260
views = {"blood": rng.standard_normal((n, 15)), "mri": rng.standard_normal((n, 60))}
first = views["blood"][:, :3] @ [1.5, -1.2, 1.0]
second = views["mri"][:, :3] @ [1.3, 1.2, -1.0]
logits = np.column_stack([first, first - second, second, first + second])
labels = (rng.uniform(size=logits.shape) < 1 / (1 + np.exp(-logits))).astype(int)

X = MultiView(views)
model = BaldurClassifier().fit(X, labels)
print("factors", model.n_factors_)
print(model.factor_path_.round(4).to_string())

# %%
# How the labels depend on the factors, and which views the factors come from.

print(np.round(model.loadings_, 2))
print(model.factor_relevance_.round(2).to_string())

# %%
# People in the latent space.

latent = LatentDisplay.from_estimator(model, X).plot()
