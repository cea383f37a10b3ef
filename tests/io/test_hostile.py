"""Damaged, mislabelled and hostile files: an error that names the file, in seconds, no code run."""

import io
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur.exceptions import InputError
from baldur.io import read_fam, read_mudata, read_nifti, read_plink, read_table
from mudata_versions import without_pulling

READERS = {
    ".csv": read_table,
    ".tsv": read_table,
    ".csv.gz": read_table,
    ".parquet": read_table,
    ".xlsx": read_table,
    ".npz": read_table,
    ".npy": read_table,
    ".bed": read_plink,
    ".pgen": read_plink,
    ".nii": lambda path: read_nifti([path]),
    ".nii.gz": lambda path: read_nifti([path]),
    ".h5mu": read_mudata,
    ".h5ad": read_mudata,
}


def read_all(path, ending):
    """Read a file and every cell of it: lazy readers may find damage only then."""
    made = READERS[ending](path)
    for name in made.view_names:
        made.view(name).raw()
    return made


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """One valid file per ending."""
    nib = pytest.importorskip("nibabel")
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    to_bed = pytest.importorskip("bed_reader").to_bed
    pgenlib = pytest.importorskip("pgenlib")
    folder = tmp_path_factory.mktemp("good")
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(6, 5))
    frame = pd.DataFrame(cells, index=[f"s{i}" for i in range(6)]).rename(columns="c{}".format)
    frame.to_csv(folder / "f.csv")
    frame.to_csv(folder / "f.tsv", sep="\t")
    frame.to_csv(folder / "f.csv.gz")
    frame.to_parquet(folder / "f.parquet")
    frame.to_excel(folder / "f.xlsx")
    np.savez_compressed(folder / "f.npz", X=cells)
    np.save(folder / "f.npy", cells)
    G = rng.integers(0, 3, (6, 40)).astype(np.int8)
    to_bed(folder / "f.bed", G)
    with pgenlib.PgenWriter(
        str(folder / "f.pgen").encode(), 6, variant_ct=40, nonref_flags=False
    ) as writer:
        for column in np.ascontiguousarray(G.T):
            writer.append_biallelic(column)
    (folder / "f.psam").write_text("#IID\n" + "".join(f"p{i}\n" for i in range(6)))
    (folder / "f.pvar").write_text(
        "#CHROM\tPOS\tID\tREF\tALT\n" + "".join(f"1\t{j}\tv{j}\tA\tC\n" for j in range(40))
    )
    volume = nib.Nifti1Image(rng.normal(size=(5, 6, 7)), np.eye(4))
    nib.save(volume, folder / "f.nii")
    nib.save(volume, folder / "f.nii.gz")
    made = anndata.AnnData(cells.astype(np.float32), obs=pd.DataFrame(index=frame.index))
    made.write_h5ad(folder / "f.h5ad")
    with without_pulling():
        mudata.MuData({"a": made}).write_h5mu(folder / "f.h5mu")
    return folder


def beside(good, folder, ending):
    """Copy the small files a format needs, so that only the main one is wrong."""
    for other in {".bed": (".bim", ".fam"), ".pgen": (".pvar", ".psam")}.get(ending, ()):
        (folder / f"f{other}").write_bytes((good / f"f{other}").read_bytes())
    return folder / f"f{ending}"


@pytest.mark.parametrize("ending", READERS)
def test_the_good_ones_are_read(good, ending):
    assert read_all(good / f"f{ending}", ending).shape[0] in (1, 6)


@pytest.mark.parametrize("ending", READERS)
def test_random_bytes(good, tmp_path, ending):
    rng = np.random.default_rng(0)
    for size in (1, 3, 100, 5000):
        path = beside(good, tmp_path, ending)
        path.write_bytes(rng.bytes(size))
        with pytest.raises(InputError, match=r"f\."):
            read_all(path, ending)


@pytest.mark.parametrize("ending", READERS)
def test_empty_missing_and_folders(good, tmp_path, ending):
    path = beside(good, tmp_path, ending)
    with pytest.raises(InputError, match="no such file"):
        read_all(path, ending)
    path.touch()
    with pytest.raises(InputError, match="empty"):
        read_all(path, ending)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match="folder"):
        read_all(path, ending)


# HDF5 files are read by another process first, which takes most of a second.
SLOWER = (".h5ad", ".h5mu")
BINARY = sorted(set(READERS) - {".csv", ".tsv", *SLOWER})


