"""The default fit: one posterior predicts, is selected and is shown; order does not matter."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_info

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.datasets import make_multiview
from baldur.exceptions import NotConvergedWarning
from baldur.inference import fit_context, inner_folds
from baldur.inference.ensemble import MEMBERS, SCREENED
from baldur.inference.fit import MANY_SAMPLES, FitResult, few_blas_threads, fit_default, score_path
from baldur.inference.fit_context import FitContext
from baldur.inference.inner_folds import Problem, folds_at_once
from baldur.inference.predictor import KernelGaussian, WeightGaussian
from baldur.inference.stacking import Stacking
from baldur.inference.submodel_selection import mean_losses
from baldur.inference.submodels import submodel_predictor, whole_view_predictor
from baldur.model.predictions import probabilities
from baldur.preparation import CategoryEncoder
from inference.problems import (
    as_view,
    gathered,
    make_problem,
)

pytestmark = pytest.mark.usefixtures("one_repeat")

TASKS = ["binary", "multiclass", "multilabel", "regression"]
DONE = {}


def answered(task="binary", **options):
    """Fit a small problem once for each setting."""
    key = (task, repr(sorted(options.items())))
    if key not in DONE:
        problem, folds = make_problem(task, **{"absent": True, **options})
        DONE[key] = problem, fit_default(problem, folds, max_iter=60)
    return DONE[key]


def linear(result, views):
    """The data times the weights."""
    coef, _, b = result.predictor.coefficients()
    return sum(view.apply(w.T) for view, w in zip(views, coef, strict=True)) + b


def bits(result):
    coef, std, b = result.predictor.coefficients()
    losses = [step["loss"] for step in result.path]
    arrays = [
        *coef,
        *std,
        b,
        *result.inclusion,
        np.array(losses),
        np.array(list(result.stacking.values())),
    ]
    return [a.tobytes() for a in arrays]


# -- one posterior ------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_one_posterior_predicts_is_selected_and_is_shown(task):
    problem, result = answered(task)
    coef, std, _ = result.predictor.coefficients()
    mean, var = result.predictor.moments(problem.views)
    np.testing.assert_allclose(linear(result, problem.views), mean, atol=1e-6)
    assert (var > 0).all()
    for mask, w, sd in zip(result.selected, coef, std, strict=True):
        assert not w[:, ~mask].any()
        assert not sd[:, ~mask].any()
        assert (sd[:, mask] > 0).all()
    assert result.selected[0][0]
    assert result.signal > 1.645


@pytest.mark.parametrize("task", TASKS)
def test_what_is_not_selected_does_not_predict(task):
    """Other numbers, or none, in features that are not selected change no prediction."""
    problem, result = answered(task)
    rng = np.random.default_rng(0)
    other = []
    assert not all(mask.all() for mask in result.selected)
    for view, mask in zip(problem.views, result.selected, strict=True):
        X = view.dense().copy()
        X[:, ~mask] = 1e3 * rng.standard_normal((len(X), (~mask).sum()))
        other.append(as_view(X, view.absent))
    predict = result.predictor.moments
    for got, want in zip(predict(other), predict(problem.views), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_what_is_selected_predicts(task):
    problem, result = answered(task)
    mean, _ = result.predictor.moments(problem.views)
    for m, mask in enumerate(result.selected):
        for d in np.flatnonzero(mask):
            views = list(problem.views)
            X = views[m].dense().copy()
            X[:, d] += 1.0
            views[m] = as_view(X, views[m].absent)
            assert np.abs(result.predictor.moments(views)[0] - mean).max() > 0


@pytest.mark.parametrize("task", TASKS)
def test_the_path_says_what_was_selected(task):
    _, result = answered(task)
    path = result.path
    assert [step["step"] for step in path] == sorted(
        (step["step"] for step in path), key=["nothing", "views", "features"].index
    )
    kept = [step for step in path if step["selected"]]
    assert len(kept) == 1
    assert kept[0]["n_features"] == sum(int(mask.sum()) for mask in result.selected)
    for kind in ("views", "features"):
        sizes = [step["n_features"] for step in path if step["step"] == kind]
        assert sizes == sorted(set(sizes))
    for step in path:
        assert step["upper"] == pytest.approx(
            step["loss_difference"] + 1.645 * step["standard_error"]
        )
    whole = [step for step in path if step["step"] == "views"][-1]
    assert whole["n_views"] == 2
    assert whole["loss_difference"] == 0.0
    gained, error = path[0]["loss_difference"], path[0]["standard_error"]
    assert gained == pytest.approx(path[0]["loss"] - whole["loss"])
    assert result.signal == pytest.approx(gained / error)
    allowed = 0.1 * gained
    for step in path:
        if step["candidate"] and step is not path[-1]:
            assert step["upper"] <= allowed + 1e-12


@pytest.mark.parametrize("task", TASKS)
def test_stacking_weights_and_inclusion_probabilities(task):
    problem, result = answered(task)
    total = sum(problem.widths)
    assert list(result.stacking) == [m for m in MEMBERS if SCREENED.get(m, 0) < total]
    assert 0.5 < sum(result.stacking.values()) < 4.0  # there is a signal
    assert min(result.stacking.values()) > 0.0
    for rho, view in zip(result.inclusion, problem.views, strict=True):
        assert rho.shape == (view.shape[1],)
        assert ((rho >= 0) & (rho <= 1)).all()
    assert result.inclusion[0][0] > 0.5
    assert result.credible_sets


def test_one_view_has_no_member_per_view():
    problem, folds = make_problem(sizes=(8,), N=36)
    result = fit_default(problem, folds, max_iter=30)
    assert list(result.stacking) == ["spike_slab", "spike_slab_wide", "pooled"]


@pytest.mark.parametrize("task", TASKS)
def test_without_a_selecting_member_every_feature_is_included(task):
    problem, folds = make_problem(task)
    result = fit_default(problem, folds, members=("pooled", "per_view"), max_iter=30)
    assert list(result.stacking) == ["per_view", "pooled"]
    for rho, width in zip(result.inclusion, (5, 20), strict=True):
        np.testing.assert_allclose(rho, np.ones(width), rtol=0, atol=1e-15)  # rounding of a sum
    assert result.credible_sets == []
    assert result.selected[0][0]


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_wide_views_are_screened_and_nothing_else_changes(constants, task):
    """Fewer candidates than features and more features than samples: still one posterior."""
    constants(CANDIDATES=30, PER_VIEW=4)
    problem, folds = make_problem(task, N=48, sizes=(5, 90), absent=True)
    (index,), _ = inner_folds.candidates(problem, [np.arange(48)])
    assert 30 <= sum(map(len, index)) <= 38
    for margin in (0.0, 0.1):
        result = fit_default(problem, folds, margin=margin, max_iter=60)
        mean, _ = result.predictor.moments(problem.views)
        np.testing.assert_allclose(linear(result, problem.views), mean, atol=1e-6)
        assert result.selected[0][:2].any()
        outside = np.setdiff1d(np.arange(90), index[1])
        assert not result.inclusion[1][outside].any()


# -- what predicts is what was scored ------------------------------------------------------------


def scored(task, sizes=(4, 8)):
    """A fit whose only fold holds out all rows, fitted to all rows, and its scores."""
    problem, _ = make_problem(task, N=42, sizes=sizes, absent=True)
    everyone = np.arange(42)
    fit = FitContext(problem, [(everyone, everyone)], MEMBERS, 200)
    equal = np.full((1, len(fit.full.names)), 1.0 / len(fit.full.names))
    fit.stacking = Stacking(equal, np.array([1.4]), np.array([0.04]))
    fit.stackings = [fit.stacking]
    by_views = fit.score_views()
    assert fit.view_counts == [1, 2]
    assert fit.score_base_rate().losses.shape == (42,)
    return problem, fit, by_views


def losses_of(predictor, problem):
    mean, var = predictor.moments(problem.views)
    rows = np.arange(problem.n_samples)
    return mean_losses(mean, var + predictor.noise, rows, problem.T, problem.task)


@pytest.mark.parametrize("task", ["binary", "multilabel", "regression"])
def test_the_selected_submodel_predicts_as_it_was_scored(task):
    problem, fit, by_views = scored(task)
    path, _, sizes, scores = score_path(fit, 2, by_views[1])
    has = fit.data.absent.sum(axis=1) == 0
    for at, size in enumerate(sizes.columns):
        predictor, columns = submodel_predictor(fit, path, size, scores[at])
        first = np.sort(path.order[0, :size])
        np.testing.assert_array_equal(np.concatenate([columns[0], 4 + columns[1]]), first)
        assert isinstance(predictor.blocks[0], WeightGaussian)
        got = losses_of(predictor, problem)
        np.testing.assert_allclose(got[has], scores[at].losses[has], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("sizes", [(4, 8), (4, 60)], ids=["columns", "Grams"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_whole_views_predict_as_they_were_scored(sizes, task):
    problem, fit, by_views = scored(task, sizes)
    for at, mask in enumerate(([[True, False]], [[True, True]])):
        predictor = whole_view_predictor(fit, np.array(mask), by_views[at])
        got, want = losses_of(predictor, problem), by_views[at].losses
        np.testing.assert_allclose(got, want, rtol=1e-7)
        kinds = {type(block) for block in predictor.blocks}
        assert kinds == ({WeightGaussian} if sizes == (4, 8) else {KernelGaussian})
        coef, std, _ = predictor.coefficients()
        assert [w.any() for w in coef] == [sd.any() for sd in std] == mask[0]
    np.testing.assert_allclose(by_views[-1].left_out, 0.0, atol=1e-12)


# -- the same answer ----------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(5, 20), (5, 60)], ids=["feature solver", "sample solver"])
def test_two_fits_and_two_jobs_give_the_same_bits(monkeypatch, sizes):
    """Also where every fold is a batch of its own."""
    monkeypatch.setattr(fit_context, "folds_at_once", lambda *args: 1)
    problem, folds = make_problem("multilabel", absent=True, sizes=sizes)
    fits = [fit_default(problem, folds, max_iter=60, n_jobs=n_jobs) for n_jobs in (None, 1, 2)]
    for other in fits[1:]:
        assert bits(other) == bits(fits[0])


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_the_size_of_batches_does_not_matter(monkeypatch, task):
    problem, folds = make_problem(task, absent=True)
    _, whole = answered(task)
    for size in (1, 2):
        monkeypatch.setattr(fit_context, "folds_at_once", lambda *args, size=size: size)
        found = fit_default(problem, folds, max_iter=60)
        for got, want in zip(
            found.predictor.moments(problem.views),
            whole.predictor.moments(problem.views),
            strict=True,
        ):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        losses = [[step["loss"] for step in each.path] for each in (found, whole)]
        np.testing.assert_allclose(*losses, rtol=1e-6)


def test_batches_are_smaller_for_larger_folds():
    problem, folds = make_problem(sizes=(5, 60))
    data, _ = gathered(problem, folds, by_grams=True)
    sizes = [folds_at_once(data, n, 65) for n in (20, 100, 1000, 100_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1


def permuted(problem, folds, rows, columns, views):
    """The same problem with rows, features and views in another order."""
    made = [
        as_view(problem.views[m].dense()[rows][:, columns[m]], problem.views[m].absent[rows])
        for m in views
    ]
    place = np.argsort(rows)
    moved = [(place[a], place[b]) for a, b in folds]
    return Problem(made, problem.T[rows], problem.weight[rows], problem.task), moved


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_order_of_rows_features_and_views_does_not_matter(task):
    problem, folds = make_problem(task, absent=True)
    _, result = answered(task)
    rng = np.random.default_rng(0)
    rows = rng.permutation(48)
    columns = [rng.permutation(view.shape[1]) for view in problem.views]
    other = fit_default(*permuted(problem, folds, rows, columns, [1, 0]), max_iter=60)
    coef, std, b = result.predictor.coefficients()
    coef2, std2, b2 = other.predictor.coefficients()
    np.testing.assert_allclose(b2, b, rtol=1e-4, atol=1e-5)
    for m in range(2):
        order, at = columns[m], 1 - m
        np.testing.assert_array_equal(other.selected[at], result.selected[m][order])
        np.testing.assert_allclose(coef2[at], coef[m][:, order], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(std2[at], std[m][:, order], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(other.inclusion[at], result.inclusion[m][order], atol=1e-4)
    for name, weight in result.stacking.items():
        assert other.stacking[name] == pytest.approx(weight, abs=1e-4)


def test_order_of_outputs_does_not_matter():
    problem, folds = make_problem("multilabel", absent=True)
    _, result = answered("multilabel")
    other = fit_default(replace(problem, T=problem.T[:, ::-1]), folds, max_iter=60)
    for got, want in zip(
        other.predictor.moments(problem.views), result.predictor.moments(problem.views), strict=True
    ):
        np.testing.assert_allclose(got, want[:, ::-1], rtol=1e-4, atol=1e-5)


def test_results_survive_pickling():
    problem, result = answered("binary")
    copy = pickle.loads(pickle.dumps(result))
    assert isinstance(copy, FitResult)
    for got, want in zip(
        copy.predictor.moments(problem.views), result.predictor.moments(problem.views), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_each_step_is_told():
    problem, folds = make_problem(N=36, sizes=(4, 6))
    told = []
    fit_default(problem, folds, max_iter=20, watch=told.append)
    events = [record["event"] for record in told]
    assert events[0] == "the ensemble is fitted on all samples"
    assert events[-1] == "submodels with fewer features are scored"
    done = [record["done"] for record in told]
    assert done == sorted(done)
    assert 0.0 < done[0] <= done[-1] <= 1.0


def test_small_samples_get_one_thread_of_blas():
    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    before = threads()
    with few_blas_threads(MANY_SAMPLES - 1):
        assert threads() == {1}
    assert threads() == before
    with few_blas_threads(MANY_SAMPLES):
        assert threads() == before


# -- selection ----------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_larger_margins_select_no_more(task):
    problem, folds = make_problem(task, N=60, sizes=(6, 12), repeats=2)
    sizes = []
    for margin in (0.0, 0.1, 0.3, 1.0):
        result = fit_default(problem, folds, margin=margin)
        sizes.append(sum(int(mask.sum()) for mask in result.selected))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] <= 4


def noise(seed, task="binary", N=50, sizes=(6, 30)):
    """A problem whose outcomes know nothing of its features."""
    problem, folds = make_problem(task, N=N, sizes=sizes, seed=seed, repeats=2)
    T = problem.T[np.random.default_rng(seed + 100).permutation(N)]
    return replace(problem, T=T), folds


def test_pure_noise_claims_nothing():
    """No evidence of a signal, and what predicts all the same stays near the base rate."""
    below = 0
    for seed in (1, 3, 10, 12):
        problem, folds = noise(seed)
        result = fit_default(problem, folds, max_iter=60)
        assert result.signal < 1.645
        below += result.signal < -1.645
        p = probabilities(*result.predictor.moments(problem.views), "binary")
        assert np.abs(p - problem.T.mean()).mean() < 0.1  # on the training rows
        assert any(mask.any() for mask in result.selected)
    assert below  # also where the base rate is shown to be better


def test_noise_in_real_outcomes_claims_nothing():
    problem, folds = noise(1, "regression")
    assert fit_default(problem, folds, max_iter=60).signal < 1.645


# -- what predictions are worth -----------------------------------------------------------------


def simulated(task, N=300, n_test=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N + n_test, 15))
    eta = 1.5 * X[:, [0]] - 1.5 * X[:, [8]]
    if task == "regression":
        T = eta + 0.8 * rng.standard_normal(eta.shape)
    else:
        T = (rng.random(eta.shape) < expit(eta)).astype(float)
    train, test = np.arange(N), np.arange(N, N + n_test)
    X = (X - X[train].mean(0)) / X[train].std(0)
    blocks = [X[:, :6], X[:, 6:]]
    problem = Problem([as_view(A[train]) for A in blocks], T[train], np.ones(N), task)
    order = rng.permutation(N)
    folds = [(np.setdiff1d(train, part), np.sort(part)) for part in np.array_split(order, 3)]
    return problem, folds, [as_view(A[test]) for A in blocks], T[test]


def test_probabilities_are_calibrated():
    problem, folds, new, truth = simulated("binary")
    result = fit_default(problem, folds, max_iter=60)
    p = probabilities(*result.predictor.moments(new), "binary")[:, 0]
    t = truth[:, 0]
    assert result.selected[0][0]
    assert result.selected[1][2]
    loss = -np.log(np.where(t > 0, p, 1 - p)).mean()
    assert loss < 0.50  # the truth has .46, the base rate .69
    bins = np.digitize(p, np.quantile(p, [0.2, 0.4, 0.6, 0.8]))
    gaps = [abs(p[bins == k].mean() - t[bins == k].mean()) for k in range(5)]
    assert np.mean(gaps) < 0.06


def test_intervals_of_real_outcomes_cover():
    problem, folds, new, truth = simulated("regression")
    result = fit_default(problem, folds, max_iter=60)
    mean, var = result.predictor.moments(new)
    sd = np.sqrt(var + result.predictor.noise)
    for level in (0.5, 0.9):
        covered = (np.abs(truth - mean) < norm.ppf(0.5 + level / 2) * sd).mean()
        assert covered == pytest.approx(level, abs=0.06)
    assert result.predictor.noise[0] == pytest.approx(0.64, rel=0.3)


def test_rows_with_a_missing_view_are_less_sure():
    problem, result = answered("binary")
    gone = [
        as_view(np.zeros_like(problem.views[0].dense()), np.ones(48, dtype=bool)),
        problem.views[1],
    ]
    _, var = result.predictor.moments(problem.views)
    mean, wide = result.predictor.moments(gone)
    assert (wide > var).all()
    assert wide.mean() > result.predictor.signal[0, 0] * 0.9
    assert np.ptp(mean) < 1e-9 or result.selected[1].any()


# -- through the estimators -------------------------------------------------------------------


def tables(N=60, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    A = rng.normal(3.0, 2.0, (N, 4))
    B = rng.normal(-1.0, 0.3, (N, 15))
    eta = A[:, 0] - 3.0 + 3 * (B[:, 0] + 1.0)
    y = np.digitize(
        eta + 0.3 * rng.standard_normal(N), np.quantile(eta, [0.33, 0.67][: classes - 1])
    )
    return A, B, eta, y


@pytest.mark.parametrize(("members", "classes"), [(MEMBERS, 2), (("pooled",), 3)])
def test_estimators_do_not_depend_on_the_order_of_features_and_views(members, classes):
    """The answer is permuted with the input and is otherwise the same."""
    A, B, _, y = tables(classes=classes)
    cols = np.random.default_rng(1).permutation(15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model = BaldurClassifier(members=members, max_iter=15).fit(MultiView({"A": A, "B": B}), y)
        by_feature = BaldurClassifier(members=members[::-1], max_iter=15)
        by_feature.fit(MultiView({"B": B[:, cols], "A": A}), y)
    p = model.predict_proba(MultiView({"A": A, "B": B}))
    other = MultiView({"B": B[:, cols], "A": A})
    np.testing.assert_allclose(by_feature.predict_proba(other), p, atol=1e-5)
    np.testing.assert_allclose(by_feature.coef_["B"], model.coef_["B"][:, cols], atol=1e-5)
    for name in ("A", "B"):
        assert by_feature.view_relevance_[name] == pytest.approx(
            model.view_relevance_[name], abs=1e-5
        )


def test_coef_is_in_the_units_of_the_input():
    A, B, eta, y = tables()
    mv = MultiView({"A": A, "B": B})
    model = BaldurClassifier(preparation="standard").fit(mv, y)
    product = A @ model.coef_["A"].T + B @ model.coef_["B"].T + model.intercept_
    np.testing.assert_allclose(product, model.transform(mv), atol=1e-8)
    # Without noise: the hard case for rounding.
    reg = BaldurRegressor(preparation="standard").fit(mv, eta * 100 + 7)
    product = A @ reg.coef_["A"].T + B @ reg.coef_["B"].T + reg.intercept_
    np.testing.assert_allclose(product[:, 0], reg.predict(mv), rtol=1e-8)


# -- columns of one category are selected together; see also the tests of the submodel path -------


def test_a_fit_selects_whole_groups():
    problem, folds = make_problem("binary")
    groups = [np.arange(view.shape[1]) // 2 for view in problem.views]
    plain = fit_default(replace(problem, groups=None), folds)
    result = fit_default(replace(problem, groups=groups), folds)
    assert 0 < sum(mask.sum() for mask in plain.selected) < sum(problem.widths)
    for mask, group in zip(result.selected, groups, strict=True):
        assert (np.bincount(group, mask) % 2 == 0).all()
    kept = [step for step in result.path if step["selected"]]
    assert kept[0]["n_features"] == sum(mask.sum() for mask in result.selected)


@pytest.fixture(scope="module")
def with_category():
    rng = np.random.default_rng(4)
    n = 160
    site = rng.integers(4, size=n)
    numbers = rng.standard_normal((n, 6))
    logit = 4.0 * (site == 2) - 1.0 + numbers[:, 0]
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(int)
    levels = ["Bonn", "Lima", "Oslo", "Rome"]
    info = pd.DataFrame(
        {
            "column": ["site"] * 4 + [f"x{j}" for j in range(6)],
            "level": [*levels, *[None] * 6],
        }
    )
    names = [*(f"site={level}" for level in levels), *(f"x{j}" for j in range(6))]
    X = MultiView(
        {"clinic": np.hstack([np.eye(4)[site], numbers])},
        feature_names={"clinic": names},
        feature_info={"clinic": info},
    )
    return X, y


@pytest.mark.parametrize("coded", [True, False], ids=["without reference", "all levels"])
def test_a_category_is_selected_as_a_whole(with_category, coded):
    X, y = with_category
    X = CategoryEncoder(drop="first" if coded else None).fit_transform(X)
    model = BaldurClassifier().fit(X, y)
    of_site = np.char.startswith(X.feature_names["clinic"].astype(str), "site=")
    kept = model.selected_features_["clinic"]
    assert kept[of_site].all()
    assert not kept.all()


# -- ctrl-C during a wide fit: the process ends, and leaves neither processes nor files -----------


SOURCE = Path(__file__).resolve().parents[2] / "src"
# A shell starts its background jobs with Ctrl-C ignored, and so would every process below them.
CODE = """
import signal, sys, warnings
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from baldur import BaldurClassifier, MultiView
warnings.simplefilter("ignore")
genes = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(genes)) % 2
print("ready", flush=True)
while True:
    BaldurClassifier(n_jobs=2, verbose=1).fit(MultiView({"genes": genes}), y)
    print("fitted", flush=True)
