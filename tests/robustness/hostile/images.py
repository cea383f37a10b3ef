"""NIfTI images: headers that lie, grids without end, options made to be slow."""

import gzip

import numpy as np

from robustness.hostile.base import Case


def image(name="f.nii", cells=None, affine=None, change=None, packed_zeros=0, **fields):
    """Write an image, with fields of its header and then its bytes changed."""

    def make(folder, outside):
        import nibabel as nib

        made = np.ones((4, 4, 4), np.float32) if cells is None else cells
        header = nib.Nifti1Header()
        header.set_data_dtype(made.dtype)
        header.set_data_shape(made.shape)
        header.set_sform(np.eye(4) if affine is None else affine, 1)
        header["vox_offset"], header["magic"] = 352, b"n+1"
        for key, value in fields.items():
            header[key] = value
        raw = header.binaryblock + bytes(4) + made.tobytes(order="F")
        if change is not None:
            raw = change(raw)
        path = folder / name
        if packed_zeros:
            zeros = gzip.compress(bytes(1 << 20), 6)
            path.write_bytes(gzip.compress(raw) + zeros * packed_zeros)
        else:
            path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return make


def link(name, target):
    """Make a link to a good image outside."""

    def make(folder, outside):
        image("f.nii")(outside, outside)
        image("f.nii")(folder, outside)
        (folder / name).symlink_to(outside / target)
        return folder / "f.nii"

    return make


def linked_image(folder, outside):
    image("g.nii")(outside, outside)
    (folder / "f.nii").symlink_to(outside / "g.nii")
    return folder / "f.nii"


def many_labels(folder, outside):
    image("f.nii", np.zeros((60, 60, 60), np.float32))(folder, outside)
    labels = np.arange(60**3, dtype=np.int32).reshape(60, 60, 60)
    image("atlas.nii", labels)(folder, outside)
    return folder / "f.nii"


def many_in_name(folder, outside):
    image("f.nii")(folder, outside)
    path = folder / ("a" * 200 + ".nii")
    (folder / "f.nii").rename(path)
    return path


def odd_name(folder, outside):
    image("f.nii")(folder, outside)
    path = folder / "sub-\x1b[2J.nii"
    (folder / "f.nii").rename(path)
    return path


def dim(*sides):
    return np.array([len(sides), *sides, *[1] * (7 - len(sides))], dtype=np.int16)


STARS = "*a" * 30 + "{id}b.nii"
RESAMPLED = {"resample": "linear"}
CASES = {
    "claims": Case(image(dim=dim(30_000, 30_000, 30_000)), "nifti"),
    "claims in .nii.gz": Case(image("f.nii.gz", dim=dim(30_000, 30_000, 30_000)), "nifti"),
    "claims in four axes": Case(image(dim=dim(4, 4, 4, 30_000)), "nifti"),
    "seven axes": Case(image(dim=dim(20, 20, 20, 20, 20, 20, 20)), "nifti"),
    "negative side": Case(image(dim=dim(-4, 4, 4)), "nifti"),
    "no side": Case(image(dim=dim(0, 4, 4)), "nifti"),
    "zeros of 3 GB": Case(
        image("f.nii.gz", dim=dim(1000, 1000, 800), packed_zeros=3100), "nifti"),
    "zeros of 1 GB, default": Case(
        image("f.nii.gz", dim=dim(640, 640, 640), packed_zeros=1010), "nifti", {"max_bytes": None}),
    "zeros of doubles": Case(
        image("f.nii.gz", np.ones((4, 4, 4)), dim=dim(500, 500, 500), packed_zeros=960), "nifti"),
    "scaled zeros": Case(
        image("f.nii.gz", np.ones((4, 4, 4), np.int8), dim=dim(600, 600, 600), packed_zeros=210,
              scl_slope=2.0), "nifti"),
    "far offset": Case(image(vox_offset=2e9), "nifti"),
    "offset before the header": Case(image(vox_offset=-5), "nifti"),
    "offset that is no number": Case(image(vox_offset=np.nan), "nifti"),
    "infinite slope": Case(image(scl_slope=np.inf), "nifti", read=True),
    "affine without numbers": Case(image(affine=np.full((4, 4), np.nan)), "nifti"),
    "flat affine": Case(image(affine=np.zeros((4, 4))), "nifti"),
    "colours": Case(image(datatype=128, bitpix=24), "nifti"),
    "unknown type": Case(image(datatype=9999), "nifti"),
    "cut short": Case(image(change=lambda raw: raw[:400]), "nifti"),
    "cut short in .nii.gz": Case(image("f.nii.gz", change=lambda raw: raw[:400]), "nifti"),
    "voxels of 0.005 mm": Case(image(), "nifti", {"voxel_size": 0.005, **RESAMPLED}),
    "voxels of 0.005 mm, large": Case(
        image(cells=np.ones((50, 50, 50), np.float32), affine=np.diag([4.0, 4, 4, 1])),
        "nifti", {"voxel_size": 0.005, "max_bytes": None, **RESAMPLED}),
    "voxels of 1e-300 mm": Case(image(), "nifti", {"voxel_size": 1e-300, **RESAMPLED}),
    "voxels of -1 mm": Case(image(), "nifti", {"voxel_size": -1, **RESAMPLED}),
    "voxels of text": Case(image(), "view", {"voxel_size": "small", **RESAMPLED}),
    "huge affine": Case(
        image(affine=np.diag([1e30, 1e30, 1e30, 1])), "nifti", {"voxel_size": 1.0, **RESAMPLED}),
    "smoothing without end": Case(image(), "nifti", {"smoothing_fwhm": 1e12}),
    "smoothing by text": Case(image(), "view", {"smoothing_fwhm": "much"}),
    "pattern of stars": Case(many_in_name, "nifti", {"id_pattern": STARS}),
    "escape codes in a name": Case(odd_name, "nifti"),
    "216,000 regions": Case(many_labels, "nifti", {"atlas": "atlas.nii"}),
    "link to an image outside": Case(linked_image, "view"),
    "link to a mask outside": Case(link("mask.nii", "f.nii"), "view", {"mask": "mask.nii"}),
    "link to an atlas outside": Case(link("atlas.nii", "f.nii"), "view", {"atlas": "atlas.nii"}),
    "cache outside": Case(image(), "view", {"cache_dir": "../outside"}),
    "cache through a link": Case(link("cache", "."), "view", {"cache_dir": "cache"}),
    "ids outside": Case(image(), "view", {"sample_ids": "../outside/secret.csv"}),
}  # fmt: skip
