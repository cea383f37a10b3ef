"""`view_relevance_` is the variance share of each view, as it follows from `coef_`."""

import warnings

import numpy as np
import pytest

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.datasets import make_multiview
from baldur.paper import PaperClassifier, PaperRegressor

pytestmark = pytest.mark.usefixtures("one_repeat", "few_cycles")

N = 70
MEAN_FIELD = {"max_iter": 10, "sparsity": 0.5}
CASES = {
    "default": (BaldurClassifier, {}, "binary"),
    "everything selected": (BaldurClassifier, {"margin": 0.0}, "wide"),
    "dense": (BaldurClassifier, {"members": ("per_view", "pooled"), "margin": 0.0}, "binary"),
    "three classes": (BaldurClassifier, {"members": ("pooled",)}, "three"),
    "learned loadings": (BaldurClassifier, {"members": ("pooled",), "n_factors": 2}, "three"),
    "labels": (BaldurClassifier, {"members": ("pooled",)}, "labels"),
    "regression": (BaldurRegressor, {}, "numbers"),
    "dense regression": (BaldurRegressor, {"members": ("pooled",), "margin": 0.0}, "numbers"),
    "factors of regression": (
        BaldurRegressor,
        {"members": ("pooled",), "n_factors": 1},
        "two numbers",
    ),
    "mean field": (PaperClassifier, {**MEAN_FIELD, "bound": "jaakkola"}, "three"),
    "mean field, dual": (
        PaperClassifier,
        {**MEAN_FIELD, "bound": "jaakkola", "space": "dual"},
        "binary",
    ),
    "mean field regression": (PaperRegressor, MEAN_FIELD, "two numbers"),
}


def cohort(kind):
    """Two views with signal in both; the second one is missing for every seventh sample."""
    sim = make_multiview(
        N,
        {"clinic": 4, "genes": 90 if kind == "wide" else 10},
        informative={"clinic": 2, "genes": 40 if kind == "wide" else 2},
        n_classes=3 if kind == "three" else None if "numbers" in kind else 2,
        noise=1.0,
        random_state=0,
    )
    cells = {name: 5.0 + 3.0 * sim.data.view(name).read() for name in sim.data.view_names}
    cells["genes"][::7] = np.nan
    y = np.asarray(sim.target)
    if kind == "labels":
        y = np.column_stack([y, cells["clinic"][:, 0] > 5.0]).astype(int)
    if kind == "two numbers":
        y = np.column_stack([y, 100.0 * cells["clinic"][:, 1] + y])
    return cells, y


@pytest.mark.parametrize("case", CASES)
def test_view_relevance_is_the_variance_share_of_coef(case):
    kind, options, data = CASES[case]
    cells, y = cohort(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(preparation="standard", **options).fit(MultiView(cells), y)
    spread = model.output_units[1] if hasattr(model, "output_units") else 1.0
    # Columns are standardised over the samples that have the view: their parts have mean zero.
    variance = {
        name: np.nanvar(X @ model.coef_[name].T / spread, axis=0).sum() for name, X in cells.items()
    }
    total = sum(variance.values())
    assert total > 0
    for name, found in model.view_relevance_.items():
        assert found == pytest.approx(variance[name] / total, rel=1e-6, abs=1e-9)
    if case in ("default", "everything selected", "dense", "regression"):
        assert min(model.view_relevance_.values()) > 0.01
