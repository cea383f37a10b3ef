"""Settling sparsity: rules of the choice, literal folds, and the same bits for any n_jobs."""

import numpy as np
import pytest
from scipy.stats import norm

from baldur.inference import screening
from baldur.inference import sparsity as sparsity_module
from baldur.inference.all_features import all_features
from baldur.inference.fitted import fit_auto
from baldur.inference.held_out import N_STEPS, PATH, HeldOut, cross_validate, noise_variance
from baldur.inference.mixture import absent_matrix, gather
from baldur.inference.reference import fit_inclusions, make_reference, restrict, widen
from baldur.inference.scoring import mixture_moments, pointwise_loss, probabilities
from baldur.inference.sparsity import (
    ALONE_WINS,
    DENSE,
    LITTLE,
    NO_SIGNAL,
    PLAIN,
    SPARSE,
    WEAK_SIGNAL,
    WHOLE,
    WIDER_WINS,
    choose_step,
    settle_sparsity,
    standard_errors,
)
from baldur.model.likelihood import JaakkolaLogistic, class_probability
from inference.problems import make_problem

N = 400


def gap(n_errors, seed=0):
    """Differences of losses whose mean is exactly `n_errors` standard errors."""
    noise = np.random.default_rng(seed).standard_normal(N)
    noise = (noise - noise.mean()) / noise.std()
    return noise + n_errors / np.sqrt(N)


def losses(whole_over_base, sparser_over_whole):
    """Held-out losses with given distances, in standard errors."""
    base = np.ones(N)
    whole = base + gap(whole_over_base)
    wide = [whole] * (N_STEPS - WHOLE)
    path = np.stack([whole + gap(e, seed=1) for e in sparser_over_whole] + wide)
    return HeldOut(np.arange(N), base, path)


def test_standard_errors_are_paired_and_weighted():
    loss, other = np.random.default_rng(0).random((2, 50))
    weight = np.linspace(0.5, 1.5, 50)
    d = weight * (loss - other)
    want = d.mean() / (d.std() / np.sqrt(50))
    assert standard_errors(loss, other, weight) == pytest.approx(want)
    assert standard_errors(loss, loss, weight) == 0.0
    assert standard_errors(gap(2.0), np.zeros(N), np.ones(N)) == pytest.approx(2.0)


def limit(constant, doubled):
    """A constant of the choice, which may depend on whether features stand for each other."""
    return constant[doubled] if isinstance(constant, dict) else constant


