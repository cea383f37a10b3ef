"""Small and read-only file systems, and what lies in an output folder."""

import contextlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import time

import pytest

from baldur.cli import main
from baldur.exceptions import UnfinishedError
from baldur.study import evaluate_study, load_study


def results(folder):
    """Every file of a set of results; the log has times in it."""
    files = [f for f in folder.iterdir() if f.is_file() and not f.name.startswith(".")]
    return {f.name: f.read_bytes() for f in sorted(files) if f.name != "log.txt"}


def jobs_in(folder):
    """Finished jobs, and when each was written."""
    return {f.name: f.stat().st_mtime_ns for f in folder.glob("jobs/*/*.job")}


def hidden(folder):
    """What unfinished work left behind."""
    return [f for f in folder.glob("**/.*") if f.name not in (".lock", ".study.json")]


def copy_of(study, folder):
    """A study of one's own to change, without results."""
    shutil.copytree(study.parent, folder, ignore=shutil.ignore_patterns("whole"))
    return folder / study.name


def forked(study, out, **keywords):
    """Start an evaluation in a process of its own, which need not import everything again."""
    process = multiprocessing.get_context("fork").Process(
        target=_evaluate, args=(study, out), kwargs=keywords
    )
    process.start()
    return process


def forked_command(arguments, said):
    """Start the command likewise; what it says goes to the files `said`.out and `said`.err."""
    process = multiprocessing.get_context("fork").Process(target=_command, args=(arguments, said))
    process.start()
    return process


def _command(arguments, said):
    sys.argv = ["baldur", *map(str, arguments)]
    with (
        open(f"{said}.out", "w") as out,
        open(f"{said}.err", "w") as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        main()


def _evaluate(study, out, **keywords):
    try:
        evaluate_study(load_study(study), output=out, **keywords)
    except UnfinishedError:
        sys.exit(3)


def wait_for_jobs(process, folder, count):
    """Wait until that many jobs are done; the process must still be running then."""
    end = time.monotonic() + 200
    alive = process.is_alive if hasattr(process, "is_alive") else lambda: process.poll() is None
    while len(jobs_in(folder)) < count and alive() and time.monotonic() < end:
        time.sleep(0.005)
    assert alive()


class Disk:
    """A file system in memory, of a size that can change."""

    def __init__(self, path, size):
        self.path = path
        path.mkdir()
        self._mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs")

    def _mount(self, *options):
        command = ["mount", *options, str(self.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")

    def resize(self, size):
        self._mount("-o", f"remount,rw,size={size}")

    def read_only(self):
        self._mount("-o", "remount,ro")

    def fill(self, leave=0):
        """Fill it up to a number of bytes."""
        free = shutil.disk_usage(self.path).free - leave
        with open(self.path / "filler", "wb") as file:
            file.write(bytes(max(0, free)))

    def close(self):
        with contextlib.suppress(OSError):
            subprocess.run(["umount", "-l", str(self.path)], capture_output=True, check=False)


@pytest.fixture
def disk(tmp_path):
    """Make small disks; they are gone afterwards."""
    if shutil.which("mount") is None or os.name != "posix":
        pytest.skip("there is no mount command here")
    made = []

    def make(size, name="disk"):
        made.append(Disk(tmp_path / name, size))
        return made[-1]

    yield make
    for one in made:
        one.close()
