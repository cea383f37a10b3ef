""".h5ad and .h5mu: names that lead outside, cells never written, texts that stand for thousands."""

import numpy as np
import pandas as pd

from mudata_versions import without_pulling
from robustness.hostile.base import CANARY, Case

N = 50


def changed(change, ending=".h5ad", sparse=False):
    """Write a good file and let `change(file, outside)` spoil it."""

    def make(folder, outside):
        import anndata
        import h5py
        from scipy.sparse import csr_matrix

        secret = outside / "secret.bin"
        secret.write_bytes((CANARY.encode() + b"\n") * 100)
        cells = np.arange(N * 3.0).reshape(N, 3).astype(np.float32)
        obs = pd.DataFrame({"age": np.arange(N)}, index=[f"s{i}" for i in range(N)])
        made = anndata.AnnData(csr_matrix(cells) if sparse else cells, obs=obs)
        made.obs["site"] = pd.Categorical(["u", "v"] * (N // 2))
        path = folder / f"f{ending}"
        if ending == ".h5mu":
            import mudata

            with without_pulling():
                mudata.MuData({"a": made}).write_h5mu(path)
        else:
            made.write_h5ad(path)
        with h5py.File(path, "a") as file:
            change(file, outside)
        return path

    return make


def foreign(group, key, outside, n=N, dtype="S12"):
    """Put a data set whose cells are those of a file outside."""
    size = n * np.dtype(dtype).itemsize
    made = group.create_dataset(key, (n,), dtype, external=[(str(outside / "secret.bin"), 0, size)])
    made.attrs["encoding-type"], made.attrs["encoding-version"] = "string-array", "0.2.0"
    return made


def index_elsewhere(table):
    def change(file, outside):
        foreign(file, "hidden", outside, len(file[table][file[table].attrs["_index"]]))
        file[table].attrs["_index"] = "/hidden"

    return change


def index_foreign(file, outside):
    del file["obs"]["_index"]
    foreign(file["obs"], "_index", outside)


def column_elsewhere(table):
    def change(file, outside):
        n = len(file[table][file[table].attrs["_index"]])
        foreign(file, "hidden", outside, n)
        file[table].attrs["column-order"] = np.array(["/hidden"], dtype=object)

    return change


def column_by_dots(file, outside):
    foreign(file, "hidden", outside)
    file["obs"].attrs["column-order"] = np.array(["./../hidden"], dtype=object)


def categories_elsewhere(file, outside):
    hidden = foreign(file, "hidden", outside, 2)
    del file["obs"]["site"]
    codes = file["obs"].create_dataset("site", data=np.zeros(N, np.int8))
    codes.attrs["categories"] = hidden.ref


def categories_foreign(file, outside):
    del file["obs/site/categories"]
    foreign(file["obs/site"], "categories", outside, 2)


def linked(key, kind):
    def change(file, outside):
        import h5py

        if key in file:
            del file[key]
        target = str(outside / "secret.bin")
        links = {
            "external": h5py.ExternalLink(target, "/"),
            "soft": h5py.SoftLink("/obs"),
            "own": h5py.ExternalLink(file.filename, "/obs"),
        }
        file[key] = links[kind]

    return change


def virtual(file, outside):
    import h5py

    del file["X"]
    layout = h5py.VirtualLayout((N, 3), "f4")
    layout[:] = h5py.VirtualSource(str(outside / "secret.bin"), "X", shape=(N, 3))
    file.create_virtual_dataset("X", layout)


def foreign_matrix(file, outside):
    del file["X"]
    file.create_dataset("X", (N, 3), "f4", external=[(str(outside / "secret.bin"), 0, N * 12)])


def unwritten(kind, n):
    def change(file, outside):
        for j in range(20):
            made = file["obs"].create_dataset(f"u{j}", (n,), kind, chunks=(1 << 16,))
            made.attrs["encoding-type"], made.attrs["encoding-version"] = "array", "0.2.0"
        file["obs"].attrs["column-order"] = np.array([f"u{j}" for j in range(20)], dtype=object)

    return change


def unwritten_index(file, outside):
    for table in ("obs", "var"):
        del file[table]["_index"]
        file[table].create_dataset("_index", (10**9,), "S8", chunks=(1024,))


def unwritten_matrix(file, outside):
    del file["X"]
    file.create_dataset("X", (10**6, 10**6), "f4", chunks=(128, 128))


def zeros(kind, n, key="obs/z"):
    """Cells that compress a thousand times."""

    def change(file, outside):
        for j in range(4):
            made = file.create_dataset(
                f"{key}{j}", (n,), kind, chunks=(min(n, 1 << 20),), compression="gzip"
            )
            block = np.zeros(min(n, 1 << 20), kind)
            for start in range(0, n, 1 << 20):
                made[start : start + (1 << 20)] = block[: n - start]
        file["obs"].attrs["column-order"] = np.array([f"z{j}" for j in range(4)], dtype=object)

    return change


def shared_texts(n, length, where="obs/t"):
    """One long text in the heap, to which every cell refers."""

    def change(file, outside):
        import h5py

        kind = h5py.string_dtype()
        one = file.create_dataset("one", (1,), kind, chunks=(1,))
        one[0] = "x" * length
        file.flush()
        _, reference = one.id.read_direct_chunk((0,))
        if where in file:
            del file[where]
        step = min(n, 1 << 16)
        made = file.create_dataset(where, (n,), kind, chunks=(step,))
        for start in range(0, n, step):
            made.id.write_direct_chunk((start,), bytes(reference) * step)
        made.attrs["encoding-type"], made.attrs["encoding-version"] = "string-array", "0.2.0"
        if where == "obs/t":
            file["obs"].attrs["column-order"] = np.array(["t"], dtype=object)

    return change


def huge_chunk(file, outside):
    made = file.create_dataset("obs/z", (1 << 29,), "i1", chunks=(1 << 29,), compression="gzip")
    made[:] = np.zeros(1 << 29, np.int8)
    file["obs"].attrs["column-order"] = np.array(["z"], dtype=object)


def circle(file, outside):
    for group in (file["obs"], file["uns"] if "uns" in file else file.create_group("uns")):
        for j in range(30):
            group[f"again{j}"] = file["/"] if j % 2 else group
    file["X2"] = file["/"]


def deep(file, outside):
    group = file["obs"]
    for _ in range(2000):
        group = group.create_group("g")


def many_members(file, outside):
    for j in range(3000):
        file["obs"].create_group(f"g{j}")


def attribute(key, value):
    def change(file, outside):
        file["obs"].attrs[key] = value

    return change


def shared_attribute(file, outside):
    import h5py

    names = np.array(["x" * 50_000] * 300, dtype=object)
    file["obs"].attrs.create("column-order", names, dtype=h5py.string_dtype())


def column_of(kind):
    def change(file, outside):
        group = file["obs"].create_group("odd")
        group.attrs["encoding-type"], group.attrs["encoding-version"] = kind, "0.2.0"
        group.attrs["_index"], group.attrs["column-order"] = "/obs/_index", np.array(["/X"], object)
        file["obs"].attrs["column-order"] = np.array(["odd"], dtype=object)

    return change


def cells_of(data):
    def change(file, outside):
        file["obs"]["odd"] = data
        file["obs"].attrs["column-order"] = np.array(["odd"], dtype=object)

    return change


def wild_codes(file, outside):
    file["obs/site/codes"][3] = 100


def sparse_cells(key, n, kind):
    def change(file, outside):
        del file[f"X/{key}"]
        file.create_dataset(f"X/{key}", (n,), kind, chunks=(1 << 16,))

    return change


def modality_order(file, outside):
    foreign(file, "hidden", outside)
    file["mod"].attrs["mod-order"] = np.array(["/hidden", "/", "..", "mod"], dtype=object)


def modality_name(file, outside):
    file["mod"].move("a", "a\x1b[2J")
    del file["mod"].attrs["mod-order"]


def escape_id(file, outside):
    file["obs/_index"][2] = "s\x1b[2J"


REFERENCE = np.zeros(N, dtype=[("a", "f8"), ("b", "S4")])

CASES = {
    "index of obs elsewhere": Case(changed(index_elsewhere("obs")), "mudata"),
    "index of var elsewhere": Case(changed(index_elsewhere("var")), "mudata"),
    "index of obs elsewhere, obs": Case(changed(index_elsewhere("obs")), "obs"),
    "index elsewhere in .h5mu": Case(changed(index_elsewhere("obs"), ".h5mu"), "mudata"),
    "index of foreign cells": Case(changed(index_foreign), "mudata"),
    "column of obs elsewhere": Case(changed(column_elsewhere("obs")), "obs"),
    "column of var elsewhere": Case(changed(column_elsewhere("var")), "mudata"),
    "column by dots": Case(changed(column_by_dots), "obs"),
    "levels elsewhere": Case(changed(categories_elsewhere), "obs"),
    "levels of foreign cells": Case(changed(categories_foreign), "obs"),
    **{
        f"{kind} link at {key}": Case(changed(linked(key, kind)), "mudata")
        for key in ("X", "obs", "var", "mod", "obs/_index", "var/_index")
        for kind in ("external", "soft", "own")
    },
    "external link at modality": Case(changed(linked("mod/a", "external"), ".h5mu"), "mudata"),
    "virtual matrix": Case(changed(virtual), "mudata"),
    "foreign matrix": Case(changed(foreign_matrix), "mudata"),
    "unwritten numbers": Case(changed(unwritten("f8", 10**8)), "obs"),
    "unwritten bytes": Case(changed(unwritten("S1000", 10**6)), "obs"),
    "unwritten index": Case(changed(unwritten_index), "mudata"),
    "unwritten matrix": Case(changed(unwritten_matrix), "mudata"),
    "packed zeros": Case(changed(zeros("f8", 1 << 25)), "obs"),
    "packed wide bytes": Case(changed(zeros("S20000", 1 << 15)), "obs"),
    "shared texts": Case(changed(shared_texts(1 << 20, 10_000)), "obs"),
    "shared texts, default": Case(changed(shared_texts(1 << 20, 10_000)), "obs", {"max_bytes": None}),
    "shared long texts": Case(changed(shared_texts(1 << 12, 5_000_000)), "obs"),
    "shared ids": Case(changed(shared_texts(1 << 20, 10_000, "obs/_index")), "mudata"),
    "shared features": Case(changed(shared_texts(1 << 20, 10_000, "var/_index")), "mudata"),
    "a chunk of 512 MB": Case(changed(huge_chunk), "obs"),
    "circle of links": Case(changed(circle), "mudata", read=True),
    "deep groups": Case(changed(deep), "obs", read=True),
    "many members": Case(changed(many_members), "obs", read=True),
    "index that is a number": Case(changed(attribute("_index", 5)), "mudata"),
    "index that is a list": Case(changed(attribute("_index", np.arange(5))), "mudata"),
    "index that is a slash": Case(changed(attribute("_index", "/")), "mudata"),
    "index that is nothing": Case(changed(attribute("_index", "")), "mudata"),
    "columns that are numbers": Case(changed(attribute("column-order", np.arange(5))), "obs"),
    "columns of long names": Case(changed(shared_attribute), "obs"),
    "table in a column": Case(changed(column_of("dataframe")), "obs"),
    "array of unknown kind": Case(changed(column_of("awkward-array")), "obs"),
    "pickle in a column": Case(changed(column_of("pickle")), "obs"),
    "records in a column": Case(changed(cells_of(REFERENCE)), "obs"),
    "matrix in a column": Case(changed(cells_of(np.zeros((N, 3)))), "obs"),
    "wild codes": Case(changed(wild_codes), "obs"),
    "unwritten indptr": Case(changed(sparse_cells("indptr", 10**9, "i8"), sparse=True), "mudata"),
    "unwritten indices": Case(changed(sparse_cells("indices", 10**9, "i8"), sparse=True), "mudata"),
    "unwritten data": Case(changed(sparse_cells("data", 10**9, "f4"), sparse=True), "mudata"),
    "order of modalities": Case(changed(modality_order, ".h5mu"), "mudata", read=True),
    "escape codes in a modality": Case(changed(modality_name, ".h5mu"), "mudata"),
    "escape codes in an id": Case(changed(escape_id), "mudata"),
    "trusted by the study": Case(changed(shared_texts(1 << 16, 10_000)), "view", {"trusted": True}),
}  # fmt: skip
