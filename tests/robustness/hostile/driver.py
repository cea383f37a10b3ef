"""Read hostile files, each in a process of its own, and say what happened and what it took.

Run as a script with lines of JSON on standard input: folder, file, reader and options. For each a
line of JSON comes back: the outcome ("read", "refused" or what went wrong), seconds of the
processor, and megabytes at the peak, in the process itself and in those it started.
"""

import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

SMALL = 1 << 28
CANARY = "canary-7f3a"
SECONDS = 120
MOST = 16 << 30


def read_all(made):
    """Text of everything a reader gave: names, ids and the first cells."""
    said = [str(made.sample_ids.tolist()[:100])]
    for name in made.view_names:
        view = made.view(name)
        said += [name, str(view.feature_names[:100].tolist()), str(view.feature_info)]
        said.append(str(view.read(list(range(min(5, view.shape[1]))))[:100]))
    return " ".join(said)


def table(path, options):
    from baldur.io import read_table

    return read_all(read_table(path, **options))


def text(path, options):
    from baldur.io.tables import read_text_table

    return str(read_text_table(path, **options).iloc[:50, :50].to_dict())


def plink(path, options):
    from baldur.io import read_plink

    return read_all(read_plink(path, **options))


def nifti(path, options):
    from baldur.io import read_nifti

    beside = [key for key in ("atlas", "atlas_labels") if key in options]
    options = {**options, **{key: path.parent / options[key] for key in beside}}
    return read_all(read_nifti([path], **options))


def mudata(path, options):
    from baldur.io import read_mudata

    return read_all(read_mudata(path, **options))


def obs(path, options):
    from baldur.io import read_obs

    return str(read_obs(path, **options).iloc[:100].to_dict())


def view(path, options):
    from baldur.io.view_sections import read_view

    limit = {"max_bytes": SMALL}
    return read_all(read_view({"file": path.name, **options}, path.parent, **limit))


def study(path, options):
    from baldur.study import evaluate_study, load_study

    return repr(evaluate_study(load_study(path), fresh=True).run)


def model(path, options):
    import numpy as np

    from baldur.saving import load
    from baldur.views import MultiView

    saved = load(path, study=True)
    rows = MultiView({name: np.zeros((3, width)) for name, width in saved.n_features.items()})
    p = saved.estimator.predict_proba(rows)
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
    return str(p)


READERS = {f.__name__: f for f in (table, text, plink, nifti, mudata, obs, view, study, model)}
LIMITED = ("table", "text", "plink", "nifti", "mudata", "obs")


def peak():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def attempt(path, reader, options):
    """Read one file in this process; returns what to report."""
    from baldur.exceptions import BaldurError

    if reader in LIMITED:
        options = {"max_bytes": SMALL, **options}
        if options["max_bytes"] is None:
            del options["max_bytes"]
    with open("/proc/self/clear_refs", "w", encoding="ascii") as reset:
        reset.write("5")
    before = peak()
    clock = time.monotonic()
    try:
        said = READERS[reader](Path(path), options)
        outcome = "read"
    except BaldurError as error:
        said, outcome = str(error), "refused"
    except BaseException as error:
        said = "".join(traceback.format_exception(error))[-2000:]
        outcome = f"foreign {type(error).__name__}"
    # The name of the canary's folder may stand in a message; its content may not.
    own, below = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "outcome": outcome if CANARY not in said else f"leaked ({outcome})",
        "said": said[:600],
        "seconds": own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime,
        "clock": time.monotonic() - clock,
        "megabytes": peak() - before,
        "below": below.ru_maxrss / 1024,
    }


def in_a_child(path, reader, options):
    """Fork, read there, and come back with the report, or with how the process ended."""
    end, start = os.pipe()
    number = os.fork()
    if number == 0:
        os.close(end)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
        report = attempt(path, reader, options)
        with os.fdopen(start, "w") as out:
            out.write(json.dumps(report))
        os._exit(0)
    os.close(start)
    with os.fdopen(end) as answer:
        found = answer.read()
    _, status = os.waitpid(number, 0)
    if found:
        return json.loads(found)
    ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else str(status)
    return {"outcome": f"killed by {ended}", "said": "", "seconds": -1, "megabytes": -1, "below": -1, "clock": -1}  # fmt: skip


def main():
    import anndata
    import bed_reader
    import h5py
    import mudata as library
    import nibabel
    import nilearn.image
    import openpyxl
    import pgenlib
    import pyarrow.parquet

    import baldur.io
    import baldur.saving
    import baldur.study

    loaded = (
        anndata,
        bed_reader,
        h5py,
        library,
        nibabel,
        nilearn,
        openpyxl,
        pgenlib,
        pyarrow,
        baldur,
    )
    if not all(loaded):
        sys.exit(1)
    for line in sys.stdin:
        task = json.loads(line)
        report = in_a_child(task["path"], task["reader"], task["options"])
        print(json.dumps({"name": task["name"], **report}), flush=True)


if __name__ == "__main__":
    main()