"""


def alive(session):
    """Processes of a session that are not waiting to be reaped."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(status.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_interrupting_a_wide_fit_leaves_nothing(tmp_path):
    genes = np.random.default_rng(0).integers(0, 3, (60, 20_000), dtype=np.int8)
    np.save(tmp_path / "genes.npy", genes)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(scratch),
        "JOBLIB_TEMP_FOLDER": str(scratch),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, str(tmp_path / "genes.npy")],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert alive(process.pid) == []
    assert list(scratch.iterdir()) == []


# -- a thousand features of pure noise hardly move the test AUC -----------------------------------


SEEDS = 10


def simulate(seed, N=200, n_test=2000):
    """Two views of 20 and 30; signal in 5 features of the first and 2 of the second."""
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((N + n_test, 20)), rng.standard_normal((N + n_test, 30))
    noise = rng.standard_normal((N + n_test, 1000))
    w = rng.choice([-1, 1], 7) * rng.uniform(0.7, 1.3, 7)
    eta = A[:, :5] @ w[:5] + B[:, :2] @ w[5:]
    eta = 3.0 * eta / eta.std()
    y = (rng.random(N + n_test) < 1 / (1 + np.exp(-eta))).astype(int)
    return A, B, noise, y, np.arange(N), np.arange(N, N + n_test)


