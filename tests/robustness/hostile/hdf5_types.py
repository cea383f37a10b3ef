""".h5ad and .h5mu, second round: chunks wider than their data, odd types, attributes that lead out."""

import h5py
import numpy as np

from robustness.hostile.base import CANARY, Case
from robustness.hostile.hdf5 import N, changed


def put(key, data=None, column=True, attributes=(), **options):
    """Replace a data set by another, made a column of obs unless told otherwise."""

    def change(file, outside):
        if key in file:
            del file[key]
        made = file.create_dataset(key, data=data, **options)
        for name, value in dict(attributes).items():
            made.attrs[name] = value
        if column:
            file["obs"].attrs["column-order"] = np.array([key.rpartition("/")[2]], dtype=object)

    return change


def wide_chunk(key, kind, cells, filters=1):
    """Few cells in a chunk of gigabytes, which has to be unpacked as a whole."""

    def change(file, outside):
        if key in file:
            del file[key]
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((cells,))
        for _ in range(filters):
            plist.set_deflate(6)
        space = h5py.h5s.create_simple((N,), (h5py.h5s.UNLIMITED,))
        made = h5py.h5d.create(
            file.id, key.encode(), h5py.h5t.py_create(np.dtype(kind)), space, plist
        )
        h5py.Dataset(made)[...] = np.zeros(N, kind)
        if key.startswith("obs/"):
            file["obs"].attrs["column-order"] = np.array([key.rpartition("/")[2]], dtype=object)

    return change


def group_column(kind, **parts):
    def change(file, outside):
        group = file["obs"].create_group("odd")
        group.attrs["encoding-type"], group.attrs["encoding-version"] = kind, "0.1.0"
        for key, data in parts.items():
            group[key] = data
        file["obs"].attrs["column-order"] = np.array(["odd"], dtype=object)

    return change


def attribute(where, key, value, **options):
    def change(file, outside):
        node = file[where]
        if key in node.attrs:
            del node.attrs[key]
        node.attrs.create(key, value, **options)

    return change


def levels_by_path(link):
    """Levels of categories given as the name of a path, which leads out of the file."""

    def change(file, outside):
        with h5py.File(outside / "other.h5", "w") as other:
            other["levels"] = np.array([CANARY, "b"], dtype=object)
        if link == "external":
            file["away"] = h5py.ExternalLink(str(outside / "other.h5"), "/levels")
        elif link == "soft":
            file["away"] = h5py.SoftLink("/obs/_index")
        else:
            file["away"] = np.array([b"u", b"v"])
        del file["obs"]["site"]
        codes = file["obs"].create_dataset("site", data=np.zeros(N, np.int8))
        codes.attrs["categories"] = "/away"
        file["obs"].attrs["column-order"] = np.array(["site"], dtype=object)

    return change


def levels_by_region(file, outside):
    del file["obs"]["site"]
    codes = file["obs"].create_dataset("site", data=np.zeros(N, np.int8))
    codes.attrs["categories"] = file["obs/_index"].regionref[0:3]


def filled(file, outside):
    """Cells never written, all of which are one long text."""
    kind = h5py.string_dtype()
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1 << 16,))
    space = h5py.h5s.create_simple((1 << 21,))
    made = h5py.h5d.create(file.id, b"obs/t", h5py.h5t.py_create(kind, logical=True), space, plist)
    h5py.Dataset(made)[0] = "x" * 100_000
    file["obs"].attrs["column-order"] = np.array(["t"], dtype=object)


def sparse(key, value):
    """Other pointers, indices or cells of a sparse matrix."""

    def change(file, outside):
        data = value(file[f"X/{key}"][:])
        del file[f"X/{key}"]
        file[f"X/{key}"] = data

    return change


def plain_group(key):
    def change(file, outside):
        if key in file:
            del file[key]
        file.create_group(key)

    return change


def huge_attribute(file, outside):
    """Texts in attributes may be of any length."""
    group = file["obs"]
    for j in range(40):
        group.attrs.create(
            f"a{j}", np.array(["x" * 50_000] * 100, object), dtype=h5py.string_dtype()
        )


TEXT = h5py.string_dtype()
ODD = {
    "complex numbers": np.zeros(N, "c16"),
    "records": np.zeros(N, [("a", "f8")]),
    "opaque bytes": np.zeros(N, "V7"),
    "long doubles": np.zeros(N, np.longdouble),
    "half precision": np.full(N, np.inf, "f2"),
    "other byte order": np.arange(N, dtype=">f8"),
    "truth values": np.zeros(N, bool),
    "one cell": np.zeros(()),
    "three axes": np.zeros((N, 2, 2)),
    "fewer cells": np.zeros(N - 1),
    "more cells": np.zeros(N + 1),
    "no cells": np.zeros(0),
}
NULLABLE = {
    "a mask that is shorter": {"values": np.arange(N), "mask": np.zeros(N - 1, bool)},
    "a mask of numbers": {"values": np.arange(N), "mask": np.full(N, 7)},
    "a mask of text": {"values": np.arange(N), "mask": np.array([b"x"] * N)},
    "values of text": {"values": np.array([b"x"] * N), "mask": np.zeros(N, bool)},
    "values of floats": {"values": np.zeros(N), "mask": np.zeros(N, bool)},
    "no mask": {"values": np.arange(N)},
}
CATEGORIES = {
    "codes of floats": {"codes": np.full(N, np.nan), "categories": np.array([b"u"])},
    "codes below -1": {"codes": np.full(N, -5), "categories": np.array([b"u"])},
    "codes of text": {"codes": np.array([b"0"] * N), "categories": np.array([b"u"])},
    "levels twice": {"codes": np.zeros(N, int), "categories": np.array([b"u", b"u"])},
    "levels of NaN": {"codes": np.zeros(N, int), "categories": np.array([np.nan, np.nan])},
    "levels not UTF-8": {"codes": np.zeros(N, int), "categories": np.array([b"\xff"])},
    "levels in two axes": {"codes": np.zeros(N, int), "categories": np.zeros((2, 2))},
}
BOOL = h5py.h5t.py_create(np.dtype(bool), logical=True)


