"""Columns with either solver and Gram matrices give one posterior under equal variances."""

from dataclasses import fields, replace

import numpy as np
import pytest

from baldur.inference.design import ColumnDesign, GramDesign, gather, predict_rows
from baldur.inference.inner_folds import FoldBatch, candidates, gather_data
from baldur.model.likelihood import Sites, take_folds
from baldur.model.posterior import INTERCEPT_VAR, FeaturePosterior, SamplePosterior
from inference.problems import gathered, make_problem, make_views, unequal_folds

N, C, SIZES = 32, 2, (4, 9)


class OnSamples(ColumnDesign):
    """Columns whose posterior is always computed by the sample solver."""

    uses_features = False


def on_samples(design):
    return OnSamples(**{f.name: getattr(design, f.name) for f in fields(design)})


def sites_of(batch, seed=1):
    """Random sites, zero where rows pad."""
    rng = np.random.default_rng(seed)
    shape = (len(batch), C, batch.rows.shape[1])
    real = batch.counted[:, None]
    return Sites(rng.uniform(0.05, 0.25, shape) * real, rng.normal(0, 0.4, shape) * real)


@pytest.fixture(scope="module")
def setting():
    """Three folds of unequal size, the same features three ways, sites, variances by view."""
    problem, _ = make_problem(N=N, sizes=SIZES, absent=True)
    data, batch = gathered(problem, unequal_folds(N), by_grams=True)
    columns = batch.candidate_design()
    designs = {
        "feature solver": columns,
        "sample solver": on_samples(columns),
        "Grams": batch.gram_design(),
    }
    by_view = np.random.default_rng(0).uniform(0.05, 0.5, (3, C, 2))
    return data, batch, designs, sites_of(batch), by_view


def close(got, want, tolerance=1e-8):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def summary(design, by_view, sites, batch):
    """Everything that inference asks of a design, padding left out."""
    s = design.spread(by_view)
    q = design.posterior(s, sites, design.kernel(s))
    held = batch.held_counted[:, None]
    real = batch.counted[:, None]
    mean, var = design.predict_held(q, s)
    return {
        "mean": q.mean * real,
        "var": q.var * real,
        "kl": q.kl,
        "alpha": q.alpha,
        "strengths": np.stack(design.strengths(q, s, sites.h)),
        "parts": design.parts(q, s),
        "part variance": design.part_variance(q, s),
        "held mean": mean * held,
        "held var": var * held,
        "scales": design.scales(),
        "predictor variance": design.predictor_variance(s),
    }


@pytest.mark.parametrize("name", ["sample solver", "Grams"])
def test_the_posterior_is_one(setting, name):
    _, batch, designs, sites, by_view = setting
    found = summary(designs[name], by_view, sites, batch)
    for what, want in summary(designs["feature solver"], by_view, sites, batch).items():
        close(found[what], want)


def test_the_cheaper_solver_is_used(setting):
    _, _, designs, sites, by_view = setting
    kinds = {"feature solver": FeaturePosterior, "sample solver": SamplePosterior}
    for name, kind in (kinds | {"Grams": SamplePosterior}).items():
        s = designs[name].spread(by_view)
        assert isinstance(designs[name].posterior(s, sites, designs[name].kernel(s)), kind)
    assert designs["feature solver"].kernel(designs["feature solver"].spread(by_view)) is None
    problem, folds = make_problem(N=24, sizes=(5, 20))
    _data, batch = gathered(problem, folds, by_grams=True)
    assert not batch.candidate_design().uses_features


@pytest.mark.parametrize("name", ["feature solver", "sample solver", "Grams"])
def test_folds_of_a_batch_are_folds_alone(setting, name):
    """`take` of a fold, and the fold gathered without the others, to rounding."""
    _data, batch, designs, sites, by_view = setting
    whole = summary(designs[name], by_view, sites, batch)
    problem, _ = make_problem(N=N, sizes=SIZES, absent=True)
    for f, fold in enumerate(unequal_folds(N)):
        _, one = gathered(problem, [fold], by_grams=True)
        design = one.candidate_design() if name != "Grams" else one.gram_design()
        alone = on_samples(design) if name == "sample solver" else design
        n, p = one.rows.shape[1], one.held.shape[1]
        few = Sites(*(part[[f], :, :n] for part in sites))
        found = summary(alone, by_view[[f]], few, one)
        taken = take_folds(designs[name], np.array([f]))
        some = summary(taken, by_view[[f]], take_folds(sites, np.array([f])), _only(batch, f))
        for what, want in whole.items():
            axis = 1 if what == "strengths" else 0
            row = np.take(want, [f], axis=axis)
            close(some[what], row, 1e-11)
            cut = p if what.startswith("held") else n
            if row.shape[-1] in (batch.rows.shape[1], batch.held.shape[1]):
                row = row[..., :cut]
            close(found[what], row, 1e-10)


