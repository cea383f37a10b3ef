"""What is read of a view is counted in passes: columns over width."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from baldur import BaldurClassifier, MultiView
from baldur.preparation import Preparation
from baldur.views.prepared_view import passes


@pytest.fixture
def views():
    rng = np.random.default_rng(0)
    genes = rng.integers(0, 3, (20, 300)).astype(np.int8)
    mv = MultiView({"genes": genes, "clinic": rng.standard_normal((20, 100))})
    prepared = Preparation().fit_transform(mv)
    return [prepared[name] for name in mv.view_names]


def test_nothing_is_read_before_it_is_asked_for(views):
    assert passes(views) == 0.0
    assert passes([]) == 0.0


def test_every_product_is_one_pass_of_its_view(views):
    genes = views[0]
    genes.project(np.ones((20, 2)))
    genes.weighted_gram()
    genes.project_with_quadratics(np.ones((20, 1)), [np.eye(20)])
    genes.apply(np.ones((300, 1)))
    genes.dense()
    assert passes([genes]) == 5.0
    assert passes(views) == pytest.approx(5 * 300 / 400)


def test_few_columns_cost_little(views):
    genes = views[0]
    genes.columns([3, 4, 5])
    s = np.zeros(300)
    s[:9] = 1.0
    genes.weighted_gram(s)
    assert passes([genes]) == pytest.approx(12 / 300)


def test_rows_count_with_the_view_they_are_of(views):
    genes = views[0]
    part = genes.take_rows([0, 1, 2])
    genes.cross_gram(part)
    part.take_rows([0, 1]).weighted_gram()
    assert passes([genes]) == passes([part]) == 3.0
    assert passes([pickle.loads(pickle.dumps(genes))]) == 3.0


@pytest.mark.usefixtures("one_repeat")
def test_history_counts_passes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60))
    y = (X[:, 0] + 0.5 * rng.standard_normal(40) > 0).astype(int)
    model = BaldurClassifier(members=("pooled",)).fit(X, y)
    counted = [record["passes"] for record in model.history_]
    assert counted[0] > 0
    assert all(a <= b for a, b in pairwise(counted))
