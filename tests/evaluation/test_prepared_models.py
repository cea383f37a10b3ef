"""What a model found, read through filters, covariates and sites: at full width, in input units."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import baldur
from baldur import BaldurClassifier, BaldurRegressor, Preparation
from baldur.baselines import BASELINES
from baldur.evaluation import SideBySide
from baldur.preparation import CategoryEncoder, SiteHarmoniser, VariantFilter, VoxelMask
from baldur.views import MultiView
from constants import constants

pytestmark = pytest.mark.usefixtures("one_repeat")

N = 120
LEVELS = ["Bonn", "Lima", "Oslo"]


@pytest.fixture(scope="module")
def data():
    """Genotypes of which two do not vary, a table with a category, voxels, and covariates."""
    rng = np.random.default_rng(0)
    G = rng.integers(0, 3, (N, 9)).astype(np.int8)
    G[:, [2, 5]] = 1
    town = rng.integers(3, size=N)
    numbers = rng.standard_normal((N, 3)) * [1.0, 10.0, 0.1] + 5.0
    covariates = rng.standard_normal((N, 2))
    numbers += covariates @ rng.standard_normal((2, 3))
    voxels = rng.standard_normal((N, 6)) + 5.0
    voxels[:, [2, 4]] *= 0.01  # background
    table = pd.DataFrame(
        {"column": ["town"] * 3 + ["a", "b", "c"], "level": [*LEVELS, None, None, None]}
    )
    scan = pd.DataFrame({"x": range(6)})
    scan.attrs["kind"] = "voxels"
    mv = MultiView(
        {
            "snps": G,
            "clinic": np.hstack([np.eye(3)[town], numbers]),
            "brain": voxels,
        },
        feature_names={
            "snps": [f"rs{j}" for j in range(9)],
            "clinic": [*(f"town={level}" for level in LEVELS), "a", "b", "c"],
        },
        feature_info={
            "snps": pd.DataFrame({"chromosome": [1] * 9, "position": range(9)}),
            "clinic": table,
            "brain": scan,
        },
        samples=pd.DataFrame(
            {
                "age": covariates[:, 0],
                "dose": covariates[:, 1],
                "site": ["north", "south"] * (N // 2),
            }
        ),
    )
    logit = 1.5 * (numbers[:, 0] - 5.0) + 1.2 * (G[:, 3] - 1.0) + (town == 1) + voxels[:, 3] - 5.0
    return mv, logit + rng.logistic(size=N)


@pytest.fixture(scope="module")
def fitted(data):
    """The default behind everything that a study can put before it."""
    mv, logit = data
    steps = [CategoryEncoder(), VariantFilter(), VoxelMask(), SiteHarmoniser("site", ["brain"])]
    preparation = Preparation("standard", steps=steps, regress_out=["age", "dose"])
    with constants(MOST_REPEATS=2):
        # Not clipped, so that the linear predictor is linear for every row.
        model = BaldurClassifier(preparation=preparation)
        model.fit(mv, (logit > 0).astype(int))
    return model, mv


PER_FEATURE = ["coef_", "coef_std_", "coef_scaled_", "coef_scaled_std_"]
WIDTHS = {"snps": 9, "clinic": 6, "brain": 6}


def test_attributes_have_the_width_and_the_names_of_the_input(fitted):
    model, mv = fitted
    for name in PER_FEATURE:
        assert {v: w.shape for v, w in getattr(model, name).items()} == {
            v: (1, width) for v, width in WIDTHS.items()
        }, name
    for name in ("inclusion_probability_", "selected_features_", "feature_names_"):
        assert {v: len(w) for v, w in getattr(model, name).items()} == WIDTHS, name
    for v in WIDTHS:
        assert model.feature_names_[v].tolist() == mv.feature_names[v].tolist()
    assert set(model.view_relevance_) == set(WIDTHS)
    assert sum(model.view_relevance_.values()) == pytest.approx(1)
    assert model.selected_features_["snps"].dtype == bool


def test_what_steps_removed_is_zero_and_the_rest_is_in_its_place(fitted):
    model, _ = fitted
    gone = {"snps": [2, 5], "clinic": [0], "brain": [2, 4]}
    coefs = model.predictor.coefficients()[0]
    for i, (v, columns) in enumerate(gone.items()):
        left = np.delete(np.arange(WIDTHS[v]), columns)
        np.testing.assert_array_equal(model.preparation_.columns_[v], left)
        np.testing.assert_array_equal(model.coef_scaled_[v][:, left], coefs[i])
        for name in (*PER_FEATURE, "inclusion_probability_", "selected_features_"):
            assert not getattr(model, name)[v][..., columns].any()
    assert any(mask.any() for mask in model.selected_features_.values())


def test_credible_sets_name_columns_that_are_left(fitted):
    model, _ = fitted
    sets = model.credible_sets_
    for view, feature in zip(sets["member_view"], sets["member_feature"], strict=True):
        at = list(model.feature_names_[view]).index(feature)
        assert at in model.preparation_.columns_[view]


CALLS = []


class Counted(VariantFilter):
    """A step that notes when it is called."""

    def fit(self, X, y=None):
        CALLS.append("fit")
        return super().fit(X, y)

    def transform(self, X):
        CALLS.append("transform")
        return super().transform(X)


def test_the_preparation_is_fitted_once_and_applied_once_per_call(data):
    mv, logit = data
    CALLS.clear()
    preparation = Preparation(steps=[Counted("snps")], regress_out=["age"])
    model = BaldurClassifier(members=("pooled",), preparation=preparation)
    model.fit(mv, (logit > 0).astype(int))
    assert CALLS == ["fit", "transform"]
    for method in (model.predict, model.predict_proba, model.explain, model.predict_interval):
        CALLS.clear()
        method(mv[:5])
        assert CALLS == ["transform"], method.__name__


def test_weights_in_input_units_give_the_linear_predictor(fitted, data):
    """X coef_ + covariates covariate_coef_ + intercept_, on the cells as the files have them."""
    model, mv = fitted
    left = mv
    for step in model.preparation_.steps_:
        left = step.transform(left)
    linear = np.full(N, model.intercept_[0])
    for v, weights in model.coef_.items():
        kept = weights[0, model.preparation_.columns_[v]]
        linear += np.asarray(left.view(v).read(), dtype=float) @ kept
    assert model.preparation_.covariates_.features == ["age", "dose"]
    linear += mv.samples[["age", "dose"]].to_numpy() @ model.covariate_coef_[0]
    table = model.explain(mv).groupby("sample", sort=False)["linear_predictor"].first()
    np.testing.assert_allclose(linear, table, rtol=0, atol=1e-8)


def test_contributions_add_up(fitted):
    model, mv = fitted
    cells = {v: np.array(mv.view(v).read(), dtype=float) for v in mv.view_names}
    cells["brain"][::3] = np.nan  # whole views, single cells and covariates that are not known
    cells["clinic"][1::4, 4] = np.nan
    samples = mv.samples.copy()
    samples.loc[2, "age"] = np.nan
    samples.loc[3, "site"] = None
    cells["clinic"][5, 3] = 1e3  # not clipped here; log odds of 1e6 have no tenth decimal
    cells["snps"] = mv.view("snps").read().astype(np.int8)
    gaps = MultiView(
        cells,
        feature_names={v: mv.feature_names[v] for v in ("snps", "clinic")},
        feature_info=mv.feature_info,
        samples=samples,
    )
    for rows in (mv, gaps):
        table = model.explain(rows)
        sums = table.groupby("sample", sort=False)["contribution"].sum()
        np.testing.assert_allclose(sums, model.decision_function(rows), rtol=0, atol=1e-10)
        assert set(table["feature"]) - {"(average person)", "(uncertainty)"} <= {
            str(f) for names in model.feature_names_.values() for f in names
        }


def test_the_summary_names_and_places_what_was_kept(fitted):
    model, _ = fitted
    table = model.summary(everything=True)
    assert len(table) == sum(WIDTHS.values())
    of_snps = table[table["view"] == "snps"].set_index("feature")
    assert of_snps["position"].astype(int).to_dict() == {f"rs{j}": j for j in range(9)}
    kept = model.summary()
    assert len(kept) == sum(mask.sum() for mask in model.selected_features_.values())
    for row in kept.itertuples():
        d = list(model.feature_names_[row.view]).index(row.feature)
        assert row.weight == model.coef_[row.view][0, d]
        assert row.inclusion_probability == model.inclusion_probability_[row.view][d]


def test_predictions_have_an_interval_and_say_what_they_used(fitted):
    model, mv = fitted
    low, high = model.predict_interval(mv)
    p = model.predict_proba(mv)
    assert ((low < p) & (p < high)).all()
    used = model.views_used(mv)
    assert used.columns.tolist() == list(WIDTHS)
    assert used.all().to_dict() == {v: m.any() for v, m in model.selected_features_.items()}


def test_a_saved_model_has_found_the_same(fitted, tmp_path):
    model, mv = fitted
    again = baldur.load(model.save(tmp_path / "model"))
    for name in (*PER_FEATURE, "inclusion_probability_", "selected_features_", "feature_names_"):
        for v in WIDTHS:
            np.testing.assert_array_equal(getattr(again, name)[v], getattr(model, name)[v])
    assert again.view_relevance_ == model.view_relevance_
    assert str(again.summary()) == str(model.summary())
    pd.testing.assert_frame_equal(again.explain(mv[:9]), model.explain(mv[:9]))
    np.testing.assert_array_equal(again.predict_interval(mv), model.predict_interval(mv))


def test_models_without_masks_use_what_is_left(data):
    mv, logit = data
    preparation = Preparation(steps=[VariantFilter(), VoxelMask()], regress_out=["age", "dose"])
    model = SideBySide(LogisticRegression(), preparation=preparation)
    model.fit(mv, (logit > 0).astype(int))
    assert {v: w.shape[1] for v, w in model.coef_.items()} == WIDTHS
    assert not model.coef_["brain"][:, [2, 4]].any()
    assert not hasattr(model, "summary")
    assert not hasattr(model, "coef_std_")
    forest = BASELINES["RF"].make().set_params(n_estimators=5, preparation=preparation)
    forest.fit(mv.select(["snps", "brain"]), (logit > 0).astype(int))
    assert not hasattr(forest, "coef_")
    assert len(forest.selected_features_["snps"]) == 9


def test_regression_has_its_spread(data):
    mv, logit = data
    model = BaldurRegressor(
        members=("pooled",), preparation=Preparation(regress_out=["age", "dose"])
    )
    model.fit(mv.select("clinic"), logit)
    new = mv.select("clinic")[:10]
    mean, std = model.predict(new, return_std=True)
    low, high = model.predict_interval(new)
    assert ((low < mean) & (mean < high)).all()
    np.testing.assert_allclose(high - low, 2 * 1.959964 * std, rtol=0.1)
