"""Weights in both units: what they say about the linear predictor holds for every model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from baldur import BaldurClassifier, MultiView, Preparation
from baldur.baselines import BASELINES
from baldur.evaluation import SideBySide, nested_cv
from baldur.evaluation.design import open_comparison
from baldur.evaluation.fitted_model import predict_rows, weights_by_class, weights_of
from baldur.evaluation.nested import fit_all_rows
from baldur.exceptions import InputError
from baldur.preparation import VariantFilter

pytestmark = pytest.mark.usefixtures("one_repeat")


def cohort(n=70, classes=2, seed=0):
    """Two views in very different units, without outliers that scaling would clip."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1.5, 1.5, size=(n, 4)) * [1, 10, 100, 0.01]
    b = rng.uniform(-1.5, 1.5, size=(n, 6)) + 5
    signal = a[:, 0] + 0.1 * a[:, 1] - (b[:, 0] - 5) + 0.5 * rng.normal(size=n)
    y = np.digitize(signal, np.quantile(signal, np.linspace(0, 1, classes + 1)[1:-1]))
    return MultiView({"a": a, "b": b}), y


ROWS = ["LSVM-l1", "MV-PLS", "Ridge logistic", "Elastic-net logistic"]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("classes", [2, 3])
def test_raw_weights_give_the_scores_of_the_model(row, classes):
    mv, y = cohort(classes=classes)
    fitted = BASELINES[row].make(random_state=0).set_params(scale="standard").fit(mv, y)
    found = weights_of(fitted, mv)
    linear = sum(mv.view(v).read() @ weights_by_class(w, classes, np.arange(classes))
                 for v, w in found.raw.items())  # fmt: skip
    scores = np.asarray(fitted.decision_function(mv)).reshape(len(y), -1)
    moved = scores - linear
    np.testing.assert_allclose(moved - moved[0], 0, atol=1e-8)
    for v in mv.view_names:
        sd = mv.view(v).read().std(axis=0)[:, None]
        np.testing.assert_allclose(found.per_sd[v], found.raw[v] * sd, atol=1e-10)
    parts = {v: mv.view(v).read() @ found.raw[v] for v in mv.view_names}
    for v, part in parts.items():
        assert found.variance[v] == pytest.approx(part.var(axis=0))


@pytest.mark.parametrize("row", ["MV-PLS", "Ridge", "Elastic net"])
def test_raw_weights_give_the_numbers_of_the_model(row):
    mv, y = cohort(classes=6)
    entry = {"row": BASELINES[row]}
    result = nested_cv(entry, mv, y.astype(float), task="regression", outer=2, inner=2)
    assert result.failures == {}
    made = BASELINES[row].make(classification=False).set_params(scale="standard").fit(mv, y)
    found = weights_of(made, mv)
    moved = made.predict(mv) - sum(mv.view(v).read() @ w[:, 0] for v, w in found.raw.items())
    np.testing.assert_allclose(moved, moved[0], atol=1e-8)


def test_models_that_keep_raw_weights_are_read_alike():
    mv, y = cohort()
    fitted = BaldurClassifier(members=("pooled",), preparation="standard").fit(mv, y)
    found = weights_of(fitted, mv)
    for v in mv.view_names:
        sd = mv.view(v).read().std(axis=0)
        np.testing.assert_allclose(found.raw[v][:, 0], fitted.coef_[v][0])
        np.testing.assert_allclose(found.per_sd[v][:, 0], fitted.coef_[v][0] * sd, rtol=1e-6)


def test_weights_are_at_full_width_and_in_input_units():
    mv, y = cohort()
    info = pd.DataFrame({"column": ["s"] * 3, "level": ["f", "m", "x"]})
    cells = np.eye(3)[np.arange(70) % 2]
    names = {"t": ["s=f", "s=m", "s=x"]}
    t = MultiView({"t": cells}, feature_names=names, feature_info={"t": info})
    both = MultiView({"a": mv.view("a").read(), "t": cells}, feature_names=names,
                     feature_info={"t": info})  # fmt: skip
    inner = SideBySide(LogisticRegression(), preparation="standard")
    found = weights_of(inner.fit(both, y), both)
    assert found.raw["t"].shape == (3, 1)
    assert found.raw["t"][[0, 2]].tolist() == [[0], [0]]
    assert found.raw["t"][1, 0] == pytest.approx(2 * found.per_sd["t"][1, 0])
    assert t.feature_groups["t"].tolist() == [0, 0, 0]
    # Covariates are taken out before: the weights on what is left, per unit of the input.
    rng = np.random.default_rng(1)
    years = rng.normal(size=70)
    with_age = MultiView({"a": mv.view("a").read()}, samples=pd.DataFrame({"age": years}))
    model = SideBySide(Ridge(), preparation=Preparation("standard", regress_out=["age"]))
    made = model.fit(with_age, y.astype(float))
    told = weights_of(made, with_age)
    age = np.column_stack([np.ones(70), years])
    a = with_age.view("a").read()
    left = a - age @ np.linalg.lstsq(age, a, rcond=None)[0]
    moved = made.predict(with_age) - left @ told.raw["a"][:, 0]
    np.testing.assert_allclose(moved - moved[0], 0, atol=1e-8)
    assert weights_of(BASELINES["RF"].make(0).set_params(n_estimators=5).fit(mv, y), mv) is None


