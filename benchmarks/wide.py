"""Full width: time in Grams, peak memory, passes, and how they grow with the number of features.

Usage::

    python benchmarks/wide.py --cache DIR [--jobs 2] [--part biofind adni bits growth disk outer]

The unit of time is ONE weighted Gram, ``(X * s) @ X.T`` with X float32 and in memory, of the widest
view, measured in the same run, the fastest of several. Times are processor times of all threads of
the process with one BLAS thread, so that other processes on the machine change them little; the
wall time of a fit stands beside them. Every figure comes from a process of its own, so that peak
memory (the resident set of the whole process, Python and libraries included) is that of one fit.
Passes are those of products; preparing a view reads it once more.

- biofind: 172 training rows of `make_biofind_like`, 841,685 genotypes, from an int8 array, a
  ``.bed`` file and a ``.npy`` file.
- adni: 956 training rows of `make_adni_like`, 75,694 features.
- bits: coefficients and probabilities at 100,000 genotypes, fitted twice and with two workers:
  the same to the last bit.
- growth: 10,000 to 841,685 genotypes from an int8 array, with the slope of log time on log D.
- disk: memory at 300,000 and 3,000,000 genotypes read from ``.npy`` and ``.bed``.
- outer: the published evaluation, five outer folds of ``BaldurClassifier()`` at full width.

``--cache`` is a folder for the data, about 2 GB with all parts; a temporary one by default.
``--jobs`` is the number of workers inside a fit. The default fit uses its full set of inner folds.
"""

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

WIDTHS = (10_000, 30_000, 100_000, 300_000, 841_685)
FULL = WIDTHS[-1]
BARS = {"biofind": 16.0, "adni": 80.0}
MEMORY_BAR_GB = {"biofind": 0.8, "adni": None}
BITS_WIDTH = 100_000
SLOPE_BAR = 1.1


# -- what runs in processes of its own --------------------------------------------------------


def make_biofind(cache, width):
    """Write the small views, the labels and `width` genotypes as .npy and as PLINK files."""
    from baldur import MultiView
    from baldur.datasets import make_biofind_like
    from baldur.datasets.biofind import draw_genotypes
    from baldur.study.simulate import write_bed

    sim = make_biofind_like(scale=min(width / FULL, 1.0), random_state=0)
    small = {v: sim.data.view(v).raw() for v in sim.data.view_names if v != "genetic"}
    if width <= FULL:
        genotypes = sim.data.view("genetic").raw()
    else:  # wider than the cohort
        genotypes, _ = draw_genotypes(len(sim.target), width, 0.002, np.random.default_rng(0))
    np.savez(cache / f"biofind_{width}.npz", target=sim.target, **small)
    np.save(cache / f"biofind_{width}.npy", genotypes)
    view = MultiView({"genetic": genotypes}).view("genetic")
    write_bed(cache / f"biofind_{width}.bed", view, np.array([f"s{i}" for i in range(215)]))


def make_adni(cache):
    """Write the views and labels of the ADNI shape."""
    from baldur.datasets import make_adni_like

    sim = make_adni_like(random_state=0)
    views = {v: sim.data.view(v).raw() for v in sim.data.view_names}
    np.savez(cache / "adni.npz", target=sim.target, **views)


def load(cache, cohort, width, storage):
    """Return the views as a MultiView and the labels."""
    from baldur import MultiView
    from baldur.io import read_plink

    with np.load(cache / (f"biofind_{width}.npz" if cohort == "biofind" else "adni.npz")) as file:
        parts = {name: file[name] for name in file.files}
    y = parts.pop("target")
    if cohort == "adni":
        return MultiView(parts), y
    stem = cache / f"biofind_{width}"
    if storage == "int8 array":
        parts["genetic"] = np.load(stem.with_suffix(".npy"))
    elif storage == ".npy":
        parts["genetic"] = np.load(stem.with_suffix(".npy"), mmap_mode="r")
    else:
        # Only the matrix is wanted: names of variants would be kept beside it.
        parts["genetic"] = read_plink(stem.with_suffix(".bed")).view("genotypes").source
    return MultiView(parts), y


