"""read_nifti and to_nifti: images to rows and back, exactly; grids, masks, atlases."""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.pipeline import make_pipeline

from baldur import MultiView
from baldur.baselines import BASELINES
from baldur.exceptions import InputError, MissingExtraError
from baldur.io import align, read_nifti, to_nifti
from baldur.preparation import VoxelMask

nib = pytest.importorskip("nibabel")
pytest.importorskip("nilearn")

shapes = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
AFFINE = np.array([[-3.0, 0, 0, 10], [0, 4, 0.5, -20], [0, 0, 5, 7], [0, 0, 0, 1]])


def image(cells, affine=AFFINE):
    return nib.Nifti1Image(cells, affine)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), shape=shapes, kind=st.sampled_from([nib.Nifti1Image, nib.Nifti2Image]))
def test_what_is_written_is_read_and_written_again(data, shape, kind):
    cells = data.draw(
        hnp.arrays(
            np.float32,
            shape,
            elements=st.floats(width=32, allow_infinity=False, allow_nan=True),
        )
    )
    inside = data.draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 1)))
    inside.flat[0] = 1
    ending = data.draw(st.sampled_from([".nii", ".nii.gz"]))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"scan{ending}"
        nib.save(kind(cells, AFFINE), file)
        nib.save(image(inside), Path(folder) / "mask.nii")
        X = read_nifti([file], mask=Path(folder) / "mask.nii", name="m")
        row = X.view("m").read()[0]
        np.testing.assert_array_equal(row, cells[inside > 0])
        assert X.sample_ids.tolist() == ["scan"]
        # The inverse is exact: same cells inside, nothing outside, same grid.
        back = to_nifti(row, X, file=Path(folder) / f"back{ending}")
        np.testing.assert_array_equal(back.get_fdata(dtype=np.float32), np.where(inside, cells, 0))
        np.testing.assert_array_equal(back.affine, nib.load(file).affine)
        again = read_nifti([Path(folder) / f"back{ending}"], mask=Path(folder) / "mask.nii")
        np.testing.assert_array_equal(again.view("images").read()[0], row)
    info = X.feature_info["m"]
    places = nib.affines.apply_affine(AFFINE, np.argwhere(inside))
    np.testing.assert_allclose(info[["x", "y", "z"]], places, atol=1e-4)
    assert len(set(X.feature_names["m"])) == len(info)


def test_float64_weights_are_not_rounded_and_rows_are_volumes():
    X = read_nifti([image(np.ones((2, 2, 2)))])
    weights = np.random.default_rng(0).normal(size=(3, 8))
    back = to_nifti(weights, X.feature_info["images"])
    assert back.shape == (2, 2, 2, 3)
    np.testing.assert_array_equal(back.get_fdata().reshape(8, 3).T, weights)
    assert to_nifti(weights[0], X, fill=np.nan).get_data_dtype() == np.float64


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_equal_to_the_maskers_of_nilearn():
    from nilearn.maskers import NiftiLabelsMasker, NiftiMasker

    rng = np.random.default_rng(0)
    images = [image(rng.normal(size=(8, 9, 7)).astype(np.float32)) for _ in range(3)]
    inside = image((rng.random((8, 9, 7)) < 0.5).astype(np.uint8))
    labels = image(rng.integers(0, 4, (8, 9, 7)).astype(np.int32))
    for fwhm in (None, 6.0):
        masker = NiftiMasker(inside, smoothing_fwhm=fwhm, standardize=False).fit()
        theirs = np.vstack([masker.transform(one) for one in images])
        ours = read_nifti(images, mask=inside, smoothing_fwhm=fwhm).view("images").read()
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    regions = NiftiLabelsMasker(labels, standardize=False).fit()
    theirs = np.vstack([regions.transform(one) for one in images])
    X = read_nifti(images, atlas=labels, atlas_labels={1: "hippocampus", 2: "amygdala"})
    np.testing.assert_allclose(X.view("images").read(), theirs, atol=1e-5)
    assert X.feature_names["images"].tolist() == ["hippocampus", "amygdala", "region_3"]
    # Another grid: the images are brought to the grid of the mask.
    coarse = image(np.ones((4, 4, 3), np.uint8), AFFINE @ np.diag([2, 2, 2, 1]))
    masker = NiftiMasker(coarse, standardize=False).fit()
    theirs = np.vstack([masker.transform(one) for one in images])
    ours = read_nifti(images, mask=coarse, resample="continuous").view("images").read()
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_region_weights_fill_their_regions(tmp_path):
    labels = np.zeros((3, 3, 3), np.int16)
    labels[0], labels[1] = 5, 2
    nib.save(image(labels), tmp_path / "atlas.nii")
    (tmp_path / "names.tsv").write_text("index\tname\n5\tfront\n2\tback\n")
    cells = np.random.default_rng(0).normal(size=(3, 3, 3))
    cells[0, 0, 0] = np.nan
    X = read_nifti(
        [image(cells)], atlas=tmp_path / "atlas.nii", atlas_labels=tmp_path / "names.tsv"
    )
    assert X.feature_names["images"].tolist() == ["back", "front"]
    expected = [cells[1].mean(), np.nanmean(cells[0])]
    np.testing.assert_allclose(X.view("images").read()[0], expected, rtol=1e-6)
    back = to_nifti([1.0, 2.0], X).get_fdata()
    np.testing.assert_array_equal(
        back, np.array([2.0, 1.0, 0.0])[:, None, None] * np.ones((3, 3, 3))
    )
    info = X.feature_info["images"]
    np.testing.assert_allclose(
        info[["x", "y", "z"]].to_numpy()[1], nib.affines.apply_affine(AFFINE, [0, 1, 1]), atol=1e-4
    )
    assert info["n_voxels"].tolist() == [9, 9]


