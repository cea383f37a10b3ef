"""NIfTI, second round: extensions, odd fields of the header, atlases and their labels."""

import gzip
import struct

import numpy as np

from robustness.hostile.base import Case
from robustness.hostile.images import dim, image

ZEROS = gzip.compress(bytes(1 << 20), 6)


def extended(extension, offset, packed=0, name="f.nii.gz"):
    """Write an image with bytes between header and cells, and zeros packed behind it."""

    def change(raw):
        return raw[:348] + b"\x01\0\0\0" + extension + raw[352:]

    def make(folder, outside):
        path = image("f.nii", change=change, vox_offset=offset)(folder, outside)
        raw = path.read_bytes()
        path.unlink()
        path = folder / name
        path.write_bytes((gzip.compress(raw) + ZEROS * packed) if name.endswith(".gz") else raw)
        return path

    return make


def extension(size, code=6, body=b""):
    return struct.pack("<ii", size, code) + body


def with_atlas(cells, labels=None):
    """An image and an atlas over it, with a table of its labels."""

    def make(folder, outside):
        image("f.nii")(folder, outside)
        image("atlas.nii", cells)(folder, outside)
        if labels is not None:
            (folder / "labels.csv").write_text(labels)
        return folder / "f.nii"

    return make


def ones(kind):
    return np.ones((4, 4, 4), kind)


