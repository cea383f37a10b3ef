"""How much BALDUR's answer depends on its seed: real sets, all rows, ten values of random_state.

Usage::

    python benchmarks/steady.py [--part ad_csf golub_leukemia] [--seeds 10] [--jobs 2]

Bars, between any two seeds: probabilities move by at most .02 on average and .15 at most, the
largest number of features kept is at most 1.5 times the smallest, and the mean Jaccard index of the
sets is at least .8.
"""

from itertools import combinations

import numpy as np
from common import Bars, header, parse, row, run, store
from shared_sets import load

from baldur import BaldurClassifier

SETS = ("ad_csf", "autism_gut_kang", "pd_speech", "golub_leukemia")


def one_fit(name, seed):
    """Return the probabilities of all rows and the places of the kept features."""
    cohort = load(name)
    model = BaldurClassifier(random_state=seed).fit(cohort.data, cohort.y)
    kept = np.concatenate([model.selected_features_[v] for v in cohort.data.view_names])
    return model.predict_proba(cohort.data)[:, 1], np.flatnonzero(kept)


def jaccard(a, b):
    """Return the share of the features in either set that are in both; 1 for two empty sets."""
    union = len(np.union1d(a, b))
    return 1.0 if union == 0 else len(np.intersect1d(a, b)) / union


def main():
    """Read the arguments; print the table and the bars."""
    given = parse(__doc__, SETS, 10)
    if given.seeds < 2:
        raise SystemExit("--seeds must be at least 2: answers are compared in pairs.")
    tasks = [(name, seed) for name in given.part for seed in range(given.seeds)]
    found = run(one_fit, tasks, given.jobs)
    header("set", "mean movement", "largest", "kept", "largest/smallest", "mean Jaccard")
    bars, figures = Bars(), {}
    for i, name in enumerate(given.part):
        fits = found[i * given.seeds : (i + 1) * given.seeds]
        pairs = list(combinations(fits, 2))
        moved = [np.abs(a[0] - b[0]) for a, b in pairs]
        average, largest = max(m.mean() for m in moved), max(m.max() for m in moved)
        counts = [len(kept) for _, kept in fits]
        ratio = max(counts) / min(counts) if min(counts) else (1.0 if not max(counts) else np.inf)
        overlap = np.mean([jaccard(a[1], b[1]) for a, b in pairs])
        row(name, average, largest, " ".join(map(str, counts)), ratio, overlap)
        bars.most(f"{name}: mean movement of any two", average, 0.02)
        bars.most(f"{name}: largest movement", largest, 0.15)
        bars.most(f"{name}: most kept / least kept", ratio, 1.5)
        bars.least(f"{name}: mean Jaccard index", overlap, 0.8)
        figures[name] = [average, largest, counts, ratio, overlap]
    there = store(given, figures) or {}
    for name, values in there.items():
        print(f"other checkout, {name}: {values}")
    bars.show()


if __name__ == "__main__":
    main()
