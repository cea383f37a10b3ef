"""Write genotypes as PLINK 1 files, a block of variants at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from baldur.atomic_io import atomic_file, write_atomically
from baldur.views.view import View

# PLINK's two bits count copies of the second allele: 00 is two copies of the first, 01 missing.
_BITS = np.array([0b11, 0b10, 0b00], dtype=np.uint8)
_MISSING_BITS = 0b01


def write_bed(path: Path, view: View, ids: np.ndarray) -> None:
    """Write ``.bed``, ``.bim`` and ``.fam``; cells count copies of the first allele, A1."""
    d = view.shape[1]
    with atomic_file(path) as file:
        file.write(bytes([0x6C, 0x1B, 0x01]))
        for start in range(0, d, 4096):
            file.write(_packed(view.raw(slice(start, min(start + 4096, d)))).tobytes())
    info = view.feature_info
    chromosome = position = np.arange(1, d + 1)
    if info is not None and {"chromosome", "position"} <= set(info.columns):
        chromosome, position = info["chromosome"].to_numpy(), info["position"].to_numpy()
    else:
        chromosome = np.ones(d, dtype=int)
    bim = pd.DataFrame(
        {"c": chromosome, "id": view.feature_names, "cm": 0, "bp": position, "a1": "A", "a2": "G"}
    )
    _write_table(path.with_suffix(".bim"), bim)
    fam = pd.DataFrame({"f": ids, "i": ids, "p": 0, "m": 0, "s": 0, "y": -9})
    _write_table(path.with_suffix(".fam"), fam)


def _write_table(path: Path, table: pd.DataFrame) -> None:
    write_atomically(path, table.to_csv(sep="\t", header=False, index=False).encode())


def _packed(cells: np.ndarray) -> np.ndarray:
    """Four samples to a byte, variant by variant, the first sample in the lowest bits."""
    n, d = cells.shape
    codes = np.full((d, -(-n // 4) * 4), 0, dtype=np.uint8)
    known = (cells >= 0) & (cells <= 2)
    codes[:, :n] = np.where(known, _BITS[np.where(known, cells, 0)], _MISSING_BITS).T
    quads = codes.reshape(d, -1, 4)
    return quads[..., 0] | quads[..., 1] << 2 | quads[..., 2] << 4 | quads[..., 3] << 6
