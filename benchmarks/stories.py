"""The paper's two stories on simulated cohorts of its shapes: which views and features matter.

Usage::

    python benchmarks/stories.py [--part biofind adni] [--seeds 5] [--jobs 2]

- biofind, biofind-full: 215 people, five views, 5 % and all of 841,685 genotypes; the seven sleep
  items that matter are to be found and the genotypes dropped. -free: the same with independent
  genotypes, which leave far more chances for one of them to look like the disease.
- adni: 1,063 people, two images (20 % of 37,643 voxels each) and three tables that only repeat
  them. The tables are to get less than 10 % of the relevance.

What is kept is that of the fit on all rows. AUC is that of held-out fifths: all five (two at full
width, one for adni), predictions pooled. Bars: at most 2 genotypes kept in any fit, on average at
least 5.5 sleep items found and at most 2 false features, and AUC .01 above that of the landed
version, whose figures are given with ``--against``.
"""

import inspect
import time

import numpy as np
from common import Bars, fit_default, header, parse, row, run, store
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from baldur import BaldurClassifier
from baldur.datasets import genotypes, make_adni_like, make_biofind_like

TABLES = ("grey_matter_volume", "white_matter_volume", "csf_volume")
FIFTHS = {"biofind": 5, "biofind-free": 5, "biofind-full": 2, "biofind-full-free": 2, "adni": 1}
GAIN = 0.01


def cohort(part, seed):
    """Return the simulated people of a part."""
    if part == "adni":
        return make_adni_like(scale=0.2, random_state=seed)
    scale = 1.0 if "full" in part else 0.05
    if not part.endswith("free"):
        return make_biofind_like(scale=scale, random_state=seed)
    if "linkage" in inspect.signature(make_biofind_like).parameters:
        return make_biofind_like(scale=scale, linkage=False, random_state=seed)
    # A checkout from before the option: blocks of one marker draw the same bytes.
    genotypes._MEAN_BLOCK, blocks = 1, genotypes._MEAN_BLOCK
    try:
        return make_biofind_like(scale=scale, random_state=seed)
    finally:
        genotypes._MEAN_BLOCK = blocks


def held_out_auc(data, y, fifths):
    """Return the AUC of pooled predictions of the first fifths."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(len(y)), y)
    truth, scores = [], []
    for _, (train, test) in zip(range(fifths), folds, strict=False):
        model, _ = fit_default(BaldurClassifier, data[train], y[train])
        truth.append(y[test])
        scores.append(model.predict_proba(data[test])[:, 1])
    return float(roc_auc_score(np.concatenate(truth), np.concatenate(scores)))


def tell(part, seed):
    """Return what was found in one cohort, as a dictionary of figures."""
    people = cohort(part, seed)
    started = time.perf_counter()
    model, _ = fit_default(BaldurClassifier, people.data, people.target)
    seconds = time.perf_counter() - started
    kept = {view: int(mask.sum()) for view, mask in model.selected_features_.items()}
    figures = {
        "AUC": held_out_auc(people.data, people.target, FIFTHS[part]),
        "kept": sum(kept.values()),
        "seconds": seconds,
    }
    if part == "adni":
        return figures | {"tables": sum(model.view_relevance_[table] for table in TABLES)}
    found = sum(
        int((mask & people.truth.support(view)).sum())
        for view, mask in model.selected_features_.items()
    )
    return figures | {
        "found": found,
        "false": sum(kept.values()) - found,
        "genotypes": kept["genetic"],
        "relevance of sleep": float(model.view_relevance_["sleep"]),
    }


def add_bars(bars, part, runs):
    """Add the bars of a part."""
    if part == "adni":
        bars.most("adni: largest share of the tables", max(r["tables"] for r in runs), 0.1)
        return
    bars.most(f"{part}: most genotypes kept", max(r["genotypes"] for r in runs), 2)
    bars.least(f"{part}: sleep items found", np.mean([r["found"] for r in runs]), 5.5)
    bars.most(f"{part}: false features", np.mean([r["false"] for r in runs]), 2)


def main():
    """Read the arguments and tell the stories."""
    given = parse(__doc__, FIFTHS, 5)
    tasks = [(part, seed) for part in given.part for seed in range(given.seeds)]
    found = run(tell, tasks, given.jobs)
    runs = {p: found[i * given.seeds : (i + 1) * given.seeds] for i, p in enumerate(given.part)}
    there = store(given, runs)
    bars = Bars()
    for part, rows in runs.items():
        print(f"\n{part}:\n")
        header("seed", *rows[0], *(["AUC, other checkout"] if there else []))
        for seed, figures in enumerate(rows):
            other = [there[part][seed]["AUC"]] if there and len(there.get(part, [])) > seed else []
            row(seed, *figures.values(), *other)
        add_bars(bars, part, rows)
    gains = [
        a["AUC"] - b["AUC"]
        for part in runs
        if there and part != "adni"
        for a, b in zip(runs[part], there.get(part, []), strict=False)
    ]
    if gains:
        bars.least("biofind: AUC above the landed version's", np.mean(gains), GAIN)
    elif set(given.part) != {"adni"}:
        bars.missing("biofind: AUC above the landed version's", "needs --against")
    bars.show()


if __name__ == "__main__":
    main()
