"""Wide views are worked on in float32: the same features are kept as in float64."""

import numpy as np
import pytest

from baldur import BaldurClassifier
from baldur.datasets import make_multiview
from baldur.views import standardised_blocks as standardised

CASES = {"narrow": {"narrow": 5}, "wide": {"wide": 10}, "both": {"narrow": 3, "wide": 5}}


@pytest.mark.slow
@pytest.mark.parametrize("case", list(CASES))
def test_auto_keeps_the_same_features_in_single_precision(monkeypatch, case):
    sim = make_multiview(200, {"narrow": 20, "wide": 2000}, informative=CASES[case], random_state=0)
    fits = []
    for limit in (standardised.FLOAT64_LIMIT_BYTES, 0):
        monkeypatch.setattr(standardised, "FLOAT64_LIMIT_BYTES", limit)
        fits.append(BaldurClassifier().fit(sim.data, sim.target))
    double, single = fits
    for view, mask in double.selected_features_.items():
        np.testing.assert_array_equal(single.selected_features_[view], mask)
        np.testing.assert_allclose(single.coef_[view], double.coef_[view], atol=1e-5)
