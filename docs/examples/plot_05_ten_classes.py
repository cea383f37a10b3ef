"""
Ten classes
===========

With several classes every class has its own linear predictor. Where classes share latent factors,
the number of factors is chosen by held-out prediction.
"""

# %%
# Handwritten digits of scikit-learn: the upper and the lower half of the image are two views.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, log_loss

from baldur import BaldurClassifier, MultiView
from baldur.plots import LatentDisplay

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))[:500]
pixels, label = digits.data[order], digits.target[order]
X = MultiView({"upper": pixels[:, :32], "lower": pixels[:, 32:]})
model = BaldurClassifier(members=("pooled",)).fit(X[:200], label[:200])

# %%
# Probabilities of all classes sum to one.

proba = model.predict_proba(X[200:])
print("accuracy", round(accuracy_score(label[200:], model.predict(X[200:])), 3))
print("log-loss", round(log_loss(label[200:], proba), 3))
print("factors", model.n_factors_)

# %%
# The people, or here the digits, in the latent space.

latent = LatentDisplay.from_estimator(model, X[200:], label[200:]).plot()
