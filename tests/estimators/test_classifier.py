"""BaldurClassifier: what its fitted attributes promise, and what it does with awkward data."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

from baldur import BaldurClassifier, MultiView
from baldur.datasets import make_multiview
from baldur.exceptions import InputError, NoSignalWarning, NotConvergedWarning
from preparation.literal import linear

DIMS = {"clinic": 6, "genes": 30}
N = 100


pytestmark = pytest.mark.usefixtures("one_repeat")


@pytest.fixture(scope="module")
def sim():
    return make_multiview(N + 200, DIMS, informative={"clinic": 3}, random_state=1)


@pytest.fixture(scope="module")
def train(sim):
    return sim.data[:N], sim.target[:N]


@pytest.fixture(scope="module")
def test(sim):
    return sim.data[N:], sim.target[N:]


@pytest.fixture(scope="module")
def auto(train):
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoSignalWarning)  # there is one, so nothing to warn of
        return BaldurClassifier().fit(*train)


@pytest.fixture(scope="module")
def pooled(train):
    return BaldurClassifier(members=("pooled",)).fit(*train)


@pytest.fixture(scope="module", params=["auto", "pooled"])
def fitted(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def three():
    """Three classes, called by names."""
    sim = make_multiview(
        200, {"clinic": 6, "genes": 20}, informative={"clinic": 3}, n_classes=3, random_state=2
    )
    return sim.data, np.array(["AD", "HC", "MCI"])[sim.target]


def stacked(data):
    return np.concatenate([data.view(name).read() for name in data.view_names], axis=1)


def changed(data, name, X):
    """`data` with another matrix for one view."""
    return MultiView({v: X if v == name else data.view(v).read() for v in data.view_names})


# -- fitted attributes ---------------------------------------------------------------------------


def test_fitted_attributes(fitted, test):
    data, y = test
    assert_array_equal(fitted.classes_, [0, 1])
    for name, width in DIMS.items():
        assert fitted.coef_[name].shape == fitted.coef_std_[name].shape == (1, width)
        mask = fitted.selected_features_[name]
        assert mask.shape == (width,)
        assert mask.dtype == bool
        assert not fitted.coef_[name][:, ~mask].any()
        assert not fitted.coef_std_[name][:, ~mask].any()
        assert (fitted.coef_std_[name][:, mask] > 0).all()
    assert fitted.intercept_.shape == (1,)
    assert sum(fitted.view_relevance_.values()) == pytest.approx(1.0)
    assert_allclose(fitted.factor_relevance_.sum(axis=1), 1.0)
    assert list(fitted.factor_relevance_.columns) == list(DIMS)
    assert fitted.n_factors_ == 1
    assert fitted.n_iter_ == len(fitted.history_) > 0
    assert fitted.converged_
    assert fitted.view_relevance_["clinic"] > (0.9 if len(fitted.members) > 1 else 0.5)
    assert fitted.score(data, y) > 0.75
    assert roc_auc_score(y, fitted.predict_proba(data)[:, 1]) > 0.85


def test_path_says_what_was_scored_and_why_a_step_was_kept(auto):
    path = auto.sparsity_path_
    assert list(path.columns) == [
        "step",
        "n_views",
        "n_features",
        "loss",
        "loss_difference",
        "standard_error",
        "upper",
        "candidate",
        "selected",
        "loss_lower",
        "loss_upper",
        "auc",
        "auc_lower",
        "auc_upper",
        "enters",
    ]
    assert list(path.step.unique()) == ["nothing", "views", "features"]
    for _, steps in path.groupby("step"):
        assert list(steps.n_features) == sorted(steps.n_features)
    assert path.selected.sum() == 1
    kept = sum(int(mask.sum()) for mask in auto.selected_features_.values())
    assert int(path.n_features[path.selected].iloc[0]) == kept
    assert path.candidate[path.selected].all()
    assert_allclose(path.upper, path.loss_difference + 1.645 * path.standard_error)
    # What the whole reference gains over the base rate, and how sure that is.
    nothing, whole = path.iloc[0], path[path.step == "views"].iloc[-1]
    assert nothing.n_features == 0
    assert whole.loss_difference == 0.0
    assert auto.signal_ == pytest.approx(nothing.loss_difference / nothing.standard_error)
    assert auto.signal_shown_


def test_stack_shares_and_probabilities(auto):
    sizes = {name: int(name.split("_")[1]) for name in auto.members if "screened" in name}
    screened = [name for name, size in sizes.items() if size < sum(DIMS.values())]
    dense = ["spike_slab", "spike_slab_wide", "per_view", "pooled"]
    assert list(auto.stacking_weights_) == dense + screened
    assert all(weight > 0 for weight in auto.stacking_weights_.values())
    assert 0.5 < sum(auto.stacking_weights_.values()) < 4.0
    for rho in auto.inclusion_probability_.values():
        assert ((rho >= 0) & (rho <= 1)).all()
    for name, mask in auto.selected_features_.items():
        rho = auto.inclusion_probability_[name]
        assert not mask.any() or rho[mask].max() > 0.5


def test_credible_sets_name_who_could_stand_in(auto):
    sets = auto.credible_sets_
    assert list(sets.columns) == [
        "view",
        "feature",
        "member_view",
        "member_feature",
        "probability",
        "min_abs_correlation",
    ]
    kept = {
        (name, str(feature))
        for name, mask in auto.selected_features_.items()
        for feature in np.flatnonzero(mask)
    }
    names = {(v, f) for v, f in zip(sets.view, sets.feature, strict=True)}
    assert len(names) == len(kept)
    for _, rows in sets.groupby(["view", "feature"]):
        assert 0.95 - 1e-9 <= rows.probability.sum() <= 1.0 + 1e-9
        assert rows.min_abs_correlation.between(0.0, 1.0 + 1e-9).all()


def test_weights_are_in_units_of_the_input(fitted, test):
    data, _ = test
    assert_allclose(linear(fitted, data), fitted.transform(data), rtol=1e-9, atol=1e-9)


def test_weights_of_one_matrix_cut_into_views(sim, auto):
    X = stacked(sim.data)
    views = {"clinic": slice(0, 6), "genes": slice(6, 36)}
    model = BaldurClassifier(views).fit(X[:N], sim.target[:N])
    for name in DIMS:
        assert_array_equal(model.coef_[name], auto.coef_[name])
    assert_array_equal(model.predict_proba(X[N:]), auto.predict_proba(sim.data[N:]))
    eta = sum(X[N:, views[v]] @ c.T for v, c in model.coef_.items()) + model.intercept_
    assert_allclose(eta, model.transform(X[N:]), rtol=1e-9, atol=1e-9)


def test_rescaling_a_feature_rescales_its_weight(train, pooled):
    data, y = train
    X = data.view("clinic").read() * np.array([1, 1000, 1, 1e-3, 1, 1]) + 5.0
    model = BaldurClassifier(members=("pooled",)).fit(changed(data, "clinic", X), y)
    scale = np.array([1, 1000, 1, 1e-3, 1, 1])
    assert_allclose(model.coef_["clinic"] * scale, pooled.coef_["clinic"], rtol=1e-6, atol=1e-9)
    assert_allclose(
        model.coef_std_["clinic"] * scale, pooled.coef_std_["clinic"], rtol=1e-6, atol=1e-9
    )
    assert_allclose(
        model.predict_proba(changed(data, "clinic", X)), pooled.predict_proba(data), rtol=1e-6
    )


def test_weights_with_fewer_factors_than_classes(three):
    data, y = three
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model = BaldurClassifier(n_factors=2, members=("pooled",), max_iter=30).fit(data, y)
    assert model.n_factors_ <= 2
    assert model.loadings_.shape == (3, model.n_factors_)
    Z = model.transform(data)
    assert Z.shape == (200, model.n_factors_)
    # The offset of the outputs stands outside the factors.
    gap = linear(model, data) - Z @ model.loadings_.T
    assert_allclose(gap, np.tile(gap[0], (200, 1)), atol=1e-9)
    assert model.score(data, y) > 0.6


def test_dropped_features_never_matter(auto, test):
    data, _ = test
    rng = np.random.default_rng(0)
    other = data
    for name, mask in auto.selected_features_.items():
        X = data.view(name).read().copy()
        X[:, ~mask] = rng.standard_normal((len(X), (~mask).sum())) * 1e3
        other = changed(other, name, X)
    assert sum((~mask).sum() for mask in auto.selected_features_.values()) > 0
    assert_array_equal(auto.predict_proba(other), auto.predict_proba(data))
    assert_array_equal(auto.transform(other), auto.transform(data))


# -- predictions ---------------------------------------------------------------------------------


def test_predictions_agree_with_each_other(fitted, test):
    data, _ = test
    p = fitted.predict_proba(data)
    assert p.shape == (200, 2)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(fitted.predict(data), (p[:, 1] > 0.5).astype(int))
    assert_allclose(fitted.decision_function(data), logit(p[:, 1]), rtol=1e-9)


def test_uncertainty_pulls_probabilities_towards_a_half(fitted, test):
    data, _ = test
    eta, std = fitted.transform(data, return_std=True)
    assert (std > 0).all()
    # By Jensen for one Gaussian; a mixture of nearly equal ones keeps a small slack.
    p, plain = fitted.predict_proba(data)[:, 1], expit(eta[:, 0])
    sure = np.abs(eta[:, 0]) > 0.5
    assert (np.abs(p - 0.5) <= np.abs(plain - 0.5) + 1e-3)[sure].all()


def test_three_classes(three):
    data, y = three
    model = BaldurClassifier().fit(data[:150], y[:150])
    assert_array_equal(model.classes_, ["AD", "HC", "MCI"])
    p = model.predict_proba(data[150:])
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(model.predict(data[150:]), model.classes_[p.argmax(axis=1)])
    assert model.decision_function(data[150:]).shape == (50, 3)
    assert model.coef_["clinic"].shape == (3, 6)
    assert_allclose(linear(model, data[150:]), model.transform(data[150:]), rtol=1e-8, atol=1e-8)
    assert model.score(data[150:], y[150:]) > 0.6


def test_several_labels(sim):
    scores = [sim.data.view("clinic").read()[:, 0], sim.data.view("genes").read()[:, 0]]
    rng = np.random.default_rng(0)
    Y = np.column_stack([rng.random(len(s)) < expit(4 * s) for s in scores]).astype(int)
    model = BaldurClassifier().fit(sim.data[:N], Y[:N])
    p = model.predict_proba(sim.data[N:])
    assert p.shape == (200, 2)
    assert_array_equal(model.predict(sim.data[N:]), p > 0.5)
    assert min(roc_auc_score(Y[N:, c], p[:, c]) for c in range(2)) > 0.85
    assert np.abs(model.coef_["clinic"][0]).argmax() == 0
    assert np.abs(model.coef_["genes"][1]).argmax() == 0


# -- weights of samples and classes --------------------------------------------------------------


@pytest.mark.parametrize("members", [BaldurClassifier().members, ("pooled",)])
def test_weight_zero_leaves_a_sample_out(train, test, members):
    data, y = train
    weight = np.ones(N)
    weight[::7] = 0.0
    keep = np.flatnonzero(weight)
    one = BaldurClassifier(members=members).fit(data, y, sample_weight=weight)
    two = BaldurClassifier(members=members).fit(data[keep], y[keep])
    assert_array_equal(one.predict_proba(test[0]), two.predict_proba(test[0]))


def test_class_weights_are_sample_weights(sim):
    rows = np.flatnonzero(sim.target == 1)[:25]
    rows = np.sort(np.concatenate([rows, np.flatnonzero(sim.target == 0)[:60]]))
    data, y = sim.data[rows], sim.target[rows]
    balanced = BaldurClassifier(class_weight="balanced", members=("pooled",)).fit(data, y)
    weight = np.where(y == 1, 85 / 50, 85 / 120)
    same = BaldurClassifier(members=("pooled",)).fit(data, y, sample_weight=weight)
    assert_array_equal(balanced.predict_proba(data), same.predict_proba(data))
    named = BaldurClassifier(class_weight={0: 85 / 120, 1: 85 / 50}, members=("pooled",)).fit(
        data, y
    )
    assert_array_equal(balanced.predict_proba(data), named.predict_proba(data))
    plain = BaldurClassifier(members=("pooled",)).fit(data, y)
    assert balanced.predict_proba(data)[:, 1].mean() > plain.predict_proba(data)[:, 1].mean() + 0.05


@pytest.mark.parametrize(
    ("weight", "message"),
    [(np.ones(3), "3"), (-np.ones(N), "negative"), (np.zeros(N), "zero for every sample")],
)
def test_bad_sample_weights(train, weight, message):
    with pytest.raises(InputError, match=message):
        BaldurClassifier().fit(*train, sample_weight=weight)


# -- missing -------------------------------------------------------------------------------------


def test_missing_cells():
    sim = make_multiview(
        N + 200, DIMS, informative={"clinic": 3}, missing_cells=0.2, random_state=1
    )
    model = BaldurClassifier().fit(sim.data[:N], sim.target[:N])
    p = model.predict_proba(sim.data[N:])
    assert np.isfinite(p).all()
    assert roc_auc_score(sim.target[N:], p[:, 1]) > 0.75


def test_a_missing_view_at_prediction_widens(fitted, test):
    data, _ = test
    gone = changed(data, "clinic", np.full((200, 6), np.nan))
    _, std = fitted.transform(data, return_std=True)
    mean, wide = fitted.transform(gone, return_std=True)
    assert (wide > std).mean() > 0.99  # Gaussians disagree most about the most extreme samples
    p, blind = fitted.predict_proba(data)[:, 1], fitted.predict_proba(gone)[:, 1]
    assert np.abs(blind - 0.5).mean() < 0.5 * np.abs(p - 0.5).mean()
    # What is left is the intercept and the other view.
    part = data.view("genes").read() @ fitted.coef_["genes"].T
    means = fitted.preparation_.mean_["clinic"] @ fitted.coef_["clinic"].T
    assert_allclose(mean, part + means + fitted.intercept_, rtol=1e-9, atol=1e-9)


def test_a_view_missing_for_some_at_fit():
    sim = make_multiview(
        N + 200,
        DIMS,
        informative={"clinic": 2, "genes": 2},
        missing_views={"clinic": 0.3},
        random_state=1,
    )
    model = BaldurClassifier().fit(sim.data[:N], sim.target[:N])
    p = model.predict_proba(sim.data[N:])
    assert np.isfinite(p).all()
    assert roc_auc_score(sim.target[N:], p[:, 1]) > 0.7
    _, std = model.transform(sim.data[N:], return_std=True)
    absent = ~sim.data[N:].view("clinic").present
    assert std[absent].mean() > std[~absent].mean()
    # Taking the view from those who have it makes predictions less sure, on average.
    has = sim.data[N:][np.flatnonzero(~absent)]
    gone = changed(has, "clinic", np.full((len(has), 6), np.nan))
    (_, var), (_, wide) = (model._predictor.moments(model._open_new(X)) for X in (has, gone))
    assert wide.mean() > var.mean()


def test_a_view_that_no_training_sample_has(train):
    data, y = train
    gone = changed(data, "genes", np.full((N, 30), np.nan))
    with pytest.raises(InputError, match=r"genes.*all 100 have none"):
        BaldurClassifier().fit(gone, y)


def test_constant_features_are_dropped(train):
    data, y = train
    X = data.view("clinic").read().copy()
    X[:, 2] = 7.0
    model = BaldurClassifier().fit(changed(data, "clinic", X), y)
    assert model.coef_["clinic"][0, 2] == 0.0
    assert not model.selected_features_["clinic"][2]


# -- nothing to find -----------------------------------------------------------------------------


def noise(seed):
    rng = np.random.default_rng(seed)
    data = MultiView({"a": rng.standard_normal((90, 8)), "b": rng.standard_normal((90, 60))})
    return data, np.repeat([0, 1], [60, 30])


def test_no_signal_is_said_plainly():
    """On pure noise no signal is shown: one warning, and probabilities near the base rate."""
    for seed in (5, 6, 7):
        data, y = noise(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = BaldurClassifier().fit(data, y)
        ours = [w for w in caught if issubclass(w.category, NoSignalWarning)]
        assert len(ours) == 1
        assert "no evidence of signal" in str(ours[0].message)
        assert "do not interpret" in str(ours[0].message)
        assert not model.signal_shown_
        assert model.signal_ < 1.645
        assert sum(model.view_relevance_.values()) == pytest.approx(1.0)
        new, _ = noise(seed + 100)
        assert_allclose(model.predict_proba(new)[:, 1], 1 / 3, atol=0.15)


def test_constant_views_predict_the_base_rate():
    y = np.repeat([0, 1], [30, 10])
    with pytest.warns(NoSignalWarning, match="base rate"):
        model = BaldurClassifier().fit(np.ones((40, 3)), y)
    assert_allclose(model.predict_proba(np.ones((2, 3)))[:, 1], 0.25, atol=0.02)


# -- mistakes ------------------------------------------------------------------------------------


def test_one_class(train):
    with pytest.raises(InputError, match="class"):
        BaldurClassifier().fit(train[0], np.ones(N))


def test_a_class_of_one_sample(train):
    y = np.zeros(N, dtype=int)
    y[3] = 1
    with pytest.raises(InputError, match="1"):
        BaldurClassifier().fit(train[0], y)


def test_a_class_of_two_samples(train, test):
    y = np.zeros(N, dtype=int)
    y[[3, 50]] = 1
    p = BaldurClassifier().fit(train[0], y).predict_proba(test[0])
    assert np.isfinite(p).all()
    assert p[:, 1].mean() < 0.2


def test_one_class_left_by_weights(train):
    data, y = train
    with pytest.raises(InputError, match="class"):
        BaldurClassifier().fit(data, y, sample_weight=(y == 1).astype(float))
    weight = np.where(y == 1, 1.0, 0.0)
    weight[np.flatnonzero(y == 0)[0]] = 1.0
    with pytest.raises(InputError, match="at least 2"):
        BaldurClassifier().fit(data, y, sample_weight=weight)


def test_infinite_cells_name_the_view(train):
    data, y = train
    X = data.view("genes").read().copy()
    X[4, 7] = np.inf
    with pytest.raises(InputError, match="genes"):
        BaldurClassifier().fit(changed(data, "genes", X), y)


def test_infinite_cells_at_prediction_name_the_view(pooled, test):
    X = test[0].view("genes").read().copy()
    X[4, 7] = -np.inf
    with pytest.raises(InputError, match="genes"):
        pooled.predict(changed(test[0], "genes", X))


def test_wrong_width_names_the_view(pooled, test):
    data, _ = test
    with pytest.raises(InputError, match=r"genes.*29 features.*30"):
        pooled.predict(changed(data, "genes", data.view("genes").read()[:, :-1]))


def test_wrong_views_are_named(pooled, test):
    data, _ = test
    with pytest.raises(InputError, match="clinic"):
        pooled.predict(data.select(["genes"]))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y"),
        (np.zeros(3), f"expected {N} labels"),
        (np.linspace(0, 1, N), "(?i)label|continuous"),
        (np.where(np.arange(N) == 5, np.nan, 1.0), "missing"),
        (np.ones((N, 2)), "constant"),
        (np.arange(2 * N).reshape(N, 2) % 5, "0/1"),
    ],
)
def test_bad_labels(train, y, message):
    with pytest.raises(ValueError, match=message):
        BaldurClassifier().fit(train[0], y)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("members", ()),
        ("members", "pooled"),
        ("members", ("pooled", "dense")),
        ("members", [1]),
        ("members", None),
        ("margin", -0.1),
        ("margin", 1.5),
        ("margin", "little"),
        ("margin", float("nan")),
        ("n_factors", 0),
        ("n_factors", 1.5),
        ("max_iter", 0),
    ],
)
def test_bad_parameters(train, parameter, value):
    with pytest.raises(InputError, match=parameter):
        BaldurClassifier(**{parameter: value}).fit(*train)


def test_an_unknown_member_lists_the_legal_ones(train):
    with pytest.raises(InputError, match='"spike_slab", "spike_slab_wide", "per_view", "pooled"'):
        BaldurClassifier(members=["dense"]).fit(*train)


def test_a_dense_fit_includes_every_feature(pooled):
    assert list(pooled.stacking_weights_) == ["pooled"]
    for name, width in DIMS.items():
        assert_array_equal(pooled.inclusion_probability_[name], np.ones(width))
    assert len(pooled.credible_sets_) == 0
    assert "member_feature" in pooled.credible_sets_.columns
    assert not hasattr(pooled, "elbo_")


def test_one_view_under_the_name_that_was_asked_for(train, test):
    X, y = train[0].select(["clinic"]), train[1]
    one, two, both = (
        BaldurClassifier(members=names).fit(X, y)
        for names in (("per_view",), ("pooled",), ("per_view", "pooled"))
    )
    assert [list(model.stacking_weights_) for model in (one, two, both)] == [
        ["per_view"], ["pooled"], ["pooled"]
    ]  # fmt: skip
    new = test[0].select(["clinic"])
    assert_array_equal(one.predict_proba(new), two.predict_proba(new))
    assert_array_equal(both.predict_proba(new), two.predict_proba(new))


def test_a_dictionary_is_refused_with_advice(train):
    data, y = train
    with pytest.raises(InputError, match="MultiView"):
        BaldurClassifier().fit({v: data.view(v).read() for v in data.view_names}, y)


def test_groups_are_checked(train):
    with pytest.raises(InputError, match="groups"):
        BaldurClassifier().fit(*train, groups=np.zeros(N))
    with pytest.raises(InputError, match="groups"):
        BaldurClassifier().fit(*train, groups=np.arange(3))


def test_not_converged_warns_once(train):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = BaldurClassifier(members=("per_view",), max_iter=1).fit(*train)
    ours = [w for w in caught if issubclass(w.category, NotConvergedWarning)]
    assert len(ours) == 1
    assert "max_iter" in str(ours[0].message)
    assert not model.converged_


def test_silent_by_default_and_progress_on_request(train, capfd):
    BaldurClassifier(members=("pooled",)).fit(*train)
    assert capfd.readouterr() == ("", "")
    BaldurClassifier(members=("pooled",), verbose=1).fit(*train)
    assert capfd.readouterr().out == ""


# -- the same answer -----------------------------------------------------------------------------


def test_two_fits_give_the_same_bits(train, auto, test):
    again = BaldurClassifier().fit(*train)
    assert_array_equal(again.predict_proba(test[0]), auto.predict_proba(test[0]))
    assert again.stacking_weights_ == auto.stacking_weights_


def test_jobs_give_the_same_bits(train, auto, test):
    two = BaldurClassifier(n_jobs=2).fit(*train)
    assert_array_equal(two.predict_proba(test[0]), auto.predict_proba(test[0]))
    for name in DIMS:
        assert_array_equal(two.coef_[name], auto.coef_[name])


def test_order_of_features_does_not_matter(train, test, auto):
    data, y = train
    order = np.random.default_rng(0).permutation(30)
    mixed = changed(data, "genes", data.view("genes").read()[:, order])
    model = BaldurClassifier().fit(mixed, y)
    assert_allclose(model.coef_["genes"], auto.coef_["genes"][:, order], rtol=1e-6, atol=1e-9)
    assert_array_equal(model.selected_features_["genes"], auto.selected_features_["genes"][order])
    assert_allclose(model.coef_["clinic"], auto.coef_["clinic"], rtol=1e-6, atol=1e-9)


def test_order_of_views_does_not_matter(train, test, auto):
    data, y = train
    model = BaldurClassifier().fit(data.select(["genes", "clinic"]), y)
    for name in DIMS:
        assert_allclose(model.coef_[name], auto.coef_[name], rtol=1e-6, atol=1e-9)
    assert_allclose(model.predict_proba(test[0]), auto.predict_proba(test[0]), rtol=1e-6)


@pytest.mark.parametrize("kind", ["float32", "sparse", "frame"])
def test_other_matrices_give_the_same_answer(train, pooled, test, kind):
    data, y = train
    make = {
        "float32": lambda v, X: X.astype(np.float32),
        "sparse": lambda v, X: sparse.csc_array(X),
        "frame": lambda v, X: MultiView({v: X}).to_frame(),
    }[kind]
    other = MultiView({v: make(v, data.view(v).read()) for v in DIMS})
    model = BaldurClassifier(members=("pooled",)).fit(other, y)
    for name in DIMS:
        assert_allclose(model.coef_[name], pooled.coef_[name], rtol=1e-3, atol=1e-4)
