"""Number of threads that BLAS uses during a fit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

MANY_SAMPLES = 500
"""Samples from which BLAS keeps as many threads as it has."""


def few_blas_threads(n_samples: int) -> threadpool_limits:
    """Limit BLAS to one thread for small samples.

    Small matrices gain nothing from threads and lose much when cores are busy. The limit does not
    depend on the number of fits at the same time, because sums depend on the number of threads.
    """
    return threadpool_limits(limits=1 if n_samples < MANY_SAMPLES else None)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run numerical libraries with one thread, torch included where it has been imported."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else None
    with threadpool_limits(limits=1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(before)
