"""Jobs on Dask: the same results as on one machine, whatever happens to workers and scheduler."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import baldur
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.evaluation.job_store import JobStore
from baldur.exceptions import InputError, OutputError, StudyError
from evaluation import spies

distributed = pytest.importorskip("distributed")

from baldur.evaluation import dask_runner  # noqa: E402 needs distributed

SOURCE = Path(baldur.__file__).parents[1]
MODELS = {"Ridge logistic": {"C": [0.1, 1.0]}, "Dummy": None, "broken": spies.Fails()}
FOLDS = {"outer": 2, "inner": 2}

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def client():
    """Two workers in this process, reached without a network."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=False, protocol="inproc",
            dashboard_address=None,
        ) as made,
        distributed.Client(made, set_as_default=False) as one,
    ):  # fmt: skip
        yield one


@pytest.fixture(scope="module")
def sim():
    return make_multiview(40, {"a": 3, "b": 5}, random_state=0)


def no_worker_has_data(client):
    held = client.run(lambda dask_worker: [n for n in dask_worker.plugins if "baldur-" in n])
    return all(not names for names in held.values())


def frames(result):
    return [f.to_csv() for f in (result.table(), result.predictions, result.selection)]


def test_the_same_bytes_and_the_same_store(client, sim, tmp_path):
    here = nested_cv(MODELS, sim.data, sim.target, store=tmp_path / "here", **FOLDS)
    states = []
    there = nested_cv(
        MODELS, sim.data, sim.target, client=client, store=tmp_path / "there",
        progress=lambda s: states.append((s.reused, s.done, s.total)), **FOLDS,
    )  # fmt: skip
    assert frames(here) == frames(there)
    assert here.failures == there.failures
    assert set(here.failures) == {"broken"}
    files = [sorted(f.name for f in (tmp_path / d).glob("*/*.job")) for d in ("here", "there")]
    assert files[0] == files[1]
    assert states[-1] == (0, len(files[1]), len(files[1]))
    # Without a cluster the finished jobs of the cluster are taken; only what failed is tried again.
    again = nested_cv(
        MODELS, sim.data, sim.target, store=tmp_path / "there",
        progress=lambda s: states.append((s.reused, s.done, s.total)), **FOLDS,
    )  # fmt: skip
    assert frames(again) == frames(here)
    assert states[-1][0] == len(files[1]) - FOLDS["outer"]
    assert no_worker_has_data(client)


def test_view_sets_on_a_cluster(client, sim):
    models = {"Ridge logistic": {"C": [1.0]}}
    here, there = (
        nested_cv(models, sim.data, sim.target, baseline_views=["a"], client=c, **FOLDS)
        for c in (None, client)
    )
    assert len(here.models) == 3
    assert frames(here) == frames(there)


def test_more_jobs_than_are_sent_ahead(client, sim, constants):
    constants(_FEWEST_AHEAD=3, _AHEAD_PER_THREAD=1)
    models = {"Ridge logistic": {"C": [0.01, 0.1, 1.0, 10.0]}}
    here = nested_cv(models, sim.data, sim.target, **FOLDS)
    assert frames(nested_cv(models, sim.data, sim.target, client=client, **FOLDS)) == frames(here)


@pytest.mark.parametrize("seen", [True, False])
def test_large_matrices_go_by_path_or_come_along(client, sim, monkeypatch, seen, constants):
    """Mapped from a file on the worker too, so that the same tiles give the same bits."""
    constants(MAP_BYTES=100)
    here = nested_cv(MODELS, sim.data, sim.target, **FOLDS)
    if not seen:
        monkeypatch.setattr(dask_runner, "_unreadable", lambda files: files)
    sizes = []
    real = dask_runner.unpack_data

    def note(content, folder):
        sizes.append(len(content))
        return real(content, folder)

    monkeypatch.setattr(dask_runner, "unpack_data", note)
    assert frames(nested_cv(MODELS, sim.data, sim.target, client=client, **FOLDS)) == frames(here)
    assert (max(sizes) < sim.data.view("b").read().nbytes + 2000) or not seen
    assert sizes


def test_a_full_disk_here_stops_the_cluster_and_the_rest_is_kept(
    client, sim, tmp_path, monkeypatch
):
    real = JobStore.save

    def save(self, key, outcome):
        if len(list(tmp_path.glob("*/*.job"))) >= 3:
            raise OutputError("jobs cannot be written (No space left on device); free some.")
        real(self, key, outcome)

    with monkeypatch.context() as patch:
        patch.setattr(JobStore, "save", save)
        with pytest.raises(OutputError, match="No space"):
            nested_cv(MODELS, sim.data, sim.target, client=client, store=tmp_path, **FOLDS)
    assert len(list(tmp_path.glob("*/*.job"))) == 3
    assert no_worker_has_data(client)
    states = []
    found = nested_cv(
        MODELS, sim.data, sim.target, client=client, store=tmp_path,
        progress=lambda s: states.append(s.reused), **FOLDS,
    )  # fmt: skip
    assert states[-1] >= 2
    assert frames(found) == frames(nested_cv(MODELS, sim.data, sim.target, **FOLDS))


def test_other_versions_and_workers_without_data_are_refused(client, sim, monkeypatch):
    with pytest.raises(StudyError, match=r"numpy .*, but this process has 0\.0"):
        dask_runner._check_environment({"numpy": "0.0"})

    def no_disk(content, folder):
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(dask_runner, "unpack_data", no_disk)
        with pytest.raises(StudyError, match="could not open the data"):
            nested_cv(MODELS, sim.data, sim.target, client=client, **FOLDS)


def test_wrong_clients_are_refused(sim):
    with pytest.raises(InputError, match=r"distributed\.Client, but got str"):
        nested_cv(MODELS, sim.data, sim.target, client="tcp://127.0.0.1:1", **FOLDS)
    with pytest.raises(StudyError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:1 "):
        dask_runner.connect("tcp://127.0.0.1:1", timeout=0.5)
    with pytest.raises(StudyError, match="nonsense"):
        dask_runner.connect("nonsense://x", timeout=0.5)


def test_the_ordinary_path_does_not_import_dask():
    code = """
import sys
import baldur.cli, baldur.study
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
sim = make_multiview(40, {"a": 3}, random_state=0)
nested_cv(["Dummy", "Ridge logistic"], sim.data, sim.target, outer=2, inner=2)
print(sorted(m for m in sys.modules if m.split(".")[0] in ("dask", "distributed")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
