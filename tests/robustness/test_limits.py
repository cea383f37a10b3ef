"""What is promised about extreme weights, targets, cells and rows, one test to a promise."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.exceptions import BaldurError, InputError, InputWarning
from baldur.paper import PaperClassifier, PaperRegressor
from baldur.preparation import Preparation

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
SCORE = X[:, 0] + 0.3 * RNG.normal(size=N)
Y = (SCORE > 0).astype(int)

CLASSIFIERS = [
    BaldurClassifier(members=("spike_slab",), max_iter=10),
    BaldurClassifier(members=("pooled",)),
    PaperClassifier(max_iter=5),
]
REGRESSORS = [
    BaldurRegressor(members=("spike_slab",), max_iter=10),
    BaldurRegressor(members=("pooled",)),
    PaperRegressor(max_iter=5),
]
pytestmark = [
    pytest.mark.filterwarnings("ignore::baldur.exceptions.NotConvergedWarning"),
    pytest.mark.usefixtures("one_repeat"),
]


def each(models):
    return pytest.mark.parametrize(
        "model", models, ids=lambda m: "-".join([type(m).__name__, *getattr(m, "members", ())])
    )


# -- weights -------------------------------------------------------------------------------------


def weighted(weight):
    """Return the weights of a model whose samples are weighted."""
    return BaldurClassifier(members=("pooled",)).fit(X, Y, sample_weight=weight).coef_["X"]


@pytest.mark.parametrize("factor", [1e200, 1e-200, 1e5])
def test_weights_that_are_no_counts_are_relative(factor):
    given = RNG.random(N) + 0.5
    with pytest.warns(InputWarning, match="divided by it"):
        found = weighted(factor * given)
    assert_allclose(found, weighted(given / given.mean()), rtol=1e-9)


@pytest.mark.filterwarnings("error::baldur.exceptions.InputWarning")
def test_weights_with_a_usual_mean_are_taken_as_they_are():
    given = np.arange(1.0, N + 1)
    assert not np.allclose(weighted(given), weighted(given / given.mean()), rtol=0.01)


def test_weights_of_zero_have_no_part_in_the_mean():
    given = np.where(np.arange(N) < 10, 0.0, 1e50)
    with pytest.warns(InputWarning):
        assert_array_equal(weighted(given), weighted((given > 0).astype(float)))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.where(np.arange(N) == 0, 1e9, 1.0), "times the smallest that counts"),
        (10.0 ** np.linspace(-12, 12, N), "times the smallest that counts"),
        (["heavy"] * N, "must be numbers"),
        (np.full(N, np.nan), "finite and not negative"),
    ],
)
def test_weights_beyond_reason_are_refused(weight, message):
    with pytest.raises(InputError, match=message):
        BaldurClassifier(members=("pooled",)).fit(X, Y, sample_weight=weight)


@each([*CLASSIFIERS, *REGRESSORS])
def test_only_relations_between_huge_weights_count(model):
    weight = 1.0 + np.arange(N) % 3
    weight /= weight.mean()
    y = Y if is_classifier(model) else SCORE
    plain = model.fit(X, y, sample_weight=weight).coef_["X"].copy()
    with pytest.warns(InputWarning):
        huge = model.fit(X, y, sample_weight=1e200 * weight).coef_["X"]
    assert_allclose(huge, plain, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "given",
    [{0: np.nan, 1: 1}, {0: -1, 1: 1}, {0: 0, 1: 1}, {0: np.inf, 1: 1}, {0: "a", 1: 1}, "heavy"],
)
@each(CLASSIFIERS[::2])
def test_weights_of_classes_are_positive_numbers(model, given):
    kind = type(model)
    with pytest.raises(InputError, match="class_weight"):
        kind(class_weight=given).fit(X, Y)


def test_weights_of_classes_beyond_reason_are_refused():
    with pytest.raises(InputError, match="class_weight: the largest may be 100,000,000 times"):
        BaldurClassifier(class_weight={0: 1e200, 1: 1}).fit(X, Y)


@each(CLASSIFIERS[::2])
def test_labels_that_go_together_have_no_class_weights(model):
    both = np.column_stack([Y, 1 - Y])
    with pytest.raises(InputError, match="multi-label"):
        type(model)(class_weight="balanced").fit(X, both)


# -- targets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e200, 1e-200])
@each(REGRESSORS)
def test_units_of_a_target_beyond_reason_are_refused(model, factor):
    with pytest.raises(InputError, match="another unit"):
        model.fit(X, factor * SCORE)


@pytest.mark.parametrize("value", [0.1, 0.0, -1e200])
@each(REGRESSORS)
def test_a_constant_target_is_predicted_or_refused(model, value):
    y = value * (1.0 + np.finfo(float).eps * Y)  # rounding is no difference
    if isinstance(model, PaperRegressor):
        with pytest.raises(InputError, match="all are the same"):
            model.fit(X, y)
        return
    mean, std = model.fit(X, y).predict(X, return_std=True)
    assert_allclose(mean, value, rtol=1e-12)
    assert np.isfinite(std).all()


@each(REGRESSORS)
def test_one_constant_target_of_two_is_predicted(model):
    mean = model.fit(X, np.column_stack([SCORE, np.full(N, 7.0)])).predict(X)
    assert_allclose(mean[:, 1], 7.0, atol=1e-6)
    assert np.corrcoef(mean[:, 0], SCORE)[0, 1] > 0.8


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e130), (0.0, 1e-130), (1e9, 1e-5)])
@each(REGRESSORS)
def test_the_unit_of_a_target_does_not_matter(model, offset, scale):
    mean, std = model.fit(X, SCORE).predict(X, return_std=True)
    far, wide = model.fit(X, offset + scale * SCORE).predict(X, return_std=True)
    # An offset of 1e9 leaves a standard deviation of 1e-5 two digits.
    rtol, atol = (1e-6, 1e-6) if offset == 0 else (0.1, 0.1)
    assert_allclose((far - offset) / scale, mean, rtol=rtol, atol=atol)
    assert_allclose(wide / scale, std, rtol=rtol)


# -- cells ---------------------------------------------------------------------------------------


@each([*CLASSIFIERS[::2], *REGRESSORS[::2]])
@pytest.mark.parametrize("made", [np.asarray, pd.DataFrame, lambda a: MultiView({"v": a})])
def test_infinite_cells_are_an_error_of_ours_and_of_scikit_learn(model, made):
    bad = X.copy()
    bad[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinit") as caught:
        model.fit(made(bad), Y)
    assert isinstance(caught.value, BaldurError)


def test_a_narrow_type_that_overflowed_is_named():
    bad = X.astype(np.float16)
    bad[0, 0] = np.inf
    with pytest.raises(InputError, match="float64"):
        BaldurClassifier().fit(bad, Y)


@pytest.mark.parametrize("scale", ["clipped", "standard", "rank"])
def test_a_large_offset_is_taken_off_first(scale):
    # At 1e9 neighbouring numbers are 1e-7 apart, so a hundredth of the spread is rounding.
    near = Preparation(scale).fit(MultiView({"v": X}))
    far = Preparation(scale).fit(MultiView({"v": 1e9 + 1e-5 * X}))
    assert not far.constant_["v"].any()
    made = far.transform(MultiView({"v": 1e9 + 1e-5 * X}))["v"].dense()
    assert np.abs(made.mean(axis=0)).max() < 0.02
    # Cells that rounding made equal share a rank.
    atol = 0.2 if scale == "rank" else 0.05
    assert_allclose(made, near.transform(MultiView({"v": X}))["v"].dense(), atol=atol)


@pytest.mark.parametrize("value", [0.1, 1e9, 1e120, -3.3e-200])
def test_a_column_that_differs_by_rounding_is_constant(value):
    column = value * (1.0 + np.finfo(float).eps * (np.arange(N) % 3))
    learned = Preparation().fit(MultiView({"v": np.column_stack([column, X])}))
    assert learned.constant_["v"].tolist() == [True, False, False, False]


def test_columns_too_small_to_be_squared_are_named():
    cells = np.column_stack([1e-200 * X[:, 0], X[:, 1]])
    with pytest.warns(InputWarning, match=r"below 1e-140.*Rescale"):
        model = BaldurClassifier(members=("pooled",)).fit(cells, Y)
    assert model.coef_["X"][0, 0] == 0


def test_columns_too_large_to_be_squared_are_refused():
    with pytest.raises(InputError, match="1e\\+140 at most"):
        BaldurClassifier().fit(1e150 * X, Y)


@pytest.mark.parametrize("factor", [1e130, 1e-130])
def test_the_unit_of_a_column_does_not_matter(factor):
    model = BaldurClassifier(members=("pooled",))
    plain = model.fit(X, Y).predict_proba(X)
    assert_allclose(model.fit(factor * X, Y).predict_proba(factor * X), plain, rtol=1e-6)


# -- rows to predict -----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["clipped", "standard", "rank"])
@each([*CLASSIFIERS, *REGRESSORS])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_extreme_rows_have_finite_answers(model, scale):
    model = model.set_params(preparation=scale)
    classify = is_classifier(model)
    model.fit(X, Y if classify else SCORE)
    for size in (1e154, 1e300, np.finfo(float).max):
        rows = size * np.sign(X[:5])
        answers = [model.predict_proba(rows)] if classify else model.predict(rows, return_std=True)
        assert all(np.isfinite(a).all() for a in answers)
        if classify:
            assert_allclose(answers[0].sum(axis=1), 1)


def test_cells_without_a_clip_are_held_far_out():
    learned = Preparation("standard").fit(MultiView({"v": X}))
    rows = X[:2].copy()
    rows[0] = [1e300, -1e300, 1e10]
    made = learned.transform(MultiView({"v": rows}))["v"].dense()
    assert_array_equal(made[0], [1e9, -1e9, 1e9])
    assert_allclose(made[1], ((X - X.mean(0)) / X.std(0))[1])


def test_extreme_covariates_are_held_as_well():
    age = RNG.normal(size=N)
    mv = MultiView({"v": X}, samples=pd.DataFrame({"age": age}))
    learned = Preparation(regress_out=["age"]).fit(mv)
    made = learned.transform(mv[:1].with_samples(pd.DataFrame({"age": [1e300]})))["v"].dense()
    assert np.isfinite(made).all()
    with pytest.raises(InputError, match="too large to be squared"):
        learned.fit(mv.with_samples(pd.DataFrame({"age": 1e200 * age})))
