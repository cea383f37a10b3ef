"""Screened members have the strongest marginal associations of the training rows, and no others."""

import numpy as np
import pytest

from baldur import BaldurClassifier
from baldur.datasets import make_adni_like, make_multiview
from baldur.inference.dense_members import (
    LEAST,
    fit_screened,
    marginal_associations,
    share_beyond_chance,
)
from baldur.inference.design import ColumnDesign
from baldur.inference.ensemble import SCREENED, Designs, fit_ensemble
from baldur.model.likelihood import residual
from inference.problems import gathered, make_problem, unequal_folds

pytestmark = pytest.mark.usefixtures("one_repeat")
N, SIZES = 42, (6, 14)
TASKS = ["binary", "multiclass", "regression"]


def case_of(task, absent=False):
    problem, _ = make_problem(task, N=N, sizes=SIZES, absent=absent)
    folds = unequal_folds(N)
    return problem, folds, *gathered(problem, folds, False)


def fit_strongest(design, absent, likelihood, left, size, smaller=None):
    """Return the member of the strongest columns, fitted until it has converged."""
    order, squares = marginal_associations(design, left, absent)
    share = share_beyond_chance(squares, size, sum(SIZES) * likelihood.n_outputs)
    return fit_screened(
        design, absent, likelihood, order[:, :size], share, smaller=smaller, max_iter=1000
    )


