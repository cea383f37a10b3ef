"""Both estimators inside scikit-learn: pipelines, searches, routing, output frames, pickles."""

import io
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.datasets import make_multiview
from baldur.exceptions import InputError, NoSignalWarning
from baldur.paper import PaperClassifier
from constants import constants

N = 80
VIEWS = {"clinic": slice(0, 4), "genes": slice(4, 24)}
FAST = {"members": ("pooled",), "max_iter": 50}

pytestmark = pytest.mark.usefixtures("one_repeat")


@pytest.fixture(scope="module")
def sim():
    return make_multiview(N, {"clinic": 4, "genes": 20}, informative={"clinic": 2}, random_state=3)


@pytest.fixture(scope="module")
def outcome(sim):
    return sim.truth.score + np.random.default_rng(0).standard_normal(N)


@pytest.fixture(params=["container", "matrix"])
def form(request, sim):
    """X in each of the two input forms, and the parameters that go with it."""
    if request.param == "container":
        return sim.data, {}
    X = np.concatenate([sim.data.view(v).read() for v in sim.data.view_names], axis=1)
    return X, {"views": VIEWS}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# -- composition ---------------------------------------------------------------------------------


def test_pipeline(form, sim):
    X, views = form
    step = StandardScaler() if views else FunctionTransformer()
    pipe = make_pipeline(step, BaldurClassifier(**views, **FAST)).fit(X, sim.target)
    assert pipe.score(X, sim.target) > 0.75
    assert pipe.predict_proba(X).shape == (N, 2)


def test_as_a_transformer_in_a_pipeline(form, sim):
    X, views = form
    pipe = make_pipeline(BaldurClassifier(**views, **FAST), LogisticRegression())
    assert pipe.fit(X, sim.target).score(X, sim.target) > 0.75
    names = pipe[:-1].get_feature_names_out()
    assert list(names) == ["baldurclassifier0"]


def test_grid_search(form, sim):
    X, views = form
    grid = {"members": [("pooled",), ("per_view",)]}
    search = GridSearchCV(BaldurClassifier(**views, max_iter=50), grid, cv=3, scoring="roc_auc")
    search.fit(X, sim.target)
    assert search.best_params_["members"] in grid["members"]
    assert search.best_score_ > 0.75
    assert tuple(search.best_estimator_.stacking_weights_) == search.best_params_["members"]


class OneRepeat(BaldurClassifier):
    """As with the fixture of that name, in other processes as well."""

    def fit(self, X, y, sample_weight=None, groups=None):
        with constants(MOST_REPEATS=1):
            return super().fit(X, y, sample_weight, groups)


def test_cross_validate_in_two_processes(form, sim):
    X, views = form
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    model = OneRepeat(**views, **FAST)
    one = cross_validate(model, X, sim.target, cv=cv, scoring="neg_log_loss")
    two = cross_validate(model, X, sim.target, cv=cv, scoring="neg_log_loss", n_jobs=2)
    assert_array_equal(one["test_score"], two["test_score"])


def test_cross_validated_predictions_of_the_regressor(form, outcome):
    X, views = form
    p = cross_val_predict(BaldurRegressor(**views, **FAST), X, outcome, cv=4)
    assert np.corrcoef(p, outcome)[0, 1] > 0.7


# -- routing -------------------------------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch):
    """What reached `fit`: groups beside the training rows, and weights of the likelihood."""
    record = {"groups": [], "weight": []}
    fit_posterior = BaldurClassifier._fit_posterior

    def watched(self, problem, labels, groups):
        record["groups"].append(groups)
        record["weight"].append(problem.weight)
        return fit_posterior(self, problem, labels, groups)

    monkeypatch.setattr(BaldurClassifier, "_fit_posterior", watched)
    return record


