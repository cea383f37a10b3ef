"""Small comparisons and models that the pages of the tests are made from, each made once."""

import numpy as np
import pandas as pd
import pytest

from baldur import BaldurClassifier, MultiView
from baldur.datasets import make_multiview
from baldur.evaluation import Model, nested_cv
from baldur.report import report_folder, report_model
from constants import constants
from pages import write_folder
from report.browser import Browser

NASTY = [
    "<script>document.title='run'</script>",
    "<img src=x onerror=\"document.title='run'\">",
    '=HYPERLINK("http://example.org","x")',
    "</script><script>document.title='run'</script>",
    "{{ 7 * 7 }} ${x} <!-- ",
    "n" * 300,
]
"""Names as somebody else's file may have them."""


def small_data(n=120, seed=0, names=None):
    """Two views, the second missing for some, with signal in both."""
    sim = make_multiview(
        n, {"clinic": 8, "genes": 12}, informative={"clinic": 3, "genes": 2}, random_state=seed
    )
    rng = np.random.default_rng(seed)
    arrays = {v: sim.data.view(v).read().copy() for v in sim.data.view_names}
    arrays["clinic"][rng.uniform(size=arrays["clinic"].shape) < 0.03] = np.nan
    given = {v: list(sim.data.feature_names[v]) for v in sim.data.view_names}
    for v, first in (names or {}).items():
        given[v][: len(first)] = first
    present = {"genes": rng.uniform(size=n) > 0.15}
    ids = [f"secret-{i:03d}" for i in range(n)]
    return MultiView(arrays, sample_ids=ids, feature_names=given, present=present), sim.target


@pytest.fixture(scope="session")
def data():
    return small_data()


@pytest.fixture(scope="session")
def model(data):
    """A quick fit, with what only the default adds put in by hand; that takes a minute to fit."""
    X, y = data
    with constants(MOST_REPEATS=1):
        made = BaldurClassifier(members=("spike_slab",))
        made.fit(X, np.array(["control", "patient"])[y])
    kept = made.selected_features_
    made.signal_ = 4.2
    made.inclusion_probability_ = {v: 0.9 * mask for v, mask in kept.items()}
    first = X.feature_names["clinic"][np.flatnonzero(kept["clinic"])[0]]
    made.credible_sets_ = pd.DataFrame(
        {"view": "clinic", "feature": first, "member_view": ["clinic", "genes"],
         "member_feature": [first, "genes_3"], "probability": [0.93, 0.05],
         "min_abs_correlation": 0.7}
    )  # fmt: skip
    size = sum(int(mask.sum()) for mask in kept.values())
    made.sparsity_path_ = pd.DataFrame(
        {"step": ["nothing", "features", "features", "views"], "n_views": [0, 1, 2, 2],
         "n_features": [0, 1, size, 20], "loss": [0.69, 0.6, 0.45, 0.44],
         "loss_difference": [0.25, 0.16, 0.01, 0.0], "standard_error": [0.04, 0.03, 0.01, 0.0],
         "upper": [0.32, 0.2, 0.02, 0.0], "candidate": [False, False, True, True],
         "selected": [False, False, True, False]}
    )  # fmt: skip
    return made


@pytest.fixture(scope="session")
def result(data):
    X, y = data
    sites = np.tile(["oslo", "rome", "lima"], len(y))[: len(y)]
    with constants(MOST_REPEATS=1):
        return nested_cv(
            [Model("BALDUR", BaldurClassifier(members=("spike_slab",))), "Ridge logistic", "Dummy"],
            X,
            np.array(["control", "patient"])[y],
            outer=3,
            inner=3,
            positive="patient",
            sites=sites,
            scheme="stratified",
        )


@pytest.fixture(scope="session")
def folder(result, tmp_path_factory):
    place = tmp_path_factory.mktemp("results")
    write_folder(result, place)
    return place


@pytest.fixture(scope="session")
def run_page(folder):
    """The page of the folder, in its usual place."""
    return report_folder(folder)


@pytest.fixture(scope="session")
def model_page(model, data, tmp_path_factory):
    """The page of the model, with the rows it was fitted to."""
    X, y = data
    place = tmp_path_factory.mktemp("model page") / "model.html"
    return report_model(model, place, X, np.array(["control", "patient"])[y])


@pytest.fixture(scope="session")
def browser():
    """One browser for all pages."""
    made = Browser()
    yield made
    made.driver.quit()
