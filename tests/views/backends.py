"""One small matrix in every kind of storage, and its cells as floats with NaN for missing."""

import numpy as np
from scipy import sparse

BACKENDS = (
    "float64",
    "float64-F",
    "float32",
    "int64",
    "bool",
    "int8",
    "int8-F",
    "int8-memmap",
    "float32-memmap",
    "csr",
    "csc",
    "lazy-int8",
    "lazy-float64",
)


class Lazy:
    """A matrix that can only be read piece by piece, and remembers the largest piece."""

    def __init__(self, array):
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype
        self.largest = 0

    def read(self, rows, cols):
        block = self.array[:, cols] if rows is None else self.array[rows][:, cols]
        self.largest = max(self.largest, block.nbytes)
        return block


def make(kind, n, d, rng, tmp_path=None, missing=0.0):
    """Return (matrix as the user would hand it in, float64 cells with NaN)."""
    holes = rng.random((n, d)) < missing
    if "int8" in kind:
        array = rng.integers(0, 3, (n, d)).astype(np.int8)
        array[holes] = -127
        cells = np.where(array == -127, np.nan, array.astype(float))
    elif kind in ("int64", "bool"):
        array = rng.integers(0, 2 if kind == "bool" else 9, (n, d)).astype(kind)
        cells = array.astype(float)
    elif kind in ("csr", "csc"):
        cells = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
        cells[holes] = np.nan
        return sparse.csr_array(cells).asformat(kind), cells
    else:
        dtype = np.float32 if "float32" in kind else np.float64
        array = (rng.normal(size=(n, d)) * rng.uniform(0.5, 4, d) + rng.normal(size=d) * 3).astype(
            dtype
        )
        array[holes] = np.nan
        cells = array.astype(float)
    if kind.endswith("-F"):
        return np.asfortranarray(array), cells
    if kind.endswith("memmap"):
        path = tmp_path / f"{kind}.npy"
        np.save(path, array)
        return np.load(path, mmap_mode="r"), cells
    if kind.startswith("lazy"):
        return Lazy(array), cells
    return array, cells
