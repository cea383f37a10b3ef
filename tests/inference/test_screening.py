"""Screening: literal scores, the best of all views, and features that come back."""

import numpy as np
import pytest

from baldur.inference import screening
from baldur.inference.fixed_prior import outside_quadratic
from baldur.inference.held_out import fit_all
from baldur.inference.inclusion import run_inclusion
from baldur.inference.mixture import gather, owners
from baldur.inference.screening import (
    best_features,
    candidates,
    merged,
    positions,
    returning,
    strongest,
)
from baldur.inference.starts import outcome_residual
from baldur.model.likelihood import QuadratureLogistic
from inference.problems import make_problem
from model.structured.problems import as_view

TASKS = ["binary", "multiclass", "multilabel", "regression"]


@pytest.mark.parametrize("task", TASKS)
def test_candidates_have_the_largest_literal_projections(monkeypatch, task):
    monkeypatch.setattr(screening, "CANDIDATES", 9)
    problem, _, folds = make_problem(task, absent=True)
    fits = [rows for rows, _ in folds] + [np.arange(problem.n_samples)]
    for rows, index in zip(fits, candidates(problem, fits), strict=True):
        residual = outcome_residual(problem.likelihood.rows(rows))
        scores = []
        for view in problem.views:
            X = view.dense()[rows]
            scores.append([max(abs(x @ r) / np.linalg.norm(r) for r in residual.T) for x in X.T])
        inside = np.concatenate([np.array(s)[i] for s, i in zip(scores, index, strict=True)])
        outside = np.concatenate([np.delete(s, i) for s, i in zip(scores, index, strict=True)])
        assert len(inside) == 9
        assert inside.min() > outside.max()


def test_the_best_are_those_of_all_views():
    rng = np.random.default_rng(0)
    scores = [rng.random(30), rng.random(50), rng.random(5)]
    for limit in (1, 10, 84, 85, 1000):
        index = best_features(scores, limit)
        inside = np.concatenate([s[i] for s, i in zip(scores, index, strict=True)])
        outside = np.concatenate([np.delete(s, i) for s, i in zip(scores, index, strict=True)])
        assert len(inside) == min(limit, 85)
        assert not len(outside) or inside.min() > outside.max()


def test_one_pass_serves_all_fits():
    problem, _, _ = make_problem()
    rng = np.random.default_rng(0)
    columns = [rng.standard_normal((problem.n_samples, C)) for C in (1, 3)]
    for part, found in zip(columns, strongest(problem, columns), strict=True):
        for view, score in zip(problem.views, found, strict=True):
            np.testing.assert_allclose(score, np.abs(view.dense().T @ part).max(axis=1))


def test_positions_find_features_in_a_union():
    union = [np.array([1, 4, 6]), np.array([0, 2, 9])]
    index = [np.array([4]), np.array([0, 9])]
    np.testing.assert_array_equal(positions(union, index), [1, 3, 5])
    both = merged(union, [np.array([5]), np.array([2])])
    for got, want in zip(both, ([1, 4, 5, 6], [0, 2, 9]), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("L", [12, 80], ids=["feature side", "sample side"])
def test_outside_quadratic_is_literal(L):
    rng = np.random.default_rng(0)
    N = 40
    X, new = rng.standard_normal((N, L)), rng.standard_normal((N, 7))
    T = (X[:, :1] + rng.standard_normal((N, 1)) > 0).astype(float)
    likelihood = QuadratureLogistic(T, np.ones_like(T))
    run = run_inclusion(X, np.zeros(L, int), np.array([float(L)]), likelihood, by_mean=True)
    out = run.outputs
    K = (X * out.s[0]) @ X.T + 100.0 + np.diag(1 / out.sites.h[:, 0])
    want = np.einsum("nd,nm,md->d", new, np.linalg.inv(K), new)
    np.testing.assert_allclose(outside_quadratic(out, 0, new), want, rtol=1e-6)


def hidden_problem(seed=0, N=150, D=300):
    """A feature that says nothing alone and much beside another: screened out, then needed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    eta = 3.0 * X[:, 0] + 3.0 * X[:, 1]
    T = (eta + rng.logistic(size=N) > 0).astype(float)[:, None]
    # Feature 1 is made to have no correlation with the outcome.
    r = T[:, 0] - T.mean()
    X[:, 1] -= r * (X[:, 1] @ r) / (r @ r)
    X[:, 0] += 0.9 * (eta - 3.0 * X[:, 0] - 3.0 * X[:, 1]) / 3.0
    X = (X - X.mean(0)) / X.std(0)
    views = [as_view(X[:, : D // 2]), as_view(X[:, D // 2 :])]
    return screening.Problem(views, QuadratureLogistic(T, np.ones_like(T)), "binary"), T


def test_a_feature_screened_out_comes_back(monkeypatch):
    monkeypatch.setattr(screening, "CANDIDATES", 40)
    problem, _ = hidden_problem()
    fits = [np.arange(problem.n_samples)]
    index = candidates(problem, fits)
    index[0][0] = np.setdiff1d(index[0][0], [1])
    runs = [
        run_inclusion(
            gather(problem.views, index[0]),
            owners(index[0]),
            problem.widths,
            problem.likelihood,
            by_mean=by_mean,
        )
        for by_mean in (True, False)
    ]
    back = returning(problem, fits, index, [runs])[0]
    assert 1 in back[0]
    assert not np.intersect1d(back[0], index[0][0]).size


def test_fits_are_repeated_with_what_came_back(monkeypatch):
    monkeypatch.setattr(screening, "CANDIDATES", 40)
    problem, _ = hidden_problem()
    fits = [np.arange(problem.n_samples), np.arange(0, problem.n_samples, 2)]
    likelihoods = [problem.likelihood.rows(rows) for rows in fits]
    columns, chosen, found = fit_all(problem, fits, likelihoods, None, 200)
    assert 1 in chosen[0][0]
    for rows, index, runs in zip(fits, chosen, found, strict=True):
        X = columns.of(index, rows)
        np.testing.assert_array_equal(X, gather([v.take_rows(rows) for v in problem.views], index))
        assert runs[0].outputs.X.shape == X.shape


def test_nothing_comes_back_where_all_are_candidates():
    problem, _, folds = make_problem()
    fits = [rows for rows, _ in folds]
    index = [[np.arange(v.shape[1]) for v in problem.views]] * len(fits)
    back = returning(problem, fits, index, [[] for _ in fits])
    assert all(not part.size for fit in back for part in fit)
