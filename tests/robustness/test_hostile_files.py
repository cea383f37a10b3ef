"""Six hundred hostile files over all readers: nothing outside is read or written, no reader takes
more than its budget, and each file is read harmlessly or refused with one of our errors."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from robustness.hostile import CASES
from robustness.hostile.base import SMALL

for library in ("anndata", "mudata", "h5py", "nibabel", "nilearn", "openpyxl", "pyarrow",
                "bed_reader", "pgenlib"):  # fmt: skip
    pytest.importorskip(library)
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="measures by /proc and fork"
)

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
SECONDS = 30
# What Python itself needs on the way: buffers, modules loaded late.
SLACK = 100
# An interpreter with numpy and the library of the format.
INTERPRETER = 250
DEFAULT = 4096

FAST = (
    "text: zeros in .csv.gz",
    "text: one line of cells in .csv.gz",
    "arrays: wide names",
    "arrays: header of 4 GB in .npy",
    "arrays: names beyond Unicode",
    "workbooks: empty cells, 83 KB",
    "workbooks: empty cells in one row",
    "hdf5: index of obs elsewhere",
    "hdf5: column of var elsewhere",
    "hdf5: unwritten numbers",
    "images: voxels of 0.005 mm",
    "images: claims in .nii.gz",
    "plink: link at .bim",
    "plink: link at .psam",
    "parquet_pages: an unknown codec",
    "image_headers: a million extensions",
    "image_headers: name of label inf",
    "plink_lists: people: id twice",
    "hdf5_types: levels by the name of a path, external",
    "model_folders: arrays: truth values of 255",
    "mutations: parquet, 3",
    "mutations: hdf5, 3",
    "plink: long name of a variant",
    "studies: output ../outside/precious",
    "studies: log through a link",
    "studies: samples through a link",
)


def snapshot(folder):
    """Every file below a folder, with its content."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(
            os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        ).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def run(cases, folder, trace=None):
    """Make files and read them; returns the reports and what changed or was opened outside."""
    tasks, kept = [], {}
    for number, (name, case) in enumerate(cases.items()):
        inside, outside = folder / str(number) / "inside", folder / str(number) / "outside"
        inside.mkdir(parents=True)
        outside.mkdir()
        path = case.make(inside, outside)
        kept[name] = (outside, snapshot(outside))
        tasks.append(
            {"name": name, "path": str(path), "reader": case.reader, "options": case.options}
        )
    command = [sys.executable, str(HERE / "hostile" / "driver.py")]
    if trace is not None:
        calls = "trace=open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat"
        command = [
            "strace",
            "-f",
            "-y",
            "-qq",
            "-s",
            "300",
            "-e",
            calls,
            "-o",
            str(trace),
            *command,
        ]
    done = subprocess.run(
        command,
        input="".join(json.dumps(task) + "\n" for task in tasks),
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1",
             "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    reports = {found["name"]: found for found in map(json.loads, done.stdout.splitlines())}
    assert list(reports) == list(cases), done.stderr[-2000:]
    changed = [name for name, (outside, before) in kept.items() if snapshot(outside) != before]
    opened = []
    if trace is not None:
        with open(trace, encoding="utf-8", errors="replace") as lines:
            opened = strays(lines, folder)
    return reports, changed, opened


def strays(lines, folder):
    """Return calls of a trace that opened a file outside, or changed anything but in `folder`."""
    # Descriptors are shown with the file they stand for, links followed.
    outside = re.compile(rf"= \d+<{re.escape(str(folder))}/\d+/outside/")
    changing = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|\b(creat|unlink|rename|mkdir)\w*\(")
    # Of the process itself, and semaphores of libraries.
    harmless = re.compile(rf"{re.escape(str(folder))}/\d+/inside|/proc/self/|/dev/(null|shm|tty)")
    return [
        line.strip()
        for line in lines
        if outside.search(line)
        or (changing.search(line) and "= -1" not in line and not harmless.search(line))
    ]


def budget(case):
    """Megabytes the reader of a case may take."""
    given = case.options.get("max_bytes", SMALL)
    if case.reader == "study":
        given = None
    return DEFAULT if given is None or given > SMALL else given / 2**20


def faults(cases, reports):
    """What a report has against a case."""
    found = []
    for name, case in cases.items():
        report = reports[name]
        allowed = ("read", "refused") if case.read else ("refused",)
        limit = budget(case)
        if report["outcome"] not in allowed:
            found.append(f"{name}: {report['outcome']}: {report['said']}")
        if report["seconds"] > SECONDS:
            found.append(f"{name}: {report['seconds']:.1f} s")
        if report["megabytes"] > limit + SLACK or report["below"] > limit + INTERPRETER:
            found.append(f"{name}: {report['megabytes']:.0f} MB, below {report['below']:.0f} MB")
    return found


def test_there_are_six_hundred_over_all_readers():
    assert len(CASES) >= 600
    assert {case.reader for case in CASES.values()} == {
        "table", "text", "plink", "nifti", "mudata", "obs", "view", "study", "model"
    }  # fmt: skip


def test_strays_are_seen_in_a_trace():
    lines = [
        '7 openat(AT_FDCWD</>, "a", O_RDONLY) = 3</t/4/outside/a>',
        '7 unlink("/home/a") = 0',
        '7 openat(AT_FDCWD</>, "/etc/a", O_WRONLY) = 3</etc/a>',
        '7 openat(AT_FDCWD</>, "/t/4/inside/x", O_RDWR) = 3</t/4/inside/x>',
        '7 openat(AT_FDCWD</>, "/usr/creation.py", O_RDONLY) = 3</usr/creation.py>',
        '7 mkdir("/x") = -1 EACCES (Permission denied)',
    ]
    assert strays(lines, Path("/t")) == lines[:3]


def test_some_hostile_files(tmp_path):
    cases = {name: CASES[name] for name in FAST}
    reports, changed, _ = run(cases, tmp_path)
    assert not changed
    assert not faults(cases, reports)


@pytest.mark.slow
def test_all_hostile_files(tmp_path):
    trace = tmp_path / "trace.txt" if shutil.which("strace") else None
    reports, changed, opened = run(CASES, tmp_path, trace)
    for name, report in reports.items():
        print(
            f"{name:55s} {report['outcome']:10s} {report['seconds']:6.1f} s "
            f"{report['megabytes']:6.0f} MB {report['below']:6.0f} MB  {report['said'][-90:]!a}"
        )
    outcomes = [report["outcome"] for report in reports.values()]
    print({outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))})
    assert not changed
    assert not opened
    assert not faults(CASES, reports)