@pytest.mark.slow
def test_noise_features_hardly_move_the_auc():
    changes = []
    for seed in range(SEEDS):
        A, B, noise, y, train, test = simulate(seed)
        scores = []
        for second in (B, np.hstack([B, noise])):
            mv = MultiView({"A": A, "B": second})
            model = BaldurClassifier().fit(mv[train], y[train])
            scores.append(roc_auc_score(y[test], model.predict_proba(mv[test])[:, 1]))
        changes.append(scores[1] - scores[0])
        print(f"\n  seed {seed}: AUC {scores[0]:.4f} without noise, {scores[1]:.4f} with", end="")
    print(f"\n  mean change {np.mean(changes):+.4f}, mean size {np.mean(np.abs(changes)):.4f}")
    assert np.mean(np.abs(changes)) < 0.03


# -- wide views are worked on in float32: the same features are kept as in float64 ----------------


CASES = {"narrow": {"narrow": 5}, "wide": {"wide": 10}, "both": {"narrow": 3, "wide": 5}}


@pytest.mark.slow
@pytest.mark.parametrize("case", list(CASES))
def test_auto_keeps_the_same_features_in_single_precision(constants, case):
    sim = make_multiview(200, {"narrow": 20, "wide": 2000}, informative=CASES[case], random_state=0)
    double = BaldurClassifier().fit(sim.data, sim.target)
    constants(FLOAT64_LIMIT_BYTES=0)
    single = BaldurClassifier().fit(sim.data, sim.target)
    for view, mask in double.selected_features_.items():
        np.testing.assert_array_equal(single.selected_features_[view], mask)
        np.testing.assert_allclose(single.coef_[view], double.coef_[view], atol=1e-5)
