"""One small action for every extra of the distribution.

Run in an empty folder outside the repository with the interpreter of an environment that has the
installed wheel:

- ``python -I try_extra.py report``: the extra is installed, and its action must succeed;
- ``python -I try_extra.py --without report``: it is not, and the action must fail with the error
  that names the extra.

Files that only the library of an extra can write are written by a function of their own, which is
not called where the library is absent: the readers must say so before they look into the file.
"""

import argparse
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import baldur
from baldur.exceptions import MissingExtraError

VALUES = np.arange(12.0).reshape(4, 3)
PEOPLE = ["p0", "p1", "p2", "p3"]


def small_model() -> tuple[baldur.BaldurClassifier, baldur.MultiView]:
    """Return a fitted classifier and its samples."""
    sim = baldur.datasets.make_multiview(40, {"clinical": 4, "genes": 10}, random_state=0)
    model = baldur.BaldurClassifier(members=("pooled",), random_state=0)
    return model.fit(sim.data, sim.target), sim.data


def check(X: baldur.MultiView, view: str) -> None:
    """Check that a reader found the values and people that were written."""
    np.testing.assert_array_equal(X.view(view).read(), VALUES)
    assert X.sample_ids.tolist() == PEOPLE


# -- genetics ------------------------------------------------------------------------------------


def plink_2() -> None:
    """Read a ``.pgen`` file, written here byte by byte."""
    # Records of fixed width: the numbers of variants and people, a flag, and the genotypes.
    header = bytes([0x6C, 0x1B, 0x02]) + struct.pack("<2I", 1, 4) + bytes([0x40])
    Path("h.pgen").write_bytes(header + bytes([0b01100100]))
    Path("h.psam").write_text("#IID\n" + "\n".join(PEOPLE) + "\n")
    Path("h.pvar").write_text("#CHROM\tPOS\tID\tREF\tALT\n1\t100\trs0\tA\tC\n")
    X = baldur.io.read_plink("h.pgen")
    np.testing.assert_array_equal(X.view("genotypes").raw()[:, 0], [0, 1, 2, 1])


# -- imaging -------------------------------------------------------------------------------------


def write_image(file: str, values: np.ndarray) -> None:
    """Write a NIfTI-1 image of 3 x 1 x 1 voxels without a library."""
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, 3, 1, 1, 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, 64, 64)
    struct.pack_into("<8f", header, 76, 1, 1, 1, 1, 1, 1, 1, 1)
    struct.pack_into("<2f", header, 108, 352, 1)
    struct.pack_into("<2h", header, 252, 0, 1)
    for row in range(3):
        struct.pack_into("<4f", header, 280 + 16 * row, *np.eye(3, 4)[row])
    header[344:348] = b"n+1\0"
    Path(file).write_bytes(bytes(header) + values.astype("<f8").tobytes())


def nifti() -> None:
    """Read images as voxels, and average regions of an atlas."""
    for person, values in zip(PEOPLE, VALUES, strict=True):
        write_image(f"{person}.nii", values)
    X = baldur.io.read_nifti([f"{person}.nii" for person in PEOPLE], sample_ids=PEOPLE)
    check(X, "images")
    write_image("atlas.nii", np.array([1.0, 1.0, 2.0]))
    regions = baldur.io.read_nifti([f"{person}.nii" for person in PEOPLE], atlas="atlas.nii")
    np.testing.assert_allclose(regions.view("images").read()[:, 0], VALUES[:, :2].mean(axis=1))


# -- mudata --------------------------------------------------------------------------------------


def write_mudata() -> None:
    """Write a file with one modality."""
    import anndata
    import mudata

    obs, var = pd.DataFrame(index=PEOPLE), pd.DataFrame(index=["g0", "g1", "g2"])
    mudata.MuData({"rna": anndata.AnnData(VALUES, obs=obs, var=var)}).write("d.h5mu")


def h5mu() -> None:
    """Read a MuData file."""
    check(baldur.io.read_mudata("d.h5mu"), "rna")


# -- tables --------------------------------------------------------------------------------------