def _only(batch, f):
    rows = (getattr(batch, field.name)[[f]] for field in fields(batch)[1:])
    return type(batch)(batch.data, *rows)


def test_predictions_are_the_literal_posterior(setting):
    """Mean and variance of x w + b from the explicit inverse, row by row of every fold."""
    data, _, designs, sites, by_view = setting
    X1 = np.hstack([np.ones((N, 1)), data.columns])
    for design in designs.values():
        s = design.spread(by_view)
        q = design.posterior(s, sites, design.kernel(s))
        mean, var = design.predict_held(q, s)
        for f, (train, held) in enumerate(unequal_folds(N)):
            n, p = len(train), len(held)
            for c in range(C):
                prior = np.concatenate([[INTERCEPT_VAR], np.repeat(by_view[f, c], SIZES)])
                h, j = sites.h[f, c, :n], sites.j[f, c, :n]
                cov = np.linalg.inv(np.diag(1 / prior) + (X1[train].T * h) @ X1[train])
                close(mean[f, c, :p], X1[held] @ cov @ X1[train].T @ j)
                close(var[f, c, :p], np.einsum("nd,de,ne->n", X1[held], cov, X1[held]))


def test_parts_add_up_to_the_linear_predictor(setting):
    _, batch, designs, sites, by_view = setting
    for design in designs.values():
        s = design.spread(by_view)
        q = design.posterior(s, sites, design.kernel(s))
        intercept = INTERCEPT_VAR * q.alpha.sum(axis=-1)[..., None]
        total = (design.parts(q, s).sum(axis=1) + intercept) * batch.counted[:, None]
        close(total, q.mean * batch.counted[:, None], 1e-7)
        assert design.n_views == 2


def test_weights_and_statistics_are_the_same_with_either_solver(setting):
    _, _, designs, sites, by_view = setting
    found = []
    for name in ("feature solver", "sample solver"):
        design = designs[name]
        s = design.spread(by_view)
        q = design.posterior(s, sites, design.kernel(s))
        found.append((*design.weights(q, s, sites.h), *design.statistics(q, sites.h)))
    for got, want in zip(*found, strict=True):
        close(got, want)


def test_strengths_are_sums_over_weights(setting):
    """sum_d <w_d>^2/s_d and sum_d (1 - Var w_d/s_d), by view; a variance of 0 adds nothing."""
    _, _, designs, sites, by_view = setting
    design = designs["feature solver"]
    s = design.spread(by_view).copy()
    s[:, :, 2] = 0.0
    q = design.posterior(s, sites, None)
    w, var = design.weights(q, s, sites.h)
    power, used = design.strengths(q, s, sites.h)
    for m in range(2):
        here = (design.owner[0] == m) & (np.arange(sum(SIZES)) != 2)
        close(power[..., m], (w**2 / np.maximum(s, 1e-300))[..., here].sum(axis=-1))
        close(used[..., m], (1 - var / np.maximum(s, 1e-300))[..., here].sum(axis=-1))


def test_part_variance_is_literal(setting):
    """tr(X_m Cov(w_m) X_m^T) over the training rows."""
    data, _, designs, sites, by_view = setting
    X1 = np.hstack([np.ones((N, 1)), data.columns])
    design = designs["sample solver"]
    s = design.spread(by_view)
    found = design.part_variance(design.posterior(s, sites, design.kernel(s)), s)
    for f, (train, _) in enumerate(unequal_folds(N)):
        for c in range(C):
            prior = np.concatenate([[INTERCEPT_VAR], s[f, c]])
            h = sites.h[f, c, : len(train)]
            cov = np.linalg.inv(np.diag(1 / prior) + (X1[train].T * h) @ X1[train])[1:, 1:]
            for m in range(2):
                own = np.flatnonzero(design.owner[f] == m)
                A = data.columns[np.ix_(train, own)]
                close(found[f, m, c], np.trace(A @ cov[np.ix_(own, own)] @ A.T))


def test_kernels_are_literal(setting):
    data, batch, designs, _, by_view = setting
    for name in ("sample solver", "Grams"):
        K = designs[name].kernel(designs[name].spread(by_view))
        for f, (train, _) in enumerate(unequal_folds(N)):
            n, X = len(train), data.columns[train]
            for c in range(C):
                s = np.repeat(by_view[f, c], SIZES)
                close(K[f, c, :n, :n], (X * s) @ X.T + INTERCEPT_VAR, 1e-10)
    assert batch.count.tolist() == [len(train) for train, _ in unequal_folds(N)]


