"""make_multiview: what is asked for is what comes out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax

from baldur.datasets import make_multiview
from baldur.exceptions import InputError


def matrix(sim, view):
    return sim.data.view(view).raw(slice(None))


def test_same_seed_same_bytes():
    kwargs = {"missing_cells": 0.1, "missing_views": 0.2, "noise": 0.5, "correlation": 0.5}
    a = make_multiview(50, (7, 30), random_state=3, **kwargs)
    b = make_multiview(50, (7, 30), random_state=3, **kwargs)
    c = make_multiview(50, (7, 30), random_state=4, **kwargs)
    for view in a.data.view_names:
        assert matrix(a, view).tobytes() == matrix(b, view).tobytes()
        assert matrix(a, view).tobytes() != matrix(c, view).tobytes()
        np.testing.assert_array_equal(a.truth.effects[view], b.truth.effects[view])
    np.testing.assert_array_equal(a.target, b.target)


def test_generators_are_accepted_and_advance():
    rng = np.random.default_rng(0)
    a, b = (make_multiview(10, (4,), random_state=rng) for _ in range(2))
    assert not np.array_equal(matrix(a, "view0"), matrix(b, "view0"))
    c = make_multiview(10, (4,), random_state=np.random.default_rng(0))
    np.testing.assert_array_equal(matrix(a, "view0"), matrix(c, "view0"))
    old = [make_multiview(10, (4,), random_state=np.random.RandomState(0)) for _ in range(2)]
    np.testing.assert_array_equal(matrix(old[0], "view0"), matrix(old[1], "view0"))


@pytest.mark.parametrize("n_classes", [2, 3, None])
def test_first_rows_do_not_depend_on_n(n_classes):
    kwargs = {
        "dims": {"a": 6, "b": 40},
        "n_classes": n_classes,
        "correlation": 0.8,
        "noise": 1.0,
        "missing_cells": 0.2,
        "missing_views": 0.3,
        "random_state": 5,
    }
    short, long = make_multiview(40, **kwargs), make_multiview(130, **kwargs)
    for view in ("a", "b"):
        np.testing.assert_array_equal(matrix(short, view), matrix(long, view)[:40])
        np.testing.assert_array_equal(short.truth.effects[view], long.truth.effects[view])
    np.testing.assert_array_equal(short.target, long.target[:40])
    np.testing.assert_array_equal(short.truth.score, long.truth.score[:40])


@pytest.mark.parametrize(
    ("informative", "views"),
    [((5, 0), ["view0"]), ((0, 10), ["view1"]), ((3, 5), ["view0", "view1"]), ((0, 0), [])],
)
def test_signal_is_where_it_is_asked_for(informative, views):
    sim = make_multiview(2200, (20, 2000), informative=informative, random_state=0)
    assert sim.truth.views == views
    assert sim.data.shape == (2200, 2020)
    assert [len(f) for f in sim.truth.features.values()] == list(informative)
    # The literal predictor.
    score = sum(matrix(sim, v) @ sim.truth.weights(v) for v in sim.data.view_names)
    np.testing.assert_allclose(sim.truth.score, score, atol=1e-10)
    effects = np.concatenate(list(sim.truth.effects.values()))
    if len(effects):
        # Scaled together: population s.d. 3, and the ratio of sizes stays within 1.3 / 0.7.
        assert np.sqrt(np.sum(effects**2)) == pytest.approx(3.0)
        assert np.abs(effects).max() / np.abs(effects).min() <= 1.3 / 0.7
        assert sim.truth.score.std() == pytest.approx(3.0, rel=0.1)
    # Labels agree with their probabilities: the score test statistic is standard normal.
    p = expit(sim.truth.score)
    z = np.sum(sim.target - p) / np.sqrt(np.sum(p * (1 - p)))
    assert abs(z) < 4


def test_exact_columns():
    sim = make_multiview(20, {"a": 9, "b": 9}, informative={"a": [7, 2]}, random_state=0)
    assert sim.truth.features["a"].tolist() == [2, 7]
    assert sim.truth.support("a").nonzero()[0].tolist() == [2, 7]
    assert not sim.truth.support("b").any()
    with pytest.raises(InputError, match="no view 'c'"):
        sim.truth.support("c")


def test_correlated_blocks_and_the_scale_of_the_predictor():
    sim = make_multiview(6000, (35,), informative=6, correlation=0.8, block_size=10, random_state=1)
    observed = np.corrcoef(matrix(sim, "view0"), rowvar=False)
    block = np.arange(35) // 10
    expected = np.where(block[:, None] == block, 0.8, 0.0) + 0.2 * np.eye(35)
    np.testing.assert_allclose(observed, expected, atol=0.07)
    w = sim.truth.weights("view0")
    assert w @ expected @ w == pytest.approx(9.0)


def test_three_classes():
    sim = make_multiview(
        8000, (10, 30), n_classes=3, weights=(0.6, 0.3, 0.1), noise=1.0, random_state=2
    )
    np.testing.assert_allclose(np.bincount(sim.target) / 8000, (0.6, 0.3, 0.1), atol=0.025)
    assert sim.truth.score.shape == (8000, 3)
    assert sim.truth.effects["view0"].shape == (5, 3)
    np.testing.assert_allclose(sim.truth.score.std(axis=0), 3.0, rtol=0.1)
    clear = make_multiview(8000, (10, 30), n_classes=3, random_state=2)
    p = softmax(clear.truth.score, axis=1)
    np.testing.assert_allclose(np.bincount(clear.target) / 8000, p.mean(axis=0), atol=0.02)


def test_class_balance():
    sim = make_multiview(8000, (10,), weights=(0.8, 0.2), noise=2.0, random_state=0)
    assert sim.target.mean() == pytest.approx(0.2, abs=0.02)


def test_continuous_target():
    sim = make_multiview(4000, (10,), n_classes=None, noise=0.5, logit_sd=2.0, random_state=0)
    residual = sim.target - sim.truth.score
    assert residual.std() == pytest.approx(0.5, rel=0.1)
    assert sim.truth.score.std() == pytest.approx(2.0, rel=0.1)


def test_gaps():
    sim = make_multiview(
        4000,
        (10, 30),
        missing_cells={"view0": 0.2},
        missing_views={"view1": 0.3},
        dtype=np.float32,
        random_state=0,
    )
    narrow, wide = matrix(sim, "view0"), matrix(sim, "view1")
    assert narrow.dtype == wide.dtype == np.float32
    assert np.isnan(narrow).mean() == pytest.approx(0.2, abs=0.01)
    absent = np.isnan(wide).all(axis=1)
    assert absent.mean() == pytest.approx(0.3, abs=0.03)
    assert not np.isnan(wide[~absent]).any()
    np.testing.assert_array_equal(sim.data.view("view1").present, ~absent)
    assert np.isfinite(sim.truth.score).all()


@settings(deadline=None, max_examples=30)
@given(
    n=st.integers(1, 40),
    widths=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    n_classes=st.sampled_from([None, 2, 3, 5]),
    rate=st.floats(0, 0.95),
    seed=st.integers(0, 2**32),
)
def test_any_shape_holds_together(n, widths, n_classes, rate, seed):
    sim = make_multiview(
        n,
        widths,
        n_classes=n_classes,
        correlation=rate,
        missing_views=rate,
        block_size=3,
        random_state=seed,
    )
    assert sim.data.shape == (n, sum(widths))
    assert sim.target.shape == (n,)
    present = np.column_stack([sim.data.view(v).present for v in sim.data.view_names])
    assert present.any(axis=1).all()
    if n_classes is not None:
        assert set(sim.target) <= set(range(n_classes))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n": 0}, "n must be an integer of at least 1"),
        ({"dims": ()}, "dims is empty"),
        ({"dims": 5}, "dims must be a dict"),
        ({"dims": {"a": 0}}, r"dims\['a'\]"),
        ({"informative": (1,)}, "informative has 1 values and there are 2 views"),
        ({"informative": {"x": 1}}, "informative names the views"),
        ({"informative": (6, 0)}, "asks for 6 columns and the view has 5"),
        ({"informative": {"view0": [5]}}, "must be between 0 and 4"),
        ({"informative": {"view0": [1, 1]}}, "repeats a column"),
        ({"correlation": 1.0}, "correlation of view 'view0'"),
        ({"missing_cells": -0.1}, "missing_cells of view 'view0'"),
        ({"missing_views": (0, 2)}, "missing_views of view 'view1'"),
        ({"effect_range": (2, 1)}, "effect_range"),
        ({"logit_sd": np.inf}, "logit_sd"),
        ({"n_classes": 1}, "n_classes"),
        ({"weights": (0.5, 0.6)}, "weights must be 2 positive shares"),
        ({"weights": (0.5, 0.5), "n_classes": None}, "weights"),
        ({"dtype": np.int8}, "dtype must be float32 or float64"),
        ({"random_state": "x"}, "random_state"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(InputError, match=message):
        make_multiview(**{"n": 10, "dims": (5, 6), "random_state": 0, **kwargs})
