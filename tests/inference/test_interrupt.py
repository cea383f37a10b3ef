"""Ctrl-C during a wide fit: the process ends, and leaves neither processes nor files."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
# A shell starts its background jobs with Ctrl-C ignored, and so would every process below them.
CODE = """
import signal, sys, warnings
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
from baldur import BaldurClassifier, MultiView
warnings.simplefilter("ignore")
genes = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(genes)) % 2
print("ready", flush=True)
while True:
    BaldurClassifier(n_jobs=2, verbose=1).fit(MultiView({"genes": genes}), y)
    print("fitted", flush=True)
"""


def alive(session):
    """Processes of a session that are not waiting to be reaped."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(status.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_interrupting_a_wide_fit_leaves_nothing(tmp_path):
    genes = np.random.default_rng(0).integers(0, 3, (60, 20_000), dtype=np.int8)
    np.save(tmp_path / "genes.npy", genes)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(scratch),
        "JOBLIB_TEMP_FOLDER": str(scratch),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, str(tmp_path / "genes.npy")],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert alive(process.pid) == []
    assert list(scratch.iterdir()) == []