@pytest.mark.usefixtures("routing")
def test_groups_and_weights_are_routed(form, sim, seen):
    X, views = form
    groups = np.repeat(np.arange(N // 4), 4)
    weight = np.linspace(0.5, 1.5, N)
    model = BaldurClassifier(**views, **FAST).set_fit_request(groups=True, sample_weight=True)
    model.set_score_request(sample_weight=True)
    cross_validate(
        model,
        X,
        sim.target,
        cv=GroupKFold(4),
        params={"groups": groups, "sample_weight": weight},
        error_score="raise",
    )
    folds = list(GroupKFold(4).split(np.zeros(N), groups=groups))
    for (rows, _), got, given in zip(folds, seen["groups"], seen["weight"], strict=True):
        assert_array_equal(got, np.unique(groups[rows], return_inverse=True)[1])  # numbered anew
        assert_array_equal(given, weight[rows])


@pytest.mark.usefixtures("routing")
def test_routing_through_pipeline_and_search(form, sim, seen):
    X, views = form
    groups = np.repeat(np.arange(N // 4), 4)
    model = BaldurClassifier(**views, **FAST).set_fit_request(groups=True, sample_weight=False)
    pipe = make_pipeline(FunctionTransformer(), model)
    grid = {"baldurclassifier__members": [("pooled",), ("per_view",)]}
    GridSearchCV(pipe, grid, cv=GroupKFold(2), error_score="raise").fit(
        X, sim.target, groups=groups
    )
    assert len(seen["groups"]) == 5  # two settings by two folds, and the refit
    assert all(got is not None for got in seen["groups"])
    assert_array_equal(seen["groups"][-1], groups)


@pytest.mark.usefixtures("routing")
def test_unrequested_metadata_is_refused_by_scikit_learn(sim):
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(
            BaldurClassifier(**FAST), sim.data, sim.target, params={"sample_weight": np.ones(N)}
        )


@pytest.mark.usefixtures("routing")
def test_regressor_routes_too(form, outcome):
    X, views = form
    groups = np.repeat(np.arange(N // 4), 4)
    model = BaldurRegressor(**views, **FAST).set_fit_request(groups=True, sample_weight=True)
    model.set_score_request(sample_weight=False)
    found = cross_validate(
        model,
        X,
        outcome,
        cv=GroupKFold(3),
        params={"groups": groups, "sample_weight": np.ones(N)},
        error_score="raise",
    )
    assert found["test_score"].mean() > 0.4


def test_inner_folds_keep_groups_together():
    """Copies of a person in other folds would look like signal; in one group they do not."""
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(20), 4)
    X, y = rng.standard_normal((20, 40))[people], (np.arange(20) % 2)[people]
    model = BaldurClassifier(members=("pooled",), max_iter=50)
    assert model.fit(X, y).signal_shown_
    with pytest.warns(NoSignalWarning):
        model.fit(X, y, groups=people)


# -- output --------------------------------------------------------------------------------------


def test_output_as_a_frame(sim):
    model = BaldurClassifier(**FAST).set_output(transform="pandas").fit(sim.data, sim.target)
    Z = model.transform(sim.data)
    assert isinstance(Z, pd.DataFrame)
    assert list(Z.columns) == list(model.get_feature_names_out()) == ["baldurclassifier0"]
    plain = clone(model).set_output(transform="default").fit(sim.data, sim.target)
    assert_array_equal(Z.to_numpy(), plain.transform(sim.data))


def test_frame_rows_keep_their_labels(sim):
    X = pd.DataFrame(
        np.concatenate([sim.data.view(v).read() for v in sim.data.view_names], axis=1),
        index=[f"person{i}" for i in range(N)],
        columns=[f"f{j}" for j in range(24)],
    )
    model = BaldurClassifier(
        {"clinic": [f"f{j}" for j in range(4)], "genes": [f"f{j}" for j in range(4, 24)]}, **FAST
    )
    Z = model.set_output(transform="pandas").fit(X, sim.target).transform(X)
    assert list(Z.index) == list(X.index)
    assert list(model.feature_names_in_) == list(X.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[X.columns[::-1]])


# -- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, FAST, {**FAST, "margin": 0.0}])
def test_pickles_give_the_same_bits(sim, options):
    model = BaldurClassifier(**options).fit(sim.data, sim.target)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(buffer)):
        assert_array_equal(copy.predict_proba(sim.data), model.predict_proba(sim.data))
        assert_array_equal(copy.transform(sim.data), model.transform(sim.data))
        assert copy.get_params() == model.get_params()


def test_pickles_of_the_regressor(sim, outcome):
    regressor = BaldurRegressor().fit(sim.data, outcome)
    copy = pickle.loads(pickle.dumps(regressor))
    assert_array_equal(copy.predict(sim.data), regressor.predict(sim.data))


def test_a_pickle_does_not_hold_the_training_data(sim):
    wide = make_multiview(N, {"a": 1000}, informative={"a": 2}, random_state=0)
    model = BaldurClassifier(members=("spike_slab",), max_iter=20).fit(wide.data, wide.target)
    assert len(pickle.dumps(model)) < wide.data.view("a").read().nbytes


@pytest.mark.parametrize("estimator", [BaldurClassifier, BaldurRegressor])
def test_clone_keeps_parameters_and_nothing_learned(sim, outcome, estimator):
    model = estimator(views=None, n_jobs=1, **FAST)
    y = sim.target if estimator is BaldurClassifier else outcome
    fresh = clone(model.fit(sim.data, y))
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "coef_")
    with pytest.raises(sklearn.exceptions.NotFittedError):
        fresh.predict(sim.data)


def test_a_second_fit_forgets_the_first(sim):
    model = BaldurClassifier(**FAST).fit(sim.data.select(["genes"]), sim.target)
    model.fit(sim.data, sim.target)
    assert list(model.coef_) == ["clinic", "genes"]
    with pytest.raises(InputError, match="clinic"):
        model.predict(sim.data.select(["genes"]))


# -- what a notebook shows of an estimator, and what scikit-learn's selectors take from it --------


GETTER = {"importance_getter": "feature_importances_", "threshold": 1e-12}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 6)), columns=[f"<b>{i}</b>" for i in range(6)])
    table["site"] = rng.choice(["Oslo", "Rome", "Lima"], 120)
    return table


