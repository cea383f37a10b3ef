"""The reference and the smaller sets that stand for it."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from baldur.inference import reference as reference_module
from baldur.inference.all_features import all_features
from baldur.inference.fixed_prior import solve
from baldur.inference.mixture import absent_matrix, gather, owners, view_signals
from baldur.inference.reference import (
    empty_mixture,
    fit_inclusions,
    make_reference,
    redundancy,
    restrict,
    views_that_matter,
    widen,
)
from baldur.inference.starts import outcome_residual
from inference.problems import make_problem
from model.structured.problems import as_view

SHARES = (0.0, 0.3, 0.5, 0.8, 0.9, 0.97, 0.999, 1.0)
TASKS = ["binary", "multiclass", "multilabel", "regression"]


def reference_of(problem, index=None):
    index = index or [np.arange(v.shape[1]) for v in problem.views]
    X, absent = gather(problem.views, index), absent_matrix(problem.views)
    found = fit_inclusions(X, index, absent, problem.widths, problem.likelihood)
    features = all_features(problem.views)
    return make_reference(X, index, absent, found, features, problem.likelihood)


@pytest.mark.parametrize("task", TASKS)
def test_smaller_shares_give_subsets(task):
    problem, _, _ = make_problem(task)
    reference = reference_of(problem)
    masks = [reference.smallest(share) for share in SHARES if share < 1.0]
    for small, large in pairwise(masks):
        assert not (small & ~large).any()
    assert reference.carried[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("task", TASKS)
def test_the_whole_is_every_candidate_of_the_views_that_matter(task):
    """As few views as carry 95 % of the linear predictor, each with all its candidates."""
    problem, _, _ = make_problem(task)
    reference = reference_of(problem)
    whole = reference.smallest(1.0)
    owner = owners(reference.index)
    for m in np.unique(owner):
        assert whole[owner == m].all() or not whole[owner == m].any()
    w = np.mean([inc.outputs.weights()[0] for inc in reference.inclusions], axis=0)
    eta = reference.X @ w.T
    parts = [reference.X[:, owner == m] @ w[:, owner == m].T for m in np.unique(owner)]
    lost = eta - sum(p for m, p in enumerate(parts) if whole[owner == m].all())
    assert lost.var(axis=0).sum() <= 0.05 * eta.var(axis=0).sum()
    kept = [m for m in np.unique(owner) if whole[owner == m].all()]
    weakest = min(kept, key=lambda m: parts[m].var(axis=0).sum())
    without = lost + parts[weakest]
    assert without.var(axis=0).sum() > 0.05 * eta.var(axis=0).sum()


def test_carried_is_one_minus_the_share_lost():
    """And the set is the smallest: one feature fewer carries less than was asked for."""
    problem, _, _ = make_problem("multiclass")
    reference = reference_of(problem)
    w = np.mean([inc.outputs.weights()[0] for inc in reference.inclusions], axis=0)
    assert (np.diff((w**2).sum(axis=0)[reference.order]) <= 0).all()
    eta = reference.X @ w.T
    total = ((eta - eta.mean(axis=0)) ** 2).sum()
    for size in (1, 2, 5, 20):
        part = reference.X[:, reference.order[:size]] @ w[:, reference.order[:size]].T
        lost = eta - part
        want = 1 - ((lost - lost.mean(axis=0)) ** 2).sum() / total
        assert reference.carried[size - 1] == pytest.approx(want, rel=1e-9)
    for share in (0.5, 0.9):
        size = reference.smallest(share).sum()
        assert reference.carried[size - 1] >= share
        assert (reference.carried[: size - 1] < share).all()


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_restricted_to_everything_is_solving_on_everything(task, absent):
    problem, _, _ = make_problem(task, absent=absent)
    reference = reference_of(problem)
    keep = np.ones(reference.X.shape[1], dtype=bool)
    mixture = restrict(reference, keep, problem.likelihood)
    for member, inclusion in zip(mixture.members, reference.inclusions, strict=True):
        old = inclusion.outputs
        alone = solve(reference.X, old.s, problem.likelihood, old.extra, sites=old.sites)
        for got, want in zip(member.outputs.weights(), alone.weights(), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-3 if task == "regression" else 1e-12)
        owner = owners(reference.index)
        np.testing.assert_allclose(
            member.signal, view_signals(member.outputs, owner, reference.absent)
        )


def test_restricting_is_solving_on_the_kept_columns():
    problem, _, _ = make_problem()
    reference = reference_of(problem)
    keep = reference.smallest(0.8)
    mixture = restrict(reference, keep, problem.likelihood)
    for member, inclusion in zip(mixture.members, reference.inclusions, strict=True):
        s = inclusion.outputs.s[:, keep]
        alone = solve(reference.X[:, keep], s, problem.likelihood, sites=inclusion.outputs.sites)
        np.testing.assert_allclose(member.outputs.weights()[0], alone.weights()[0], atol=1e-12)
        afresh = solve(reference.X[:, keep], s, problem.likelihood, tol=1e-10)
        np.testing.assert_allclose(member.outputs.weights()[0], afresh.weights()[0], atol=0.02)
    assert sum(len(i) for i in mixture.index) == keep.sum()


def test_predictions_depend_on_kept_columns_alone():
    problem, _, _ = make_problem()
    reference = reference_of(problem)
    keep = reference.smallest(0.8)
    assert 0 < keep.sum() < len(keep)
    mixture = restrict(reference, keep, problem.likelihood)
    other, _, _ = make_problem(seed=9)
    mixed = []
    for view, new, index in zip(problem.views, other.views, mixture.index, strict=True):
        X = new.dense()
        X[:, index] = view.dense()[:, index]
        mixed.append(as_view(X))
    for got, want in zip(mixture.moments(mixed), mixture.moments(problem.views), strict=True):
        np.testing.assert_array_equal(got, want)
    X, absent = gather(problem.views, mixture.index), absent_matrix(problem.views)
    for got, want in zip(mixture.moments_of(X, absent), mixture.moments(mixed), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("limit", [1 << 30, 0], ids=["gathered", "by rows"])
@pytest.mark.parametrize("task", TASKS)
def test_the_widest_posterior_is_its_three_parts(monkeypatch, task, limit):
    """Two posteriors on the candidates and one on everything, over every feature of the views."""
    monkeypatch.setattr(reference_module, "DENSE_BYTES", limit)
    problem, _, _ = make_problem(task, sizes=(5, 60), absent=True)
    index = [np.arange(0, v.shape[1], 2) for v in problem.views]
    reference = reference_of(problem, index)
    matter = reference.dense_views
    mixture = widen(reference, problem)
    for columns, view, use in zip(mixture.index, problem.views, matter, strict=True):
        assert len(columns) == (view.shape[1] if use else 0)
    narrow = restrict(reference, matter[owners(index)], problem.likelihood)
    want = narrow.moments(problem.views)
    whole = reference.everything
    rows = np.arange(problem.n_samples)
    mean, var = whole.features.predict(whole.sides, whole.slab, rows, rows)
    want.append((mean, var + reference.absent @ whole.signal()))
    loose = 1e-4 if task == "regression" else 1e-6
    for got, expected in zip(mixture.moments(problem.views), want, strict=True):
        np.testing.assert_allclose(got[0], expected[0], atol=loose)
        np.testing.assert_allclose(got[1], expected[1], rtol=1e-4, atol=loose)
    eta = np.mean([m for m, _ in want], axis=0)
    w, std, b = mixture.weights()
    X = gather(problem.views, mixture.index)
    if limit:
        np.testing.assert_allclose(X @ w.T + b, eta, atol=loose)
        assert (std > 0).all()


def test_views_that_matter_are_the_fewest_that_carry_the_signal():
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((4, 50, 2)) * np.array([0.1, 3.0, 0.0, 1.0])[:, None, None]
    np.testing.assert_array_equal(views_that_matter(parts), [False, True, False, True])
    np.testing.assert_array_equal(views_that_matter(parts[[1, 0]]), [True, False])


@pytest.mark.parametrize("task", TASKS)
def test_residuals_are_outputs_less_their_rate(task):
    problem, T, _ = make_problem(task)
    residual = outcome_residual(problem.likelihood)
    centred = T - T.mean(axis=0)
    for c in range(T.shape[1]):
        scale = residual[:, c] @ centred[:, c] / (centred[:, c] @ centred[:, c])
        np.testing.assert_allclose(residual[:, c], scale * centred[:, c], atol=1e-8)


def test_redundancy_is_near_zero_for_independent_features_and_one_for_doubles():
    problem, _, _ = make_problem(N=150)
    reference = reference_of(problem)
    keep = reference.smallest(0.9)
    assert abs(redundancy(reference, keep)) < 0.1
    reference.X = reference.X[:, [d % 2 for d in range(25)]]
    keep = np.arange(25) < 2
    assert redundancy(reference, keep) == pytest.approx(1.0)


@pytest.mark.parametrize("task", TASKS)
def test_the_empty_mixture_predicts_the_base_rate(task):
    problem, T, _ = make_problem(task)
    mixture = empty_mixture(problem)
    mean, _ = mixture.moments(problem.views)[0]
    level = mean if task == "regression" else expit(mean)
    np.testing.assert_allclose(level, np.tile(T.mean(axis=0), (len(T), 1)), atol=0.02)
    assert all(len(index) == 0 for index in mixture.index)
    assert not mixture.signal().any()


def test_absent_rows_get_the_variance_of_what_they_lack():
    problem, _, _ = make_problem(absent=True)
    mixture = restrict(reference_of(problem), np.ones(25, dtype=bool), problem.likelihood)
    lacking = problem.views[1].absent
    present = [v.take_rows(np.flatnonzero(lacking)) for v in problem.views]
    for member, (_, var) in zip(mixture.members, mixture.moments(present), strict=True):
        X = gather(present, mixture.index)
        plain = member.outputs.predict(X)[1]
        np.testing.assert_allclose(var - plain, np.tile(member.signal[1], (len(X), 1)), atol=1e-12)
