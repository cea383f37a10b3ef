"""BaldurRegressor: units, intervals, several outputs, weights, missing data, mistakes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from baldur import BaldurRegressor, MultiView
from baldur.datasets import make_multiview
from baldur.exceptions import InputError, NoSignalWarning
from preparation.literal import linear

DIMS = {"clinic": 6, "genes": 40}
N = 100

pytestmark = pytest.mark.usefixtures("one_repeat")


@pytest.fixture(scope="module")
def sim():
    return make_multiview(
        N + 1000, DIMS, informative={"clinic": 3}, n_classes=None, noise=1.5, random_state=1
    )


@pytest.fixture(scope="module")
def model(sim):
    return BaldurRegressor().fit(sim.data[:N], sim.target[:N])


def changed(data, name, X):
    return MultiView({v: X if v == name else data.view(v).read() for v in data.view_names})


def test_finds_the_signal_and_explains_it(sim, model):
    data, y = sim.data[N:], sim.target[N:]
    truth = sim.truth.support("clinic")
    assert model.selected_features_["clinic"][truth].all()
    assert sum(int(m.sum()) for m in model.selected_features_.values()) <= truth.sum() + 2
    assert model.view_relevance_["clinic"] > 0.95
    # 9 of 9 + 1.5^2 parts of the variance can be explained.
    assert model.score(data, y) > 0.75
    assert model.noise_std_[0] == pytest.approx(1.5, rel=0.25)


def test_weights_are_in_units_of_input_and_output(sim, model):
    data = sim.data[N:]
    mean = model.predict(data)
    assert mean.shape == (1000,)
    assert_allclose(linear(model, data)[:, 0], mean, rtol=1e-9, atol=1e-9)
    true = sim.truth.weights("clinic")
    here = model.selected_features_["clinic"]
    error = np.abs(model.coef_["clinic"][0] - true)[here]
    assert (error < 4 * model.coef_std_["clinic"][0, here]).all()


@pytest.mark.parametrize("members", [BaldurRegressor().members, ("pooled",)])
def test_units_of_the_target_do_not_matter(sim, members):
    data, y = sim.data[:N], sim.target[:N]
    one = BaldurRegressor(members=members).fit(data, y)
    two = BaldurRegressor(members=members).fit(data, 1000 * y - 7)
    mean, std = two.predict(data, return_std=True)
    other, other_std = one.predict(data, return_std=True)
    assert_allclose(mean, 1000 * other - 7, rtol=1e-6, atol=1e-4)
    assert_allclose(std, 1000 * other_std, rtol=1e-6)
    assert_allclose(two.coef_["clinic"], 1000 * one.coef_["clinic"], rtol=1e-6, atol=1e-6)
    assert_allclose(two.noise_std_, 1000 * one.noise_std_, rtol=1e-6)


def test_intervals_cover(sim, model):
    mean, std = model.predict(sim.data[N:], return_std=True)
    for level in (0.5, 0.9):
        half = norm.ppf(0.5 + level / 2) * std
        covered = (np.abs(sim.target[N:] - mean) < half).mean()
        assert covered == pytest.approx(level, abs=0.07)


def test_several_outputs(sim):
    rng = np.random.default_rng(0)
    clinic, genes = sim.data.view("clinic").read(), sim.data.view("genes").read()
    Y = np.column_stack([clinic[:, 0] * 2, genes[:, 1] * 3 + 10.0])
    Y += rng.standard_normal(Y.shape)
    model = BaldurRegressor().fit(sim.data[:N], Y[:N])
    mean, std = model.predict(sim.data[N:], return_std=True)
    assert mean.shape == std.shape == (1000, 2)
    assert model.coef_["genes"].shape == (2, 40)
    assert model.score(sim.data[N:], Y[N:]) > 0.7
    assert np.abs(model.coef_["clinic"][0]).argmax() == 0
    assert np.abs(model.coef_["genes"][1]).argmax() == 1
    assert_allclose(linear(model, sim.data[N:]), mean, rtol=1e-9, atol=1e-9)
    assert model.noise_std_.shape == (2,)


def test_fewer_factors_than_outputs(sim):
    # Three outputs that are one score in three units.
    rng = np.random.default_rng(0)
    score = sim.data.view("clinic").read()[:, 0]
    Y = np.outer(score, [1.0, -2.0, 10.0]) + rng.standard_normal((len(score), 3)) * [0.3, 0.6, 3]
    model = BaldurRegressor(n_factors=1, members=("pooled",)).fit(sim.data[:N], Y[:N])
    assert model.n_factors_ == 1
    assert model.loadings_.shape == (3, 1)
    assert model.transform(sim.data[N:]).shape == (1000, 1)
    assert model.score(sim.data[N:], Y[N:]) > 0.7
    assert_allclose(linear(model, sim.data[N:]), model.predict(sim.data[N:]), rtol=1e-7, atol=1e-7)


def test_a_column_of_targets_keeps_its_shape(sim):
    model = BaldurRegressor(members=("pooled",)).fit(sim.data[:N], sim.target[:N, None])
    assert model.predict(sim.data[N:]).shape == (1000, 1)


def test_weight_zero_leaves_a_sample_out(sim):
    y = sim.target[:N].copy()
    weight = np.ones(N)
    weight[::9] = 0.0
    y[::9] = 1e6
    keep = np.flatnonzero(weight)
    one = BaldurRegressor().fit(sim.data[:N], y, sample_weight=weight)
    two = BaldurRegressor().fit(sim.data[keep], y[keep])
    assert_array_equal(one.predict(sim.data[N:]), two.predict(sim.data[N:]))


def test_a_missing_view_widens_the_interval(sim, model):
    data = sim.data[N:]
    gone = changed(data, "clinic", np.full((1000, 6), np.nan))
    mean, std = model.predict(gone, return_std=True)
    _, narrow = model.predict(data, return_std=True)
    assert (std > narrow).all()
    covered = (np.abs(sim.target[N:] - mean) < 1.645 * std).mean()
    assert covered == pytest.approx(0.9, abs=0.07)


def test_no_signal_is_said_and_predicts_near_the_mean(sim):
    y = np.random.default_rng(11).standard_normal(N) + 4.0
    with pytest.warns(NoSignalWarning, match="no evidence of signal"):
        model = BaldurRegressor().fit(sim.data[:N], y)
    assert not model.signal_shown_
    mean, std = model.predict(sim.data[N:], return_std=True)
    assert_allclose(mean.mean(), y.mean(), atol=0.05)
    assert mean.std() < 0.3 * y.std()
    assert_allclose(std, y.std(), rtol=0.1)


def test_a_constant_target(sim):
    with pytest.warns(NoSignalWarning):
        model = BaldurRegressor().fit(sim.data[:N], np.full(N, 3.0))
    assert_allclose(model.predict(sim.data[N:]), 3.0, atol=1e-6)


def test_two_fits_and_two_jobs_give_the_same_bits(sim, model):
    two = BaldurRegressor(n_jobs=2).fit(sim.data[:N], sim.target[:N])
    assert_array_equal(two.predict(sim.data[N:]), model.predict(sim.data[N:]))
    assert two.stacking_weights_ == model.stacking_weights_


def test_groups_stay_together(sim):
    groups = np.arange(N) // 4
    model = BaldurRegressor().fit(sim.data[:N], sim.target[:N], groups=groups)
    assert model.score(sim.data[N:], sim.target[N:]) > 0.75
    with pytest.raises(InputError, match="groups"):
        BaldurRegressor().fit(sim.data[:N], sim.target[:N], groups=np.zeros(N))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y"),
        (np.zeros(3), "expected 100 outcomes"),
        (np.where(np.arange(N) == 5, np.nan, 1.0), "finite"),
        (np.array(["a", "b"] * 50), "BaldurClassifier"),
        (np.zeros((N, 2, 2)), "shape"),
    ],
)
def test_bad_targets(sim, y, message):
    with pytest.raises(InputError, match=message):
        BaldurRegressor().fit(sim.data[:N], y)
