"""172 training rows and 42,131 features: time and memory of each row, in a new process."""

import json
import subprocess
import sys

import pytest

from baldur.baselines import BASELINES

SCRIPT = """
import json, resource, sys, time
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from baldur.baselines import BASELINES
from baldur.datasets import make_biofind_like
cohort = make_biofind_like(scale=0.05, random_state=0)
train, test = train_test_split(np.arange(215), test_size=43, stratify=cohort.target, random_state=0)
start = time.perf_counter()
model = BASELINES[sys.argv[1]].make(random_state=0).fit(cohort.data[train], cohort.target[train])
seconds = time.perf_counter() - start
score = model.decision_function(cohort.data[test])
print(json.dumps({
    "rows": len(train),
    "features": int(cohort.data.shape[1]),
    "seconds": seconds,
    "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    "auc": roc_auc_score(cohort.target[test], score),
    "kept": int(sum(m.sum() for m in model.selected_features_.values())),
}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units there")
def test_fits_within_three_minutes_and_four_gigabytes(row):
    if BASELINES[row].extra:
        pytest.importorskip("gpytorch")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, row], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{row}: {found['seconds']:.1f} s, {found['gigabytes']:.2f} GB, AUC {found['auc']:.2f}, "
        f"{found['kept']} features"
    )
    assert (found["rows"], found["features"]) == (172, 42_131)
    assert found["seconds"] < 180
    assert found["gigabytes"] < 4
