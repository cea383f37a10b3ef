"""make_adni_like: shape, smoothness, one shared signal, and the tables that repeat it."""

import numpy as np
import pytest

from baldur.datasets import make_adni_like
from baldur.datasets.adni import FULL_VOXELS, make_grid
from baldur.exceptions import InputError

IMAGES = ["t1_intensity", "grey_matter"]


@pytest.fixture(scope="module")
def cohort():
    return make_adni_like(scale=0.05, random_state=0)


def within_class_correlation(cohort, a, b):
    parts = []
    for x in (a, b):
        x = x.astype(float)
        parts.append(x - np.array([x[cohort.target == c].mean() for c in (0, 1)])[cohort.target])
    return np.corrcoef(*parts)[0, 1]


def test_shape_is_that_of_the_cohort(cohort):
    assert np.bincount(cohort.target).tolist() == [402, 661]
    assert list(cohort.data.n_features.values()) == [1882, 1882, 136, 136, 136]
    assert cohort.data.view("grey_matter").raw(slice(None)).dtype == np.float32
    assert cohort.mask.sum() == 1882


@pytest.mark.parametrize("n_voxels", [136, 1000, FULL_VOXELS])
def test_grid_has_exactly_the_voxels_asked_for(n_voxels):
    grid = make_grid(n_voxels)
    assert grid.mask.sum() == n_voxels
    edge = np.abs(grid.millimetres).max(axis=0)
    # The same ellipsoid in millimetres whatever the voxel, to within one voxel.
    np.testing.assert_allclose(edge, [78.7, 98.4, 74.8], atol=grid.affine[0, 0])
    if n_voxels == FULL_VOXELS:
        assert grid.affine[0, 0] == 4.0
    region = grid.parcellate(136)
    assert np.unique(region).tolist() == list(range(136))


def test_voxel_table_maps_features_to_the_grid(cohort):
    info = cohort.data.feature_info["grey_matter"]
    ijk = info[["i", "j", "k"]].to_numpy()
    volume = np.zeros(cohort.mask.shape, dtype=bool)
    volume[tuple(ijk.T)] = True
    np.testing.assert_array_equal(volume, cohort.mask)
    mm = ijk @ cohort.affine[:3, :3].T + cohort.affine[:3, 3]
    np.testing.assert_allclose(info[["x", "y", "z"]], mm)


def test_fields_are_smooth_with_unit_variance():
    grid = make_grid(5000)
    fields = grid.smooth_fields(300, 16.0, np.random.default_rng(0)).astype(float)
    np.testing.assert_allclose(fields.var(axis=0).mean(), 1.0, rtol=0.03)
    ijk = {tuple(v): i for i, v in enumerate(grid.indices)}
    pairs = {
        step: np.array([(i, ijk[v[0] + step, v[1], v[2]]) for v, i in ijk.items()
                        if (v[0] + step, v[1], v[2]) in ijk])
        for step in (1, 3)
    }  # fmt: skip
    r = {step: np.mean(fields[:, p[:, 0]] * fields[:, p[:, 1]]) for step, p in pairs.items()}
    # Smoothing white noise with s.d. sigma gives the correlation exp(-d^2 / 4 sigma^2).
    sigma = 16.0 / 2.3548 / grid.affine[0, 0]
    for step, value in r.items():
        assert value == pytest.approx(np.exp(-(step**2) / (4 * sigma**2)), abs=0.06)


def test_both_images_carry_the_score_where_truth_says(cohort):
    truth = cohort.truth
    assert truth.views == IMAGES
    for view in IMAGES:
        X = cohort.data.view(view).read(slice(None)).astype(float)
        groups = [X[cohort.target == c] for c in (0, 1)]
        within = np.sqrt((402 * groups[0].var(axis=0) + 661 * groups[1].var(axis=0)) / 1063)
        difference = (groups[1].mean(axis=0) - groups[0].mean(axis=0)) / within
        standard_error = np.sqrt(1 / 402 + 1 / 661)
        z = (difference - truth.weights(view)) / standard_error
        assert z.std() == pytest.approx(1.0, abs=0.25)
        assert np.abs(z).max() < 5.5
        assert 0.005 < truth.support(view).mean() < 0.1
    shared = truth.support(IMAGES[0]) & truth.support(IMAGES[1])
    assert shared.any()
    # The score itself is shared: within a class the two images agree more inside the patch.
    middle = int(np.argmax(np.abs(truth.weights("grey_matter")) * shared))
    a, b = (cohort.data.view(v).read(slice(middle, middle + 1))[:, 0] for v in IMAGES)
    assert within_class_correlation(cohort, a, b) < 0.45  # 0.5 outside, less the opposed score


def test_tables_summarise_the_images(cohort):
    region = cohort.data.feature_info["grey_matter"]["region"].to_numpy()
    t1, gm = (cohort.data.view(v).read(slice(None)).astype(float) for v in IMAGES)
    tables = {
        "grey_matter_volume": gm,
        "white_matter_volume": t1,
        "csf_volume": 0.5 * (t1 - gm),
    }
    for name, source in tables.items():
        table = cohort.data.view(name).read(slice(None))
        means = np.column_stack([source[:, region == r].mean(axis=1) for r in range(136)])
        r = [np.corrcoef(table[:, j], means[:, j])[0, 1] for j in range(136)]
        # Noise of 0.7 s.d. leaves a correlation of 1 / sqrt(1 + 0.49).
        assert np.mean(r) == pytest.approx(1 / np.sqrt(1.49), abs=0.02)
        assert len(cohort.truth.features[name]) > 0
    assert cohort.truth.redundant == tuple(tables)


def test_same_seed_same_bytes(cohort):
    again = make_adni_like(scale=0.05, random_state=0)
    for view in cohort.data.view_names:
        first = cohort.data.view(view).raw(slice(None))
        assert first.tobytes() == again.data.view(view).raw(slice(None)).tobytes()


def test_too_small_a_scale():
    with pytest.raises(InputError, match="at least 136"):
        make_adni_like(scale=0.001)


@pytest.mark.slow
def test_full_size():
    full = make_adni_like(random_state=0)
    assert full.data.shape == (1063, 2 * 37_643 + 3 * 136)
    assert full.affine[0, 0] == 4.0