@pytest.mark.parametrize("task", TASKS)
def test_columns_are_those_with_the_largest_marginal_association(task):
    problem, folds, data, batch = case_of(task)
    ensemble = fit_ensemble(batch, members=("screened_10",))
    for f, (train, _) in enumerate(folds):
        X = data.columns[train]
        left = problem.T[train] - problem.T[train].mean(axis=0)
        score = np.abs(X.T @ (left / np.linalg.norm(left, axis=0))).max(axis=1)
        want = set(np.argsort(-score)[:10].tolist())
        for point in ensemble.points:
            at = np.flatnonzero(point.folds == f)
            if len(at):
                assert point.q.s[at[0]].all()
                assert set(batch.candidates[f][point.columns[at[0]]].tolist()) == want


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("absent", [False, True])
def test_the_posterior_over_all_candidates_is_that_over_the_chosen_ones(task, absent):
    """Variances of 0 for the other candidates change no moment."""
    _, _, _data, batch = case_of(task, absent)
    ensemble = fit_ensemble(batch, members=("screened_10",))
    designs = Designs.of(batch)
    for j, point in enumerate(ensemble.points):
        for every in (False, True):
            q = designs.attach(point, np.arange(len(point.folds)), every=every)
            assert q.s.shape[2] == (sum(SIZES) if every else 10)
            q.refresh()
            mean, var = q.moments()
            np.testing.assert_allclose(mean, ensemble.mean[j, point.folds], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(var, ensemble.var[j, point.folds], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_the_order_of_columns_changes_nothing(task):
    _, _, _data, batch = case_of(task)
    likelihood = batch.likelihood()
    design = batch.candidate_design()
    left = residual(likelihood.T, likelihood.weight, logistic=task != "regression")
    turned = np.tile(np.arange(sum(SIZES))[::-1], (len(batch), 1))
    found = [
        fit_strongest(d, None, likelihood, left, 10) for d in (design, design.reordered(turned))
    ]
    for one, two in zip(*(member.points for member in found), strict=True):
        np.testing.assert_allclose(two.q.s, one.q.s, rtol=1e-6)
        np.testing.assert_array_equal(sum(SIZES) - 1 - two.columns, one.columns)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("size", [12, 20])
def test_the_start_changes_nothing(task, absent, size, constants):
    """The fixed point is the same from the smaller member and from the uninformed start."""
    constants(SCREENED_TOLERANCE=1e-8)
    _, _, _data, batch = case_of(task, absent)
    likelihood, lacking = batch.likelihood(), batch.absent()
    design = batch.candidate_design()
    left = residual(likelihood.T, likelihood.weight, logistic=task != "regression")
    given = design, lacking, likelihood, left
    smaller = fit_strongest(*given, 5)
    one, two = (fit_strongest(*given, size, start).variances for start in (None, smaller))
    share = one / one.sum(axis=-1, keepdims=True)
    # A tenth of the tolerance that counts as converged.
    np.testing.assert_allclose(share * two, share * one, rtol=1e-2, atol=1e-6)


def test_columns_that_pad_come_last():
    X1 = np.ones((1, 4, 4))
    design = ColumnDesign(X1, np.array([[1, 0, 1]]), np.array([4.0]), 1)
    assert marginal_associations(design, np.ones((1, 1, 4)), None)[0][0, 0] == 1


@pytest.mark.parametrize(("n_features", "n_outputs"), [(400, 1), (30, 1), (200, 3)])
@pytest.mark.parametrize("size", [10, 30])
def test_associations_of_noise_are_those_of_chance(n_features, n_outputs, size):
    """What is kept of a variance is close to 0 without associations, and close to 1 with strong."""
    rng = np.random.default_rng(0)
    n, F = 150, 40
    X1 = rng.standard_normal((F, n, 1 + n_features))
    owner = np.zeros((F, n_features), dtype=int)
    design = ColumnDesign(X1, owner, np.full(F, float(n)), 1)
    noise = rng.standard_normal((F, n_outputs, n))

    def share():
        _, squares = marginal_associations(design, noise, None)
        return share_beyond_chance(squares, size, n_features * n_outputs)

    kept = share()
    assert kept.min() >= LEAST
    assert kept.mean() < 0.12
    X1[:, :, 1 : 1 + size] += noise[:, 0, :, None]  # a cause that these columns share
    X1 /= X1.std(axis=1, keepdims=True)
    assert share().min() > 0.8


def test_a_screened_member_alone_has_all_features_where_there_are_few():
    sim = make_multiview(60, {"a": 3, "b": 4}, logit_sd=6, random_state=0)
    model = BaldurClassifier(members=tuple(SCREENED)).fit(sim.data, sim.target)
    assert list(model.stacking_weights_) == ["screened_10"]


def test_people_without_a_view_count_neither_for_nor_against_its_features():
    """The associations of a view are those of the people who have it."""
    rng = np.random.default_rng(0)
    few, n = 15, 40
    X1 = np.ones((1, n, 9))
    X1[0, :, 1:] = rng.standard_normal((n, 8))
    owner = np.repeat([[0, 1]], 4, axis=1)
    absent = np.zeros((1, n, 2))
    absent[0, few:, 1] = 1.0
    X1[0, few:, 1:][:, owner[0] == 1] = 0.0
    design = ColumnDesign(X1, owner, np.array([float(n)]), 2)
    left = rng.standard_normal((1, 2, n))
    whole = marginal_associations(design, left, absent)
    part = ColumnDesign(X1[:, :few], owner, np.array([float(few)]), 2)
    alone = marginal_associations(part, left[:, :, :few], None)
    for column in np.flatnonzero(owner[0] == 1):
        values = [squares[0, order[0] == column] for order, squares in (whole, alone)]
        np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


def test_inclusion_is_the_weight_of_the_members_that_have_the_feature():
    sim = make_multiview(80, {"a": 4, "b": 30}, logit_sd=6, random_state=0)
    model = BaldurClassifier(members=("screened_10",)).fit(sim.data, sim.target)
    found = np.concatenate(list(model.inclusion_probability_.values()))
    assert sorted(found.tolist()) == [0.0] * 24 + [1.0] * 10
    both = BaldurClassifier(members=("pooled", "screened_10")).fit(sim.data, sim.target)
    found = np.concatenate(list(both.inclusion_probability_.values()))
    assert np.isclose(found, 1.0).sum() == 10
    assert 0.0 < found.min() < 1.0


def test_kernels_without_zero_columns_are_the_literal_ones():
    rng = np.random.default_rng(0)
    X1 = rng.standard_normal((2, 5, 21))
    design = ColumnDesign(X1, np.zeros((2, 20), dtype=int), np.full(2, 5.0), 1)
    for share in (0.2, 0.9):
        s = rng.gamma(1.0, size=(2, 3, 20)) * (rng.random((2, 1, 20)) < share)
        X = X1[:, :, 1:]
        want = np.einsum("fnl,fcl,fml->fcnm", X, s, X) + design.intercept_var
        np.testing.assert_allclose(design.kernel(s), want, rtol=1e-6)


def test_smooth_patches_of_signal_are_averaged():
    """Where one cause changes many correlated voxels, the screened members count for most."""
    sim = make_adni_like(scale=0.004, random_state=0)
    model = BaldurClassifier().fit(sim.data[:400], sim.target[:400])
    weights = model.stacking_weights_
    assert sum(weights[name] for name in SCREENED) > 0.5 * sum(weights.values())
