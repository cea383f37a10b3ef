"""Data shared by the tests of the baselines."""

import functools
import importlib.util

import numpy as np
import pytest

from baldur.baselines import BASELINES
from baldur.views import MultiView

HAVE_TORCH = all(importlib.util.find_spec(m) for m in ("torch", "gpytorch"))

QUICK = {
    "SGP+ARD": {"max_iter": 100, "n_inducing": 30},
    "RF": {"n_estimators": 100},
    "PB-MVBoost": {"n_rounds": 50},
    "Boosted trees": {"max_iter": 30},
}
"""Settings that keep a fit short where the test is not about quality."""


def make_quick(row, random_state=0, classification=True):
    """The row's estimator, skipped when its extra is missing."""
    if BASELINES[row].extra and not HAVE_TORCH:
        pytest.skip(f"{row} needs the torch extra")
    made = BASELINES[row].make(random_state, classification=classification)
    return made.set_params(**QUICK.get(row, {}))


def common_data(seed, n=240, dims=(20, 2000, 30), shifts=(1.0, 0.7), rate=0.56):
    """Three views; signal in 3 columns of the first and 5 of the second, none in the third."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n, dtype=int)
    y[: round(rate * n)] = 1
    rng.shuffle(y)
    sign = 2.0 * y - 1.0
    a, b, c = (rng.standard_normal((n, d)) for d in dims)
    a[:, :3] += shifts[0] * sign[:, None]
    b[:, :5] += shifts[1] * sign[:, None]
    return MultiView({"a": a, "b": b, "c": c}), y


@functools.cache
def fit_common(row, seed):
    """The row's estimator fitted to the first 140 rows of the common data, once in a session."""
    mv, y = common_data(seed)
    return make_quick(row).fit(mv[:140], y[:140]), mv, y


@pytest.fixture
def fitted_common():
    return fit_common


@pytest.fixture(params=[name for name, entry in BASELINES.items() if entry.classifier is not None])
def row(request):
    """Each row of the registry that classifies in turn."""
    return request.param


@pytest.fixture
def quick():
    return make_quick


@pytest.fixture
def common():
    return common_data


@pytest.fixture
def views():
    """Three small random views (n, D_v), wide and narrow, centred, and codes of three classes."""
    rng = np.random.default_rng(7)
    X = [rng.standard_normal((30, d)) for d in (4, 50, 12)]
    return [x - x.mean(axis=0) for x in X], rng.integers(0, 3, 30)
