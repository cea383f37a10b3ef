"""Dense copies for methods that cannot work through products, after a check of the memory."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.baselines.shared.base import Block
from baldur.exceptions import InputError

COLUMN_BLOCK = 8192
"""Number of columns that are standardised at a time while a dense copy is filled."""


def available_memory() -> int | None:
    """Return the bytes available without swapping; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def check_memory(needed: float, shape: tuple[int, int], method: str, advice: str) -> None:
    """Raise an InputError with the figures where a fit needs more memory than there is."""
    available = available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"{method} on {shape[0]} rows and {shape[1]:,} features needs about "
            f"{needed / 1e9:.1f} GB, and {available / 1e9:.1f} GB are available. {advice}"
        )


def _check_dense(blocks: list[Block], dtype: Any, method: str) -> tuple[int, int]:
    """Return the shape of a dense copy of all views, or refuse one that does not fit."""
    n, D = blocks[0].view.shape[0], sum(b.width for b in blocks)
    check_memory(
        float(n) * D * np.dtype(dtype).itemsize,
        (n, D),
        method,
        "Use fewer features: an l1 baseline, or a filter that is learned from the training rows.",
    )
    return n, D


def _fill(block: Block, out: NDArray[Any]) -> None:
    for start in range(0, block.width, COLUMN_BLOCK):
        idx = np.arange(start, min(start + COLUMN_BLOCK, block.width))
        out[:, idx[0] : idx[-1] + 1] = block.columns(idx)


def dense_views(blocks: list[Block], dtype: Any, method: str) -> list[NDArray[Any]]:
    """Return each view as a dense standardised array (n, D_v) of ``dtype``, columns contiguous."""
    n, _ = _check_dense(blocks, dtype, method)
    views = [np.empty((n, b.width), dtype=dtype, order="F") for b in blocks]
    for b, out in zip(blocks, views, strict=True):
        _fill(b, out)
    return views


def dense_concatenation(blocks: list[Block], dtype: Any, method: str) -> NDArray[Any]:
    """Return all views side by side as one dense standardised array (n, D) of ``dtype``.

    Columns are contiguous: trees read them one at a time, up to twice as fast on wide data.
    """
    n, D = _check_dense(blocks, dtype, method)
    out = np.empty((n, D), dtype=dtype, order="F")
    start = 0
    for b in blocks:
        _fill(b, out[:, start : start + b.width])
        start += b.width
    return out


def gather_columns(blocks: list[Block], idx: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the columns ``idx`` (sorted, counted over all views) as one dense array."""
    cuts = np.concatenate([[0], np.cumsum([b.width for b in blocks])])
    parts = [
        b.columns(idx[(idx >= lo) & (idx < hi)] - lo)
        for b, lo, hi in zip(blocks, cuts[:-1], cuts[1:], strict=True)
        if np.any((idx >= lo) & (idx < hi))
    ]
    return np.hstack(parts) if parts else np.zeros((blocks[0].view.shape[0], 0))


def project_all(blocks: list[Block], A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``X'A`` over all views, stacked (D, k)."""
    return np.vstack([b.project(A) for b in blocks])