def test_tables_have_both_units_and_a_row_per_class():
    mv, y = cohort(classes=3)
    models = {"Ridge logistic": {"C": [1.0]}, "RF": {"n_estimators": [20]}}
    result = nested_cv(models, mv, np.array(["x", "y", "z"])[y], outer=2, inner=2)
    weights = result.weights()
    ridge = weights[weights["model"] == "Ridge logistic"]
    for _, part in ridge.groupby(["fold", "view", "feature"]):
        assert part["class"].tolist() == ["x", "y", "z"]
    scale = {f"a_{j}": s for j, s in enumerate(mv.view("a").read().std(axis=0))}
    part = ridge[ridge["view"] == "a"]
    ratio = part["weight"] / (part["raw_weight"] * part["feature"].map(scale))
    np.testing.assert_allclose(ratio, 1, rtol=0.2)
    forest = result.selection[result.selection["model"] == "RF"]
    assert forest[["mean_weight", "mean_raw_weight"]].isna().all(axis=None)
    views = result.stability().views.set_index(["model", "view"])["variance_share"]
    assert views["Ridge logistic"].sum() == pytest.approx(1)
    assert views["RF"].isna().all()
    two = nested_cv({"Ridge logistic": {"C": [1.0]}}, mv, (y > 0).astype(int), outer=2, inner=2)
    assert set(two.weights()["class"]) == {"1"}
    number = nested_cv({"r": Ridge()}, mv, y.astype(float), task="regression", outer=2, inner=2)
    assert set(number.weights()["class"]) == {""}


def test_classes_absent_from_training_have_no_weights():
    two = np.array([[1.0, -1.0], [2.0, 0.5]])
    np.testing.assert_array_equal(weights_by_class(two, 2, np.array([0, 1])), [[-2.0], [-1.5]])
    full = weights_by_class(two, 3, np.array([0, 2]))
    np.testing.assert_array_equal(full, [[1, np.nan, -1], [2, np.nan, 0.5]])
    one = weights_by_class(np.array([[4.0]]), 3, np.array([1, 2]))
    np.testing.assert_array_equal(one, [[np.nan, -2, 2]])


def test_columns_of_predictions_follow_the_classes_seen():
    class Two:
        classes_ = np.array([0, 2])

        def predict(self, X):
            return np.array([0, 2])

        def decision_function(self, X):
            return np.array([-1.0, 3.0])

    found = predict_rows(Two(), None, 3)
    np.testing.assert_allclose(found["margin"], [[0.5, -1.5, -0.5], [-1.5, -2.5, 1.5]])
    assert found["margin"].argmax(axis=1).tolist() == [0, 2]


@pytest.mark.parametrize(
    "name", [n for n, e in BASELINES.items() if e.classifier and n not in ("CPM-Nets", "SGP+ARD")]
)
def test_a_competitor_behind_a_filter_is_the_one_on_what_is_left(genotypes, name):
    """Predictions, masks and weights are those of a fit on the columns that a filter leaves."""
    mv, y = genotypes
    settings = {k: v for k, v in (("random_state", 0), ("n_estimators", 5)) if k in
                BASELINES[name].make().get_params()}  # fmt: skip
    preparation = Preparation(steps=[VariantFilter("snps")])
    model = BASELINES[name].make().set_params(preparation=preparation, **settings)
    model.fit(mv[:40], y[:40])
    kept = model.preparation_.columns_["snps"]
    (variants,) = model.preparation_.steps_
    left = variants.transform(mv)
    alone = BASELINES[name].make().set_params(**settings).fit(left[:40], y[:40])
    np.testing.assert_allclose(
        model.decision_function(mv[40:]), alone.decision_function(left[40:]), atol=1e-10
    )
    assert len(model.selected_features_["snps"]) == 12
    np.testing.assert_array_equal(
        model.selected_features_["snps"][kept], alone.selected_features_["snps"]
    )
    found, want = weights_of(model, mv[:40]), weights_of(alone, left[:40])
    assert (found is None) == (want is None)
    if found is not None:
        for part in ("per_sd", "raw"):
            np.testing.assert_allclose(
                getattr(found, part)["snps"][kept], getattr(want, part)["snps"], atol=1e-10
            )
            assert not np.delete(getattr(found, part)["snps"], kept, axis=0).any()
        for view, variance in want.variance.items():
            assert found.variance[view] == pytest.approx(variance)


def test_a_joint_model_is_fitted_to_all_rows_and_others_are_refused():
    X, _ = cohort()
    Y = np.random.default_rng(0).integers(0, 2, (70, 3))
    ridge = BASELINES["Ridge logistic"].make()
    models = {"BALDUR": BaldurClassifier(members=("pooled",)), "ridge": ridge}
    comparison = open_comparison(models, X, Y, inner=2)
    fitted, _ = fit_all_rows(comparison, "BALDUR")
    assert fitted.predict_proba(X).shape == (70, 3)
    with pytest.raises(InputError, match="ridge cannot be fitted to several outcomes"):
        fit_all_rows(comparison, "ridge")
