"""Temporary data of a running study stay, wherever it runs; those of a dead one go."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import baldur
from baldur.evaluation import shared_data
from baldur.evaluation.shared_data import (
    open_data,
    remove_orphans,
    scratch_folder,
    share_data,
    unpack_data,
)
from baldur.views import MultiView

SOURCE = Path(baldur.__file__).parents[1]
# The module without its package, which imports everything that a study may need.
HOLD = f"""
import os, sys, time, types
for name in ("baldur.evaluation", "baldur.evaluation.run"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [{str(Path(shared_data.__file__).parent)!r}]
from baldur.evaluation.shared_data import scratch_folder
with scratch_folder() as folder:
    (folder / "data").write_text("cells")
    print(os.getpid(), folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def hold(*before):
    return subprocess.Popen(
        [*before, sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)}, start_new_session=True,
    )  # fmt: skip


def check_held_then_left(process):
    number, path = process.stdout.readline().split()
    remove_orphans()
    assert (Path(path) / "data").read_text() == "cells"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return int(number), Path(path)


def test_a_folder_goes_with_its_process(temporary):
    with scratch_folder() as own:
        _, path = check_held_then_left(hold())
        remove_orphans()
        assert not path.exists()
        assert own.is_dir()
    assert list(temporary.iterdir()) == []


def test_a_container_with_numbers_of_its_own_keeps_its_folder(temporary):
    """Its process 1 is not ours; judged by the number it would be taken for another, or dead."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare command here")
    apart = ("unshare", "--pid", "--fork", "--kill-child")
    trial = subprocess.run([*apart, "true"], capture_output=True, text=True, check=False)
    if trial.returncode:
        pytest.skip(f"processes with numbers of their own are not permitted: {trial.stderr}")
    number, path = check_held_then_left(hold(*apart))
    assert number < 10
    end = time.monotonic() + 20
    while path.exists() and time.monotonic() < end:
        # The one inside ends a moment after the one that was waited for.
        remove_orphans()
        time.sleep(0.05)
    assert not path.exists()


def test_another_machine_keeps_its_folder(temporary, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(shared_data, "_kernel", lambda: "f" * 12)
        with scratch_folder() as folder:
            name = folder.name
    elsewhere = temporary / name
    elsewhere.mkdir()
    remove_orphans()
    assert elsewhere.is_dir()


def test_other_processes_open_the_same_cells(constants, tmp_path):
    constants(MAP_BYTES=1000)
    rng = np.random.default_rng(0)
    wide = np.asfortranarray(rng.normal(size=(30, 40)))
    np.save(tmp_path / "on_disk.npy", wide)
    mapped = np.load(tmp_path / "on_disk.npy", mmap_mode="r")
    present = rng.random(30) < 0.5
    views = {"wide": wide, "small": rng.normal(size=(30, 2)), "disk": mapped, "cut": mapped[:, 3:9]}
    mv = MultiView(views, present={"small": present})[rng.permutation(30)[:20]]
    with share_data(mv) as shared:
        here = shared.data
        there = open_data(shared.path)
        for copy in (here, there):
            assert copy.sample_ids.tolist() == mv.sample_ids.tolist()
            for name in mv.view_names:
                np.testing.assert_array_equal(copy.view(name).read(), mv.view(name).read())
        assert not there.view("wide").source.in_memory
        assert there.view("small").source.in_memory
    open_data.cache_clear()


def test_what_comes_along_lands_as_it_was(constants, tmp_path):
    constants(MAP_BYTES=1000)
    rng = np.random.default_rng(0)
    wide = np.asfortranarray(rng.normal(size=(30, 40)))
    np.save(tmp_path / "on_disk.npy", wide)
    mapped = np.load(tmp_path / "on_disk.npy", mmap_mode="r")
    mv = MultiView({"wide": wide.copy("C"), "disk": mapped, "small": wide[:, :1]})
    with share_data(mv[rng.permutation(30)[:20]]) as shared:
        assert len(shared.files) == 2
        content = shared.pickled(shared.files)
        assert len(content) > 2 * wide.nbytes > len(shared.pickled())
        (tmp_path / "worker").mkdir()
        landed = unpack_data(content, tmp_path / "worker")
        for name in ("wide", "disk"):
            here, there = shared.data.view(name), landed.view(name)
            np.testing.assert_array_equal(here.read(), there.read())
            assert not there.source.in_memory
            mine, theirs = here.source.base.array, there.source.base.array
            assert theirs.flags.c_contiguous == mine.flags.c_contiguous
