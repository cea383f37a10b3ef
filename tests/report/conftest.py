"""Small comparisons and models that the pages of the tests are made from, each made once."""

import numpy as np
import pytest

from baldur import BaldurClassifier, MultiView
from baldur.datasets import make_multiview
from baldur.evaluate import nested_cv
from baldur.evaluate.models import Model
from baldur.study.run import write_results

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
    """Two views, the second missing for some, with the signal in the first."""
    sim = make_multiview(
        n, {"clinic": 8, "genes": 12}, informative={"clinic": 3}, random_state=seed
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
    """One fit by the default, on some of the people."""
    X, y = data
    rows = np.arange(70)
    return BaldurClassifier().fit(X[rows], np.array(["control", "patient"])[y[rows]])


@pytest.fixture(scope="session")
def result(data):
    X, y = data
    sites = np.tile(["oslo", "rome", "lima"], len(y))[: len(y)]
    return nested_cv(
        # A number for the sparsity fits in a part of a second.
        [Model("BALDUR", BaldurClassifier(sparsity=0.5)), "Ridge logistic", "Dummy"],
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
    write_results(result, place)
    return place