def wild_truth(file, outside):
    """Truth values that are neither true nor false: bytes of 255."""
    space = h5py.h5s.create_simple((N, 3))
    del file["X"]
    made = h5py.h5d.create(file.id, b"X", BOOL, space)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.full((N, 3), -1, "i1"), mtype=BOOL)


CASES = {
    **{f"few cells of {key} in a chunk of {size} MB, {filters} filters": Case(
        changed(wide_chunk(key, kind, (size << 20) // np.dtype(kind).itemsize, filters)), reader)
       for key, kind, reader in (("obs/z", "f8", "obs"), ("obs/_index", "S8", "mudata"))
       for size, filters in ((1000, 1), (400, 3))},
    **{f"column: {name}": Case(changed(put("obs/odd", data)), "obs", read=True) for name, data in ODD.items()},
    **{f"matrix: {name}": Case(changed(put("X", data, column=False)), "mudata", read=True) for name, data in ODD.items()},
    **{f"nullable: {name}": Case(changed(group_column("nullable-integer", **parts)), "obs", read=True)
       for name, parts in NULLABLE.items()},
    **{f"categories: {name}": Case(changed(group_column("categorical", **parts)), "obs", read=True)
       for name, parts in CATEGORIES.items()},
    **{f"levels by the name of a path, {kind}": Case(changed(levels_by_path(kind)), "obs")
       for kind in ("external", "soft", "inside")},
    "levels by a region": Case(changed(levels_by_region), "obs"),
    "one long text everywhere": Case(changed(filled), "obs"),
    "truth values of 255": Case(changed(wild_truth), "mudata", read=True),
    "cells of varying length": Case(changed(put("obs/odd", shape=(N,), dtype=h5py.vlen_dtype(np.int32))), "obs"),
    "references as cells": Case(changed(lambda f, o: put("obs/odd", np.array([f["X"].ref] * N, h5py.ref_dtype))(f, o)), "obs"),
    "unknown filter": Case(changed(put("obs/odd", np.zeros(N), compression=32015, allow_unknown_filter=True)), "obs", read=True),
    "attributes of 200 MB": Case(changed(huge_attribute), "obs", read=True),
    "names of columns as records": Case(changed(attribute("obs", "column-order", np.zeros(3, [("a", "f8")]))), "obs", read=True),
    "names of columns in two axes": Case(changed(attribute("obs", "column-order", np.array([["age"], ["site"]], object), dtype=TEXT)), "obs", read=True),
    "names of columns twice": Case(changed(attribute("obs", "column-order", np.array(["age", "age"], object), dtype=TEXT)), "obs"),
    "names of columns not UTF-8": Case(changed(attribute("obs", "column-order", np.array([b"\xff"]))), "obs"),
    "names of columns empty": Case(changed(attribute("obs", "column-order", h5py.Empty("f8"))), "obs", read=True),
    "index as nothing": Case(changed(attribute("obs", "_index", h5py.Empty("S1"))), "mudata"),
    "index not UTF-8": Case(changed(attribute("obs", "_index", np.bytes_(b"\xff"))), "mudata"),
    "kind of matrix as a list": Case(changed(attribute("X", "encoding-type", np.arange(3)), sparse=True), "mudata"),
    "shape of text": Case(changed(attribute("X", "shape", np.array([b"a", b"b"])), sparse=True), "mudata"),
    "shape beyond 64 bits": Case(changed(attribute("X", "shape", np.array([2**63, 2**63], "u8")), sparse=True), "mudata"),
    "shape of one number": Case(changed(attribute("X", "shape", 5), sparse=True), "mudata"),
    "axis of text": Case(changed(attribute("/", "axis", "x"), ".h5mu"), "mudata"),
    "axis of NaN": Case(changed(attribute("/", "axis", np.nan), ".h5mu"), "mudata"),
    "order of modalities as numbers": Case(changed(attribute("mod", "mod-order", np.arange(3)), ".h5mu"), "mudata", read=True),
    "pointers that fall": Case(changed(sparse("indptr", lambda v: v[::-1].copy()), sparse=True), "mudata"),
    "pointers of floats": Case(changed(sparse("indptr", lambda v: v * 1.0), sparse=True), "mudata", read=True),
    "pointers of NaN": Case(changed(sparse("indptr", lambda v: v * np.nan), sparse=True), "mudata"),
    "pointers beyond": Case(changed(sparse("indptr", lambda v: v + np.int64(2**40)), sparse=True), "mudata"),
    "pointers in two axes": Case(changed(sparse("indptr", lambda v: v[None]), sparse=True), "mudata"),
    "indices below 0": Case(changed(sparse("indices", lambda v: v - 5), sparse=True), "mudata"),
    "indices beyond": Case(changed(sparse("indices", lambda v: v + np.int64(2**31)), sparse=True), "mudata"),
    "indices twice": Case(changed(sparse("indices", lambda v: v * 0), sparse=True), "mudata", read=True),
    "cells of text": Case(changed(sparse("data", lambda v: v.astype("S4")), sparse=True), "mudata"),
    "no axis of cells": Case(changed(sparse("data", lambda v: v[0]), sparse=True), "mudata"),
    **{f"a group at {key}": Case(changed(plain_group(key)), "mudata") for key in ("X", "obs/_index", "var", "obs")},
}  # fmt: skip
