"""Confounders: residuals of least squares, learned on training rows, never copied wide."""

import numpy as np
import pandas as pd
import pytest

from baldur import MultiView
from baldur.exceptions import InputError
from baldur.preparation import Preparation


@pytest.fixture
def study():
    rng = np.random.default_rng(0)
    covariates = np.column_stack([rng.uniform(50, 90, 40), rng.integers(0, 2, 40)])
    x = rng.normal(size=(40, 5)) + covariates @ rng.normal(size=(2, 5)) * 0.1
    g = (rng.random((40, 300)) * 3).astype(np.int8)
    g[:, :20] = np.clip(g[:, :20] + covariates[:, [1]].astype(np.int8), 0, 2)
    return MultiView({"x": x, "g": g}, samples=table(covariates)), covariates


def table(covariates):
    return pd.DataFrame(covariates, columns=["age", "sex"])


def taking_out(**options):
    return Preparation(regress_out=["age", "sex"], **options)


def residuals(cells, covariates, train):
    """Residuals of the literal regression, in units of their training spread."""
    C = np.column_stack([np.ones(len(cells)), covariates])
    B = np.linalg.lstsq(C[train], cells[train], rcond=None)[0]
    left = cells - C @ B
    return left / left[train].std(axis=0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_residuals_equal_literal_least_squares(study, dtype):
    mv, covariates = study
    train = np.arange(40) % 4 > 0
    learned = taking_out(dtype=dtype).fit(mv[train])
    views = learned.transform(mv)
    for name, view in views.items():
        want = residuals(mv.view(name).read().astype(float), covariates, train)
        atol = 1e-10 if dtype == "float64" else 2e-5
        np.testing.assert_allclose(view.dense(), want, atol=atol)
        s = np.linspace(0.1, 2, want.shape[1])
        np.testing.assert_allclose(
            view.weighted_gram(s), (want * s) @ want.T, atol=atol * 100 * want.shape[1]
        )
        np.testing.assert_allclose(view.take_rows([3, 9]).dense(), view.dense()[[3, 9]], atol=1e-12)
        inside = view.dense()[train]
        np.testing.assert_allclose(
            inside.T @ covariates[train], 0, atol=1e-2 if atol > 1e-6 else 1e-8
        )


def test_test_rows_do_not_reach_the_regression(study):
    mv, covariates = study
    other = covariates.copy()
    other[30:] *= -50
    one = taking_out().fit(mv[:30])
    two = taking_out().fit(mv.with_samples(table(other))[:30])
    for name in mv.view_names:
        np.testing.assert_array_equal(
            one.scaling_.covariate_effect_[name], two.scaling_.covariate_effect_[name]
        )


def test_missing_cells_and_absent_samples_stay_zero(study):
    mv, _ = study
    x = mv.view("x").read()
    x[2, 3] = np.nan
    x[7] = np.nan
    holes = MultiView({"x": x, "g": mv.view("g").raw()}, samples=mv.samples)
    view = taking_out().fit_transform(holes)["x"]
    assert view.absent[7]
    assert not view.dense()[7].any()
    assert view.dense()[2, 3] == 0
    here = np.arange(40) != 7
    np.testing.assert_allclose((view.dense() ** 2).sum(axis=0) / here.sum(), 1, rtol=1e-10)


def test_a_column_the_covariates_explain_carries_nothing(study):
    mv, covariates = study
    x = np.column_stack([mv.view("x").read(), covariates @ [2.0, -1.0] + 5])
    mv = MultiView({"x": x}, samples=mv.samples)
    learned = taking_out().fit(mv)
    assert learned.constant_features_["x"].tolist() == ["x_5"]
    assert not learned.transform(mv)["x"].dense()[:, 5].any()


@pytest.mark.parametrize("scale", ["standard", "clipped"])
def test_weights_return_to_input_units(study, scale):
    mv, covariates = study
    learned = taking_out(scale=scale).fit(mv[:30])
    coef = np.random.default_rng(1).normal(size=(3, 5))
    own = (
        mv.view("x").read() @ learned.coef_in_input_units("x", coef).T
        + covariates @ learned.covariate_weights("x", coef).T
        + learned.intercept_shift("x", coef)
    )
    np.testing.assert_allclose(own, learned.transform(mv)["x"].apply(coef.T))


def test_missing_covariates_stand_at_their_training_mean(study):
    mv, covariates = study
    spoiled = covariates.copy()
    spoiled[[3, 35], 0] = np.nan
    filled = covariates.copy()
    filled[[3, 35], 0] = np.nanmean(spoiled[:30, 0])
    found, want = (
        taking_out().fit(mv.with_samples(table(c))[:30]).transform(mv.with_samples(table(c)))
        for c in (spoiled, filled)
    )
    for name in mv.view_names:
        np.testing.assert_allclose(found[name].dense(), want[name].dense(), atol=1e-12)


def test_categories_are_levels_of_the_training_rows(study):
    """A level is a column but for the first; one that training did not have counts as missing."""
    mv, covariates = study
    town = np.array(["Lima", "Oslo", "Rome"])[np.arange(40) % 3].astype(object)
    town[[35, 36]] = "Bonn", None
    samples = pd.DataFrame({"town": town, "age": covariates[:, 0]})
    learned = Preparation(regress_out=["town", "age"]).fit(mv.with_samples(samples)[:30])
    assert learned.covariates_.levels == {"town": ["Lima", "Oslo", "Rome"]}
    assert learned.covariates_.features == ["town=Oslo", "town=Rome", "age"]
    dummies = np.column_stack([town == "Oslo", town == "Rome"]).astype(float)
    dummies[35:37] = dummies[:30].mean(axis=0)
    numbers = pd.DataFrame({"a": dummies[:, 0], "b": dummies[:, 1], "age": covariates[:, 0]})
    want = Preparation(regress_out=["a", "b", "age"]).fit(mv.with_samples(numbers)[:30])
    for name in mv.view_names:
        found = learned.transform(mv.with_samples(samples))[name].dense()
        np.testing.assert_allclose(
            found, want.transform(mv.with_samples(numbers))[name].dense(), atol=1e-12
        )


def test_clear_errors(study):
    mv, covariates = study
    bare = mv.with_samples(None)
    learned = taking_out().fit(mv)
    text = mv.samples.assign(age="old")
    endless = mv.samples.assign(age=np.inf)
    empty = mv.samples.assign(age=np.nan)
    for call, words in (
        (lambda: learned.transform(bare), "'age'.*in prediction.*no table about its samples"),
        (lambda: taking_out().fit(bare), "regress_out.*'age'.*samples=DataFrame"),
        (lambda: learned.transform(mv.with_samples(text)), "'age' is a number.*'old'"),
        (lambda: taking_out().fit(mv.with_samples(endless)), "infinite"),
        (lambda: taking_out().fit(mv.with_samples(empty)), "'age'.*is empty"),
        (lambda: mv.with_samples(mv.samples[:9]), r"one row per sample \(40\).*has 9"),
        (lambda: mv.with_samples(covariates), "expected a DataFrame"),
        (lambda: Preparation().fit(mv).covariate_weights("x", np.ones(5)), "regress_out"),
        (lambda: Preparation(steps=[object]).fit(mv), "baldur.preparation.Step"),
    ):
        with pytest.raises(InputError, match=words):
            call()


def test_a_covariate_cell_that_is_missing_takes_the_weighted_mean():
    rng = np.random.default_rng(0)
    age = rng.uniform(40, 80, 30)
    age[:4] = np.nan
    X, weight = rng.normal(size=(30, 3)), rng.integers(1, 4, 30)
    twice = np.repeat(np.arange(30), weight)

    def prepared(rows, sample_weight=None):
        mv = MultiView({"v": X[rows]}, samples=pd.DataFrame({"age": age[rows]}))
        return Preparation(regress_out=["age"]).fit(mv, sample_weight=sample_weight)

    weighted, repeated = prepared(np.arange(30), weight.astype(float)), prepared(twice)
    np.testing.assert_allclose(weighted.covariates_.fill, repeated.covariates_.fill)
    np.testing.assert_allclose(weighted.covariates_.mean, repeated.covariates_.mean)
