"""Good files of every format with a few bytes changed, the same ones every time."""

import random

from robustness.hostile.base import Case
from robustness.hostile.hdf5 import changed
from robustness.hostile.images import image
from robustness.hostile.parquet_pages import named, written
from robustness.hostile.plink import files

MAKERS = {
    "table": ("parquet", written(named(["x", "y"]))),
    "mudata": ("hdf5", changed(lambda file, outside: None)),
    "obs": ("hdf5 with a sparse matrix", changed(lambda file, outside: None, sparse=True)),
    "nifti": ("nifti", image("f.nii")),
    "plink": ("plink", files()),
}
BYTES = (0, 1, 2, 4, 8, 16, 127, 128, 254, 255)


def mutated(make, seed):
    """Change one to twenty bytes, or cut, repeat or exchange a piece."""

    def spoil(folder, outside):
        path = make(folder, outside)
        rng = random.Random(seed)
        target = (
            path
            if path.suffix != ".bed"
            else path.with_suffix(rng.choice([".bed", ".bim", ".fam"]))
        )
        raw = bytearray(target.read_bytes())
        # Headers and footers steer the parsers; cells are only numbers.
        near = rng.choice([(0, 400), (-600, 0), (0, 0)])
        low, high = near[0] % len(raw), (near[1] - 1) % len(raw)
        low, high = min(low, high), max(low, high)
        for _ in range(rng.choice([1, 2, 5, 20])):
            raw[rng.randint(low, high)] = rng.choice(BYTES)
        if rng.random() < 0.15:
            del raw[rng.randrange(len(raw)) :]
        if rng.random() < 0.15:
            at = rng.randrange(len(raw) + 1)
            raw[at:at] = raw[max(0, at - 64) : at] * 3
        target.write_bytes(raw)
        return path

    return spoil  # fmt: skip


def cases(count, first=0):
    """That many mutations of each kind of file."""
    return {
        f"{name}, {seed}": Case(mutated(make, seed), reader, read=True)
        for reader, (name, make) in MAKERS.items()
        for seed in range(first, first + count)
    }


CASES = cases(15)
