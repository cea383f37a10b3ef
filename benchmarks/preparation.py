"""What preparation costs: seconds of CPU for learning a wide view and for one product with it.

    python benchmarks/preparation.py            # 300 samples; best of five

``fit`` learns the statistics, ``gram`` is one weighted Gram matrix, both read every column once.
"standard" does what "clipped" does except for the clip, so the difference is its price. Genotype
codes are never clipped and must cost the same on every scale.
"""

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from baldur import MultiView
from baldur.preparation import Preparation


def best(call, repeats):
    """Smallest CPU time of several calls: other programs on the machine cannot lower it."""
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        call()
        seconds.append(time.process_time() - started)
    return min(seconds)


def views(n, d, folder):
    """Yield the kinds of wide view: name, matrix, number of columns."""
    rng = np.random.default_rng(0)
    cells = rng.standard_t(4, size=(n, d)).astype(np.float32)
    yield "float32 in memory", cells
    np.save(Path(folder) / "x.npy", cells)
    yield "float32 on disk", np.load(Path(folder) / "x.npy", mmap_mode="r")
    cells[rng.random(cells.shape) < 0.02] = np.nan
    yield "float32, 2 % missing", cells
    yield "genotypes (int8)", rng.binomial(2, 0.2, size=(n, 4 * d)).astype(np.int8)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scales", nargs="*", default=["standard", "clipped"])
    options = parser.parse_args()
    print(f"{'view':<22} {'scale':<10} {'fit s':>8} {'gram s':>8}")
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        for name, matrix in views(options.samples, options.columns, folder):
            mv = MultiView({"v": matrix})
            # Some of the rows, so that cells are gathered as in a fold.
            rows = np.flatnonzero(np.arange(len(mv)) % 5)
            s = np.random.default_rng(1).gamma(1.0, size=matrix.shape[1])
            for scale in options.scales:
                made = Preparation() if scale == "default" else Preparation(scale)
                fit = best(partial(made.fit, mv[rows]), options.repeats)
                ready = made.transform(mv[rows])["v"]
                gram = best(partial(ready.weighted_gram, s), options.repeats)
                print(f"{name:<22} {scale:<10} {fit:8.3f} {gram:8.3f}", flush=True)


if __name__ == "__main__":
    main()
