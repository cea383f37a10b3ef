"""Confounders: residuals of least squares, learned on training rows, never copied wide."""

import numpy as np
import pandas as pd
import pytest

from baldur import MultiView
from baldur.exceptions import InputError
from baldur.prepare import Preparation


@pytest.fixture
def study():
    rng = np.random.default_rng(0)
    covariates = np.column_stack([rng.uniform(50, 90, 40), rng.integers(0, 2, 40)])
    x = rng.normal(size=(40, 5)) + covariates @ rng.normal(size=(2, 5)) * 0.1
    g = (rng.random((40, 300)) * 3).astype(np.int8)
    g[:, :20] = np.clip(g[:, :20] + covariates[:, [1]].astype(np.int8), 0, 2)
    return MultiView({"x": x, "g": g}), covariates


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
    learned = Preparation(dtype=dtype).fit(mv[train], covariates[train])
    views = learned.transform(mv, covariates)
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
    one = Preparation().fit(mv[:30], covariates[:30])
    two = Preparation().fit(mv[:30], other[:30])
    for name in mv.view_names:
        np.testing.assert_array_equal(one.confound_coef_[name], two.confound_coef_[name])


def test_missing_cells_and_absent_samples_stay_zero(study):
    mv, covariates = study
    x = mv.view("x").read()
    x[2, 3] = np.nan
    x[7] = np.nan
    holes = MultiView({"x": x, "g": mv.view("g").raw()})
    view = Preparation().fit_transform(holes, covariates)["x"]
    assert view.absent[7]
    assert not view.dense()[7].any()
    assert view.dense()[2, 3] == 0
    here = np.arange(40) != 7
    np.testing.assert_allclose((view.dense() ** 2).sum(axis=0) / here.sum(), 1, rtol=1e-10)


def test_a_column_the_covariates_explain_carries_nothing(study):
    mv, covariates = study
    x = np.column_stack([mv.view("x").read(), covariates @ [2.0, -1.0] + 5])
    learned = Preparation().fit(MultiView({"x": x}), covariates)
    assert learned.constant_features_["x"].tolist() == ["x_5"]
    assert not learned.transform(MultiView({"x": x}), covariates)["x"].dense()[:, 5].any()


@pytest.mark.parametrize("scale", ["standard", "clipped"])
def test_weights_return_to_input_units(study, scale):
    mv, covariates = study
    learned = Preparation(scale=scale).fit(mv[:30], covariates[:30])
    coef = np.random.default_rng(1).normal(size=(3, 5))
    own = (
        mv.view("x").read() @ learned.coef_in_input_units("x", coef).T
        + covariates @ learned.confound_weights("x", coef).T
        + learned.intercept_shift("x", coef)
    )
    np.testing.assert_allclose(own, learned.transform(mv, covariates)["x"].apply(coef.T))


def test_clear_errors(study):
    mv, covariates = study
    with_them = Preparation().fit(mv, covariates)
    spoiled = covariates.copy()
    spoiled[0, 0] = np.nan
    for call, words in (
        (lambda: with_them.transform(mv), "fit had them, but transform got none"),
        (lambda: Preparation().fit(mv).transform(mv, covariates), "fit had none"),
        (lambda: with_them.transform(mv, covariates[:, 0]), "expected 2 columns.*got 1"),
        (lambda: Preparation().fit(mv, covariates[:9]), r"one row per sample \(40\).*\(9, 2\)"),
        (lambda: Preparation().fit(mv, spoiled), "missing or infinite"),
        (lambda: Preparation().fit(mv, ["m"] * 40), "numeric matrix"),
        (lambda: Preparation().fit(mv, pd.DataFrame({"sex": ["m"] * 40})), "sex.*get_dummies"),
        (lambda: Preparation().fit(mv).confound_weights("x", np.ones(5)), "without confounds"),
    ):
        with pytest.raises(InputError, match=words):
            call()