@pytest.mark.parametrize(
    ("files", "pattern", "expected"),
    [
        (["sub-01_T1w.nii", "sub-02_T1w.nii"], None, ["sub-01", "sub-02"]),
        (["sub-01/anat/T1w.nii", "sub-02/anat/T1w.nii"], None, ["sub-01", "sub-02"]),
        (["a.nii.gz", "b.nii"], None, ["a", "b"]),
        (["smwc1x7_s1.nii", "smwc1y8_s2.nii"], "smwc1{id}_*.nii", ["x7", "y8"]),
    ],
)
def test_ids_from_file_names(tmp_path, files, pattern, expected):
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        nib.save(image(np.ones((2, 2, 2))), tmp_path / file)
    X = read_nifti([tmp_path / file for file in files], id_pattern=pattern)
    assert X.sample_ids.tolist() == expected
    with pytest.raises(InputError, match="does not fit the file name"):
        read_nifti([tmp_path / files[0]], id_pattern="zz{id}.nii")


def test_ids_that_repeat_are_pointed_out(tmp_path):
    for session in (1, 2):
        nib.save(image(np.ones((2, 2, 2))), tmp_path / f"sub-01_ses-{session}.nii")
    with pytest.raises(InputError, match=r"id_pattern=.*'sub-01' occurs more than once"):
        read_nifti(str(tmp_path / "*.nii"))
    X = read_nifti(str(tmp_path / "*.nii"), id_pattern="{id}.nii")
    assert X.sample_ids.tolist() == ["sub-01_ses-1", "sub-01_ses-2"]


