"""Clear signal is found and none is invented: five simulated data sets for every row."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from baldur.baselines import BASELINES
from baldur.datasets import make_multiview

pytest.importorskip("torch")


def mean_auc(row, informative):
    """Mean test AUC of the row's defaults; 300 training and 500 test rows, five seeds."""
    found = []
    for seed in range(5):
        data = make_multiview(
            800,
            {"few": 10, "more": 30},
            informative=informative,
            logit_sd=10.0,
            random_state=seed,
        )
        model = BASELINES[row].make(random_state=0)
        model.fit(data.data[:300], data.target[:300])
        score = model.decision_function(data.data[300:])
        found.append(roc_auc_score(data.target[300:], score))
    print(f"{row}: AUC {np.mean(found):.3f}, from {min(found):.3f} to {max(found):.3f}")
    return float(np.mean(found))


@pytest.mark.slow
def test_clear_signal_is_found(row):
    assert mean_auc(row, {"few": 3, "more": 1}) >= (0.5 if row == "Dummy" else 0.85)


@pytest.mark.slow
def test_no_signal_is_invented(row):
    assert abs(mean_auc(row, 0) - 0.5) <= 0.06
