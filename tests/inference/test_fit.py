"""The default fit: one posterior predicts, is kept and is shown; order does not matter."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from baldur.inference.auto import Answer, _Scoring, fit_auto, fit_references
from baldur.inference.fitted import from_answer
from baldur.inference.held_out import Scores
from baldur.inference.kept import whole
from baldur.inference.reference import MEMBERS
from baldur.inference.stack import Stack
from scipy.special import expit
from scipy.stats import norm

from baldur.inference import screening
from baldur.inference.predictive import mixture_moments, probabilities
from baldur.inference.screening import Problem
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic
from inference.problems import make_problem
from model.problems import as_view

TASKS = ["binary", "multiclass", "multilabel", "regression"]
DONE = {}


def answered(task="binary", **options):
    """Fit a small problem once for each setting."""
    key = (task, repr(sorted(options.items())))
    if key not in DONE:
        problem, T, folds = make_problem(task, **{"absent": True, **options})
        DONE[key] = problem, T, fit_auto(problem, T, folds, max_iter=60)
    return DONE[key]


def predictions(answer, views):
    """<eta> and Var eta of the mixture."""
    return mixture_moments(answer.mixture.moments(views), answer.mixture.output_weights)


def scored(problem, T, folds, max_iter=60):
    """Fit every fold; the answer under any margin then needs no more fits."""
    references, index = fit_references(problem, folds, None, max_iter, None)
    return _Scoring(problem, T, folds, references, None), index


def bits(answer):
    coef, std, b = answer.mixture.coefficients()
    losses = [step["loss"] for step in answer.path]
    arrays = [
        *coef,
        *std,
        b,
        *answer.inclusion,
        np.array(losses),
        np.array(list(answer.stack.values())),
    ]
    return [a.tobytes() for a in arrays]


# -- one posterior ------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_one_posterior_predicts_is_kept_and_is_shown(task):
    problem, _, answer = answered(task)
    coef, std, b = answer.mixture.coefficients()
    eta = sum(v.apply(w.T) for v, w in zip(problem.views, coef, strict=True)) + b
    mean, var = predictions(answer, problem.views)
    np.testing.assert_allclose(eta, mean, atol=1e-6)
    assert (var > 0).all()
    for mask, w, sd in zip(answer.selected, coef, std, strict=True):
        assert not w[:, ~mask].any()
        assert not sd[:, ~mask].any()
        assert (sd[:, mask] > 0).all()
    assert answer.selected[0][0]
    assert answer.signal.in_errors > 1.645
    fitted = from_answer(answer, "feature")
    assert [m.tolist() for m in fitted.selected] == [m.tolist() for m in answer.selected]


@pytest.mark.parametrize("task", TASKS)
def test_what_is_not_kept_does_not_predict(task):
    """Other numbers, or none, in features that are not kept change no bit of a prediction."""
    problem, _, answer = answered(task)
    rng = np.random.default_rng(0)
    other = []
    assert not all(mask.all() for mask in answer.selected)
    for view, mask in zip(problem.views, answer.selected, strict=True):
        X = view.dense().copy()
        X[:, ~mask] = 1e3 * rng.standard_normal((len(X), (~mask).sum()))
        other.append(as_view(X, view.absent))
    for got, want in zip(
        predictions(answer, other), predictions(answer, problem.views), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_what_is_kept_predicts(task):
    problem, _, answer = answered(task)
    mean, _ = predictions(answer, problem.views)
    for m, mask in enumerate(answer.selected):
        for d in np.flatnonzero(mask):
            views = list(problem.views)
            X = views[m].dense().copy()
            X[:, d] += 1.0
            views[m] = as_view(X, views[m].absent)
            assert np.abs(predictions(answer, views)[0] - mean).max() > 0


@pytest.mark.parametrize("task", TASKS)
def test_the_path_says_what_was_kept(task):
    _, _, answer = answered(task)
    path = answer.path
    assert [step["step"] for step in path] == sorted(
        (step["step"] for step in path), key=["nothing", "views", "features"].index
    )
    kept = [step for step in path if step["kept"]]
    assert len(kept) == 1
    assert kept[0]["n_features"] == sum(int(mask.sum()) for mask in answer.selected)
    for kind in ("views", "features"):
        sizes = [step["n_features"] for step in path if step["step"] == kind]
        assert sizes == sorted(set(sizes))
    for step in path:
        assert step["upper"] == pytest.approx(
            step["above_reference"] + 1.645 * step["standard_error"]
        )
    whole = [step for step in path if step["step"] == "views"][-1]
    assert whole["n_views"] == 2
    assert whole["above_reference"] == 0.0
    assert path[0]["loss"] - whole["loss"] == pytest.approx(answer.signal.mean)
    allowed = 0.1 * answer.signal.mean
    for step in path:
        if step["candidate"] and step is not path[-1]:
            assert step["upper"] <= allowed + 1e-12


@pytest.mark.parametrize("task", TASKS)
def test_the_stack_and_probabilities_of_being_in(task):
    problem, _, answer = answered(task)
    assert list(answer.stack) == list(MEMBERS)
    assert 0.5 < sum(answer.stack.values()) < 4.0  # there is a signal, and members believe in it
    assert min(answer.stack.values()) > 0.0
    for rho, view in zip(answer.inclusion, problem.views, strict=True):
        assert rho.shape == (view.shape[1],)
        assert ((rho >= 0) & (rho <= 1)).all()
    assert answer.inclusion[0][0] > 0.5
    assert ((answer.share > 0) & (answer.share < 1)).all()


def test_one_view_has_no_member_per_view():
    problem, T, folds = make_problem(sizes=(8,), N=36)
    answer = fit_auto(problem, T, folds, max_iter=30)
    assert list(answer.stack) == [name for name in MEMBERS if name != "per_view"]


@pytest.mark.parametrize("task", TASKS)
def test_without_a_selecting_member_every_feature_is_included(task):
    problem, T, folds = make_problem(task)
    answer = fit_auto(problem, T, folds, members=("pooled", "per_view"), max_iter=30)
    assert list(answer.stack) == ["per_view", "pooled"]
    assert [rho.tolist() for rho in answer.inclusion] == [[1.0] * 5, [1.0] * 20]
    assert answer.share.tolist() == [1.0, 1.0]
    assert answer.stand_ins == []
    assert answer.selected[0][0]


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_wide_views_are_screened_and_nothing_else_changes(monkeypatch, task):
    """Fewer candidates than features and more features than samples: still one posterior."""
    monkeypatch.setattr(screening, "CANDIDATES", 30)
    monkeypatch.setattr(screening, "PER_VIEW", 4)
    problem, T, folds = make_problem(task, N=48, sizes=(5, 90), absent=True)
    run, index = scored(problem, T, folds)
    assert 30 <= sum(map(len, index)) <= 38
    for margin in (0.0, 0.1):
        answer = run.answer(index, margin)
        coef, _, b = answer.mixture.coefficients()
        eta = sum(v.apply(w.T) for v, w in zip(problem.views, coef, strict=True)) + b
        np.testing.assert_allclose(eta, predictions(answer, problem.views)[0], atol=1e-6)
        assert answer.selected[0][:2].any()
        rho = answer.inclusion[1]
        outside = np.setdiff1d(np.arange(90), index[1])
        assert not rho[outside].any()
    # Everything that the reference uses: every feature of every view has a weight.
    stack = Stack(np.full(4, 0.25), 1.5, 0.04)
    points, weights = run.full.mixture(stack)

    one = np.ones((1, T.shape[1]))
    step = Scores(1.3 * one, 0.7 * one, np.zeros((1, len(T))))

    def of_views(*mask, stack=stack):
        rest = (stack, step, np.array(mask), index, problem.views)
        return whole(run.full, points, weights, *rest)

    mixture, kept = of_views(True, True)
    assert all(mask.all() for mask in kept)
    coef, std, b = mixture.coefficients()
    eta = sum(v.apply(w.T) for v, w in zip(problem.views, coef, strict=True)) + b
    ((mean, _),) = mixture.moments(problem.views)
    np.testing.assert_allclose(eta, mean, atol=1e-6)
    assert all((sd > 0).all() for sd in std)
    # What is not known of the slope moves a weight by a part of itself.
    sure = of_views(True, True, stack=replace(stack, slope_var=0.0))[0].coefficients()
    for w, sd, w_sure, sd_sure in zip(coef, std, *sure[:2], strict=True):
        np.testing.assert_array_equal(w, w_sure)
        np.testing.assert_allclose(sd**2, sd_sure**2 + 1.3 * 0.04 * w**2, rtol=1e-9)
    # ... and views that are not kept have none.
    mixture, kept = of_views(True, False)
    assert [mask.all() for mask in kept] == [True, False]
    coef, std, _ = mixture.coefficients()
    assert not coef[1].any()
    assert not std[1].any()


# -- the same answer ----------------------------------------------------------------------------


def test_two_fits_and_two_jobs_give_the_same_bits():
    problem, T, folds = make_problem("binary", absent=True)
    _, _, first = answered("binary")
    for n_jobs in (1, 2):
        again = fit_auto(problem, T, folds, max_iter=60, n_jobs=n_jobs)
        assert bits(again) == bits(first)


def permuted(problem, T, folds, rows, columns, views):
    """The same problem with rows, features and views in another order."""
    made = [
        as_view(problem.views[m].dense()[rows][:, columns[m]], problem.views[m].absent[rows])
        for m in views
    ]
    place = np.argsort(rows)
    deals = [(place[a], place[b]) for a, b in folds]
    likelihood = problem.likelihood.rows(rows)
    return Problem(made, likelihood, problem.task), T[rows], deals


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_order_of_rows_features_and_views_does_not_matter(task):
    problem, T, folds = make_problem(task, absent=True)
    _, _, answer = answered(task)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(T))
    columns = [rng.permutation(view.shape[1]) for view in problem.views]
    other = fit_auto(*permuted(problem, T, folds, rows, columns, [1, 0]), max_iter=60)
    coef, std, b = answer.mixture.coefficients()
    coef2, std2, b2 = other.mixture.coefficients()
    np.testing.assert_allclose(b2, b, rtol=1e-4, atol=1e-5)
    for m in range(2):
        order, at = columns[m], 1 - m
        np.testing.assert_array_equal(other.selected[at], answer.selected[m][order])
        np.testing.assert_allclose(coef2[at], coef[m][:, order], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(std2[at], std[m][:, order], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(other.inclusion[at], answer.inclusion[m][order], atol=1e-4)
    for name, weight in answer.stack.items():
        assert other.stack[name] == pytest.approx(weight, abs=1e-4)


def test_answers_survive_pickling():
    problem, _, answer = answered("binary")
    copy = pickle.loads(pickle.dumps(answer))
    assert isinstance(copy, Answer)
    for got, want in zip(
        predictions(copy, problem.views), predictions(answer, problem.views), strict=True
    ):
        np.testing.assert_array_equal(got, want)


# -- the choice ---------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_larger_margins_keep_no_more(task):
    problem, T, folds = make_problem(task, N=60, sizes=(6, 12), repeats=2)
    run, index = scored(problem, T, folds)
    sizes = []
    for margin in (0.0, 0.1, 0.3, 1.0):
        answer = run.answer(index, margin)
        sizes.append(sum(int(mask.sum()) for mask in answer.selected))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] <= 4


def noise(seed, task="binary", N=50, sizes=(6, 30)):
    """A problem whose outcomes know nothing of its features."""
    problem, T, folds = make_problem(task, N=N, sizes=sizes, seed=seed, repeats=2)
    T = T[np.random.default_rng(seed + 100).permutation(N)]
    problem.likelihood = type(problem.likelihood)(T, np.ones_like(T))
    return problem, T, folds


def test_pure_noise_claims_nothing():
    """No signal is shown, and what predicts all the same stays near the base rate."""
    below = 0
    for seed in (1, 3, 10, 12):
        problem, T, folds = noise(seed, sizes=(6, 30))
        answer = fit_auto(problem, T, folds, max_iter=60)
        assert answer.signal.in_errors < 1.645
        below += answer.signal.in_errors < -1.645
        p = probabilities(
            answer.mixture.moments(problem.views), answer.mixture.output_weights, "binary"
        )
        assert np.abs(p - T.mean()).mean() < 0.1  # on the training rows
        assert any(mask.any() for mask in answer.selected)
    assert below  # also where the base rate is shown to be better


def test_noise_in_real_outcomes_claims_nothing():
    problem, T, folds = noise(1, "regression")
    answer = fit_auto(problem, T, folds, max_iter=60)
    assert answer.signal.in_errors < 1.645


# -- what predictions are worth -----------------------------------------------------------------


def simulated(kind, N=300, n_test=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N + n_test, 15))
    eta = 1.5 * X[:, [0]] - 1.5 * X[:, [8]]
    if kind is GaussianOutputs:
        T = eta + 0.8 * rng.standard_normal(eta.shape)
    else:
        T = (rng.random(eta.shape) < expit(eta)).astype(float)
    train, test = np.arange(N), np.arange(N, N + n_test)
    mean, sd = X[train].mean(0), X[train].std(0)
    X = (X - mean) / sd
    blocks = [X[:, :6], X[:, 6:]]
    task = "regression" if kind is GaussianOutputs else "binary"
    problem = Problem([as_view(A[train]) for A in blocks], kind(T[train], np.ones((N, 1))), task)
    order = rng.permutation(N)
    folds = [(np.setdiff1d(train, part), np.sort(part)) for part in np.array_split(order, 3)]
    return problem, T, folds, [as_view(A[test]) for A in blocks], T[test]


def test_probabilities_are_calibrated():
    problem, T, folds, new, truth = simulated(QuadratureLogistic)
    answer = fit_auto(problem, T[: problem.n_samples], folds, max_iter=60)
    p = probabilities(answer.mixture.moments(new), answer.mixture.weights, "binary")[:, 0]
    t = truth[:, 0]
    assert answer.selected[0][0]
    assert answer.selected[1][2]
    loss = -np.log(np.where(t > 0, p, 1 - p)).mean()
    assert loss < 0.50  # the truth has .46, the base rate .69
    bins = np.digitize(p, np.quantile(p, [0.2, 0.4, 0.6, 0.8]))
    gaps = [abs(p[bins == k].mean() - t[bins == k].mean()) for k in range(5)]
    assert np.mean(gaps) < 0.06


def test_intervals_of_real_outcomes_cover():
    problem, T, folds, new, truth = simulated(GaussianOutputs)
    answer = fit_auto(problem, T[: problem.n_samples], folds, max_iter=60)
    mean, var = predictions(answer, new)
    sd = np.sqrt(var + answer.mixture.noise)
    for level in (0.5, 0.9):
        covered = (np.abs(truth - mean) < norm.ppf(0.5 + level / 2) * sd).mean()
        assert covered == pytest.approx(level, abs=0.06)
    assert answer.mixture.noise[0] == pytest.approx(0.64, rel=0.3)


def test_rows_that_lack_a_view_are_less_sure():
    problem, _, answer = answered("binary")
    gone = [
        as_view(np.zeros_like(problem.views[0].dense()), np.ones(48, dtype=bool)),
        problem.views[1],
    ]
    _, var = predictions(answer, problem.views)
    mean, wide = predictions(answer, gone)
    assert (wide > var).all()
    signal = answer.mixture.signal()
    assert wide.mean() > signal[0, 0] * 0.9
    assert np.ptp(mean) < 1e-9 or answer.selected[1].any()