SMALL_STEPS = b"".join([extension(16, 6, b"12345678")] * ((1 << 24) // 16 - 30))
ATLAS = {"atlas": "atlas.nii"}
LABELS = {**ATLAS, "atlas_labels": "labels.csv"}
FIELDS = {
    "slope that is no number": {"scl_slope": np.nan, "scl_inter": 1.0},
    "infinite intercept": {"scl_slope": 1.0, "scl_inter": np.inf},
    "huge slope": {"scl_slope": 3e38, "scl_inter": 3e38},
    "tiny slope": {"scl_slope": 1e-45},
    "other size of its header": {"sizeof_hdr": 540},
    "no magic": {"magic": b"xxx"},
    "magic of a pair of files": {"magic": b"ni1"},
    "offset within the header": {"vox_offset": 10},
    "offset between two cells": {"vox_offset": 353.5},
    "offset far behind": {"vox_offset": 1e30},
    "eight axes": {"dim": np.array([8, 4, 4, 4, 1, 1, 1, 1])},
    "no axes": {"dim": np.array([0, 4, 4, 4, 1, 1, 1, 1])},
    "negative axes": {"dim": np.array([-3, 4, 4, 4, 1, 1, 1, 1])},
    "vector of a surface": {"dim": np.array([3, -1, 1, 1, 1, 1, 1, 1]), "glmin": 2_000_000_000},
    "vector of minus cells": {"dim": np.array([3, -1, 1, 1, 1, 1, 1, 1]), "glmin": -5},
    "ico7": {"dim": np.array([3, 27307, 1, 6, 1, 1, 1, 1])},
    "long double": {"datatype": 1536, "bitpix": 128},
    "complex": {"datatype": 32, "bitpix": 64},
    "one bit": {"datatype": 1, "bitpix": 1},
    "bits that do not fit": {"bitpix": 8},
    "voxels without size": {"pixdim": np.zeros(8), "sform_code": 0, "qform_code": 1},
    "voxels of no number": {"pixdim": np.full(8, np.nan), "sform_code": 0},
    "quaternion of length 3": {"quatern_b": 1.0, "quatern_c": 2.0, "quatern_d": 2.0, "sform_code": 0, "qform_code": 1},
    "quaternion of no number": {"quatern_b": np.nan, "sform_code": 0, "qform_code": 1},
    "unknown forms": {"sform_code": 99, "qform_code": 99},
    "units of nothing": {"xyzt_units": 255},
    "intent of nothing": {"intent_code": 31_999},
}  # fmt: skip

CASES = {
    "extension of size 0 before 3 GB": Case(extended(extension(0) + bytes(8), 368, 3000), "nifti", read=True),
    "extension of size -8 before 3 GB": Case(extended(extension(-8) + bytes(8), 368, 3000), "nifti", read=True),
    "extension of 2 GB before 3 GB": Case(extended(extension(2**31 - 16) + bytes(8), 368, 3000), "nifti", read=True),
    "extension of size 0 without packing": Case(extended(extension(0) + bytes(8), 368, name="f.nii"), "nifti", read=True),
    "a million extensions": Case(extended(SMALL_STEPS, 352 + len(SMALL_STEPS)), "nifti", read=True),
    "extension of DICOM": Case(extended(extension(32, 2, b"\xff" * 24), 384), "nifti", read=True),
    "extension of odd size": Case(extended(extension(9, 2, b"x") + bytes(7), 368), "nifti", read=True),
    "extension behind the end": Case(extended(extension(1 << 20), 360), "nifti", read=True),
    "zeros of four axes": Case(
        image("f.nii.gz", dim=dim(500, 500, 500, 1), packed_zeros=500), "nifti"),
    "zeros of four axes as an atlas": Case(
        lambda folder, outside: (
            image("atlas.nii.gz", dim=dim(500, 500, 500, 1), packed_zeros=500)(folder, outside),
            image("f.nii")(folder, outside))[1], "nifti", {"atlas": "atlas.nii.gz"}),
    **{name: Case(image(**fields), "nifti", read=True) for name, fields in FIELDS.items()},
    **{f"{name}, resampled": Case(image(**fields), "nifti", {"resample": "linear", "voxel_size": 1.5}, read=True)
       for name, fields in list(FIELDS.items())[:4] + list(FIELDS.items())[20:24]},
    "members without end": Case(
        lambda folder, outside: _members(folder), "nifti"),
    "labels of 1e300": Case(with_atlas(ones("f8") * 1e300), "nifti", ATLAS, read=True),
    "labels of 2**63": Case(with_atlas(ones("u8") * 2**63), "nifti", ATLAS, read=True),
    "labels below 0": Case(with_atlas(-ones("i4")), "nifti", ATLAS, read=True),
    "labels of a half": Case(with_atlas(ones("f4") / 2), "nifti", ATLAS),
    "labels of no number": Case(with_atlas(ones("f4") * np.nan), "nifti", ATLAS),
    "labels on another grid": Case(with_atlas(np.ones((2, 2, 2), "f4")), "nifti", ATLAS, read=True),
    "labels without a region": Case(with_atlas(np.zeros((4, 4, 4), "f4")), "nifti", ATLAS),
    "name of label inf": Case(with_atlas(ones("i2"), "index,name\ninf,a\n"), "nifti", LABELS),
    "name of label 1e400": Case(with_atlas(ones("i2"), "index,name\n1e400,a\n"), "nifti", LABELS),
    "name of label 1e300": Case(with_atlas(ones("i2"), "index,name\n1e300,a\n1,b\n"), "nifti", LABELS, read=True),
    "name of label 1.5": Case(with_atlas(ones("i2"), "index,name\n1.5,a\n"), "nifti", LABELS, read=True),
    "name with escape codes": Case(with_atlas(ones("i2"), "index,name\n1,a\x1b[2J\n"), "nifti", LABELS),
    "name that is missing": Case(with_atlas(ones("i2"), "index,name\n1,\n"), "nifti", LABELS, read=True),
    "names without a column": Case(with_atlas(ones("i2"), "a,b\n1,2\n"), "nifti", LABELS),
    "name of a million letters": Case(with_atlas(ones("i2"), "index,name\n1," + "x" * 100_000 + "\n"), "nifti", LABELS),
}  # fmt: skip


def _members(folder):
    """Two million gzip members without content in front of nothing."""
    path = folder / "f.nii.gz"
    path.write_bytes(gzip.compress(b"") * 500_000)
    return path