def test_some_of_the_columns(setting):
    """Chosen columns of every fold in any order, those that pad are zero and in no view."""
    _, _, designs, _, _ = setting
    whole = designs["feature solver"]
    chosen = np.array([[3, 0, 7], [12, 1, 0], [5, 6, 2]])
    used = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    part = whole.columns(chosen, used)
    for f in range(3):
        for k in range(3):
            want = whole.X1[f, :, 1 + chosen[f, k]] * used[f, k]
            np.testing.assert_array_equal(part.X1[f, :, 1 + k], want)
            owner = whole.owner[f, chosen[f, k]] if used[f, k] else 2
            assert part.owner[f, k] == owner
    np.testing.assert_array_equal(part.X1[:, :, 0], whole.X1[:, :, 0])
    s = part.spread(np.ones((3, 1, 2)))
    np.testing.assert_array_equal(s[:, 0], used)
    np.testing.assert_array_equal(part.membership.sum(axis=2), used)


def test_columns_that_pad_change_nothing(setting):
    """One more column of zeros that belongs to no view."""
    _, batch, designs, sites, by_view = setting
    for name in ("feature solver", "sample solver"):
        design = designs[name]
        wide = type(design)(
            np.concatenate([design.X1, np.zeros((*design.X1.shape[:2], 1))], axis=2),
            np.concatenate([design.owner, np.full((3, 1), 2)], axis=1),
            design.count,
            2,
            design.intercept_var,
            np.concatenate([design.held, np.zeros((*design.held.shape[:2], 1))], axis=2),
        )
        found = summary(wide, by_view, sites, batch)
        for what, want in summary(design, by_view, sites, batch).items():
            close(found[what], want, 1e-10)


def test_predicted_rows_are_those_of_the_kernel(setting):
    """New rows that are the training rows have their moments."""
    _, batch, designs, sites, by_view = setting
    design = designs["Grams"]
    K = design.kernel(by_view)
    q = design.posterior(by_view, sites, K)
    mean, var = predict_rows(q, K, np.einsum("fcnn->fcn", K))
    real = batch.counted[:, None]
    close(mean * real, q.mean * real)
    close(var * real, q.var * real, 1e-7)


def test_what_has_fewer_columns_than_rows_has_no_gram_matrices():
    for N, narrow in ((48, True), (24, False)):
        problem, _ = make_problem(N=N, sizes=(5, 20))
        chosen, grams = candidates(problem, [np.arange(N)])
        data, _ = gather_data(problem, chosen, grams)
        assert (data.grams is None) == narrow
    assert GramDesign.uses_features is False


def test_where_columns_come_from():
    """The union of all candidates is gathered once; folds know their places in it."""
    views = make_views(48, (3, 12), absent=True)
    problem, _ = make_problem(views=views)
    chosen = [[np.array([2]), np.array([0, 4])], [np.array([0, 2]), np.array([4, 9])]]
    data, places = gather_data(problem, chosen, None)
    np.testing.assert_array_equal(data.owner, [0, 0, 1, 1, 1])
    union = [np.array([0, 2]), np.array([0, 4, 9])]
    np.testing.assert_array_equal(data.columns, gather(views, union))
    assert [place.tolist() for place in places] == [[1, 2, 3], [0, 1, 3, 4]]
    np.testing.assert_array_equal(data.absent[:, 1], np.arange(48) % 5 == 2)
    assert data.problem.widths == [3, 12]
    none, _ = make_problem(N=48)
    assert gather_data(none, chosen, None)[0].absent is None


def test_columns_that_pad_belong_to_no_group():
    """A category that is the first candidate of a fold has its own levels and no others."""
    problem, folds = make_problem(N=48, sizes=(3, 12))
    problem = replace(problem, groups=[np.array([0, 0, 1]), np.arange(12)])
    chosen = [[np.array([0, 1]), np.array([4])], [np.arange(3), np.array([0, 4, 9])]]
    data, places = gather_data(problem, chosen, None)
    batch = FoldBatch.of(data, folds[:2], places)
    assert batch.groups()[0, :3].tolist() == data.groups[places[0]].tolist()
    assert batch.groups()[1].tolist() == data.groups[places[1]].tolist()
    assert len(set(batch.groups()[0])) == 1 + 1 + 3  # a category, a feature, three that pad
