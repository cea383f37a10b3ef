"""Interrupts from the keyboard reach the study and never its workers."""

import signal
import threading

import joblib
import pytest
from joblib.externals.loky import get_reusable_executor

from baldur.evaluation.run import _interrupts_held_back


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
