"""What a preparation learned, as plain values: complete, and refused where it cannot be true."""

import copy
import json

import numpy as np
import pandas as pd
import pytest

from baldur import MultiView, Preparation
from baldur.core.state import read_state, write_state
from baldur.exceptions import InputError
from baldur.preparation import CategoryEncoder, SiteHarmoniser, VariantFilter, VoxelMask

N = 60


def cohort(seed=0):
    rng = np.random.default_rng(seed)
    site = np.array(["Lima", "Oslo", "Rome"])[rng.permutation(N) % 3]
    blood = rng.normal(size=(N, 12)) + (site == "Oslo")[:, None]
    blood[::9, 2] = np.nan
    snps = rng.integers(0, 3, (N, 6)).astype(np.int8)
    snps[:, 5] = 0
    voxels = np.abs(rng.normal(size=(N, 9))) * np.array([0.01] * 3 + [5.0] * 6)
    space = pd.DataFrame({"x": range(9)})
    space.attrs["kind"] = "voxels"
    town = np.eye(3)[rng.integers(0, 3, N)]
    return MultiView(
        {
            "blood": blood,
            "clinic": np.column_stack([rng.normal(size=N), town]),
            "snps": snps,
            "images": voxels.astype(np.float32),
        },
        feature_names={"clinic": ["age", "town=a", "town=b", "town=c"]},
        feature_info={
            "clinic": pd.DataFrame(
                {"column": ["age", *["town"] * 3], "level": [None, "a", "b", "c"]}
            ),
            "snps": pd.DataFrame(
                {"chromosome": [1] * 6, "allele_1": list("ACGTAC"), "allele_2": list("GTACTG")}
            ),
            "images": space,
        },
        samples=pd.DataFrame(
            {"site": site, "age": rng.normal(size=N), "sex": rng.permutation(["f", "m"] * 30)}
        ),
    )


STEPS = [
    CategoryEncoder(),
    VariantFilter("snps", min_maf=0.01),
    VoxelMask(),
    SiteHarmoniser("site", ["blood"], keep=["sex"]),
]


@pytest.fixture(scope="module")
def learned():
    mv = cohort()
    made = Preparation("rank", steps=STEPS, regress_out=["age", "sex"]).fit(mv[:40])
    made.mark_needed({v: np.arange(w) < 2 for v, w in made.scaling_.n_features_.items()})
    return mv, made


def parts(state):
    """Every value of a state."""
    if isinstance(state, dict):
        assert all(type(key) is str for key in state)
        for value in state.values():
            yield from parts(value)
    elif isinstance(state, list):
        for value in state:
            yield from parts(value)
    else:
        yield state


def test_a_state_is_plain_and_says_everything(learned):
    mv, made = learned
    state = write_state(made)
    for value in parts(state):
        assert value is None or type(value) in (bool, int, float, str, np.ndarray)
        if isinstance(value, np.ndarray):
            assert value.dtype.kind in "bifU" or all(type(v) is str for v in value.ravel())
    again = read_state(state, Preparation)
    assert str(write_state(again)) == str(state)
    for name, view in made.transform(mv).items():
        np.testing.assert_array_equal(again.transform(mv)[name].dense(), view.dense())
        np.testing.assert_array_equal(again.columns_[name], made.columns_[name])
        np.testing.assert_array_equal(again.needed_[name], made.needed_[name])
    pd.testing.assert_frame_equal(again.site_report_, made.site_report_)
    assert again.sample_columns == made.sample_columns == ["site", "sex", "age"]
    # Its parameters fit the same once more.
    once_more = Preparation(**again.get_params(deep=False)).fit(mv[:40])
    for name, view in made.transform(mv).items():
        np.testing.assert_array_equal(once_more.transform(mv)[name].dense(), view.dense())
    json.dumps([v for v in parts(state) if not isinstance(v, np.ndarray)])


def test_every_scale_survives():
    mv = cohort(1).select(["blood", "snps"])
    for scale in ("clipped", "standard", "rank"):
        made = Preparation(scale).fit(mv[:40])
        again = read_state(write_state(made), Preparation)
        assert again.scaling_.scale == scale
        for name, view in made.transform(mv).items():
            np.testing.assert_array_equal(again.transform(mv)[name].dense(), view.dense())


def change(path, value):
    def apply(state):
        *way, last = path
        for key in way:
            state = state[key]
        state[last] = value(state[last]) if callable(value) else value

    return apply


def blood(field, *path):
    return "scaling_", field, "blood", *path


def swapped(x):
    return np.where(np.arange(len(x)) == 0, np.inf, x)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (change(blood("mean_"), lambda x: x[:-1]), "expected"),
        (change(blood("mean_"), lambda x: x * np.nan), "finite numbers"),
        (change(blood("scale_"), lambda x: -x), "above 0"),
        (change(blood("scale_"), lambda x: x.astype(str)), "expected numbers"),
        (change(blood("lower_"), swapped), "not above the upper limits"),
        (change(blood("minimum_"), swapped), "not above the maxima"),
        (change(blood("_scores", "knots"), lambda x: x[::-1]), "rising order"),
        (change(blood("_scores", "position"), lambda x: x + 99), "at most"),
        (change(("scaling_", "covariate_effect_"), {}), "where there are covariates"),
        (change(("scaling_", "needed_"), lambda v: {"blood": v["blood"]}), "for each of"),
        (change(("scaling_", "scale"), "robust"), "scale: expected one of"),
        (change(("scaling_", "n_samples_"), -1), "whole number from 1"),
        (change(("scaling_", "covariates_", "scale"), lambda x: x * 0), "above 0"),
        (change(("scaling_", "covariates_", "levels"), {"weight": ["a"]}), "levels of covariates"),
        (change(("n_features_", "blood"), 5), "expected the columns"),
        (change(("n_features_",), lambda v: {"blood": v["blood"]}), "expected"),
        (change(("steps_", 0, "kind"), "os.system"), "expected 'category encoder' or"),
        (
            change(("steps_", 0, "_columns", "clinic"), lambda x: x + 9),
            "columns of the view 'clinic'",
        ),
        (change(("steps_", 1, "kept_", "snps"), lambda x: x[:3]), "names"),
        (change(("steps_", 2, "kept_", "images"), lambda x: ~x), "that the steps leave"),
        (change(("steps_", 3, "factor_", "blood"), lambda x: x * 0), "above 0"),
        (change(("steps_", 3, "shift_", "blood"), lambda x: x[:1]), "expected"),
        (change(("steps_", 3, "sites_"), ["Lima"]), "expected"),
        (change(("steps_",), 7), "expected a list"),
        (change(("scaling_",), [1]), "expected an object"),
    ],
)
def test_a_state_that_cannot_be_true_is_refused(learned, spoil, said):
    state = copy.deepcopy(write_state(learned[1]))
    spoil(state)
    with pytest.raises(InputError, match=said):
        read_state(state, Preparation)


@pytest.mark.parametrize("key", ["n_features_", "steps_", "scaling_"])
def test_a_state_that_lacks_a_part_is_refused(learned, key):
    state = write_state(learned[1])
    del state[key]
    with pytest.raises(InputError, match=f"{key}: it is missing"):
        read_state(state, Preparation)