@pytest.mark.parametrize("ending", BINARY)
@settings(max_examples=30, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_cut_short(good, ending, share):
    check_cut(good, ending, share)


@pytest.mark.parametrize("ending", SLOWER)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
def test_hdf5_cut_short(good, ending, share):
    check_cut(good, ending, share)


def check_cut(good, ending, share):
    whole = (good / f"f{ending}").read_bytes()
    cut = whole[: int(share * len(whole))]
    with tempfile.TemporaryDirectory() as folder:
        path = beside(good, Path(folder), ending)
        path.write_bytes(cut)
        try:
            found = read_all(path, ending)
        except InputError:
            return
        # Some formats end in bytes that carry no cells: then all cells are there.
        expected = read_all(good / f"f{ending}", ending)
        for name in found.view_names:
            np.testing.assert_array_equal(found.view(name).raw(), expected.view(name).raw())


def test_text_cut_inside_a_line(good, tmp_path):
    whole = (good / "f.csv").read_text()
    (tmp_path / "f.csv").write_text(whole[: whole.rindex(",")])
    with pytest.raises(InputError, match=r"line 7 has 5 fields and the header has 6.*cut short"):
        read_table(tmp_path / "f.csv")


flips = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1)


@pytest.mark.parametrize("ending", BINARY)
@settings(max_examples=30, deadline=None)
@given(changes=flips)
def test_flipped_bytes_never_crash(good, ending, changes):
    check_flips(good, ending, changes)


@pytest.mark.parametrize("ending", SLOWER)
@settings(max_examples=5, deadline=None)
@given(changes=flips)
def test_flipped_bytes_of_hdf5_never_crash(good, ending, changes):
    check_flips(good, ending, changes)


def check_flips(good, ending, changes):
    whole = bytearray((good / f"f{ending}").read_bytes())
    for place, value in changes:
        whole[int(place * len(whole))] = value
    with tempfile.TemporaryDirectory() as folder:
        path = beside(good, Path(folder), ending)
        path.write_bytes(bytes(whole))
        try:
            outcome = type(read_all(path, ending)).__name__
        except InputError as error:
            outcome = str(error)
    assert outcome == "MultiView" or "f." in outcome or "View" in outcome


ALIKE = {".csv": (".csv", ".tsv"), ".h5ad": (".h5ad", ".h5mu")}
MISLABELLED = [
    (ending, other)
    for ending in READERS
    for other in (".csv", ".xlsx", ".parquet", ".bed", ".nii", ".h5ad")
    if ending not in ALIKE.get(other, (other,))
]


@pytest.mark.parametrize(("ending", "other"), MISLABELLED)
def test_mislabelled(good, tmp_path, ending, other):
    path = beside(good, tmp_path, ending)
    path.write_bytes((good / f"f{other}").read_bytes())
    with pytest.raises(InputError):
        read_all(path, ending)


@pytest.mark.parametrize("ending", [".bim", ".fam", ".pvar", ".psam"])
def test_lists_that_do_not_belong(good, tmp_path, ending):
    main = ".bed" if ending in (".bim", ".fam") else ".pgen"
    path = beside(good, tmp_path, main)
    path.write_bytes((good / path.name).read_bytes())
    lines = (good / f"f{ending}").read_text().splitlines(keepends=True)
    (tmp_path / f"f{ending}").write_text("".join(lines[:-1]))
    with pytest.raises(InputError, match="do not belong together"):
        read_plink(path)
    for junk in (os.urandom(500), b"a b\n", b"", b"\0" * 100):
        (tmp_path / f"f{ending}").write_bytes(junk)
        with pytest.raises(InputError):
            read_plink(path)


def test_bytes_of_a_bed_file(good, tmp_path):
    path = beside(good, tmp_path, ".bed")
    whole = (good / "f.bed").read_bytes()
    path.write_bytes(whole[:2] + b"\x00" + whole[3:])
    with pytest.raises(InputError, match="person by person"):
        read_plink(path)
    path.write_bytes(b"chr1\t10\t20\n")
    with pytest.raises(InputError, match="genome intervals"):
        read_plink(path)
    path.with_suffix(".fam").unlink()
    with pytest.raises(InputError, match=r"f\.fam: expected the list of people of f\.bed"):
        read_plink(path)
    with pytest.raises(InputError, match="no such file"):
        read_fam(path)


