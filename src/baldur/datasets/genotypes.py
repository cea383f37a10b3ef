"""Simulated genotypes: int8 allele counts with linkage, drawn block by block."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

MISSING = -127  # the code for "not called" in int8, as in `read_plink`

# Columns are drawn in frames: within one the alleles of a haplotype follow a chain, and the chain
# is cut at random places, where a new linkage block begins. A chunk of frames has its own random
# stream, so the bytes do not depend on how chunks are processed.
_FRAME = 64
_FRAMES_PER_CHUNK = 64
_MEAN_BLOCK = 12

# Lengths of the autosomes in megabases, rounded; markers are spread in proportion.
_CHROMOSOMES = (
    249, 242, 198, 190, 182, 171, 159, 145, 138, 134, 135,
    133, 114, 107, 102, 90, 83, 80, 59, 64, 47, 51,
)  # fmt: skip


def draw_genotypes(
    n: int, width: int, missing: float, seeds: np.random.Generator, *, linkage: bool = True
) -> tuple[NDArray[np.int8], pd.DataFrame]:
    """Draw minor-allele counts of `n` people at `width` markers.

    Each person has two haplotypes. Along a haplotype a Gaussian chain with correlation 0.6 to
    0.98 inside a linkage block, and none across blocks, is cut at the quantile of the marker's
    minor-allele frequency.

    Shapes: returns genotypes (n, width).
    """
    out = np.empty((n, width), dtype=np.int8)
    maf = np.empty(width, dtype=np.float32)
    step = _FRAME * _FRAMES_PER_CHUNK
    chunks = range(0, width, step)
    position_rng, *rngs = seeds.spawn(len(chunks) + 1)
    chromosome, position = _place_markers(width, position_rng)
    starts = np.diff(chromosome, prepend=np.int8(0)) != 0
    for first, rng in zip(chunks, rngs, strict=True):
        cols = slice(first, min(first + step, width))
        keep = cols.stop - cols.start
        forced = np.zeros(step, dtype=bool)
        forced[:keep] = starts[cols]
        counts, p, new_block = _draw_chunk(n, forced, _MEAN_BLOCK if linkage else 1, rng)
        maf[cols] = p[:keep]
        starts[cols] = new_block[:keep]
        out[:, cols] = counts[:keep].T
        if missing > 0:
            rows = rng.integers(n, size=rng.binomial(n * keep, missing))
            out[rows, first + rng.integers(keep, size=len(rows))] = MISSING
    markers = pd.DataFrame(
        {
            "chromosome": chromosome,
            "position": position,
            "block": np.cumsum(starts, dtype=np.int32) - np.int32(1),
            "maf": maf,
        }
    )
    return out, markers


def _draw_chunk(
    n: int, forced: NDArray[np.bool_], mean_block: int, rng: np.random.Generator
) -> tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.bool_]]:
    """Draw one chunk, markers by people, with its frequencies and the starts of blocks.

    Blocks begin at random, at each frame, and where `forced` says that a chromosome begins.
    """
    shape = (_FRAME, _FRAMES_PER_CHUNK)
    # Common markers: frequencies from 0.02 to 0.5, the rarer ones more numerous.
    maf = 0.02 + 0.48 * rng.beta(0.9, 1.5, shape)
    new_block = rng.random(shape) < 1.0 / mean_block
    new_block[0] = True
    new_block |= forced.reshape(_FRAMES_PER_CHUNK, _FRAME).T
    rho = np.where(new_block, 0.0, rng.uniform(0.6, 0.98, shape)).astype(np.float32)
    fresh = np.sqrt(1.0 - rho**2)
    threshold = ndtri(maf).astype(np.float32)
    counts = np.empty((_FRAMES_PER_CHUNK, _FRAME, n), dtype=np.int8)
    chain = np.zeros((_FRAMES_PER_CHUNK, 2 * n), dtype=np.float32)
    draw = np.empty_like(chain)
    # Over the markers of a frame, all frames at once.
    for j in range(_FRAME):
        rng.standard_normal(out=draw, dtype=np.float32)
        draw *= fresh[j, :, None]
        chain *= rho[j, :, None]
        chain += draw
        allele = chain < threshold[j, :, None]
        np.add(allele[:, :n], allele[:, n:], out=counts[:, j], dtype=np.int8)
    return (
        counts.reshape(-1, n),
        maf.T.reshape(-1).astype(np.float32),
        np.ascontiguousarray(new_block.T).reshape(-1),
    )


def _place_markers(
    width: int, rng: np.random.Generator
) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    """Spread markers over the chromosomes in proportion to length, positions ascending."""
    lengths = np.array(_CHROMOSOMES, dtype=np.float64) * 1e6
    ends = np.rint(np.cumsum(lengths) / lengths.sum() * width).astype(np.int64)
    counts = np.diff(ends, prepend=0)
    chromosome = np.repeat(np.arange(1, len(lengths) + 1, dtype=np.int8), counts)
    position = np.concatenate(
        [
            np.sort(rng.integers(1, int(length), size=count, dtype=np.int32))
            for length, count in zip(lengths, counts, strict=True)
        ]
    )
    return chromosome, position