def test_matrix_kept_in_a_file(tmp_path):
    rng = np.random.default_rng(0)
    for i in range(3):
        nib.save(image(rng.normal(size=(3, 4, 2)).astype(np.float32)), tmp_path / f"s{i}.nii")
    plain = read_nifti(str(tmp_path / "*.nii"))
    cached = read_nifti(str(tmp_path / "*.nii"), cache_dir=tmp_path / "cache")
    assert not cached.view("images").source.in_memory
    np.testing.assert_array_equal(cached.view("images").read(), plain.view("images").read())
    (kept,) = (tmp_path / "cache").iterdir()
    stamp = kept.stat().st_mtime_ns
    read_nifti(str(tmp_path / "*.nii"), cache_dir=tmp_path / "cache")
    assert kept.stat().st_mtime_ns == stamp
    # A changed image or option is another file.
    nib.save(image(np.zeros((3, 4, 2), np.float32)), tmp_path / "s0.nii")
    changed = read_nifti(str(tmp_path / "*.nii"), cache_dir=tmp_path / "cache")
    assert not changed.view("images").read()[0].any()
    # Another image of the same size and time is not taken for the old one; a copy is.
    seen = (tmp_path / "s0.nii").stat()
    nib.save(image(np.ones((3, 4, 2), np.float32)), tmp_path / "s0.nii")
    os.utime(tmp_path / "s0.nii", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert (tmp_path / "s0.nii").stat().st_size == seen.st_size
    changed = read_nifti(str(tmp_path / "*.nii"), cache_dir=tmp_path / "cache")
    assert (changed.view("images").read()[0] == 1).all()
    kept = len(list((tmp_path / "cache").iterdir()))
    os.utime(tmp_path / "s0.nii")
    read_nifti(str(tmp_path / "*.nii"), cache_dir=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == kept
    # A failure leaves nothing behind.
    nib.save(image(np.zeros((2, 2, 2), np.float32)), tmp_path / "s2.nii")
    before = sorted((tmp_path / "cache").iterdir())
    with pytest.raises(InputError, match="expected 3 x 4 x 2 voxels"):
        read_nifti(str(tmp_path / "*.nii"), cache_dir=tmp_path / "cache")
    assert sorted((tmp_path / "cache").iterdir()) == before


def test_mask_learned_on_training_images():
    cells = np.full((4, 4, 4), 0.01)
    cells[1:3, 1:3, 1:3] = 5.0
    test_only = cells.copy()
    test_only[0] = 100.0
    X = read_nifti([image(cells), image(cells * 1.1), image(test_only)])
    step = VoxelMask().fit(X[:2])
    masked = step.transform(X)
    assert masked.n_features == {"images": 8}
    back = to_nifti(np.ones(8), masked).get_fdata()
    np.testing.assert_array_equal(back > 0, cells > 1)
    with pytest.raises(InputError, match="no voxel is left"):
        VoxelMask(coverage=1.0).fit(read_nifti([image(np.full((2, 2, 2), np.nan))]))
    other = read_nifti([image(np.ones((2, 2, 2)))])
    with pytest.raises(InputError, match="64 voxels as in fit"):
        step.transform(other)
    assert VoxelMask().fit(MultiView({"t": np.eye(3)})).kept_ == {}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a, b: read_nifti([a, b]), "resample='continuous'"),
        (lambda a, b: read_nifti([a], resample="cubic"), "resample must be one of"),
        (lambda a, b: read_nifti([a], voxel_size=2.0), "needs resample="),
        (lambda a, b: read_nifti([a], smoothing_fwhm=-1), "smoothing_fwhm must be a pos"),
        (lambda a, b: read_nifti([]), "the list is empty"),
        (lambda a, b: read_nifti(5), "a pattern or a list"),
        (lambda a, b: read_nifti([a], mask=image(np.zeros((2, 2, 2), np.uint8))), "mask is empty"),
        (lambda a, b: read_nifti([image(np.ones((2, 2, 2, 3)))]), "expected a 3-D image"),
        (lambda a, b: read_nifti([image(np.full((2, 2, 2), np.inf))]), "infinite values"),
        (lambda a, b: read_nifti([a], atlas_labels={1: "x"}), "atlas=, which is not given"),
        (lambda a, b: read_nifti([a] * 200, max_bytes=4000), "cache_dir="),
        (lambda a, b: read_nifti([a], sample_ids=["x", "y"]), "expected 1 sample ids"),
        (lambda a, b: to_nifti(np.ones(3), read_nifti([a])), "Expected 8 weights"),
        (lambda a, b: to_nifti(np.ones(3), MultiView({"t": np.eye(3)})), "Say which view"),
        (lambda a, b: to_nifti(np.ones(8), read_nifti([a]), file="x.img"), "written as .nii"),
        (lambda a, b: to_nifti(["x"] * 8, read_nifti([a])), "weights must be numbers"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(image(np.ones((2, 2, 2))), image(np.ones((3, 3, 3))))


def test_larger_voxels():
    cells = np.ones((9, 9, 9), np.float32)
    cells[0, 0, 0] = 1.00001  # nilearn warns about binary images
    X = read_nifti([image(cells, np.diag([2.0, 2, 2, 1]))], voxel_size=4.0, resample="linear")
    assert X.shape == (1, 125)
    np.testing.assert_allclose(X.view("images").read(), 1.0, atol=1e-4)


def test_trailing_axis_of_one():
    X = read_nifti([image(np.arange(8.0).reshape(2, 2, 2, 1))])
    assert X.view("images").read()[0].tolist() == list(range(8))


def test_two_hundred_images_on_the_mni_mask(tmp_path, mni_study):
    y, ball = mni_study(tmp_path)
    X = read_nifti(str(tmp_path / "sub-*.nii"), mask=tmp_path / "mask.nii.gz", name="grey")
    assert X.shape == (200, int((nib.load(tmp_path / "mask.nii.gz").get_fdata() > 0).sum()))
    model = BASELINES["Elastic-net logistic"].make(0).fit(X[:150], y[:150])
    accuracy = (model.predict(X[150:]) == y[150:]).mean()
    written = to_nifti(model.coef_["grey"][:, 0], X, file=tmp_path / "weights.nii.gz")
    read = np.abs(nib.load(tmp_path / "weights.nii.gz").get_fdata())
    np.testing.assert_array_equal(read, np.abs(written.get_fdata()))
    peak = np.unravel_index(read.argmax(), read.shape)
    print(
        f"200 images, {X.shape[1]:,} voxels: accuracy {accuracy:.3f}, peak of the map in the "
        f"simulated region: {bool(ball[peak])}"
    )
    assert ball[peak]
    assert accuracy > 0.8
    # The same with a mask learned inside the pipeline, from every voxel of the grid.
    whole = read_nifti(str(tmp_path / "sub-*.nii"), name="grey")
    learned = make_pipeline(VoxelMask(), BASELINES["Elastic-net logistic"].make(0))
    learned.fit(whole[:150], y[:150])
    assert learned[0].transform(whole).n_features == X.n_features
    np.testing.assert_array_equal(learned.predict(whole[150:]), model.predict(X[150:]))
    # And aligned with another view.
    ages = MultiView({"age": np.ones((2, 1))}, sample_ids=["sub-007", "sub-003"])
    both = align([ages, X]).data
    np.testing.assert_array_equal(both.view("grey").read(), X[[7, 3]].view("grey").read())


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "nibabel", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'baldur-multiview\[imaging\]'"):
        read_nifti("*.nii")
