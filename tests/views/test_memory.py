"""Wide views on disk: what a process holds does not grow with their width."""

import subprocess
import sys

import numpy as np
import pytest

SCRIPT = """
import resource, sys
import numpy as np
from baldur import MultiView
from baldur.preparation import Preparation

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024

before = peak()
snps = np.load(sys.argv[1], mmap_mode="r")
mv = MultiView({"snps": snps})[np.arange(0, len(snps), 2)]
view = Preparation(max_bytes=1 << 24).fit_transform(mv)["snps"]
view.weighted_gram()
statistics = 8 * 8 * snps.shape[1] / 2**20
print(peak() - before - statistics)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_peak_memory_does_not_follow_a_file_of_three_million_columns(tmp_path):
    """Beyond a few numbers per column, memory is that of one block: 40 MB for a 600 MB file."""
    used = {}
    for d in (300_000, 3_000_000):
        path = tmp_path / f"{d}.npy"
        snps = np.lib.format.open_memmap(path, "w+", np.int8, (200, d))
        rng = np.random.default_rng(0)
        for row in snps:
            row[:] = rng.integers(0, 3, d, dtype=np.int8)
        snps.flush()
        del snps
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True
        )
        used[d] = float(done.stdout)
    assert used[3_000_000] < used[300_000] + 60, used
