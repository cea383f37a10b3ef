"""A reproduction whose process is killed: the same command continues to the same bytes."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from baldur.reproduction import reproduce
from reproduction.conftest import only_rows

SCALE = 0.0005
DATE = "1700000000"
NOT_COMPARED = ("log.txt", "jobs")
"""These hold times: when a line was written, and how long a fit took."""


def contents(folder):
    """Return every file of a folder with its bytes, hidden files included."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in files
        if not set(NOT_COMPARED) & set(file.relative_to(folder).parts)
    }


def jobs_in(folder):
    """Return the finished jobs, and when each was written."""
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("results/jobs/*/*.job")}


def kill_when(pid, alive, reached):
    """Send SIGKILL when a condition is met; the process must be at work until then."""
    while not reached():
        assert alive(), "the run ended before it could be killed"
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)


def with_file(folder, name):
    """Return the moment at which a file or folder is there."""
    return lambda: (folder / name).exists()


def with_jobs(folder, least):
    """Return the moment at which so many jobs are finished."""
    return lambda: len(jobs_in(folder)) >= least


def check_killed(folder, start, moments):
    """Run once without and once with interruptions, in the same place, and compare all bytes.

    Returns
    -------
    list of str
        Names of the files that were compared.
    """
    process, alive, wait = start()
    assert wait() == 0
    whole = folder.rename(folder.with_name("whole"))
    for reached in moments:
        before = jobs_in(folder)
        process, alive, wait = start()
        kill_when(process.pid, alive, reached)
        assert wait() == -signal.SIGKILL
        assert not (folder / "reproduction.html").exists()
        # What was finished is still there, and was not done again.
        assert before.items() <= jobs_in(folder).items()
    process, alive, wait = start()
    assert wait() == 0
    assert before.items() <= jobs_in(folder).items()
    found, expected = contents(folder), contents(whole)
    assert {"reproduction.html", "reproduction.md", "results/report.html"} < set(expected)
    assert list(found) == list(expected)
    assert [name for name in expected if found[name] != expected[name]] == []
    return list(expected)


def test_killed_and_continued_gives_the_same_bytes(tmp_path, monkeypatch, few_resamples):
    """Two models instead of thirteen, in forked processes, which need not import anything."""
    only_rows(monkeypatch, ["LSVM-l1", "MV-PLS"])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", DATE)
    folder = tmp_path / "run"

    def start():
        process = multiprocessing.get_context("fork").Process(
            target=reproduce, args=("biofind", folder), kwargs={"scale": SCALE, "quick": True}
        )
        process.start()

        def wait():
            process.join()
            return process.exitcode

        return process, process.is_alive, wait

    check_killed(folder, start, [with_file(folder, "sleep.csv"), with_jobs(folder, 3)])


@pytest.mark.slow
def test_the_killed_command_continues_to_the_same_bytes(tmp_path):
    """The command with all thirteen models."""
    folder = tmp_path / "run"
    code = "from baldur.cli import main; main()"
    options = ("--quick", "--scale", str(SCALE), "--quiet", "--out", str(folder))
    command = [sys.executable, "-c", code, "reproduce", "biofind", *options]

    def start():
        process = subprocess.Popen(command, env={**os.environ, "SOURCE_DATE_EPOCH": DATE})
        return process, lambda: process.poll() is None, process.wait

    moments = [
        with_file(folder, "sleep.csv"),
        *(with_jobs(folder, least) for least in (1, 20, 50)),
        with_file(folder, "results/report.html"),
        with_file(folder, "figures"),
    ]
    compared = check_killed(folder, start, moments)
    assert sum(name.startswith("figures/") for name in compared) == 2
    print(f"killed {len(moments)} times; {len(compared)} files are the same bytes")
