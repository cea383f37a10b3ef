"""PaperClassifier and PaperRegressor: every argument acts, intervals cover, mistakes."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

import baldur
from baldur import MultiView, Preparation
from baldur.datasets import make_multiview
from baldur.evaluation import make_model
from baldur.exceptions import InputError, NoSignalWarning, NotConvergedWarning
from baldur.paper import PaperClassifier, PaperRegressor

# Genes outnumber the samples: elsewhere the dual posterior is the primal one.
DIMS = {"clinic": 6, "genes": 70}
N = 60
PAIR = {True: PaperClassifier, False: PaperRegressor}

pytestmark = [
    pytest.mark.filterwarnings("ignore::baldur.exceptions.NotConvergedWarning"),
    pytest.mark.usefixtures("few_cycles"),
]


@pytest.fixture(scope="module")
def labels():
    return make_multiview(N + 300, DIMS, informative={"clinic": 3}, random_state=1)


@pytest.fixture(scope="module")
def numbers():
    return make_multiview(
        N + 300, DIMS, informative={"clinic": 3}, n_classes=None, noise=1.5, random_state=1
    )


@pytest.fixture(scope="module")
def sims(labels, numbers):
    return {True: labels, False: numbers}


def fit(sim, estimator, **options):
    quick = {"max_iter": 12, "preparation": "standard"}
    if estimator is PaperClassifier:
        quick["bound"] = "jaakkola"
    return estimator(**{**quick, **options}).fit(sim.data[:N], sim.target[:N])


FITS = {}


def fitted(sim, estimator, **options):
    """Return the same, fitted once for each setting."""
    key = (estimator, repr(sorted(options.items())))
    if key not in FITS:
        FITS[key] = fit(sim, estimator, **options)
    return FITS[key]


def answer(model, data):
    """Everything a user may read off, as one vector."""
    out = model.predict_proba(data) if hasattr(model, "predict_proba") else model.predict(data)
    coef = np.concatenate([model.coef_[v].ravel() for v in model.view_names_])
    return np.concatenate([np.ravel(out), coef])


# For each argument: what it is compared in, and with.
CHANGES = {
    "preparation": ({}, {"preparation": Preparation("rank")}),
    "n_factors": ({}, {"n_factors": 2}),
    "sparsity": ({}, {"sparsity": 0.5}),
    "bound": ({}, {"bound": "quadrature"}),
    "prune": ({}, {"prune": False}),
    "class_weight": ({}, {"class_weight": {0: 1.0, 1: 3.0}}),
    "space": (
        {"sparsity": 0.5},
        {"sparsity": 0.5, "space": ("primal", "dual"), "relevance_vectors": 9},
    ),
    "relevance_vectors": (
        {"sparsity": 0.5, "space": "dual", "relevance_vectors": None},
        {"sparsity": 0.5, "space": "dual", "relevance_vectors": 9},
    ),
    "max_iter": ({}, {"max_iter": 11}),
    "tol": ({"max_iter": 15, "tol": 10.0}, {"max_iter": 15, "tol": 1e-9}),
    "random_state": ({"n_factors": 2}, {"n_factors": 2, "random_state": 1}),
}
ELSEWHERE = {"views", "verbose"}


@pytest.mark.parametrize("classify", [True, False])
def test_the_list_of_arguments_is_complete(classify):
    have = set(inspect.signature(PAIR[classify].__init__).parameters) - {"self"}
    only_for_labels = set() if classify else {"bound", "class_weight"}
    assert have == (set(CHANGES) | ELSEWHERE) - only_for_labels


@pytest.mark.parametrize("classify", [True, False])
@pytest.mark.parametrize("name", CHANGES)
def test_every_argument_changes_the_answer(sims, name, classify):
    if name not in inspect.signature(PAIR[classify].__init__).parameters:
        pytest.skip("an argument of the classifier alone")
    sim = sims[classify]
    one, other = (fitted(sim, PAIR[classify], **options) for options in CHANGES[name])
    gap = np.abs(answer(one, sim.data[N:]) - answer(other, sim.data[N:])).max()
    assert gap > 1e-6


@pytest.mark.parametrize("classify", [True, False])
def test_views_say_which_columns_belong_together(sims, classify):
    sim = sims[classify]
    X = np.hstack([sim.data.view(v).read() for v in DIMS])
    columns = {"clinic": slice(0, 6), "genes": slice(6, 76)}
    options = {**fitted(sim, PAIR[classify]).get_params(), "views": columns}
    named = PAIR[classify](**options).fit(X[:N], sim.target[:N])
    whole = PAIR[classify](max_iter=1).fit(X[:N], sim.target[:N])
    same = fitted(sim, PAIR[classify])
    assert list(named.coef_) == list(DIMS)
    assert len(whole.coef_) == 1
    assert_allclose(answer(named, X[N:]), answer(same, sim.data[N:]), rtol=1e-9, atol=1e-12)


def test_progress_on_request(labels, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    fit(labels, PaperClassifier, max_iter=2)
    assert capfd.readouterr() == ("", "")
    fit(labels, PaperClassifier, max_iter=2, verbose=1)
    assert "PaperClassifier" in capfd.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"space": "dual"},
        {"space": ("primal", "dual"), "relevance_vectors": 30},
        {"space": "dual", "relevance_vectors": np.arange(0, N, 2)},
        {"bound": "quadrature"},
    ],
)
def test_classifier(labels, options):
    model = fitted(labels, PaperClassifier, **options)
    data, y = labels.data[N:], labels.target[N:]
    p = model.predict_proba(data)
    assert_allclose(p.sum(axis=1), 1.0)
    space = options.get("space", "primal")
    wanted = [space] * 2 if isinstance(space, str) else list(space)
    assert model.predictor.result.spaces == wanted
    for (view, rows), chosen in zip(model.relevance_vectors_.items(), wanted, strict=True):
        dual = chosen == "dual" and model.selected_features_[view].any()
        assert (rows.size > 0) == dual
    assert sum(model.view_relevance_.values()) == pytest.approx(1.0)
    linear = sum(data.view(v).read() @ c.T for v, c in model.coef_.items())
    gap = linear - model.transform(data) @ model.loadings_.T
    assert_allclose(gap, np.tile(gap[0], (len(gap), 1)), atol=1e-8)
    assert roc_auc_score(y, p[:, 1]) > 0.75


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_regression_intervals_cover_and_noise_is_that_of_the_data(seed, constants):
    constants(N_INNER=20)  # as it is outside this module
    dims, noise = {"clinic": 6, "genes": 20}, 1.5
    sim = make_multiview(
        2300, dims, informative={"clinic": 3}, n_classes=None, noise=noise, random_state=seed
    )
    model = PaperRegressor(sparsity=0.5).fit(sim.data[:300], sim.target[:300])
    mean, std = model.predict(sim.data[300:], return_std=True)
    covered = np.mean(np.abs(sim.target[300:] - mean) < norm.ppf(0.95) * std)
    assert 0.84 < covered < 0.96
    assert model.noise_std_[0] == pytest.approx(noise, rel=0.25)
    assert model.score(sim.data[300:], sim.target[300:]) > 0.7


def test_noise_is_told_in_the_units_of_each_output(numbers):
    y = np.column_stack([numbers.target, 100.0 * numbers.target])
    model = PaperRegressor(sparsity=0.5, max_iter=20).fit(numbers.data[:N], y[:N])
    assert model.noise_std_[1] == pytest.approx(100.0 * model.noise_std_[0], rel=0.02)
    _, std = model.predict(numbers.data[N:], return_std=True)
    assert (std > model.noise_std_).all()
    residual = numbers.target[N:] - model.predict(numbers.data[N:])[:, 0]
    assert model.noise_std_[0] == pytest.approx(residual.std(), rel=0.3)


@pytest.mark.parametrize("classify", [True, False])
def test_weight_two_is_a_repeated_sample(sims, classify):
    sim = sims[classify]
    twice = np.concatenate([np.arange(N), np.arange(0, N, 3)])
    weight = np.ones(N)
    weight[::3] = 2
    options = {**fitted(sim, PAIR[classify]).get_params(), "sparsity": np.inf}
    model = PAIR[classify](**options).fit(sim.data[:N], sim.target[:N], sample_weight=weight)
    repeated = PAIR[classify](**options).fit(sim.data[twice], sim.target[twice])
    # Not the same bits: the scale of a feature is learned from rows, whatever their weights.
    pair = answer(model, sim.data[N:]), answer(repeated, sim.data[N:])
    assert np.corrcoef(*pair)[0, 1] > 0.99


@pytest.mark.parametrize("classify", [True, False])
def test_two_fits_and_a_pickle_give_the_same_bits(sims, classify):
    sim = sims[classify]
    model = fitted(sim, PAIR[classify])
    wanted = answer(model, sim.data[N:])
    assert_array_equal(answer(fit(sim, PAIR[classify]), sim.data[N:]), wanted)
    assert_array_equal(answer(pickle.loads(pickle.dumps(model)), sim.data[N:]), wanted)


def test_missing_cells_and_views(labels):
    parts = {v: labels.data.view(v).read().copy() for v in DIMS}
    parts["genes"][:20] = np.nan
    parts["clinic"][30:50, 0] = np.nan
    model = PaperClassifier(bound="jaakkola", max_iter=12).fit(
        MultiView(parts)[:N], labels.target[:N]
    )
    p = model.predict_proba(MultiView(parts)[:30])
    assert np.isfinite(p).all()


def test_three_classes_and_labels_that_are_not_exclusive():
    sim = make_multiview(N + 300, DIMS, informative={"clinic": 4}, n_classes=3, random_state=0)
    model = fit(sim, PaperClassifier)
    assert_allclose(model.predict_proba(sim.data[N:]).sum(axis=1), 1.0)
    assert model.score(sim.data[N:], sim.target[N:]) > 0.5
    Y = np.column_stack([sim.target == 0, sim.target > 1]).astype(int)
    both = PaperClassifier(bound="jaakkola", max_iter=2).fit(sim.data[:N], Y[:N])
    assert both.predict(sim.data[N:]).shape == (300, 2)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("sparsity", "auto"),
        ("sparsity", -1.0),
        ("n_factors", 0),
        ("max_iter", 0),
        ("tol", 0.0),
        ("space", "auto"),
        ("bound", "tight"),
        ("relevance_vectors", 10),
    ],
)
def test_bad_parameters(labels, parameter, value):
    with pytest.raises(InputError, match=parameter):
        fit(labels, PaperClassifier, **{parameter: value})


def test_the_warning_names_what_helps(labels):
    with pytest.warns(NotConvergedWarning, match=r"max_iter \(now 11\) or tol"):
        model = fit(labels, PaperClassifier, max_iter=11)
    assert not model.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotConvergedWarning)
        options = {"max_iter": 15, "tol": 10.0, "prune": False}
        assert fit(labels, PaperClassifier, **options).converged_


@pytest.mark.parametrize("classify", [True, False])
def test_a_fit_that_ends_at_the_base_rate_says_so(classify, tmp_path):
    rng = np.random.default_rng(0)
    X = MultiView({"a": rng.standard_normal((60, 5)), "b": rng.standard_normal((60, 400))})
    y = rng.integers(0, 2, 60) if classify else rng.standard_normal(60)
    with pytest.warns(NoSignalWarning, match="base rate.*Use Baldur(Classifier|Regressor)"):
        # The sparse prior finds features in the noise of a regression, see the page on the paper.
        model = PAIR[classify](sparsity=1e-6 if classify else np.inf).fit(X, y)
    assert model.n_factors_ == 0
    assert model.transform(X).shape == (60, 0)
    assert model.loadings_.shape == (1, 0)
    assert not any(mask.any() for mask in model.selected_features_.values())
    predicted = model.predict_proba(X) if classify else model.predict(X)
    assert np.ptp(predicted, axis=0).max() == 0
    model.save(tmp_path / "model")
    loaded = baldur.load(tmp_path / "model")
    assert_array_equal(answer(loaded, X), answer(model, X))


def test_only_live_factors_are_returned():
    sim = make_multiview(N + 100, DIMS, informative={"clinic": 3}, random_state=1)
    model = PaperClassifier(n_factors=3, max_iter=60).fit(sim.data[:N], sim.target[:N])
    assert model.n_factors_ == 1
    assert model.transform(sim.data).shape == (N + 100, 1)
    assert model.loadings_.shape == (1, 1)
    assert model.factor_relevance_.shape == (1, 2)


@pytest.mark.parametrize("classify", [True, False])
def test_the_row_of_a_study(sims, classify):
    name = "BALDUR (mean-field)"
    model = make_model(name, settings={"space": "dual"}, classification=classify)
    assert isinstance(model.estimator, PAIR[classify])
    assert model.estimator.space == "dual"