def write_tables() -> None:
    """Write the same table as Parquet and as an Excel sheet."""
    table = pd.DataFrame(VALUES, columns=list("abc")).assign(person=PEOPLE).set_index("person")
    table.reset_index().to_parquet("t.parquet", index=False)
    table.to_excel("t.xlsx")


def parquet() -> None:
    """Read a Parquet file."""
    check(baldur.io.read_table("t.parquet", name="t"), "t")


def excel() -> None:
    """Read an Excel sheet."""
    check(baldur.io.read_table("t.xlsx", name="t"), "t")


# -- the others ----------------------------------------------------------------------------------


def local_cluster() -> Any:
    """Return a Dask cluster of one worker within this process."""
    import distributed

    return distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None)


def cluster() -> None:
    """Run a comparison on a Dask cluster."""
    from baldur.evaluation.dask_runner import connect

    sim = baldur.datasets.make_multiview(40, {"a": 4}, random_state=0)
    keywords = {"outer": 2, "inner": 2, "random_state": 0}
    here = baldur.evaluation.nested_cv(["Ridge logistic"], sim.data, sim.target, **keywords)
    with local_cluster() as local, connect(local.scheduler_address) as client:
        there = baldur.evaluation.nested_cv(
            ["Ridge logistic"], sim.data, sim.target, client=client, **keywords
        )
    pd.testing.assert_frame_equal(here.predictions, there.predictions)


def page() -> None:
    """Write the report page of a model."""
    model, _ = small_model()
    written = Path(model.report("page.html"))
    assert "<svg" in written.read_text(encoding="utf-8")


def figure() -> None:
    """Draw a figure."""
    model, _ = small_model()
    baldur.plots.PathDisplay.from_estimator(model).save("path.png")
    assert Path("path.png").stat().st_size > 1000


def onnx_graph() -> None:
    """Write an ONNX graph."""
    model, _ = small_model()
    model.to_onnx("model.onnx")
    import onnx

    onnx.checker.check_model(onnx.load("model.onnx"))


def gaussian_process() -> None:
    """Fit the sparse Gaussian process of the paper's baselines."""
    sim = baldur.datasets.make_multiview(40, {"a": 4}, random_state=0)
    model = baldur.baselines.BASELINES["SGP+ARD"].make(random_state=0).fit(sim.data, sim.target)
    assert model.predict_proba(sim.data).shape == (40, 2)


@dataclass(frozen=True)
class Extra:
    """Actions that need an extra, and a function that writes their files with its libraries."""

    actions: tuple[Callable[[], None], ...]
    write: Callable[[], None] | None = None
    files: tuple[str, ...] = ()


EXTRAS = {
    "genetics": Extra((plink_2,)),
    "imaging": Extra((nifti,)),
    "mudata": Extra((h5mu,), write_mudata, ("d.h5mu",)),
    "tables": Extra((parquet, excel), write_tables, ("t.parquet", "t.xlsx")),
    "dask": Extra((cluster,)),
    "report": Extra((page, figure)),
    "onnx": Extra((onnx_graph,)),
    "torch": Extra((gaussian_process,)),
}


def try_with(name: str) -> None:
    """Perform the actions of an extra that is installed."""
    extra = EXTRAS[name]
    if extra.write is not None:
        extra.write()
    for action in extra.actions:
        action()
        print(f"with {name}: {action.__doc__}")


def try_without(name: str) -> None:
    """Check that every action of an absent extra fails with the error that names the extra."""
    for file in EXTRAS[name].files:
        Path(file).write_bytes(b"placeholder")
    for action in EXTRAS[name].actions:
        try:
            action()
        except MissingExtraError as error:
            said = str(error)
        else:
            said = f"{action.__name__} succeeded without the extra"
        assert f"pip install 'baldur-multiview[{name}]'" in said, said
        print(f"without {name}: {said}")


def main() -> None:
    """Try the extras named on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("extras", nargs="+", choices=EXTRAS)
    parser.add_argument("--without", action="store_true", help="the extras are not installed")
    asked = parser.parse_args()
    for name in asked.extras:
        (try_without if asked.without else try_with)(name)


if __name__ == "__main__":
    main()