def folds(y, cohort):
    """Return outer folds; those of ADNI leave a tenth out, 956 training rows."""
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(10 if cohort == "adni" else 5, shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(y)), y))


def fit(cache, cohort, width, storage, n_folds=1, n_jobs=None):
    """Fit on training rows; return seconds, passes, peak memory, AUC and what was kept."""
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    from baldur import BaldurClassifier

    warnings.simplefilter("ignore")
    data, y = load(cache, cohort, width, storage)
    before = peak_gb()
    seconds, wall, areas = [], [], []
    for train, test in folds(y, cohort)[:n_folds]:
        part = data[train]
        started, started_wall = time.process_time(), time.perf_counter()
        model = BaldurClassifier(random_state=0, n_jobs=n_jobs)
        with threadpool_limits(limits=1):
            model.fit(part, y[train])
        seconds.append(time.process_time() - started)
        wall.append(time.perf_counter() - started_wall)
        if n_folds == 1:
            peak = peak_gb()
        areas.append(roc_auc_score(y[test], model.predict_proba(data[test])[:, 1]))
    if n_folds > 1:
        peak = peak_gb()
    passes = [r["passes"] for r in model.history_ if "passes" in r]
    digest = hashlib.sha256(model.predict_proba(data[test]).tobytes())
    for view in data.view_names:
        digest.update(np.ascontiguousarray(model.coef_[view]).tobytes())
    return {
        "rows": len(train),
        "seconds": seconds,
        "wall": wall,
        "passes": max(passes) if passes else None,
        "peak": peak,
        "before": before,
        "auc": areas,
        "digest": digest.hexdigest(),
        "kept": {v: int(mask.sum()) for v, mask in model.selected_features_.items()},
    }


def gram(rows, width):
    """Return the processor time of one weighted Gram in NumPy, float32: the fastest of several."""
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, width), dtype=np.float32)
    s = rng.random(width, dtype=np.float32)
    best = np.inf
    with threadpool_limits(limits=1):
        for _ in range(6):
            started = time.process_time()
            (X * s) @ X.T
            best = min(best, time.process_time() - started)
    return best


