"""Features that stand for each other: doubles share a set, strong ones stand alone."""

import numpy as np
import pytest
from baldur.inference.reference import fit_reference
from baldur.inference.stand_ins import stand_ins

from baldur.inference.screening import Problem
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic
from inference.problems import as_candidates
from model.problems import as_view


def sets_of(blocks, eta, kept, kind=QuadratureLogistic, seed=0, **options):
    """Credible sets of kept features (view, feature), outcomes drawn from eta."""
    rng = np.random.default_rng(seed)
    N = len(eta)
    if kind is GaussianOutputs:
        T = (eta + 0.5 * rng.standard_normal(N))[:, None]
    else:
        T = (eta + rng.logistic(size=N) > 0).astype(float)[:, None]
    views = [as_view((X - X.mean(0)) / X.std(0)) for X in blocks]
    problem = Problem(views, kind(T, np.ones_like(T)), "binary")
    reference = fit_reference(as_candidates(problem), np.arange(N), problem.likelihood)
    index = [np.arange(X.shape[1]) for X in blocks]
    start = np.cumsum([0, *[X.shape[1] for X in blocks]])
    places = np.array([start[m] + d for m, d in kept])
    return stand_ins(reference, places, index, **options)


def members(found):
    return list(zip(found.views.tolist(), found.features.tolist(), strict=True))


@pytest.fixture(scope="module")
def blocks():
    """Eight and six independent columns of 120 rows."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((120, 8)), rng.standard_normal((120, 6))


@pytest.mark.parametrize("kind", [QuadratureLogistic, GaussianOutputs])
def test_doubles_share_one_set(blocks, kind):
    """A copy in the same view has the same probability, one half each."""
    A, B = blocks
    A = A.copy()
    A[:, 5] = 3.0 * A[:, 1] + 1.0
    (found,) = sets_of([A, B], 2.5 * A[:, 1], [(0, 1)], kind)
    assert (found.view, found.feature) == (0, 1)
    assert sorted(members(found)) == [(0, 1), (0, 5)]
    np.testing.assert_allclose(found.probability, 0.5, atol=1e-4)
    assert found.min_abs_correlation == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("kind", [QuadratureLogistic, GaussianOutputs])
def test_doubles_in_another_view_are_in_the_set(blocks, kind):
    """Views differ in the share of features that are in, so the halves are not equal."""
    A, B = blocks
    B = B.copy()
    B[:, 2] = A[:, 1]
    (found,) = sets_of([A, B], 2.5 * A[:, 1], [(0, 1)], kind)
    assert sorted(members(found)) == [(0, 1), (1, 2)]
    assert found.probability.sum() > 0.99
    assert found.probability.min() > 0.1
    (other,) = sets_of([A, B], 2.5 * A[:, 1], [(1, 2)], kind)
    assert (other.view, other.feature) == (1, 2)
    assert sorted(members(other)) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("kind", [QuadratureLogistic, GaussianOutputs])
def test_independent_strong_features_stand_alone(blocks, kind):
    A, B = blocks
    found = sets_of([A, B], 2.5 * A[:, 1] - 2.5 * B[:, 4], [(0, 1), (1, 4)], kind)
    assert [members(each) for each in found] == [[(0, 1)], [(1, 4)]]
    for each in found:
        assert each.probability[0] > 0.95
        assert each.min_abs_correlation == 1.0


def test_a_set_is_the_smallest_that_holds_its_probability(blocks):
    """A weak effect and a correlated neighbour: sets grow with the probability asked for."""
    A, B = blocks
    A = A.copy()
    A[:, 2] = A[:, 1] + 0.4 * A[:, 2]
    sizes = []
    for credible in (0.5, 0.8, 0.95, 0.999):
        (found,) = sets_of([A, B], 1.2 * A[:, 1], [(0, 1)], credible=credible)
        total = found.probability.sum()
        assert total >= credible - 1e-9
        assert total - found.probability[-1] < credible
        assert (np.diff(found.probability) <= 1e-12).all()
        sizes.append(len(found.probability))
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]


def test_the_smallest_correlation_is_literal(blocks):
    A, B = blocks
    A = A.copy()
    A[:, 2] = A[:, 1] + 0.1 * A[:, 2]
    A[:, 3] = -A[:, 1] + 0.1 * A[:, 3]
    (found,) = sets_of([A, B], 2.5 * A[:, 1], [(0, 1)])
    assert len(found.features) > 1
    X = np.column_stack([(A, B)[m][:, d] for m, d in members(found)])
    assert found.min_abs_correlation == pytest.approx(np.abs(np.corrcoef(X.T)).min(), rel=1e-9)


def test_kept_features_do_not_stand_for_each_other(blocks):
    A, B = blocks
    A = A.copy()
    A[:, 2] = A[:, 1] + 0.5 * A[:, 2]
    found = sets_of([A, B], 2.0 * A[:, 1], [(0, 1), (0, 2)])
    assert (0, 2) not in members(found[0])
    assert (0, 1) not in members(found[1])
    for each in found:
        assert (each.view, each.feature) in [(0, 1), (0, 2)]


def test_order_of_columns_does_not_matter(blocks):
    A, B = blocks
    A = A.copy()
    A[:, 2] = A[:, 1] + 0.3 * A[:, 2]
    (one,) = sets_of([A, B], 2.0 * A[:, 1], [(0, 1)])
    order = np.random.default_rng(0).permutation(8)
    back = np.argsort(order)
    (other,) = sets_of([A[:, order], B], 2.0 * A[:, 1], [(0, int(back[1]))])
    named = {(m, int(order[d]) if m == 0 else d) for m, d in members(other)}
    assert named == set(members(one))
    np.testing.assert_allclose(np.sort(other.probability), np.sort(one.probability), atol=1e-5)
