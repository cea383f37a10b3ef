"""Running jobs: interrupts reach the study and never its workers, and the time that is left."""

import signal
import threading

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor

from baldur.evaluation import Model
from baldur.evaluation.job_store import JobResult
from baldur.evaluation.jobs import Job, Task
from baldur.evaluation.progress import Progress
from baldur.evaluation.run import _interrupts_held_back
from baldur.evaluation.splits import Fold


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no signal mask")
def test_workers_started_while_interrupts_are_held_back_never_receive_them():
    # Workers of earlier tests would be used again.
    get_reusable_executor().shutdown(wait=True)
    parallel = joblib.Parallel(n_jobs=2, batch_size=1, return_as="generator")
    ask = joblib.delayed(signal.pthread_sigmask)
    with _interrupts_held_back():
        masks = parallel(ask(signal.SIG_BLOCK, []) for _ in range(6))
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert all(signal.SIGINT in mask for mask in masks)


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no signal mask")
def test_an_interrupt_that_was_held_back_arrives_afterwards():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append("interrupt"))
    try:
        with _interrupts_held_back():
            # To this thread: another one, such as that of a test runner, has its own mask.
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            assert seen == []
        assert seen == ["interrupt"]
    finally:
        signal.signal(signal.SIGINT, before)


def count(state, model, kind, seconds, times=1):
    nothing = np.zeros(0)
    task = Task(Model(model, None), 0, nothing, Fold(0, 0, nothing, nothing))
    for _ in range(times):
        job = Job(f"job {state.done}", kind, task, {}, 0, [], "auc", 2)
        state._count(job, JobResult({"seconds": seconds}))


def test_the_time_left_is_that_of_each_model():
    """A slow model that is done does not make the others slow."""
    state = Progress(inner=5)
    for model, kind, jobs in (("slow", "final", 5), ("fast", "setting", 20), ("fast", "final", 5)):
        state._expect(model, kind, jobs)
    count(state, "slow", "final", 60.0)
    assert state.seconds_left() is None
    count(state, "fast", "setting", 0.4)
    # A setting is fitted on four fifths of the rows five times.
    assert state.seconds_left() == pytest.approx(4 * 60 + 19 * 0.4 + 5 * 0.1)
    count(state, "slow", "final", 60.0, times=4)
    assert state.seconds_left() == pytest.approx(19 * 0.4 + 5 * 0.1)
    count(state, "fast", "setting", 0.4, times=19)
    # Its settings failed, so that there are no final fits.
    state._expect("fast", "final", -5)
    assert (state.seconds_left(), state.total, state.done) == (0.0, 25, 25)