@pytest.fixture(scope="module")
def y(frame):
    noise = np.random.default_rng(1).normal(size=len(frame))
    return (2 * frame["<b>3</b>"] - 2 * (frame["site"] == "Rome") + noise > 0).to_numpy()


@pytest.fixture(scope="module")
def model(frame, y):
    views = {"second": ["site", "<b>5</b>", "<b>3</b>"], "first": ["<b>0</b>", "<b>1</b>"]}
    return BaldurClassifier(views, members=("spike_slab",)).fit(frame, y)


def test_results_are_shown_below_the_diagram_and_escaped(model):
    diagram, results = model._repr_html_().split('<div class="baldur-results">')
    assert model._repr_mimebundle_()["text/html"].endswith(results)
    assert "sk-top-container" in diagram
    assert "&lt;b&gt;3&lt;/b&gt;" in results
    assert "<b>" not in results
    assert "second" in results
    assert "held-out" in results


def test_every_listed_attribute_can_be_read(model):
    """Notebooks complete names by reading attributes, and the diagram lists fitted ones."""
    for name in dir(model):
        getattr(model, name)


def test_the_diagram_is_left_alone_before_fit_and_in_text_mode(model):
    assert "baldur-results" not in BaldurClassifier()._repr_html_()
    assert "baldur-results" not in make_pipeline(BaldurClassifier())._repr_html_()
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_the_paper_estimators_show_their_results_too():
    X = np.random.default_rng(0).normal(size=(40, 3))
    shown = PaperClassifier(max_iter=30).fit(X, X[:, 0] > 0)._repr_html_()
    assert "baldur-results" in shown


def test_importances_are_one_value_per_input_column(model, frame):
    found = pd.Series(model.feature_importances_, index=frame.columns)
    assert found.sum() == pytest.approx(1.0)
    # Columns that are in no view, whatever the order of the views.
    assert (found[["<b>2</b>", "<b>4</b>"]] == 0).all()
    assert found["<b>3</b>"] > 0.2
    assert found["site"] > 0.2
    weights = np.abs(model.coef_scaled_["second"]).sum(axis=0)
    levels = model.feature_info_["second"]["column"].to_numpy() == "site"
    total = weights.sum() + np.abs(model.coef_scaled_["first"]).sum()
    assert found["site"] == pytest.approx(weights[levels].sum() / total)


def test_select_from_model_passes_the_selected_columns_on():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    y = 2 * X[:, 6] - 2 * X[:, 1] + rng.normal(size=120)
    model = BaldurRegressor({"a": slice(4, 8), "b": [3, 1, 0]}, members=("spike_slab",))
    selector = SelectFromModel(model, **GETTER).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [1, 6]
    np.testing.assert_array_equal(selector.transform(X), X[:, [1, 6]])


def test_importances_follow_the_views_of_a_container():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(80, 2)), rng.normal(size=(80, 3))
    model = BaldurClassifier(members=("pooled",)).fit(MultiView({"a": a, "b": b}), b[:, 1] > 0)
    assert model.feature_importances_.argmax() == 3
    assert not hasattr(BaldurClassifier(), "feature_importances_")


def test_onnx_is_a_path_or_has_a_short_repr(tmp_path):
    pytest.importorskip("onnx")
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = BaldurClassifier(members=("pooled",)).fit(X, X[:, 0] > 0)
    content = model.to_onnx()
    assert isinstance(content, bytes)
    assert len(repr(content)) < 80
    path = model.to_onnx(tmp_path / "model.onnx")
    assert path == tmp_path / "model.onnx"
    assert path.read_bytes() == content
