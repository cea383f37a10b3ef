"""The same fit again: the same bits in threads and in other processes, and nothing left behind."""

import gc
import multiprocessing
import threading
import tracemalloc
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from baldur import BaldurClassifier
from baldur.datasets import make_multiview
from baldur.paper import PaperClassifier
from constants import constants

MODELS = {
    "auto": lambda: BaldurClassifier(max_iter=5, random_state=0),
    "dense": lambda: BaldurClassifier(members=("pooled",)),
    "mean-field": lambda: PaperClassifier(max_iter=2),
}


def bits(name):
    """What one fit says of its rows, to the last bit."""
    sim = make_multiview(16, {"a": 4, "b": 6}, random_state=0)
    # A process that was started anew has its own copy of these constants.
    with constants(MOST_REPEATS=1, N_INNER=3):
        model = MODELS[name]().fit(sim.data, sim.target)
    return model.predict_proba(sim.data).tobytes() + model.coef_["a"].tobytes()


pytestmark = pytest.mark.filterwarnings("ignore::baldur.exceptions.NotConvergedWarning")


@pytest.fixture(scope="module", autouse=True)
def short(one_repeat, few_cycles):
    """In this process `bits` changes nothing, so threads may call it together."""


@pytest.fixture(scope="module")
def here():
    return [bits(name) for name in MODELS]


def test_threads_do_not_disturb_one_another(here):
    with ThreadPoolExecutor(len(MODELS)) as pool:
        assert list(pool.map(bits, MODELS)) == here


@pytest.mark.parametrize("way", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_other_processes_give_the_same_bits(here, way):
    if way not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {way} here")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(way)) as pool:
        assert list(pool.map(bits, MODELS)) == here


@pytest.mark.parametrize("name", MODELS)
def test_repeated_fits_leave_nothing_behind(here, name):
    def held():
        gc.collect()
        files = len(list(Path("/proc/self/fd").glob("*")))
        numbers = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
        arrays = tracemalloc.take_snapshot().filter_traces([numbers]).traces
        return sum(one.size for one in arrays), threading.active_count(), files

    tracemalloc.start()
    try:
        # Caches that follow what is traced are filled by the first.
        bits(name)
        memory, *others = held()
        bits(name)
        later, *others_later = held()
    finally:
        tracemalloc.stop()
    # Fewer is no leak: what earlier tests held may go meanwhile.
    assert all(now <= before for now, before in zip(others_later, others, strict=True))
    # The numbers of arrays; a fit that kept its data would show more.
    assert later - memory < 16 * 10 * 8
