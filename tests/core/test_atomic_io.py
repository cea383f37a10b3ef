"""A file, or a set of files, is the old one or the new one, whatever happens in between."""

import errno
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from baldur.core import atomic_io
from baldur.core.atomic_io import (
    atomic_file,
    check_writable,
    folder_lock,
    make_folder,
    replace_files,
    write_atomically,
)
from baldur.exceptions import OutputError
from faults import StoppedError, stopped_after

SOURCE = Path(atomic_io.__file__).parents[1]
KNOWN = {"a", "b", "c"}


def visible(folder):
    return {f.name: f.read_bytes() for f in folder.iterdir() if not f.name.startswith(".")}


def process(code, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], env=environment, text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip


# -- one file ------------------------------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file_and_no_parts(tmp_path, monkeypatch):
    write_atomically(tmp_path / "a.csv", b"old")

    def broken(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    for step in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(atomic_io.os, step, broken)
            with pytest.raises(OutputError, match=r"a\.csv cannot be written \(No space.*free"):
                write_atomically(tmp_path / "a.csv", b"new")
        assert [f.name for f in tmp_path.iterdir()] == ["a.csv"]
        assert (tmp_path / "a.csv").read_bytes() == b"old"


def test_an_error_about_another_file_stays_what_it_is(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "a") as file:
        file.write((tmp_path / "absent").read_bytes())
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "a").symlink_to(tmp_path / "victim")
    write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert (tmp_path / "a").read_bytes() == b"new"
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OutputError), folder_lock(tmp_path / "sub"):
        pass


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for act in (
        lambda: make_folder(tmp_path / "file" / "sub"),
        lambda: write_atomically(tmp_path / "absent" / "a", b""),
        lambda: check_writable(tmp_path / "absent"),
        lambda: replace_files(tmp_path / "absent", {"a": b""}, KNOWN),
    ):
        with pytest.raises(OutputError, match=str(tmp_path)) as caught:
            act()
        assert len(str(caught.value).splitlines()) == 1


# -- a set of files ------------------------------------------------------------------------------


def test_a_new_set_leaves_nothing_of_the_old_one_and_others_alone(tmp_path):
    (tmp_path / "mine").write_bytes(b"kept")
    replace_files(tmp_path, {"a": b"1", "b": b"1"}, KNOWN)
    replace_files(tmp_path, {"b": b"2", "c": b"2"}, KNOWN)
    assert visible(tmp_path) == {"b": b"2", "c": b"2", "mine": b"kept"}
    assert {f.name for f in tmp_path.iterdir() if f.name.startswith(".")} == {".lock"}
    with pytest.raises(ValueError, match=r"only known file names, but got \['d'\]"):
        replace_files(tmp_path, {"d": b""}, KNOWN)


def test_stopped_at_any_step_a_set_is_never_mixed_and_nothing_is_lost(tmp_path, monkeypatch):
    """Let every single call to the system be the last one, in turn."""
    old, new = {"a": b"old", "b": b"old"}, {"b": b"new", "c": b"new"}
    stopped = 0
    for last in range(1000):
        folder = tmp_path / str(last)
        folder.mkdir()
        replace_files(folder, old, KNOWN)
        try:
            with stopped_after(monkeypatch, last):
                replace_files(folder, new, KNOWN)
        except StoppedError:
            stopped += 1
        else:
            assert visible(folder) == new
            break
        # Never a mixture ...
        found = visible(folder)
        assert found.items() <= old.items() or found.items() <= new.items()
        # ... the files that are not in their place are complete in a hidden folder ...
        hidden = {f.name: f.read_bytes() for f in folder.glob(".[nm]*/*")}
        assert found | hidden in (old, new) or (found | hidden).items() >= new.items()
        # ... and the next call tidies up.
        replace_files(folder, {"a": b"third"}, KNOWN)
        assert visible(folder) == {"a": b"third"}
        assert {f.name for f in folder.iterdir()} == {"a", ".lock"}
    assert stopped >= 12


def test_an_unfinished_set_from_elsewhere_moves_plain_known_files_only(tmp_path):
    (tmp_path / "victim").write_bytes(b"mine")
    moving = tmp_path / ".moving"
    moving.mkdir()
    (moving / "a").symlink_to(tmp_path / "victim")
    (moving / "b").write_bytes(b"left")
    (moving / "other").write_bytes(b"no")
    replace_files(tmp_path, {"c": b"new"}, KNOWN)
    assert visible(tmp_path) == {"c": b"new", "victim": b"mine"}


@pytest.mark.parametrize("name", [".new", ".moving"])
def test_a_link_in_place_of_an_unfinished_set_is_removed_and_its_target_left_alone(tmp_path, name):
    mine, folder = tmp_path / "mine", tmp_path / "results"
    mine.mkdir()
    folder.mkdir()
    (mine / "a").write_bytes(b"mine")
    (folder / name).symlink_to(mine)
    replace_files(folder, {"b": b"new"}, KNOWN)
    assert visible(mine) == {"a": b"mine"}
    assert visible(folder) == {"b": b"new"}


# -- locks ---------------------------------------------------------------------------------------

HOLD = """
import sys, time
from baldur.core.atomic_io import folder_lock
with folder_lock(sys.argv[1]) as held:
    print(held, flush=True)
    time.sleep(60)
"""


def test_a_lock_ends_with_its_holder_however_it_ends(tmp_path):
    holder = process(HOLD, tmp_path)
    assert holder.stdout.readline().strip() == "True"
    with folder_lock(tmp_path, wait=False) as held:
        assert not held
    os.kill(holder.pid, signal.SIGKILL)
    started = time.monotonic()
    with folder_lock(tmp_path) as held:
        assert held
    assert time.monotonic() - started < 5
    holder.wait()
    holder.stdout.close()


def test_a_lock_is_released_by_another_thread_than_the_one_that_acquired_it(tmp_path):
    stack = ExitStack()
    with ThreadPoolExecutor(1) as other:
        assert other.submit(stack.enter_context, folder_lock(tmp_path)).result()
    stack.close()
    with folder_lock(tmp_path, wait=False) as held:
        assert held


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_nobody_is_sure_to_be_alone(tmp_path, monkeypatch, number):
    """As on network file systems that do not support locks."""

    def unsupported(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", unsupported)
    with folder_lock(tmp_path) as held:
        assert not held
    replace_files(tmp_path, {"a": b"1"}, KNOWN)
    assert visible(tmp_path) == {"a": b"1"}
