"""Really killed processes: the same command continues, and the results are the same bytes."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from cli.places import forked, hidden, jobs_in, results, wait_for_jobs


def kill_when(process, folder, count, seconds):
    """Kill -9 once `count` jobs are there and a little later; False if it had ended before."""
    end = time.monotonic() + 120
    while len(jobs_in(folder)) < count and time.monotonic() < end:
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    time.sleep(seconds)
    if process.poll() is not None:
        return False
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return True


def alive(session):
    """Processes of a session that are not waiting to be reaped."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(status.parent.name)
    return found


def test_killed_then_interrupted_with_two_processes(call, start, steady, tmp_path, monkeypatch):
    """One folder for all, as every start of the command imports everything three times."""
    study, whole = steady
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = start("evaluate", study, "--out", out, "--jobs", 2)
    assert kill_when(process, out, 3, 0.02)
    left = check_workers_leave(process, tmp_path)
    before = jobs_in(out)
    process = start("evaluate", study, "--out", out, "--jobs", 2)
    end = time.monotonic() + 120
    while jobs_in(out) == before and time.monotonic() < end and process.poll() is None:
        time.sleep(0.01)
    assert not left.exists()  # the next study removes it
    # The terminal sends it to the whole group, workers included.
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command continues" in err
    assert "Traceback" not in err
    # What was finished is still there, and was not done again.
    assert before.items() <= jobs_in(out).items()
    code, _, err = call("evaluate", study, "--out", out, "--jobs", 1)
    assert code == 0, err
    assert results(out) == whole


def check_workers_leave(process, temporary):
    """Workers end when their study is killed; returns what it laid out for them."""
    if Path("/proc/self/stat").exists():
        end = time.monotonic() + 60
        while alive(process.pid) and time.monotonic() < end:
            time.sleep(0.1)
        assert alive(process.pid) == []
    left = list(temporary.glob("baldur-data-*"))
    assert len(left) == 1
    return left[0]


@pytest.mark.slow
def test_killed_three_times_with_two_processes(call, start, steady, tmp_path):
    study, whole = steady
    out = tmp_path / "out"
    out.mkdir()
    rng = np.random.default_rng(0)
    for _ in range(3):
        before = jobs_in(out)
        process = start("evaluate", study, "--out", out, "--jobs", 2)
        more = len(before) + int(rng.integers(1, 4))
        assert kill_when(process, out, more, float(rng.uniform(0, 0.05)))
        assert before.items() <= jobs_in(out).items()
    code, _, err = call("evaluate", study, "--out", out, "--jobs", 1)
    assert code == 0, err
    assert results(out) == whole


@pytest.mark.slow
def test_killed_twenty_times(steady, tmp_path):
    study, whole = steady
    rng = np.random.default_rng(0)
    killed = 0
    for i in range(4):
        out = tmp_path / f"out{i}"
        out.mkdir()
        for _ in range(5):
            before = jobs_in(out)
            process = forked(study, out)
            wait_for_jobs(process, out, len(before) + int(rng.integers(1, 4)))
            time.sleep(float(rng.uniform(0, 0.05)))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            killed += process.exitcode == -signal.SIGKILL
            assert before.items() <= jobs_in(out).items()
        process = forked(study, out)
        process.join()
        assert process.exitcode == 0
        assert results(out) == whole
        assert hidden(out) == []
    print(f"killed {killed} times; all result files byte-identical, no finished job done again")
    assert killed == 20
