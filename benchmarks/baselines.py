"""Table of all baselines (and BALDUR, where it can be imported) on real data.

Usage::

    python benchmarks/baselines.py                 # ad_csf and darwin_handwriting, defaults
    python benchmarks/baselines.py --tune 12       # 12 random points of each grid, inner 5-fold
    python benchmarks/baselines.py --wide 0.05     # time and memory on simulated genotypes

The data sets are looked for in ``$BALDUR_SHARED_DATA`` or ``../shared/data``. AUC and balanced
accuracy are means over the test folds; "kept" is the mean number of selected features; times are
those of fitting, relative to ridge logistic regression.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from shared_sets import read_labels, read_views
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import ParameterGrid, RandomizedSearchCV, StratifiedKFold

from baldur.baselines import BASELINES
from baldur.datasets import make_biofind_like
from baldur.exceptions import MissingExtraError
from baldur.views import MultiView

SETS = ("ad_csf", "darwin_handwriting")
RIDGE = "Ridge logistic"


def all_rows():
    """Row name to (maker, grid); BALDUR last, if this installation has it."""
    known = {name: entry for name, entry in BASELINES.items() if entry.classifier is not None}
    rows = {name: (entry.make, entry.grid) for name, entry in known.items()}
    try:
        from baldur import BaldurClassifier
    except ImportError:
        return rows
    rows["BALDUR"] = (lambda random_state=None: BaldurClassifier(random_state=random_state), {})
    return rows


def load(folder, name):
    """Views, labels and folds; handwriting times are heavy-tailed and go through a signed log."""
    views = {view: X for view, (X, _) in read_views(folder / name).items()}
    if name == "darwin_handwriting":
        views = {view: np.sign(X) * np.log1p(np.abs(X)) for view, X in views.items()}
    data, labels = MultiView(views), read_labels(folder / name)
    meta = json.loads((folder / name / "meta.json").read_text())
    positive = (labels["label"] == meta["positive_class"]).to_numpy(int)
    if "split" in labels:
        train = np.flatnonzero(labels["split"] == "train")
        folds = [(train, np.flatnonzero(labels["split"] == "test"))]
    else:
        folder = StratifiedKFold(5, shuffle=True, random_state=0)
        folds = list(folder.split(np.zeros((len(positive), 1)), positive))
    return data, positive, folds


def score_row(make, grid, data, y, folds, tune):
    """AUC, balanced accuracy, features kept and seconds of one row."""
    found = []
    for train, test in folds:
        model = make(random_state=0)
        if tune and grid:
            points = min(tune, len(ParameterGrid(dict(grid))))
            inner = StratifiedKFold(5, shuffle=True, random_state=1)
            model = RandomizedSearchCV(
                model, dict(grid), n_iter=points, cv=inner, scoring="roc_auc", random_state=0
            )
        start = time.perf_counter()
        model.fit(data[train], y[train])
        seconds = time.perf_counter() - start
        best = getattr(model, "best_estimator_", model)
        if hasattr(best, "decision_function"):
            score = best.decision_function(data[test])
        else:
            score = best.predict_proba(data[test])[:, 1]
        masks = getattr(best, "selected_features_", None)
        kept = sum(int(np.sum(m)) for m in masks.values()) if masks is not None else math.nan
        found.append(
            (
                roc_auc_score(y[test], score),
                balanced_accuracy_score(y[test], best.predict(data[test])),
                kept,
                seconds,
            )
        )
    return np.mean(found, axis=0)


def print_table(name, data, y, folds, tune):
    """All rows on one data set."""
    D = data.shape[1]
    how = f"best of {tune} settings" if tune else "default settings"
    print(f"\n{name}: {len(y)} rows, {D} features, {len(data.view_names)} views, ", end="")
    print(f"{len(folds)} test fold(s), {how}\n")
    print("| row | AUC | balanced accuracy | kept | kept % | time / ridge |")
    print("| --- | --- | --- | --- | --- | --- |")
    rows = all_rows()
    make, grid = rows[RIDGE]
    repeats = [score_row(make, grid, data, y, folds, tune) for _ in range(1 if tune else 6)]
    unit = float(np.median([r[3] for r in repeats[-5:]]))  # the first call pays for imports
    ridge = np.append(repeats[-1][:3], unit)
    for row, (make, grid) in rows.items():
        try:
            result = ridge if row == RIDGE else score_row(make, grid, data, y, folds, tune)
        except MissingExtraError as error:
            print(f"| {row} | {error} |")
            continue
        auc, balanced, kept, seconds = result
        print(
            f"| {row} | {auc:.3f} | {balanced:.3f} | {kept:.0f} | {100 * kept / D:.1f} "
            f"| {seconds / unit:.1f} |",
            flush=True,
        )
    print(f"\nridge takes {unit:.3f} s per fit")


def wide_row(row, scale):
    """Fit one row on genotypes and print its figures (run in a process of its own)."""
    import resource

    cohort = make_biofind_like(scale=scale, random_state=0)
    order = np.random.default_rng(0).permutation(len(cohort.target))
    train, test = order[:172], order[172:]
    start = time.perf_counter()
    model = BASELINES[row].make(random_state=0)
    model.fit(cohort.data[train], cohort.target[train])
    seconds = time.perf_counter() - start
    score = model.decision_function(cohort.data[test])
    kept = sum(int(m.sum()) for m in model.selected_features_.values())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    auc = float(roc_auc_score(cohort.target[test], score))
    print(json.dumps([seconds, memory, auc, kept]))


def print_wide(scale, rows):
    """Time and memory of every row on 172 rows of simulated genotypes."""
    print("| row | seconds | GB | AUC | kept |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        done = subprocess.run(
            [sys.executable, __file__, "--wide", str(scale), "--only", row, "--here"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"| {row} | {done.stderr.strip().splitlines()[-1]} |", flush=True)
            continue
        seconds, memory, auc, kept = json.loads(done.stdout.splitlines()[-1])
        print(f"| {row} | {seconds:.1f} | {memory:.2f} | {auc:.2f} | {kept} |", flush=True)


def main():
    """Read the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder that holds the data sets")
    parser.add_argument("--tune", type=int, default=0, help="settings tried per row")
    parser.add_argument("--wide", type=float, help="share of 841,685 simulated genotypes")
    parser.add_argument("--only", nargs="*", help="rows to run with --wide")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.wide and options.here:
        wide_row(options.only[0], options.wide)
        return
    if options.wide:
        print_wide(options.wide, options.only or list(BASELINES))
        return
    usual = Path(__file__).parents[2] / "shared" / "data"
    folder = options.data or Path(os.environ.get("BALDUR_SHARED_DATA", usual))
    for name in SETS:
        if not (folder / name).is_dir():
            print(f"{name} is not in {folder}; give its folder with --data")
            continue
        print_table(name, *load(folder, name), options.tune)


if __name__ == "__main__":
    main()
