"""Stacking: the best pool of linear predictors, whatever the order, the repeats or the start."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.special import softmax

from baldur.inference import stacking as stacking_module
from baldur.inference.stacking import (
    SLOPE_SD,
    HeldOut,
    Stacking,
    attenuation,
    calibrated_moments,
    fit_stacking,
    shares_of,
)
from baldur.model.likelihood import take_folds
from baldur.model.predictions import score_and_slopes

TASKS = ["binary", "multiclass", "multilabel", "regression"]
OUTPUTS = {"binary": 1, "multiclass": 3, "multilabel": 2, "regression": 2}


def drawn(task="binary", n=120, K=3, seed=0, truth=1.0):
    """Members of which the first is `truth` times too cautious and the others know less."""
    rng = np.random.default_rng(seed)
    C = OUTPUTS[task]
    eta = 2.0 * rng.standard_normal((n, C))
    mean = np.stack([eta / truth + k * rng.standard_normal((n, C)) for k in range(K)], axis=1)
    var = rng.gamma(2.0, 0.1, (n, K, C)) + 0.01
    p = 1.0 / (1.0 + np.exp(-eta))
    if task == "multiclass":
        p /= p.sum(axis=1, keepdims=True)
        T = np.eye(C)[[rng.choice(C, p=row) for row in p]]
    elif task == "regression":
        T, var = eta + rng.standard_normal((n, C)), var + 1.0
    else:
        T = (rng.random((n, C)) < p).astype(float)
    return HeldOut(mean, var, np.full((n, C), 0.1), T, np.arange(n), rng.uniform(0.5, 2.0, n), task)


def only(held, rows):
    """Some of the predictions."""
    return HeldOut(
        held.mean[rows], held.var[rows], held.base[rows], held.T[rows], held.row[rows],
        held.weight[rows], held.task,
    )  # fmt: skip


def fit(held, task):
    """The stacking weights of all rows, and the parameters they come from."""
    whole, _ = fit_stacking(held, [held.row[:1]])
    confidence = attenuation(held.var, logistic=task != "regression")
    logs = np.log(whole.shares[0] / confidence)
    return whole, np.append(np.log(whole.slope), logs - logs.mean())


def literal_loss(x, held, task, confidence):
    """What stacking minimises, row by row."""
    slope, q = np.exp(x[0]), softmax(x[1:])
    share = q * confidence / (q * confidence).sum()
    value = 0.0
    for n in range(len(held.T)):
        middle = share @ held.mean[n]
        var = share @ (held.var[n] + (held.mean[n] - middle) ** 2)
        eta = held.base[n] + slope * (middle - held.base[n])
        score, _, _ = score_and_slopes(eta[None], var[None], held.T[[n]], task)
        value += held.weight[n] * score[0]
    value += 2.0 / len(q) * np.log(q).sum() - 2.0 * x[0] ** 2
    return -value + 0.5 * stacking_module.FLAT * (x[1:] ** 2).sum()


@pytest.mark.parametrize("task", TASKS)
def test_the_objective_is_literal_and_its_gradient_that_of_differences(task):
    """For several problems with weights of their own at once."""
    held = drawn(task, n=30)
    confidence = attenuation(held.var, logistic=task != "regression")
    objective = held.objective
    rng = np.random.default_rng(1)
    x, weight = rng.normal(0, 0.7, (3, 4)), rng.uniform(0.0, 2.0, (3, 30))
    value, gradient = objective(x, weight)
    for b in range(3):
        mine = replace(held, weight=weight[b])
        assert value[b] == pytest.approx(literal_loss(x[b], mine, task, confidence), rel=1e-10)
        want = approx_fprime(x[b], lambda z: objective(z[None], weight[[b]])[0][0], 1e-6)  # noqa: B023
        np.testing.assert_allclose(gradient[b], want, rtol=1e-4, atol=1e-4)
    H = held.curvature(x[0], weight[0])
    np.testing.assert_allclose(H, H.T)
    step = 1e-4 * np.eye(4)
    one = np.tile(weight[0], (4, 1))
    literal = (objective(x[0] + step, one)[1] - objective(x[0] - step, one)[1]) / 2e-4
    np.testing.assert_allclose(H, literal, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("task", TASKS)
def test_the_weights_are_the_best_ones(task):
    held = drawn(task, n=50)
    confidence = attenuation(held.var, logistic=task != "regression")
    stacking, x = fit(held, task)
    objective = held.objective

    def loss(z):
        value, gradient = objective(z[None], held.weight[None])
        return value[0], gradient[0]

    best = minimize(loss, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-8})
    found = literal_loss(x, held, task, confidence)
    assert found <= best.fun + 1e-4
    _, shares = shares_of(best.x[None, 1:], confidence)
    np.testing.assert_allclose(stacking.shares, shares, atol=2e-3)
    assert stacking.slope[0] == pytest.approx(np.exp(best.x[0]), rel=2e-3)
    assert stacking.shares.sum() == pytest.approx(1.0, abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(10):
        other = x + 0.3 * rng.standard_normal(len(x))
        assert literal_loss(other, held, task, confidence) > found


@pytest.mark.parametrize("task", TASKS)
def test_slopes_of_the_score_are_those_of_its_values(task):
    held = drawn(task, n=6)
    mean, var = held.mean[:, 0], held.var[:, 0] + 0.5
    _, by_mean, by_var = score_and_slopes(mean, var, held.T, task)

    def total(flat):
        m, v = flat.reshape(2, *mean.shape)
        return score_and_slopes(m, v, held.T, task)[0].sum()

    want = approx_fprime(np.concatenate([mean.ravel(), var.ravel()]), total, 1e-6)
    np.testing.assert_allclose(
        np.concatenate([by_mean.ravel(), by_var.ravel()]), want, rtol=1e-4, atol=1e-5
    )


# -- folds ---------------------------------------------------------------------------------------


def repeated(task="binary", N=30, K=4, repeats=2, seed=0):
    """Predictions of every row by each of several repeats of three folds."""
    rng = np.random.default_rng(seed)
    folds, parts = [], []
    whole = drawn(task, N, K, seed)
    for _ in range(repeats):
        order = rng.permutation(N)
        folds += [np.sort(part) for part in np.array_split(order, 3)]
    for rows in folds:
        part = only(whole, rows)
        part.mean = part.mean + 0.3 * rng.standard_normal(part.mean.shape)
        part.weight = part.weight / repeats
        parts.append(part)
    names = ("mean", "var", "base", "T", "row", "weight")
    joined = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return HeldOut(*joined, task), folds


@pytest.fixture
def patient(constants):
    """Go on to the optimum; the tolerance of fits leaves some thousandths of the shares."""
    constants(TOLERANCE=1e-14)


def close(got, want, tolerance=2e-3):
    for name in ("shares", "slope", "slope_var"):
        a, b = getattr(got, name), getattr(want, name)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("task", TASKS)
def test_the_tolerance_of_fits_leaves_little(task, constants):
    held, folds = repeated(task)
    found = fit_stacking(held, folds)
    constants(TOLERANCE=1e-14)
    for got, want in zip(found, fit_stacking(held, folds), strict=True):
        close(got, want, 1e-2)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("task", TASKS)
def test_the_weights_of_a_fold_are_a_fit_to_the_other_rows_alone(task, monkeypatch):
    held, folds = repeated(task)
    _, without = fit_stacking(held, folds)
    confidence = attenuation(held.var, logistic=task != "regression")
    monkeypatch.setattr(stacking_module, "attenuation", lambda var, logistic: confidence)
    for f, rows in enumerate(folds):
        rest = only(held, ~np.isin(held.row, rows))
        alone, _ = fit_stacking(rest, [rows[:1]])
        close(take_folds(without, slice(f, f + 1)), alone, 1e-4)


@pytest.mark.usefixtures("patient")
def test_the_weights_of_a_fold_use_no_outcome_of_its_rows():
    """Whatever became of the rows that a fold holds out: its weights are the same to rounding."""
    held, folds = repeated()
    whole, without = fit_stacking(held, folds)
    for f, rows in enumerate(folds):
        T = held.T.copy()
        hit = np.isin(held.row, rows)
        T[hit] = 1.0 - T[hit]
        other, again = fit_stacking(replace(held, T=T), folds)
        close(take_folds(again, slice(f, f + 1)), take_folds(without, slice(f, f + 1)), 1e-4)
        assert np.abs(other.shares - whole.shares).max() > 1e-2


@pytest.mark.usefixtures("patient")
def test_the_weights_of_a_fold_use_no_prediction_of_its_rows():
    """By whatever fold; variances decide how confident members are, and are left as they are."""
    held, folds = repeated()
    _, without = fit_stacking(held, folds)
    rng = np.random.default_rng(1)
    for f, rows in enumerate(folds):
        mean, hit = held.mean.copy(), np.isin(held.row, rows)
        mean[hit] = 3.0 * rng.standard_normal(mean[hit].shape)
        _, again = fit_stacking(replace(held, mean=mean), folds)
        close(take_folds(again, slice(f, f + 1)), take_folds(without, slice(f, f + 1)), 1e-4)


def test_repeats_do_not_count_as_rows():
    held, folds = repeated(repeats=1)
    whole, without = fit_stacking(held, folds)
    thrice = only(held, np.tile(np.arange(30), 3))
    thrice.weight = thrice.weight / 3.0
    same, again = fit_stacking(thrice, folds * 3)
    close(same, whole, 1e-5)
    close(take_folds(again, np.arange(3)), without, 1e-5)


@pytest.mark.usefixtures("patient")
def test_folds_worked_on_together_or_one_by_one_have_the_same_weights(constants):
    held, folds = repeated(repeats=3)
    _, together = fit_stacking(held, folds)
    constants(BATCH_SIZE=1)
    _, one_by_one = fit_stacking(held, folds)
    close(together, one_by_one, 1e-4)


# -- what the weights mean -----------------------------------------------------------------------


def test_one_member_that_is_right_is_trusted():
    stacking, _ = fit(drawn(n=3000), "binary")
    assert stacking.shares[0, 0] > 0.85
    assert stacking.slope[0] == pytest.approx(1.0, abs=0.15)
    np.testing.assert_allclose(stacking.member_weights, stacking.slope[0] * stacking.shares)


@pytest.mark.parametrize("truth", [0.5, 2.0])
def test_the_slope_mends_members_that_are_too_sure_or_too_cautious(truth):
    held = drawn(n=3000, truth=truth)
    held = replace(held, var=0.01 * held.var)
    stacking, _ = fit(held, "binary")
    assert stacking.slope[0] == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize("task", TASKS)
def test_what_rows_leave_unknown_of_the_slope_is_the_curvature_of_the_score(task):
    held = drawn(task, n=40)
    confidence = attenuation(held.var, logistic=task != "regression")
    stacking, x = fit(held, task)
    step = np.append(0.05, np.zeros(3))
    low, middle, high = (literal_loss(x + k * step, held, task, confidence) for k in (-1, 0, 1))
    assert stacking.slope_var[0] == pytest.approx(0.05**2 / (low - 2.0 * middle + high), rel=0.05)


def test_intervals_of_the_slope_hold_it():
    """90 % intervals of the ln slope, over draws from its prior, one member that is right."""
    hits, rng = [], np.random.default_rng(0)
    for seed in range(200):
        truth = np.exp(SLOPE_SD * rng.standard_normal())
        held = drawn(n=120, K=1, truth=truth, seed=seed)
        held = replace(held, var=1e-3 * held.var)
        held.weight[:] = 1.0
        stacking, x = fit(held, "binary")
        hits.append(abs(x[0] - np.log(truth)) < 1.645 * np.sqrt(stacking.slope_var[0]))
    assert 0.84 < np.mean(hits) < 0.96  # 90 % within three standard errors


def test_without_rows_the_slope_is_as_uncertain_as_its_prior():
    held = drawn()
    held.weight[:] = 0.0
    stacking, _ = fit(held, "binary")
    assert stacking.slope_var[0] == pytest.approx(SLOPE_SD**2)
    assert stacking.slope[0] == pytest.approx(1.0)


def test_where_members_know_nothing_the_slope_is_small():
    held = drawn(n=400)
    held.T = np.random.default_rng(1).integers(0, 2, held.T.shape).astype(float)
    assert fit(held, "binary")[0].slope[0] < 0.35


def test_equal_members_get_equal_shares():
    held = drawn()
    mean, var = (np.repeat(part[:, :1], 4, axis=1) for part in (held.mean, held.var))
    held = replace(held, mean=mean, var=var)
    np.testing.assert_allclose(fit(held, "binary")[0].shares, 0.25, atol=1e-6)


def test_members_of_little_confidence_count_for_little_at_first():
    """Without rows the shares are what is left of each predictor in its probabilities."""
    held = drawn()
    held.weight[:] = 0.0
    var = held.var.copy()
    var[:, 2] = 100.0
    held = replace(held, var=var)
    stacking, _ = fit(held, "binary")
    confidence = attenuation(held.var, logistic=True)
    np.testing.assert_allclose(stacking.shares[0], confidence / confidence.sum(), rtol=1e-6)
    assert confidence[2] < 0.2 < 0.8 < confidence[0]
    np.testing.assert_array_equal(attenuation(held.var, logistic=False), 1.0)


def test_order_does_not_matter():
    held = drawn()
    stacking, _ = fit(held, "binary")
    rows = np.random.default_rng(0).permutation(120)
    close(fit(only(held, rows), "binary")[0], stacking)
    order = [2, 0, 1]
    turned = replace(held, mean=held.mean[:, order], var=held.var[:, order])
    other, _ = fit(turned, "binary")
    np.testing.assert_allclose(other.shares, stacking.shares[:, order], atol=2e-3)
    assert other.slope[0] == pytest.approx(stacking.slope[0], rel=2e-3)


def test_weight_two_is_a_row_twice(monkeypatch):
    monkeypatch.setattr(stacking_module, "attenuation", lambda var, logistic: np.ones(3))
    held = drawn(n=40)
    held.weight[:] = 1.0
    twice = only(held, np.concatenate([np.arange(40), np.arange(0, 40, 4)]))
    held.weight[::4] = 2.0
    close(fit_stacking(held, [np.array([0])])[0],
          fit_stacking(twice, [np.array([0])])[0], 1e-4)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.floats(1e-3, 1e3), st.sampled_from(TASKS))
def test_whatever_members_predict_the_weights_are_sound(seed, K, scale, task):
    held = drawn(task, n=15, K=K, seed=seed)
    held = replace(held, mean=scale * held.mean, var=scale * held.var)
    for stacking in fit_stacking(held, [np.arange(5), np.arange(5, 10)]):
        assert (stacking.shares >= 0).all()
        np.testing.assert_allclose(stacking.shares.sum(axis=1), 1.0)
        assert (stacking.slope > 0.0).all()
        assert (stacking.slope < np.exp(10 * SLOPE_SD)).all()
        assert (stacking.slope_var > 0.0).all()
        assert (stacking.slope_var <= SLOPE_SD**2 + 1e-12).all()


def test_the_pool_is_literal():
    rng = np.random.default_rng(0)
    mean, var, base = rng.standard_normal((2, 3, 5)), rng.random((2, 3, 5)), rng.random((2, 3, 1))
    given = Stacking(np.ones((2, 1)), np.array([0.7, 1.6]), np.array([0.1, 0.0]))
    slope, slope_var = given.slope[:, None, None], given.slope_var[:, None, None]
    got_mean, got_var = calibrated_moments(mean, var, base, slope, slope_var)
    for f in range(2):
        away = given.slope[f] * (mean[f] - base[f])
        np.testing.assert_allclose(got_mean[f], base[f] + away)
        np.testing.assert_allclose(got_var[f], var[f] + given.slope_var[f] * away**2)