@pytest.mark.parametrize("doubled", [False, True])
class TestChoice:
    weight = np.ones(N)

    def choose(self, doubled, whole_over_base, sparser_over_whole):
        held_out = losses(whole_over_base, sparser_over_whole)
        return choose_step(held_out, self.weight, doubled)

    def test_nothing_where_the_path_loses(self, doubled):
        edge = limit(NO_SIGNAL, doubled)
        for sparser in (3.0, 9.0):
            assert self.choose(doubled, edge + 0.1, [sparser] * 4) is None
            assert self.choose(doubled, edge - 0.1, [sparser] * 4) is not None
        narrow_wins = self.choose(doubled, edge + 0.1, [-3.0] * 4)
        assert (narrow_wins is None) == doubled

    def test_weak_evidence_keeps_little_or_averages(self, doubled):
        edge = limit(WEAK_SIGNAL, doubled)
        kept = self.choose(doubled, edge + 0.1, [0.0] * 4)
        assert kept == (WHOLE if doubled else LITTLE)

    def test_good_evidence_keeps_a_sparse_set(self, doubled):
        assert self.choose(doubled, -5.0, [0.0] * 4) == SPARSE
        assert self.choose(doubled, -5.0, [-2.0] * 4) == SPARSE

    def test_a_wider_set_must_win_clearly(self, doubled):
        edge = limit(WIDER_WINS, doubled)
        assert self.choose(doubled, -5.0, [edge + 0.1] * 4) == WHOLE
        assert self.choose(doubled, -5.0, [edge - 0.1] * 4) == SPARSE

    def test_the_smallest_set_that_no_wider_one_beats(self, doubled):
        edge = limit(WIDER_WINS, doubled)
        between = SPARSE + 1
        assert self.choose(doubled, -5.0, [9.0, 9.0, edge + 1.0, edge - 0.1]) == between
        assert self.choose(doubled, -5.0, [-9.0, -9.0, edge + 1.0, edge - 0.1]) == between
        assert self.choose(doubled, -5.0, [9.0, 9.0, edge - 0.1, edge - 0.1]) == SPARSE

    def test_every_feature_is_kept_only_after_a_clear_win_over_the_candidates(self, doubled):
        edge = limit(WIDER_WINS, doubled)
        held_out = losses(-9.0, [edge + 9.0] * 4)
        for margin, kept in ((edge + 0.1, DENSE), (edge - 0.1, WHOLE), (-3.0, WHOLE)):
            held_out.path[DENSE] = held_out.path[WHOLE] - gap(margin, seed=2)
            held_out.path[PLAIN] = held_out.path[DENSE] - gap(ALONE_WINS - 0.1, seed=3)
            assert choose_step(held_out, self.weight, doubled) == kept

    def test_the_posterior_with_everything_in_stands_alone_after_a_clear_win(self, doubled):
        held_out = losses(-9.0, [9.0] * 4)
        held_out.path[DENSE] = held_out.path[WHOLE] - gap(9.0, seed=2)
        for margin, kept in ((ALONE_WINS + 0.1, PLAIN), (ALONE_WINS - 0.1, DENSE)):
            held_out.path[PLAIN] = held_out.path[DENSE] - gap(margin, seed=3)
            assert choose_step(held_out, self.weight, doubled) == kept

    def test_equal_losses_keep_fewer(self, doubled):
        """At equal predictive score fewer features win."""
        base = np.ones(N)
        better = base - 0.5 + 0.01 * gap(0.0)
        held_out = HeldOut(np.arange(N), base, np.stack([better] * N_STEPS))
        assert choose_step(held_out, self.weight, doubled) == SPARSE


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_cross_validation_is_literal(task):
    """Losses of each fold are those of a reference fitted on the other rows, from scratch."""
    problem, T, folds = make_problem(task, absent=True)
    held_out, whole = cross_validate(problem, T, folds)
    np.testing.assert_array_equal(held_out.rows, np.arange(len(T)))
    np.testing.assert_array_equal(whole.X, gather(problem.views, whole.index))
    for rows, held in folds:
        likelihood = problem.likelihood.rows(rows)
        chosen = [np.arange(v.shape[1]) for v in problem.views]
        train = [v.take_rows(rows) for v in problem.views]
        new = [v.take_rows(held) for v in problem.views]
        X, absent = gather(train, chosen), absent_matrix(train)
        found = fit_inclusions(X, chosen, absent, problem.widths, likelihood)
        features = all_features(problem.views).within(rows)
        reference = make_reference(X, chosen, absent, found, features, likelihood)
        for step in range(N_STEPS):
            if step >= DENSE:
                part = type(problem)(train, likelihood, problem.task)
                mixture = widen(reference, part, plain=step == PLAIN)
            else:
                mixture = restrict(reference, reference.smallest(PATH[step]), likelihood)
            noise = noise_variance(likelihood)
            loss = pointwise_loss(mixture.moments(new), T[held], task, noise)
            np.testing.assert_allclose(held_out.path[step, held], loss, rtol=1e-6, atol=1e-9)
        fresh = problem.likelihood.rows(rows)
        if task == "binary":
            rate = T[rows].mean()
            base = -np.log(np.where(T[held, 0] > 0, rate, 1 - rate))
        else:
            sd = np.sqrt(1 / fresh.psi.mean[0])
            base = -norm.logpdf(T[held, 0], T[rows].mean(), sd)
        np.testing.assert_allclose(held_out.base[held], base, rtol=1e-6)


def test_one_fold_scores_its_own_rows():
    """Where one held-out fold is used, losses are of its rows and the same as among all folds."""
    problem, T, folds = make_problem()
    everyone, _ = cross_validate(problem, T, folds)
    one, _ = cross_validate(problem, T, folds[:1])
    np.testing.assert_array_equal(one.rows, folds[0][1])
    np.testing.assert_allclose(one.base, everyone.base[one.rows])
    np.testing.assert_allclose(one.path, everyone.path[:, one.rows], rtol=1e-6, atol=1e-9)


