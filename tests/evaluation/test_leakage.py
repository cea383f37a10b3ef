"""Noise is not predicted: with permuted labels every model with selection has an AUC of 0.5."""

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from baldur.evaluation import nested_cv
from baldur.views import MultiView

# Quick grids: every model with selection still has to choose among settings on inner folds.
SELECTING = {
    "LSVM-l1": {"c_ratio": [3.0, 10.0]},
    "RF": {"n_estimators": [30], "max_features": ["sqrt", "log2"]},
    "Lasso-MkSVM": {"fraction": [0.4, 0.7]},
    "Elastic-net logistic": {"fraction": [0.4, 0.7], "l1_ratio": [0.9]},
    "Boosted trees": {"max_iter": [10, 20]},
    "Stacking": {"penalty": [0.0, 0.01]},
    "BALDUR": {},
}


def noise(n, d, seed):
    rng = np.random.default_rng(seed)
    wide = rng.integers(0, 3, (n, d - 20)).astype(np.int8)
    mv = MultiView({"narrow": rng.normal(size=(n, 20)), "wide": wide})
    return mv, rng.permutation(np.arange(n) % 2)


def mean_aucs(models, n, d, runs, n_jobs=1):
    found = {name: [] for name in models}
    for seed in range(runs):
        mv, y = noise(n, d, seed)
        result = nested_cv(
            models, mv, y, outer=5, inner=3, random_state=seed, metrics=["auc"], n_jobs=n_jobs
        )
        assert result.failures == {}
        for row in result.table().to_dict("records"):
            found[row["model"]].append(row["auc"])
    return {name: float(np.mean(values)) for name, values in found.items()}


def test_selection_outside_the_folds_would_be_found():
    """The positive control: the classical mistake scores far above chance on the same data."""
    mv, y = noise(100, 2000, 0)
    X = np.hstack([mv.view(v).read() for v in mv.view_names])
    chosen = SelectKBest(f_classif, k=20).fit_transform(X, y)
    p = cross_val_predict(LogisticRegression(), chosen, y, method="predict_proba", cv=5)
    assert roc_auc_score(y, p[:, 1]) > 0.85


def test_noise_of_2000_features_is_not_predicted():
    found = mean_aucs({n: SELECTING[n] for n in ("LSVM-l1", "Elastic-net logistic")}, 120, 2000, 3)
    print("AUC on noise, 2,000 features:", {k: round(v, 3) for k, v in found.items()})
    assert all(0.42 < v < 0.58 for v in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", SELECTING)
def test_noise_of_20000_features_is_not_predicted(name):
    """One run has a standard deviation of about 0.05, so sixteen leave 0.013 for their mean."""
    (value,) = mean_aucs({name: SELECTING[name]}, 200, 20_000, 16, n_jobs=2).values()
    print(f"AUC on noise, 20,000 features, 16 runs: {name} {value:.3f}")
    assert 0.45 <= value <= 0.55
