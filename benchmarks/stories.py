"""The paper's two stories on simulated cohorts of its shapes: which views and features matter.

Usage::

    python benchmarks/stories.py [--stories biofind adni] [--seeds 3]

- biofind: 215 people, five views, 5 % of 841,685 genotypes. The genotypes are to be dropped and
  at least six of the seven sleep items that matter to be kept.
- adni: 1,063 people, two images (20 % of 37,643 voxels each) and three tables that only repeat
  them. The tables are to get less than 10 % of the relevance.

AUC is that of a stratified fifth of the rows held out from a second fit. Time and memory are
those of the fit on all rows; memory is the growth of the peak of the process.
"""

import argparse
import resource
import time

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

from baldur import BaldurClassifier
from baldur.datasets import make_adni_like, make_biofind_like

TABLES = ("grey_matter_volume", "white_matter_volume", "csf_volume")


def peak_mb():
    """Return the peak memory of the process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def held_out_auc(data, y):
    """Return the AUC on a fifth of the rows, fitted on the others."""
    split = StratifiedShuffleSplit(1, test_size=0.2, random_state=0)
    train, test = next(split.split(np.zeros(len(y)), y))
    model = BaldurClassifier().fit(data[train], y[train])
    return roc_auc_score(y[test], model.predict_proba(data[test])[:, 1])


def tell(name, seed):
    """Fit one cohort and print what was found."""
    if name == "biofind":
        cohort = make_biofind_like(scale=0.05, random_state=seed)
    else:
        cohort = make_adni_like(scale=0.2, random_state=seed)
    before, started = peak_mb(), time.perf_counter()
    model = BaldurClassifier().fit(cohort.data, cohort.target)
    seconds, grown = time.perf_counter() - started, peak_mb() - before
    kept = {view: int(mask.sum()) for view, mask in model.selected_features_.items()}
    print(f"\n{name}, seed {seed}: {cohort.data.shape[0]} rows, {cohort.data.shape[1]} features")
    print(f"  kept {kept}")
    print("  relevance " + ", ".join(f"{v} {r:.3f}" for v, r in model.view_relevance_.items()))
    if name == "biofind":
        found = int((model.selected_features_["sleep"] & cohort.truth.support("sleep")).sum())
        good = kept["genetic"] == 0 and found >= 6
        print(f"  genotypes kept {kept['genetic']} (bar 0), sleep items found {found} (bar 6 of 7)")
    else:
        share = sum(model.view_relevance_[table] for table in TABLES)
        good = share < 0.1
        print(f"  relevance of the tables {share:.3f} (bar below 0.1)")
    print(f"  bar met: {'yes' if good else 'NO'}")
    print(f"  held-out AUC {held_out_auc(cohort.data, cohort.target):.3f}", end=", ")
    print(f"{seconds:.1f} s, {grown:.0f} MB beyond the data", flush=True)


def main():
    """Read the arguments and tell the stories."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    stories = ("biofind", "adni")
    parser.add_argument("--stories", nargs="+", choices=stories, default=stories)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    for name in given.stories:
        for seed in range(given.seeds):
            tell(name, seed)


if __name__ == "__main__":
    main()
