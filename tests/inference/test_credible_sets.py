"""Credible sets: two copies of a feature share a set, strong features have one of their own."""

import numpy as np
import pytest

from baldur.inference.ensemble import fit_ensemble
from baldur.inference.inner_folds import Problem
from baldur.inference.selection import credible_sets
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.posterior import INTERCEPT_VAR
from inference.problems import on_all_rows
from model.problems import as_view

TASKS = ["binary", "regression"]


def fitted(blocks, eta, task="binary", seed=0):
    """Data and ensemble of all rows, outcomes drawn from eta."""
    rng = np.random.default_rng(seed)
    N = len(eta)
    if task == "regression":
        T = (eta + 0.5 * rng.standard_normal(N))[:, None]
    else:
        T = (eta + rng.logistic(size=N) > 0).astype(float)[:, None]
    views = [as_view((X - X.mean(0)) / X.std(0)) for X in blocks]
    data, batch = on_all_rows(Problem(views, T, np.ones(N), task))
    names = ("spike_slab", "spike_slab_wide")
    return data, fit_ensemble(batch, members=names)


def sets_of(blocks, eta, selected, task="binary", **options):
    """Credible sets of selected features (view, feature)."""
    _data, ensemble = fitted(blocks, eta, task)
    index = [np.arange(X.shape[1]) for X in blocks]
    start = np.cumsum([0, *[X.shape[1] for X in blocks]])
    places = np.array([start[m] + d for m, d in selected])
    return credible_sets(ensemble, places, index, **options)


def members(found):
    return list(zip(found.views.tolist(), found.features.tolist(), strict=True))


@pytest.fixture(scope="module")
def blocks():
    """Eight and six independent columns of 120 rows."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((120, 8)), rng.standard_normal((120, 6))


@pytest.mark.parametrize("task", TASKS)
def test_two_copies_share_one_set(blocks, task):
    """A copy in the same view has the same probability, one half each."""
    A, B = blocks
    A = A.copy()
    A[:, 5] = 3.0 * A[:, 1] + 1.0
    (found,) = sets_of([A, B], 2.5 * A[:, 1], [(0, 1)], task)
    assert (found.view, found.feature) == (0, 1)
    assert sorted(members(found)) == [(0, 1), (0, 5)]
    np.testing.assert_allclose(found.probability, 0.5, atol=1e-4)
    assert found.min_abs_correlation == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("task", TASKS)
def test_a_copy_in_another_view_is_in_the_set(blocks, task):
    """Views differ in the share of features that are in, so the halves are not equal."""
    A, B = blocks
    B = B.copy()
    B[:, 2] = A[:, 1]
    (found,) = sets_of([A, B], 2.5 * A[:, 1], [(0, 1)], task)
    assert sorted(members(found)) == [(0, 1), (1, 2)]
    assert found.probability.sum() > 0.99
    assert found.probability.min() > 0.1
    (other,) = sets_of([A, B], 2.5 * A[:, 1], [(1, 2)], task)
    assert (other.view, other.feature) == (1, 2)
    assert sorted(members(other)) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("task", TASKS)
def test_independent_strong_features_have_sets_of_their_own(blocks, task):
    A, B = blocks
    found = sets_of([A, B], 2.5 * A[:, 1] - 2.5 * B[:, 4], [(0, 1), (1, 4)], task)
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


def test_selected_features_are_not_in_the_sets_of_others(blocks):
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


def test_probabilities_are_literal(blocks):
    """P(l) ~ pi_l BF_l in the place of j, from explicit matrices at the sites of the selection."""
    A, B = blocks
    data, ensemble = fitted([A, B], 1.5 * A[:, 1] - B[:, 4])
    selected = np.array([1, 12])
    index = [np.arange(8), np.arange(6)]
    found = credible_sets(ensemble, selected, index, credible=1.0 - 1e-12)
    learned = [member.spike_slab for member in ensemble.members.values()]
    slab = np.mean([each.slab[0, 0] for each in learned], axis=0)[data.owner]
    pi = np.mean([each.pi[0] for each in learned], axis=0)[data.owner]
    X, t, N = data.columns, data.T[0], len(A)
    design = ensemble.batch.candidate_design(held=False).columns(selected[None], np.ones((1, 2)))
    q = WeightPosterior.start(design, ensemble.batch.likelihood(), slab[selected][None, None], None)
    q.optimise_sites()
    h, j = q.sites.h[0, 0], q.sites.j[0, 0]
    assert len(t) == N
    for position, each in enumerate(found):
        rest = selected[1 - position]
        C = slab[rest] * np.outer(X[:, rest], X[:, rest]) + INTERCEPT_VAR + np.diag(1 / h)
        inverse = np.linalg.inv(C)
        size = slab[selected[position]]
        logs = []
        for d in range(14):
            S, Q = X[:, d] @ inverse @ X[:, d], X[:, d] @ inverse @ (j / h)
            gain = 0.5 * (Q**2 * size / (1 + size * S) - np.log(1 + size * S))
            logs.append(np.log(pi[d]) + gain if d != rest else -np.inf)
        p = np.exp(logs - np.max(logs))
        p /= p.sum()
        place = np.array([0, 8])[each.views] + each.features
        np.testing.assert_allclose(each.probability, p[place], rtol=1e-6, atol=1e-12)


def test_without_a_selecting_member_or_a_selected_feature_there_are_no_sets(blocks):
    _data, ensemble = fitted(blocks, blocks[0][:, 1])
    index = [np.arange(8), np.arange(6)]
    assert credible_sets(ensemble, np.zeros(0, dtype=int), index) == []
    dense = fit_ensemble(ensemble.batch, members=("pooled",))
    assert credible_sets(dense, np.array([1]), index) == []
