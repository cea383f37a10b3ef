"""Time and peak memory of the simulators at full size: ``python benchmarks/datasets.py``.

Each one runs in a process of its own, because peak memory is a property of the process.
"""

import argparse
import json
import subprocess
import sys

SCRIPT = """
import json, resource, sys, time
import numpy as np
import baldur.datasets

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def current():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()

before = peak()
start = time.perf_counter()
sim = getattr(baldur.datasets, sys.argv[1])(scale=float(sys.argv[2]), random_state=0)
seconds = time.perf_counter() - start
top = peak()
held = current()
rows = np.random.default_rng(0).permutation(len(sim.data))[: int(0.8 * len(sim.data))]
part = sim.data[rows]
print(json.dumps({
    "rows": len(sim.data), "columns": sim.data.shape[1], "seconds": seconds, "peak": top,
    "imports": before, "slice_rows": len(part), "slice_adds": max(0, current() - held),
}))
"""


def main() -> None:
    """Print one line per simulator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    scale = parser.parse_args().scale
    for name in ("make_biofind_like", "make_adni_like"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, name, str(scale)],
            check=True,
            capture_output=True,
            text=True,
        )
        r = json.loads(done.stdout)
        print(
            f"{name}(scale={scale:g}): {r['rows']} x {r['columns']:,}, {r['seconds']:.1f} s, "
            f"peak {r['peak'] / 1e9:.2f} GB (imports alone {r['imports'] / 1e9:.2f} GB); "
            f"a slice of {r['slice_rows']} rows adds {r['slice_adds'] / 1e6:.2f} MB"
        )


if __name__ == "__main__":
    main()
