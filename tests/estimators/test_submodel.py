"""Submodels: `submodel(k)` is what `n_features=k` fits, with all methods of an estimator."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import baldur
from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.datasets import make_multiview
from baldur.exceptions import InputError

N = 70
DIMS = {"clinic": 6, "genes": 30}
pytestmark = [
    pytest.mark.usefixtures("one_repeat"),
    pytest.mark.filterwarnings("ignore::baldur.exceptions.NoSignalWarning"),
    pytest.mark.filterwarnings("ignore::baldur.exceptions.NotConvergedWarning"),
]


def with_missing_views(data, rng):
    """The same samples, of which every fifth lacks the genes."""
    clinic, genes = (data.view(name).read().copy() for name in data.view_names)
    genes[::5] = np.nan
    return MultiView({"clinic": clinic, "genes": genes})


def problem(task):
    """Return samples, outcomes and the estimator class of a task."""
    options = {"informative": {"clinic": 2, "genes": 2}, "random_state": 3}
    classes = {"binary": 2, "multiclass": 3, "missing views": 2, "regression": None}[task]
    noise = {"noise": 1.0} if task == "regression" else {}
    sim = make_multiview(N + 20, DIMS, n_classes=classes, **noise, **options)
    data = sim.data
    if task == "missing views":
        data = with_missing_views(data, np.random.default_rng(0))
    return data, sim.target, BaldurRegressor if task == "regression" else BaldurClassifier


@pytest.fixture(scope="module", params=["binary", "multiclass", "missing views", "regression"])
def fitted(request):
    """A model with the default number of features, its data, and a function that fits others."""
    data, y, kind = problem(request.param)

    def fit(**options):
        options = {"members": ("spike_slab", "pooled"), **options}
        return kind(**options).fit(data[:N], y[:N])

    return fit(), data, y, fit


def answers(model, data):
    """Return what a model says of samples, as arrays."""
    if isinstance(model, BaldurRegressor):
        return model.predict(data, return_std=True)
    return (model.predict_proba(data), model.decision_function(data))


def n_selected(model):
    return sum(int(mask.sum()) for mask in model.selected_features_.values())


@pytest.mark.parametrize("k", [0, 1, 3, 5, 11, 1000])
def test_a_submodel_is_what_n_features_fits(fitted, k):
    auto, data, _, fit = fitted
    small, direct = auto.submodel(k), fit(n_features=k)
    assert type(small) is type(auto)
    assert n_selected(small) == n_selected(direct) <= k
    for one, other in zip(answers(small, data), answers(direct, data), strict=True):
        assert_allclose(one, other, atol=1e-10, rtol=0)
    for view in DIMS:
        assert_array_equal(small.selected_features_[view], direct.selected_features_[view])
        assert_allclose(small.coef_[view], direct.coef_[view], atol=1e-10, rtol=0)
        assert_allclose(small.coef_std_[view], direct.coef_std_[view], atol=1e-10, rtol=0)
    pd.testing.assert_frame_equal(small.sparsity_path_, direct.sparsity_path_)
    assert small.get_params() == direct.get_params()
    assert small.summary().heading == direct.summary().heading


def test_the_fit_is_left_as_it_was(fitted):
    auto, data, _, _ = fitted
    before, needed = answers(auto, data), auto.preparation_.needed_
    path = auto.sparsity_path_.copy()
    auto.submodel(1)
    assert auto.n_features == "auto"
    pd.testing.assert_frame_equal(auto.sparsity_path_, path)
    for one, other in zip(before, answers(auto, data), strict=True):
        assert_array_equal(one, other)
    for view, mask in auto.preparation_.needed_.items():
        assert_array_equal(mask, needed[view])


def test_submodels_are_nested_and_have_the_number_that_was_asked_for(fitted):
    auto, *_ = fitted
    before = {view: np.zeros(width, dtype=bool) for view, width in DIMS.items()}
    longest = int(
        auto.sparsity_path_["n_features"][auto.sparsity_path_["step"] == "features"].max()
    )
    for k in range(min(longest, 20) + 1):
        found = auto.submodel(k).selected_features_
        assert sum(int(mask.sum()) for mask in found.values()) == k
        assert all((found[view] >= before[view]).all() for view in DIMS)
        before = found
    assert_array_equal(
        auto.submodel(7).submodel(4).coef_["clinic"], auto.submodel(4).coef_["clinic"]
    )


def test_the_path_names_what_enters(fitted):
    auto, *_ = fitted
    path = auto.sparsity_path_
    metric = "r2" if isinstance(auto, BaldurRegressor) else "auc"
    assert (path[f"{metric}_lower"] <= path[metric]).all()
    assert (path[metric] <= path[f"{metric}_upper"]).all()
    assert ((path["loss_lower"] <= path["loss"]) & (path["loss"] <= path["loss_upper"])).all()
    assert path[metric].iloc[0] == (0.0 if metric == "r2" else 0.5)
    steps = path[path["step"] == "features"].iloc[:-1]
    entered = set()
    for _, step in steps.iterrows():
        entered |= set(step["enters"].split(", "))
        assert len(entered) == step["n_features"]
        small = auto.submodel(int(step["n_features"]))
        names = {
            f"{view}:{name}"
            for view, mask in small.selected_features_.items()
            for name in np.asarray(auto.feature_names_[view])[mask]
        }
        assert names == entered
    views = path[path["step"] == "views"]["enters"]
    assert set(", ".join(views).split(", ")) == set(DIMS)


def test_the_summary_says_how_few_are_enough(fitted):
    auto, *_ = fitted
    path = auto.sparsity_path_
    metric = "r2" if isinstance(auto, BaldurRegressor) else "auc"
    three = path[(path["step"] == "features") & (path["n_features"] == 3)].iloc[0]
    low, high = three[f"{metric}_lower"], three[f"{metric}_upper"]
    summary = auto.summary()
    lines = str(summary).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("How few features"))
    assert lines[start + 1].split()[:3] == ["features", metric.upper(), "loss"]
    shown = {line.split()[0]: line for line in lines[start + 2 : start + 9]}
    assert f"{three[metric]:.2f} [{low:.2f}, {high:.2f}]" in shown["3"]
    assert three["enters"] in shown["3"]
    assert list(shown) == ["1", "2", "3", "5", "10", "20", "36"]
    table = summary.few_features
    assert table["n_features"].tolist() == [1, 2, 3, 5, 10, 20, 36]
    assert [len(names) for names in table["enters"]] == [1, 1, 1, 2, 5, 10, 0]
    assert summary.head(1).few_features is table
    assert str(auto.submodel(3).summary()).count(" selected, because n_features=3 was set.") == 1


def test_no_feature_is_the_base_rate(fitted):
    auto, data, y, _ = fitted
    none = auto.submodel(0)
    assert n_selected(none) == 0
    if isinstance(auto, BaldurRegressor):
        assert_allclose(none.predict(data), y[:N].mean())
        assert_allclose(none.predict(data, return_std=True)[1], y[:N].std(), rtol=1e-6)
    else:
        rate = [(y[:N] == label).mean() for label in auto.classes_]
        assert_allclose(none.predict_proba(data), np.tile(rate, (len(data), 1)), atol=1e-8)
    assert "base rate" in str(none.summary())


def test_contributions_add_up(fitted):
    auto, data, _, _ = fitted
    for k in (0, 2, 5):
        table = auto.submodel(k).explain(data[N:])
        terms = table[table["feature"] != "(uncertainty)"]
        sums = terms.groupby(["sample", "output"], sort=False)["contribution"].sum()
        said = table.groupby(["sample", "output"], sort=False)["linear_predictor"].first()
        assert_allclose(sums, said, atol=1e-9)


def test_a_submodel_is_saved_and_reported(fitted, tmp_path):
    auto, data, _, _ = fitted
    for k, asked in enumerate((0, {"clinic": 1, "genes": 2})):
        small = auto.submodel(asked)
        loaded = baldur.load(small.save(tmp_path / f"model{k}"))
        assert loaded.n_features == asked
        for one, other in zip(answers(small, data), answers(loaded, data), strict=True):
            assert_allclose(one, other, atol=1e-12)
        with pytest.raises(InputError, match="model folder has the model that was saved"):
            loaded.submodel(1)
        page = small.report(tmp_path / f"page{k}.html", data[N:])
        assert page.stat().st_size > 1000


def test_a_submodel_of_a_fit_that_selected_everything_has_all_tables(tmp_path):
    """Where all features are used there are no credible sets, and their table keeps its columns."""
    data, y, _ = problem("binary")
    auto = BaldurClassifier(members=("spike_slab", "pooled"), margin=0.0).fit(data[:N], y[:N])
    assert n_selected(auto) == sum(DIMS.values())
    assert not len(auto.credible_sets_)
    small = auto.submodel(3)
    assert list(small.credible_sets_.columns) == list(auto.credible_sets_.columns)
    assert "3" in str(small.summary())
    loaded = baldur.load(small.save(tmp_path / "model"))
    assert_allclose(loaded.predict_proba(data[N:]), small.predict_proba(data[N:]))


def test_a_category_is_one_feature():
    rng = np.random.default_rng(0)
    site = rng.choice(["a", "b", "c", "d"], 120)
    X = pd.DataFrame(rng.standard_normal((120, 6)), columns=[f"x{i}" for i in range(6)])
    y = (2.0 * np.isin(site, ["a", "b"]) + X["x0"] + rng.logistic(size=120) > 1).astype(int)
    X.insert(0, "site", site)
    auto = BaldurClassifier().fit(X, y)
    for k in range(8):
        small = auto.submodel(k)
        used = X.columns[small.feature_importances_ > 0]
        assert len(used) == k
        levels = [str(name).startswith("site") for name in small.feature_names_["X"]]
        mask = small.selected_features_["X"]
        assert mask[levels].sum() in (0, 3)  # the first of four levels has no column
    two = BaldurClassifier(n_features=2).fit(X, y)
    assert_allclose(two.predict_proba(X), auto.submodel(2).predict_proba(X), atol=1e-10)
    assert set(X.columns[two.feature_importances_ > 0]) == {"site", "x0"}


@pytest.mark.parametrize("kind", [BaldurClassifier, BaldurRegressor])
def test_features_that_are_always_in_do_not_count(kind):
    """Noise and a category that were asked for are in every submodel, and first in the path."""
    rng = np.random.default_rng(0)
    n = 100
    clinic = pd.DataFrame({"age": rng.standard_normal(n), "sex": rng.choice(["f", "m", "x"], n)})
    genes = pd.DataFrame(rng.standard_normal((n, 12)), columns=[f"g{i}" for i in range(12)])
    y = 2.0 * genes["g0"] + genes["g1"] + rng.standard_normal(n)
    y = y if kind is BaldurRegressor else (y > 0).astype(int)
    X = pd.concat([clinic, genes], axis=1)
    views = {"clinic": ["age", "sex"], "genes": list(genes)}
    auto = kind(views=views, always=["age", "clinic:sex"]).fit(X, y)

    def used(model):
        return set(X.columns[model.feature_importances_ > 0])

    assert {"age", "sex"} < used(auto)
    before = {"age", "sex"}
    for k in (0, 1, 2, 3, 5):
        small = auto.submodel(k)
        assert len(used(small)) == 2 + k
        assert before <= used(small)
        before = used(small)
        direct = kind(views=views, always=["age", "clinic:sex"], n_features=k).fit(X, y)
        assert_allclose(small.predict(X), direct.predict(X), atol=1e-10)
    assert used(auto.submodel(2)) == {"age", "sex", "g0", "g1"}
    steps = auto.sparsity_path_[auto.sparsity_path_["step"] == "features"]
    first = set(steps["enters"].iloc[0].split(", "))
    assert {name.split("=")[0] for name in first} == {"clinic:age", "clinic:sex"}
    assert auto.submodel(1000).selected_features_["genes"].all()


def test_a_feature_that_screening_would_drop_is_in():
    sim = make_multiview(60, {"genes": 1500}, informative={"genes": 3}, random_state=0)
    model = BaldurClassifier(always=["genes_1499"], n_features=2, members=("spike_slab",))
    model.fit(sim.data, sim.target)
    assert model.selected_features_["genes"][1499]
    assert n_selected(model) == 3


@pytest.mark.parametrize("wrong", ["age", ["genes_1x"], ["clinic:genes_1"], [3]])
def test_names_of_features_that_are_always_in_are_checked(wrong):
    data, y, _ = problem("binary")
    with pytest.raises(InputError, match="always"):
        BaldurClassifier(always=wrong).fit(data, y)


def test_equal_columns_break_no_count():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((90, 5))
    X[:, 1] = X[:, 0]
    y = (X[:, 0] + rng.logistic(size=90) > 0).astype(int)
    auto = BaldurClassifier().fit(X, y)
    for k in range(6):
        small = auto.submodel(k)
        assert n_selected(small) == k
        if k < 5:  # the path itself has four of the five columns
            same = auto.submodel({"X": k})
            assert_allclose(same.predict_proba(X), small.predict_proba(X), atol=1e-10)
        direct = BaldurClassifier(n_features=k).fit(X, y)
        assert_allclose(small.predict_proba(X), direct.predict_proba(X), atol=1e-10)


def test_all_features_of_a_wide_view_need_the_training_samples():
    sim = make_multiview(40, {"genes": 200}, informative={"genes": 3}, random_state=0)
    auto = BaldurClassifier(margin=1.0).fit(sim.data, sim.target)
    if n_selected(auto) < 200:
        with pytest.raises(InputError, match="which this model has not stored"):
            auto.submodel(200)
    assert 0 < n_selected(auto.submodel(199)) <= 128


@pytest.mark.parametrize("wrong", [-1, 2.5, "five", True, None, "auto"])
def test_the_number_of_features_is_checked(fitted, wrong):
    with pytest.raises(InputError, match="whole number"):
        fitted[0].submodel(wrong)


@pytest.mark.parametrize("wrong", [-1, 2.5, "five", True])
def test_the_argument_is_checked(wrong):
    with pytest.raises(InputError, match="n_features"):
        BaldurClassifier(n_features=wrong).fit(np.eye(10), np.arange(10) % 2)


PER_VIEW = ({"clinic": 2, "genes": 3}, {"genes": 4}, {"clinic": 0})


@pytest.mark.parametrize("asked", PER_VIEW, ids=str)
def test_numbers_per_view_are_what_n_features_fits(fitted, asked):
    auto, data, _, fit = fitted
    direct = fit(n_features=asked)
    for view in DIMS:
        assert direct.selected_features_[view].sum() == asked.get(view, 0)
    small = auto.submodel(asked)
    for one, other in zip(answers(small, data), answers(direct, data), strict=True):
        assert_allclose(one, other, atol=1e-10, rtol=0)
    for view in DIMS:
        assert_array_equal(small.selected_features_[view], direct.selected_features_[view])
        assert_allclose(small.coef_std_[view], direct.coef_std_[view], atol=1e-10, rtol=0)
    pd.testing.assert_frame_equal(small.sparsity_path_, direct.sparsity_path_)
    assert small.get_params() == direct.get_params()
    assert small.summary().heading == direct.summary().heading
    table = small.explain(data[N:])
    terms = table[table["feature"] != "(uncertainty)"]
    sums = terms.groupby(["sample", "output"], sort=False)["contribution"].sum()
    said = table.groupby(["sample", "output"], sort=False)["linear_predictor"].first()
    assert_allclose(sums, said, atol=1e-9)


def test_numbers_per_view_take_the_first_features_of_the_path(fitted):
    auto, *_ = fitted
    path = auto.sparsity_path_
    steps = path[(path["step"] == "features") & (path["n_features"] <= 5)]
    first = ", ".join(steps["enters"]).split(", ")
    counts = {view: sum(name.startswith(f"{view}:") for name in first) for view in DIMS}
    small, same = auto.submodel(counts), auto.submodel(5)
    # In folds the first five have other numbers per view, so only the calibration differs.
    for one, other in zip(*(np.hstack(list(m.coef_.values())) for m in (small, same)), strict=True):
        assert_allclose(one / np.abs(one).sum(), other / np.abs(other).sum(), atol=1e-9)
    row = small.sparsity_path_.query("selected").iloc[0]
    assert row["enters"].split(", ") == first
    again = auto.submodel({"clinic": 2, "genes": 2}).submodel(3)
    pd.testing.assert_frame_equal(again.sparsity_path_, auto.submodel(3).sparsity_path_)


def test_a_view_that_was_left_out_needs_a_fit():
    rng = np.random.default_rng(0)
    X = {"clinic": rng.standard_normal((120, 4)), "noise": rng.standard_normal((120, 150))}
    y = (2.0 * X["clinic"][:, 0] + rng.logistic(size=120) > 0).astype(int)
    data = MultiView(X)
    auto = BaldurClassifier(members=("spike_slab", "per_view")).fit(data, y)
    with pytest.raises(InputError, match=r"begins with \d+ of 'noise', fewer than were asked for"):
        auto.submodel({"noise": 90})
    direct = BaldurClassifier(members=("spike_slab", "per_view"), n_features={"noise": 90})
    direct.fit(data, y)
    assert [int(mask.sum()) for mask in direct.selected_features_.values()] == [0, 90]


def test_categories_count_once_in_a_view():
    rng = np.random.default_rng(0)
    n = 120
    site = rng.choice(["a", "b", "c", "d"], n)
    X = pd.DataFrame(rng.standard_normal((n, 6)), columns=[f"x{i}" for i in range(6)])
    y = (2.0 * np.isin(site, ["a", "b"]) + X["x0"] + rng.logistic(size=n) > 1).astype(int)
    X.insert(0, "site", site)
    views = {"one": ["site", "x0", "x1"], "two": ["x2", "x3", "x4", "x5"]}
    auto = BaldurClassifier(views=views, always=["x5"]).fit(X, y)
    small = auto.submodel({"one": 2, "two": 2})
    used = set(X.columns[small.feature_importances_ > 0])
    assert {"site", "x0", "x5"} < used
    assert len(used) == 5
    assert small.selected_features_["one"].sum() == 4  # the first of four levels has no column
    direct = BaldurClassifier(views=views, always=["x5"], n_features={"one": 2, "two": 2})
    assert_allclose(direct.fit(X, y).predict_proba(X), small.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("wrong", [{"clinc": 1}, {"clinic": -1}, {"clinic": 1.5}, {}, {3: 1}])
def test_numbers_per_view_are_checked(fitted, wrong):
    auto, data, y, _ = fitted
    with pytest.raises(InputError, match=r"whole number|Did you mean 'clinic'"):
        auto.submodel(wrong)
    with pytest.raises(InputError, match="n_features"):
        type(auto)(n_features=wrong, members=("pooled",)).fit(data[:N], y[:N])


def test_a_copy_holds_no_cells_for_numbers_per_view(fitted):
    auto, *_ = fitted
    copied = pickle.loads(pickle.dumps(auto))
    assert copied._default_fit.stored_path is None
    assert n_selected(copied.submodel(3)) == 3
    with pytest.raises(InputError, match="in the session in which the model was fitted"):
        copied.submodel({"clinic": 1})


def test_several_labels():
    rng = np.random.default_rng(0)
    data = MultiView(
        {"clinic": rng.standard_normal((80, 5)), "genes": rng.standard_normal((80, 15))}
    )
    score = data.view("clinic").read()[:, :2] + data.view("genes").read()[:, :1]
    Y = (score + rng.logistic(size=(80, 2)) > 0).astype(int)
    options = {"members": ("spike_slab", "pooled")}
    auto = BaldurClassifier(**options).fit(data, Y)
    path = auto.sparsity_path_
    assert {"auc", "auc_lower", "auc_upper", "loss_lower", "loss_upper", "enters"} <= set(path)
    for asked in (2, {"clinic": 2, "genes": 1}):
        direct = BaldurClassifier(n_features=asked, **options).fit(data, Y)
        assert_allclose(auto.submodel(asked).predict_proba(data), direct.predict_proba(data),
                        atol=1e-10)  # fmt: skip
