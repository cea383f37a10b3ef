"""Number of threads that BLAS uses during a fit."""

from __future__ import annotations

from threadpoolctl import threadpool_limits

MANY_SAMPLES = 500
"""Samples from which BLAS keeps as many threads as it has."""


def few_blas_threads(n_samples: int) -> threadpool_limits:
    """Limit BLAS to one thread for small samples.

    Small matrices gain nothing from threads and lose much when cores are busy. The limit does not
    depend on the number of fits at the same time, because sums depend on the number of threads.
    """
    return threadpool_limits(limits=1 if n_samples < MANY_SAMPLES else None)
