"""The three scales: clipped, standard and rank, in every storage, with weights, in input units."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from baldur import MultiView
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.preparation.column_statistics import SCALES, column_statistics, normal_scores
from preparation.literal import literal
from views.backends import Lazy

N, TRAIN = 60, np.arange(40)


@pytest.fixture
def heavy():
    """Columns with heavy tails, holes, two values, genotype codes and a constant."""
    rng = np.random.default_rng(0)
    x = rng.standard_t(1.5, size=(N, 30)) * 5 + 20
    x[rng.random(x.shape) < 0.1] = np.nan
    x[:, 3] = rng.random(N) < 0.05
    x[[0, 1], 3] = 0, 1
    x[:, 4] = np.where(rng.random(N) < 0.05, 1e6, -7.5)
    x[[0, 1], 4] = 1e6, -7.5
    x[:, 5] = rng.choice([0, 1, 2], size=N, p=[0.9, 0.07, 0.03])
    x[:3, 5] = 0, 1, 2
    x[:, 6] = 4.0
    x[:, 7] = rng.poisson(0.2, size=N)
    x[0, 7] = 9
    return x


@pytest.mark.parametrize("scale", SCALES)
def test_every_storage_gives_what_the_literal_twin_gives(heavy, scale, tmp_path, constants):
    constants(TILE_BYTES=1)
    single = heavy.astype(np.float32)
    np.save(tmp_path / "x.npy", single)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    stored = {
        "float64": heavy,
        "column-major": np.asfortranarray(heavy),
        "float32": single,
        "mapped": mapped,
        "lazy": Lazy(single),
    }
    for what, matrix in stored.items():
        mv = MultiView({"v": matrix})
        want = literal(
            np.asarray(heavy if "float64" in what else single, float), TRAIN, None, scale
        )
        for dtype, tolerance in (("float64", 1e-11), ("float32", 1e-5)):
            learned = Preparation(scale, dtype=dtype, max_bytes=3000).fit(mv[TRAIN])
            got = learned.transform(mv)["v"]
            if what == "column-major":
                want = literal(heavy, TRAIN, None, scale)
            np.testing.assert_allclose(got.weighted_gram(), want @ want.T, atol=tolerance * 1e3)
            np.testing.assert_allclose(got.dense(), want, atol=tolerance, err_msg=what)


def test_kept_blocked_and_mapped_agree_to_the_bit(heavy, tmp_path, constants):
    single = heavy.astype(np.float32)
    np.save(tmp_path / "x.npy", single)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    constants(FLOAT64_LIMIT_BYTES=100)
    for scale in SCALES:
        one = Preparation(scale).fit_transform(MultiView({"v": single}))["v"]
        two = Preparation(scale).fit_transform(MultiView({"v": mapped}))["v"]
        assert (one.is_array, two.is_array) == (True, False)
        np.testing.assert_array_equal(one.weighted_gram(), two.weighted_gram())


def test_two_values_and_genotypes_are_standardised_whatever_the_scale(heavy):
    mv = MultiView({"v": heavy, "g": heavy[:, [5, 5]].astype(np.int8)})
    plain = Preparation("standard").fit(mv[TRAIN])
    want = {v: p.dense() for v, p in plain.transform(mv).items()}
    assert np.abs(want["v"][:, 3:6]).max() > 3.2  # the clip would have cut them
    for scale in ("clipped", "rank"):
        learned = Preparation(scale).fit(mv[TRAIN])
        got = learned.transform(mv)
        np.testing.assert_array_equal(got["v"].dense()[:, 3:7], want["v"][:, 3:7])
        np.testing.assert_array_equal(got["g"].dense(), want["g"])
        assert learned.upper_["v"][3:7].tolist() == [2, 1e6, 2, 4]
        assert learned.lower_["v"][3:7].tolist() == [0, -7.5, 0, 4]
        assert np.isinf(learned.lower_["g"]).all()
        assert np.isfinite(learned.upper_["v"][7:]).all()


def test_new_values_of_two_valued_columns_are_held():
    """A measurement that one training row has may be a hundred times larger in a new row."""
    x = np.zeros((30, 3))
    x[4, 0], x[5:7, 1], x[:9, 2] = 0.3, 1, 1
    new = MultiView({"v": np.array([[30.0, 2.0, -5.0], [0.3, 1.0, 1.0], [-1.0, 70.0, 9.0]])})
    plain = Preparation("standard").fit(MultiView({"v": x})).transform(new)["v"].dense()
    for scale in ("clipped", "rank"):
        learned = Preparation(scale).fit(MultiView({"v": x}))
        got = learned.transform(new)["v"].dense()
        np.testing.assert_array_equal(got[1], plain[1])
        assert got[0, 0] == got[1, 0]
        np.testing.assert_array_equal(got[0, 1], plain[0, 1])  # a genotype not seen before
        assert got[2, 1] == got[0, 1]
        np.testing.assert_allclose(learned.coef_in_input_units("v", np.ones(3)), 1 / x.std(axis=0))


def test_storage_does_not_decide_what_is_a_genotype():
    rng = np.random.default_rng(1)
    codes = rng.choice([0, 1, 2], size=(50, 8), p=[0.9, 0.08, 0.02]).astype(np.int8)
    counts = np.minimum(rng.geometric(0.6, size=(50, 8)), 100).astype(np.int8)
    counts[3] = 60
    both = np.hstack([codes, counts])
    both[5, 2] = both[7, 12] = -127
    floats = np.where(both == -127, np.nan, both.astype(float))
    for scale in SCALES:
        for weight in (None, rng.uniform(0.5, 2, 50)):
            one, two = (
                Preparation(scale).fit(mv, sample_weight=weight).transform(mv)["v"]
                for mv in (MultiView({"v": both}), MultiView({"v": floats}))
            )
            np.testing.assert_allclose(one.dense(), two.dense(), atol=1e-12)
            s = rng.gamma(1.0, size=16)
            np.testing.assert_allclose(one.weighted_gram(s), two.weighted_gram(s), atol=1e-10)


def test_without_extreme_cells_clipped_is_standard():
    x = np.random.default_rng(2).uniform(-1, 1, size=(40, 9))
    x[3, 4] = np.nan
    one, two = (Preparation(s).fit_transform(MultiView({"v": x}))["v"] for s in SCALES[:2])
    np.testing.assert_array_equal(one.dense(), two.dense())


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(SCALES))
def test_weight_two_is_the_row_twice_and_zero_leaves_it_out(seed, scale):
    rng = np.random.default_rng(seed)
    x = rng.standard_t(1.2, size=(15, 5)) * 10.0 ** rng.integers(-3, 4, 5)
    x[rng.random(x.shape) < 0.15] = np.nan
    x[:, 4] = rng.integers(0, 2, 15)
    x[:, 0] = np.arange(15)
    g = rng.integers(-3, 9, (15, 3)).astype(np.int8)
    g[2, 1] = -127
    mv, count = MultiView({"x": x, "g": g}), rng.integers(0, 4, 15)
    count[[0, 1]] = 1, 2
    covariates = rng.normal(size=(15, 1))
    repeated = np.repeat(np.arange(15), count)
    mv = mv.with_samples(pd.DataFrame({"age": covariates[:, 0]}))
    for names in ([], ["age"]):
        one = Preparation(scale, regress_out=names).fit(mv[repeated])
        two = Preparation(scale, regress_out=names).fit(mv, sample_weight=count)
        a, b = one.transform(mv), two.transform(mv)
        for name in ("x", "g"):
            for what in ("minimum_", "maximum_"):
                np.testing.assert_array_equal(getattr(one, what)[name], getattr(two, what)[name])
            np.testing.assert_allclose(a[name].dense(), b[name].dense(), atol=1e-8)


def test_equal_weights_are_no_weights(heavy):
    mv = MultiView({"v": heavy})
    for scale in SCALES:
        one = Preparation(scale).fit_transform(mv)["v"].dense()
        two = Preparation(scale).fit(mv, sample_weight=np.full(N, 2.5)).transform(mv)["v"].dense()
        np.testing.assert_array_equal(one, two)
    with pytest.raises(InputError, match="60 entries"):
        Preparation().fit(mv, sample_weight=np.ones(3))


@pytest.mark.parametrize("scale", SCALES)
def test_nothing_is_learned_from_test_rows(heavy, scale):
    changed = heavy.copy()
    changed[40:] = np.random.default_rng(9).normal(size=(20, 30)) * 1e6
    one, two = (Preparation(scale).fit(MultiView({"v": x})[TRAIN]) for x in (heavy, changed))
    new = MultiView({"v": heavy})
    np.testing.assert_array_equal(one.transform(new)["v"].dense(), two.transform(new)["v"].dense())
    for what in ("mean_", "scale_", "lower_", "upper_", "minimum_", "maximum_"):
        np.testing.assert_array_equal(getattr(one, what)["v"], getattr(two, what)["v"])


def test_what_is_told_about_each_column(heavy):
    learned = Preparation().fit(MultiView({"v": heavy})[TRAIN])
    known = heavy[TRAIN]
    np.testing.assert_array_equal(learned.minimum_["v"], np.nanmin(known, axis=0))
    np.testing.assert_array_equal(learned.maximum_["v"], np.nanmax(known, axis=0))
    mean, sd = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    np.testing.assert_allclose(learned.lower_["v"][8:], (mean - 3 * sd)[8:], rtol=1e-12)
    np.testing.assert_allclose(learned.upper_["v"][8:], (mean + 3 * sd)[8:], rtol=1e-12)


@pytest.mark.parametrize("confounded", [False, True])
def test_weights_hold_in_input_units_within_the_clip(heavy, confounded):
    rng = np.random.default_rng(3)
    mv, coef = MultiView({"v": heavy}), rng.normal(size=(2, 30))
    age = rng.normal(size=(N, 1))
    mv = mv.with_samples(pd.DataFrame({"age": age[:, 0]}))
    learned = Preparation(regress_out=["age"] if confounded else []).fit(mv[TRAIN])
    got = learned.transform(mv)["v"]
    assert (heavy > learned.upper_["v"]).any()
    held = np.clip(heavy, learned.lower_["v"], learned.upper_["v"])
    if confounded:  # a missing cell loses what the covariates explain, too
        held[np.isnan(held)] = 0
        keep = ~np.isnan(heavy).any(axis=1)
    else:
        held = np.where(np.isnan(held), learned.mean_["v"], held)
        keep = np.ones(N, dtype=bool)
    units = learned.coef_in_input_units("v", coef)
    own = held @ units.T + learned.intercept_shift("v", coef)
    if confounded:
        own = own + age @ learned.covariate_weights("v", coef).T
    np.testing.assert_allclose(own[keep], got.apply(coef.T)[keep], atol=1e-9)
    back = units * learned.scale_["v"]
    np.testing.assert_allclose(back, np.where(learned.constant_["v"], 0, coef))
    assert learned.constant_features_["v"].tolist() == ["v_6"]


def test_a_ranked_weight_is_the_slope_at_the_median():
    x = np.sort(np.random.default_rng(4).lognormal(size=(41, 1)), axis=0)
    learned = Preparation("rank").fit(MultiView({"v": x}))
    assert learned.mean_["v"][0] == pytest.approx(np.median(x))
    step = 1e-6
    near = learned.mean_["v"][0] + np.array([[-step], [step]])
    low, high = learned.transform(MultiView({"v": near}))["v"].dense()[:, 0]
    slope = learned.coef_in_input_units("v", [1.0])[0]
    # The two sides of a knot have their own slope; the one reported joins its neighbours.
    around = learned.transform(MultiView({"v": x[19:22]}))["v"].dense()[:, 0]
    assert slope == pytest.approx((around[2] - around[0]) / (x[21, 0] - x[19, 0]))
    assert low < 0 < high


def test_ranks_beyond_the_ends_are_held_and_many_rows_are_interpolated():
    rng = np.random.default_rng(5)
    x = rng.lognormal(size=(2000, 4))
    x[rng.random(x.shape) < 0.2] = np.nan
    learned = Preparation("rank").fit(MultiView({"v": x}))
    want = literal(x, np.arange(2000), None, "rank")
    got = learned.transform(MultiView({"v": x}))["v"].dense()
    assert np.abs(got - want).max() < 0.1  # between the last two knots of the tail
    assert np.sqrt(np.mean((got - want) ** 2)) < 0.005
    ends = MultiView({"v": np.array([[-1e9] * 4, [1e9] * 4])})
    np.testing.assert_allclose(
        learned.transform(ends)["v"].dense(), [want.min(axis=0), want.max(axis=0)], atol=1e-9
    )


def test_a_view_too_wide_for_ranks_is_refused(constants):
    constants(_LIMIT_BYTES=1000)
    with pytest.raises(InputError, match=r"View 'v'.*scale='rank'.*scale='clipped'"):
        Preparation("rank").fit(MultiView({"v": np.random.default_rng(0).normal(size=(30, 9))}))


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=30)
def test_scores_do_not_depend_on_the_units(seed):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(size=(rng.integers(3, 30), 3)), 1)
    x[0] = -9, 9, 10
    knots, scores = normal_scores(x)
    warped, same = normal_scores(np.exp(x / 10))
    np.testing.assert_array_equal(scores, same)
    np.testing.assert_allclose(np.exp(knots / 10), warped)
    assert (np.diff(scores, axis=0) >= 0).all()
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scores.std(axis=0), 1, atol=1e-12)


def test_infinities_are_refused_and_cells_beyond_single_precision_are_held():
    x = np.random.default_rng(6).normal(size=(30, 3))
    learned = Preparation(dtype="float32").fit(MultiView({"v": x}))
    new = np.zeros((2, 3))
    new[0, 1] = 1e300
    held = learned.transform(MultiView({"v": Lazy(new)}))["v"].dense()[0, 1]
    assert held == pytest.approx(
        (learned.upper_["v"] - learned.mean_["v"])[1] / learned.scale_["v"][1]
    )
    new[1, 2] = np.inf
    with pytest.raises(InputError, match="infinities"):
        learned.transform(MultiView({"v": Lazy(new)}))["v"].dense()


@settings(deadline=None, max_examples=60)
@given(
    arrays(
        np.int8,
        st.tuples(st.integers(1, 8), st.integers(1, 5)),
        elements=st.integers(-128, 127),
    )
)
def test_int8_statistics_are_exact(cells):
    # A row without a single value is an absent sample; here only cells are of interest.
    cells[(cells == -127).all(axis=1), 0] = 1
    found = column_statistics(MultiView({"v": cells}).view("v"))
    for j in range(cells.shape[1]):
        values = cells[:, j][cells[:, j] != -127].astype(float)
        assert found.count[j] == len(values)
        if len(values):
            np.testing.assert_allclose(found.mean[j], values.mean(), rtol=1e-14)
            np.testing.assert_allclose(found.variance[j], values.var(), rtol=1e-10, atol=1e-10)
            assert found.constant[j] == (len(set(values)) == 1)


def test_int8_statistics_are_exact_for_many_rows():
    cells = np.full((5000, 2), 127, dtype=np.int8)
    cells[::2, 1] = -128
    found = column_statistics(MultiView({"v": cells}).view("v"))
    assert found.mean.tolist() == [127, -0.5]
    assert found.variance.tolist() == [0, 127.5**2]