def peak_gb():
    """Return the peak resident memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


CHILDREN = {"biofind": make_biofind, "adni": make_adni, "fit": fit, "gram": gram}


def child(what, **arguments):
    """Run one of `CHILDREN` in a process of its own and return what it returns."""
    command = [sys.executable, __file__, "--child", json.dumps([what, arguments])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# -- the parts --------------------------------------------------------------------------------


def have(cache, width):
    """Make the genotypes of this width once."""
    if not (cache / f"biofind_{width}.fam").exists():
        child("biofind", cache=str(cache), width=width)


def fit_genotypes(cache, width, jobs, storage="int8 array", n_folds=1):
    """Return what `fit` returns for genotypes of this width."""
    have(cache, width)
    data = {"cache": str(cache), "cohort": "biofind", "width": width, "storage": storage}
    return child("fit", **data, n_folds=n_folds, n_jobs=jobs)


def verdict(value, bar, unit):
    """Return the value, its bar, and whether it is met."""
    return f"{value:.2f} {unit} (bar {bar:g}: {'met' if value <= bar else 'NOT MET'})"


def tell(name, found, unit, part):
    """Print one fit."""
    seconds = found["seconds"][0]
    passes = "-" if found["passes"] is None else f"{found['passes']:.2f}"
    memory = f"{found['peak']:.2f} GB"
    if MEMORY_BAR_GB[part] is not None:
        memory = verdict(found["peak"], MEMORY_BAR_GB[part], "GB")
    print(
        f"  {name}: {seconds:.2f} s ({found['wall'][0]:.2f} s wall) = "
        f"{verdict(seconds / unit, BARS[part], 'Grams')}, peak "
        f"{memory}, {passes} passes, AUC "
        f"{found['auc'][0]:.3f}, kept {found['kept']}",
        flush=True,
    )


def biofind(cache, jobs):
    """One fit at full width from each kind of storage."""
    unit = child("gram", rows=172, width=FULL)
    print(f"\nbiofind: 172 x {FULL:,}; one Gram {unit:.3f} s")
    for storage in ("int8 array", ".bed", ".npy"):
        tell(storage, fit_genotypes(cache, FULL, jobs, storage), unit, "biofind")


def adni(cache, jobs):
    """One fit of the ADNI shape."""
    if not (cache / "adni.npz").exists():
        child("adni", cache=str(cache))
    unit = child("gram", rows=956, width=37_643)
    print(f"\nadni: 956 rows, 75,694 features; one Gram {unit:.3f} s")
    found = child(
        "fit", cache=str(cache), cohort="adni", width=0, storage="array", n_jobs=jobs,
    )  # fmt: skip
    tell(f"float arrays, {found['rows']} rows", found, unit, "adni")


def bits(cache, jobs):
    """The same fit twice, and with two workers."""
    print(f"\nbits: 172 x {BITS_WIDTH:,}")
    first = None
    for name, n_jobs in (("once", None), ("twice", None), ("with two workers", 2)):
        found = fit_genotypes(cache, BITS_WIDTH, n_jobs)
        first = first or found["digest"]
        same = "met" if found["digest"] == first else "NOT MET"
        print(
            f"  {name}: {found['digest'][:12]} in {found['seconds'][0]:.1f} s (same bits: {same})"
        )


def growth(cache, jobs):
    """Time against width, from an int8 array, with the slope of the straight line."""
    print("\ngrowth: 172 rows, int8 array")
    times = []
    for width in WIDTHS:
        found = fit_genotypes(cache, width, jobs)
        times.append(found["seconds"][0])
        print(f"  D = {width:>7,}: {times[-1]:6.2f} s, {found['peak']:.2f} GB")
    whole = np.polyfit(np.log(WIDTHS), np.log(times), 1)[0]
    last = np.log(times[-1] / times[-2]) / np.log(WIDTHS[-1] / WIDTHS[-2])
    print(
        f"  slope {verdict(whole, SLOPE_BAR, '')}; over the last step "
        f"{verdict(last, SLOPE_BAR, '')}",
        flush=True,
    )


def disk(cache, jobs):
    """Peak memory from files of 300,000 and 3,000,000 columns."""
    print("\ndisk: peak memory of the process")
    for storage in (".npy", ".bed"):
        for width in (300_000, 3_000_000):
            found = fit_genotypes(cache, width, jobs, storage)
            print(
                f"  {storage}, D = {width:>9,}: {found['peak']:.2f} GB ({found['before']:.2f} GB "
                f"before the fit), {found['seconds'][0]:.1f} s, {found['passes']:.1f} passes",
                flush=True,
            )


def outer(cache, jobs):
    """Five outer folds of the default classifier at full width."""
    have(cache, FULL)
    started = time.perf_counter()
    found = fit_genotypes(cache, FULL, jobs, n_folds=5)
    seconds = time.perf_counter() - started
    print(
        f"\nouter: five folds of BaldurClassifier() in {seconds:.0f} s wall, loading and "
        f"predictions included; processor time of the fits "
        f"{' '.join(f'{s:.1f}' for s in found['seconds'])} s; AUC "
        f"{np.mean(found['auc']):.3f} ({' '.join(f'{a:.3f}' for a in found['auc'])}); peak "
        f"{found['peak']:.2f} GB",
        flush=True,
    )


PARTS = {
    "biofind": biofind,
    "adni": adni,
    "bits": bits,
    "growth": growth,
    "disk": disk,
    "outer": outer,
}


def main():
    """Read the arguments and run the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--cache", type=Path, help="folder for the data")
    parser.add_argument("--jobs", type=int, help="workers inside a fit")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        what, arguments = json.loads(given.child)
        if "cache" in arguments:
            arguments["cache"] = Path(arguments["cache"])
        print(json.dumps(CHILDREN[what](**arguments)))
        return
    with tempfile.TemporaryDirectory() as folder:
        cache = given.cache or Path(folder)
        cache.mkdir(parents=True, exist_ok=True)
        for part in given.part:
            PARTS[part](cache, given.jobs)


if __name__ == "__main__":
    main()
