"""Data for the tests of comparisons."""

import numpy as np
import pandas as pd
import pytest

from baldur.views import MultiView


@pytest.fixture
def genotypes():
    rng = np.random.default_rng(0)
    G = rng.integers(0, 3, (60, 12)).astype(np.int8)
    G[:, 3] = 0
    G[:40, 7] = 1  # monomorphic in the first 40 rows only
    age = rng.normal(size=60)
    mv = MultiView({"snps": G, "age": age[:, None]}, samples=pd.DataFrame({"age": age}))
    return mv, np.arange(60) % 2