def test_few_candidates_are_found_among_the_union(monkeypatch):
    """With folds that screen differently, every fold gets its own columns."""
    monkeypatch.setattr(screening, "CANDIDATES", 8)
    monkeypatch.setattr(screening, "RETURN", 1.0)
    problem, T, folds = make_problem()
    _, reference = cross_validate(problem, T, folds)
    assert sum(len(i) for i in reference.index) == 8
    np.testing.assert_array_equal(reference.X, gather(problem.views, reference.index))


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_any_n_jobs_gives_the_same_bits(task):
    found = []
    for n_jobs in (1, 2):
        problem, T, folds = make_problem(task)
        choice = settle_sparsity(problem, T, folds, n_jobs, max_iter=30)
        parts = [np.concatenate(choice.mixture.index), *choice.mixture.weights()]
        found.append((choice.kept, [r["loss"] for r in choice.path], [p.tobytes() for p in parts]))
    assert found[0] == found[1]


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel", "regression"])
def test_one_posterior_predicts_is_kept_and_is_shown(task):
    """Selected features, weights and linear predictors are of one posterior."""
    problem, T, folds = make_problem(task, absent=True)
    fitted, _ = fit_auto(problem, T, folds, n_jobs=1, max_iter=40)
    eta = sum(v.apply(w.T) for v, w in zip(problem.views, fitted.coef, strict=True))
    mean, _ = mixture_moments(fitted.moments(problem.views))
    np.testing.assert_allclose(eta + fitted.intercept, mean, atol=1e-6)
    for mask, w, std in zip(fitted.selected, fitted.coef, fitted.coef_std, strict=True):
        assert not w[:, ~mask].any()
        assert not std[:, ~mask].any()
        assert (std[:, mask] > 0).all()
    kept = [r for r in fitted.path if r["kept"]]
    assert len(kept) == 1
    assert kept[0]["n_features"] == sum(int(mask.sum()) for mask in fitted.selected)
    sizes = [r["n_features"] for r in fitted.path]
    assert sizes == sorted(sizes)
    assert fitted.selected[0][0]


def test_no_signal_keeps_next_to_nothing():
    kept = []
    for seed in range(3):
        problem, T, folds = make_problem(seed=seed)
        rng = np.random.default_rng(seed)
        T = T[rng.permutation(len(T))]
        problem.likelihood = type(problem.likelihood)(T, np.ones_like(T))
        fitted, _ = fit_auto(problem, T, folds, n_jobs=1, max_iter=200)
        kept.append(sum(int(mask.sum()) for mask in fitted.selected))
    assert np.mean(kept) <= 3


def test_the_quadratic_bound_settles_too():
    problem, T, folds = make_problem(kind=JaakkolaLogistic)
    choice = settle_sparsity(problem, T, folds)
    assert choice.kept is not None
    assert 0 in choice.mixture.index[0]


class TestScoring:
    moments = (
        (np.array([[0.3, -1.0], [2.0, 0.1]]), np.array([[0.5, 1.0], [0.2, 2.0]])),
        (np.array([[1.3, -0.5], [1.0, -0.1]]), np.array([[0.1, 0.3], [0.4, 1.0]])),
    )

    def test_probabilities_average_and_normalise(self):
        p = np.mean([class_probability(m, v) for m, v in self.moments], axis=0)
        np.testing.assert_allclose(probabilities(self.moments, "multilabel"), p)
        q = probabilities(self.moments, "multiclass")
        np.testing.assert_allclose(q, p / p.sum(axis=1, keepdims=True))

    def test_losses_are_minus_log_density(self):
        T = np.array([[1.0, 0.0], [0.0, 1.0]])
        p = probabilities(self.moments, "multilabel")
        want = [-np.log(p[n, 0] ** T[n, 0] * (1 - p[n, 0]) ** (1 - T[n, 0])) for n in range(2)]
        want += np.array(
            [-np.log(p[n, 1] ** T[n, 1] * (1 - p[n, 1]) ** (1 - T[n, 1])) for n in range(2)]
        )
        np.testing.assert_allclose(pointwise_loss(self.moments, T, "multilabel"), want)
        q = probabilities(self.moments, "multiclass")
        np.testing.assert_allclose(
            pointwise_loss(self.moments, T, "multiclass"), -np.log([q[0, 0], q[1, 1]])
        )
        mean, var = mixture_moments(self.moments)
        noise = np.array([0.3, 0.4])
        want = -norm.logpdf(T, mean, np.sqrt(var + noise)).sum(axis=1)
        np.testing.assert_allclose(pointwise_loss(self.moments, T, "regression", noise), want)

    def test_mixture_moments_are_those_of_draws(self):
        rng = np.random.default_rng(0)
        draws = np.concatenate([rng.normal(m, np.sqrt(v), (200000, 2, 2)) for m, v in self.moments])
        mean, var = mixture_moments(self.moments)
        np.testing.assert_allclose(mean, draws.mean(axis=0), atol=0.01)
        np.testing.assert_allclose(var, draws.var(axis=0), rtol=0.02)


@pytest.mark.parametrize(("enough", "n_folds"), [(1, 1), (16, 1), (17, 2), (33, 3), (1000, 3)])
def test_folds_are_used_until_enough_rows_are_held_out(monkeypatch, enough, n_folds):
    monkeypatch.setattr(sparsity_module, "ENOUGH_ROWS", enough)
    used = []
    monkeypatch.setattr(
        sparsity_module,
        "cross_validate",
        lambda *given: used.append(len(given[2])) or cross_validate(*given),
    )
    problem, T, folds = make_problem()
    assert [len(held) for _, held in folds] == [16, 16, 16]
    settle_sparsity(problem, T, folds, max_iter=20)
    assert used == [n_folds]
