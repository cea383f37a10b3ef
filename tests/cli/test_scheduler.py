"""`--scheduler` on real processes over loopback: same bytes, lost workers, a lost scheduler."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest

from baldur.study import evaluate_study, load_study
from cli.conftest import environment
from cli.places import hidden, jobs_in, results, wait_for_jobs

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def quick_intervals():
    """None here: a command of its own draws as often as commands do, and must give the same."""


@contextlib.contextmanager
def local_cluster():
    """Two worker processes, reached over loopback."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("kills", [0, 1, 2])
def test_a_local_cluster_whose_workers_are_killed(steady, tmp_path, kills):
    study, whole = steady
    left = [4, 14][:kills]
    with local_cluster() as client:

        def kill_in_the_middle(state):
            if left and state.done >= left[0]:
                # One that was killed comes back by itself.
                client.wait_for_workers(2, timeout=300)
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
                left.pop(0)

        evaluate_study(
            load_study(study), output=tmp_path, client=client, progress=kill_in_the_middle
        )
    assert left == []
    assert results(tmp_path) == whole
    assert hidden(tmp_path) == []


def test_the_command_on_a_local_cluster(run, steady, tmp_path):
    study, whole = steady
    with local_cluster() as client:
        address = client.scheduler_info()["address"]
        done = run("evaluate", study, "--scheduler", address, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert results(tmp_path) == whole


def test_the_scheduler_gone_is_one_line_and_the_study_continues(run, start, steady, tmp_path):
    study, whole = steady
    out = tmp_path / "out"
    out.mkdir()
    here = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", *here],
        stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    found = (re.search(r"Scheduler at: +(tcp://\S+)", line) for line in scheduler.stderr)
    address = next(hit[1] for hit in found if hit)
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny",
         "--nthreads", "1", *here],
        stderr=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    try:
        process = start("evaluate", study, "--scheduler", address, "--out", out, "--quiet")
        wait_for_jobs(process, out, 4)
        scheduler.kill()
        _, err = process.communicate(timeout=120)
    finally:
        for one in (worker, scheduler):
            one.kill()
            one.wait()
        scheduler.stderr.close()
    assert process.returncode == 2
    assert err.startswith(f"Error: The Dask scheduler at {address} is gone")
    assert len(err.strip().splitlines()) == 1
    before = jobs_in(out)
    assert len(before) >= 4
    done = run("evaluate", study, "--scheduler", address, "--out", out, "--quiet")
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: No Dask scheduler answers at {address}")
    assert len(done.stderr.strip().splitlines()) == 1
    # On one machine, from where the cluster stopped.
    done = run("evaluate", study, "--out", out, "--quiet")
    assert done.returncode == 0, done.stderr
    assert results(out) == whole
    assert before.items() <= jobs_in(out).items()