class Mine:
    """Runs a command when it is unpickled."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (self.target,)


def test_pickles_are_not_opened(tmp_path):
    trap = tmp_path / "trap"
    array = np.array([[Mine(str(trap))]], dtype=object)
    np.savez(tmp_path / "a.npz", X=array)
    np.savez(tmp_path / "b.npz", X=np.eye(2), features=array[0])
    np.save(tmp_path / "a.npy", array)
    for name in ("a.npz", "b.npz", "a.npy"):
        with pytest.raises(InputError, match="pickled objects"):
            read_table(tmp_path / name)
    payload = pickle.dumps(Mine(str(trap)))
    (tmp_path / "c.npy").write_bytes(payload)
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("X.npy", payload)
    for name in ("c.npz", "c.npy"):
        with pytest.raises(InputError):
            read_table(tmp_path / name)
    assert not trap.exists()
    np.load(tmp_path / "a.npy", allow_pickle=True)
    assert trap.exists(), "the trap would have worked"


def npy_header(shape, dtype="<f8"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"shape": shape, "fortran_order": False, "descr": dtype}
    )
    return stream.getvalue()


def write_bombs(folder):
    """Small files that stand for more than may be read, some for many gigabytes."""
    nib = pytest.importorskip("nibabel")
    openpyxl = pytest.importorskip("openpyxl")
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    zeros = bytes(1 << 20)
    with (
        zipfile.ZipFile(folder / "zip.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("X.npy", "w") as member,
    ):
        member.write(npy_header((40, 1 << 20)))
        for _ in range(320):
            member.write(zeros)
    with zipfile.ZipFile(folder / "claim.npz", "w") as archive:
        archive.writestr("X.npy", npy_header((1 << 30, 1 << 30)) + zeros)
    (folder / "claim.npy").write_bytes(npy_header((1 << 30, 1 << 30)) + zeros)
    (folder / "negative.npy").write_bytes(npy_header((-1, 5)) + zeros)
    book = openpyxl.Workbook()
    book.active["A1"], book.active["B1"] = "id", "a"
    book.active["XFD1048576"] = 1
    book.save(folder / "far.xlsx")
    book = openpyxl.Workbook()
    book.active.append(["id", "a"])
    book.save(folder / "plain.xlsx")
    laughs = '<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY a{i} "{f"&a{i - 1 if i else str()};" * 10}">' for i in range(10)
    )
    with (
        zipfile.ZipFile(folder / "plain.xlsx") as old,
        zipfile.ZipFile(folder / "laughs.xlsx", "w") as new,
    ):
        for entry in old.infolist():
            cells = old.read(entry)
            new.writestr(entry, laughs.encode() + b"]>" if "sheet1" in entry.filename else cells)
    with (
        zipfile.ZipFile(folder / "plain.xlsx") as old,
        zipfile.ZipFile(folder / "zip.xlsx", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new,
    ):
        for entry in old.infolist():
            if "sheet1" in entry.filename:
                with new.open(entry.filename, "w") as member:
                    for _ in range(320):
                        member.write(b" " * (1 << 20))
            else:
                new.writestr(entry, old.read(entry))
    (folder / "plain.xlsx").unlink()
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000_000, np.int32)), ["x"])
    table = pa.table({"id": column, **{f"c{j}": column for j in range(60)}})
    pq.write_table(table, folder / "runs.parquet")
    header = nib.Nifti1Header()
    header.set_data_dtype(np.float32)
    header.set_data_shape((30_000, 30_000, 30_000))
    (folder / "claim.nii").write_bytes(header.binaryblock + b"\0" * 1000)
    header.set_data_shape((4, 4, 4))
    header["vox_offset"] = 2e9
    (folder / "offset.nii").write_bytes(header.binaryblock + b"\0" * 1000)
    (folder / "line.csv").write_bytes(b"id,a\n1," + b"x" * (1 << 24))


BOMBS = """
import sys, time
from pathlib import Path
import nibabel, pyarrow.parquet, openpyxl
from baldur.exceptions import InputError
from baldur.io import read_nifti, read_table

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

before = peak()
for path in sorted(Path(sys.argv[1]).iterdir()):
    start = time.perf_counter()
    try:
        if path.suffix == ".nii":
            read_nifti([path])
        else:
            read_table(path, max_bytes=1 << 28)
        outcome = "READ"
    except InputError:
        outcome = "refused"
    print(path.name, outcome, f"{time.perf_counter() - start:.2f}", f"{peak() - before:.0f}")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_bombs_are_refused_in_seconds_and_in_little_memory(tmp_path):
    write_bombs(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", BOMBS, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len(rows) == len(list(tmp_path.iterdir())) == 11
    for name, outcome, seconds, megabytes in rows:
        assert outcome == "refused", name
        assert float(seconds) < 10, name
        assert float(megabytes) < 200, name


@pytest.mark.parametrize(
    "file", ["/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/self/environ"]
)
def test_devices_are_not_tables(tmp_path, file):
    if not os.path.exists(file):
        pytest.skip(f"no {file}")
    (tmp_path / "x.csv").symlink_to(file)
    with pytest.raises(InputError):
        read_table(tmp_path / "x.csv")


@pytest.mark.parametrize("file", ["http://example.org/a.csv", "s3://b/a.csv", None, 3, b"a\0.csv"])
def test_what_is_no_path(file):
    with pytest.raises(InputError):
        read_table(file)
