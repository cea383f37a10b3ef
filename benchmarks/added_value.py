"""Added value of a view: coverage of the intervals, false claims, power, and cost.

Usage::

    python benchmarks/added_value.py [--part fixed trained baldur cost] [--seeds 1000] [--jobs 2]

Simulated cohorts of 150 people, 40 % of them cases. A clinical view of 3 normal features has an AUC
of .75; a second view of 10 adds nothing, .02 or .10 to the AUC of the best rule.

- fixed: two rules that are not fitted to the people, so that the true difference of every metric on
  the population is known: the best rule of each view set, and for a view that adds nothing a second
  rule that gives some weight to noise, as a fitted model does. This is what the intervals are of.
  The share of studies that claim an increase can be compared with 80 %, where the true one is as
  large as what was called detectable.
- trained: logistic regressions in 5-fold cross-validation. The interval is compared with the mean
  true difference of the five pairs of models that were fitted (what it is of), and with the mean
  over all studies (what a reader may take it for; the variation between models fitted on other
  people is left out of the interval). A claim is false where the second view adds nothing.
- baldur: ``added_value`` with default settings, 5 folds of 100 people, a view that adds nothing and
  one that adds .10.
- cost: processor time of ad_csf with five view sets against one.

Bars: coverage 90 to 97 % for fixed rules; false claims of added value at most 5 %; cost at most 5.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import Bars, header, parse, row, run
from scipy.special import expit, ndtri
from shared_sets import load
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from baldur import MultiView
from baldur.evaluation import added_value, make_model, nested_cv
from baldur.evaluation.clinical.held_out import Resampled
from baldur.evaluation.view_additions import ADDED, compare_view_sets

PEOPLE, SHARE, AUC = 150, 0.4, 0.75
WIDTHS = {"clinical": 3, "second": 10}
ADDS = {"nothing": 0.0, "a little": 0.02, "much": 0.10}
NOISE = 0.3
"""Standard deviation of the noise that the second rule adds to the first where a view adds nothing,
in units of the first score: its AUC is .009 lower."""
THRESHOLDS = (0.3, 0.5)
LARGE = 200_000
TRAINED_STUDIES = 300
BALDUR_PEOPLE, BALDUR_STUDIES = 100, 10
SETS = [("demographic",), ("demographic", "csf_core"), ("csf_core",), ("proteins",), None]


def distances(case):
    """Return the standardised distances between cases and controls that each view has."""
    first, both = (np.sqrt(2) * ndtri(a) for a in (AUC, AUC + ADDS[case]))
    return first, np.sqrt(both**2 - first**2)


def draw(case, n, rng):
    """Return outcomes and the features of both views."""
    y = (rng.random(n) < SHARE).astype(int)
    views = {}
    for (name, width), distance in zip(WIDTHS.items(), distances(case), strict=True):
        views[name] = rng.standard_normal((n, width)) + y[:, None] * distance / np.sqrt(width)
    return y, views


def predictions(y, probabilities):
    """Return a predictions table of two models."""
    frames = [
        pd.DataFrame({"model": m, "sample": np.arange(len(y)), "label": y.astype(str), "p_1": p})
        for m, p in probabilities.items()
    ]
    return pd.concat(frames, ignore_index=True)


def differences(y, probabilities):
    """Return the table of differences between the models "both" and "clinical"."""
    sample = Resampled(predictions(y, probabilities))
    names = {"question": ADDED, "view": "second", "model": "both", "reference": "clinical"}
    pair = (names, np.ones(len(y), dtype=bool))
    found, _ = compare_view_sets(sample, [pair], thresholds=THRESHOLDS)
    return found.assign(metric=found["metric"] + found["threshold"].map("@{:g}".format).where(
        found["threshold"].notna(), "")).set_index("metric")  # fmt: skip


# -- fixed rules -----------------------------------------------------------------------------------


def fixed_rules(case, y, views, rng):
    """Return the probabilities of both rules, which know the population."""
    start = np.log(SHARE / (1 - SHARE))
    scores = {}
    for (name, width), distance in zip(WIDTHS.items(), distances(case), strict=True):
        scores[name] = distance * views[name].sum(axis=1) / np.sqrt(width) - distance**2 / 2
    both = scores["clinical"] + scores["second"]
    if case == "nothing":
        both = scores["clinical"] + NOISE * distances(case)[0] * rng.standard_normal(len(y))
    return {"clinical": expit(start + scores["clinical"]), "both": expit(start + both)}


def fixed(case, seed):
    """Return difference, low and high of every metric in one study."""
    rng = np.random.default_rng([seed, list(ADDS).index(case)])
    y, views = draw(case, PEOPLE, rng)
    found = differences(y, fixed_rules(case, y, views, rng))
    return found[["difference", "low", "high", "detectable"]]


def truth(case):
    """Return the true difference of every metric, from a very large cohort."""
    rng = np.random.default_rng([99, list(ADDS).index(case)])
    y, views = draw(case, 5 * LARGE, rng)
    p = fixed_rules(case, y, views, rng)
    found = {"auc": roc_auc_score(y, p["both"]) - roc_auc_score(y, p["clinical"])}
    both, clinical = p["both"], p["clinical"]
    found["brier"] = np.mean((both - y) ** 2 - (clinical - y) ** 2)
    losses = [-np.mean(np.log(np.where(y == 1, q, 1 - q))) for q in (both, clinical)]
    found["log_loss"] = losses[0] - losses[1]
    for t in THRESHOLDS:
        gain = [np.mean((q >= t) * np.where(y == 1, 1, -t / (1 - t))) for q in (both, clinical)]
        found[f"net_benefit@{t:g}"] = gain[0] - gain[1]
    return found


def part_fixed(given, bars):
    """Coverage of the intervals of fixed rules, and claims."""
    header("fixed rules", "metric", "true difference", "mean estimate", "covered", "claimed better",
           "detectable")  # fmt: skip
    for case in ADDS:
        tables = run(fixed, [(case, s) for s in range(given.seeds)], given.jobs)
        for metric, true in truth(case).items():
            figures = np.array([t.loc[metric].to_numpy(dtype=float) for t in tables])
            d, low, high, detectable = figures.T
            covered = np.mean((low <= true) & (true <= high))
            better = low > 0 if metric in ("auc",) or "@" in metric else high < 0
            row(case, metric, true, d.mean(), covered, np.mean(better), np.median(detectable))
            bars.within(f"coverage, {case}, {metric}", covered, 0.90, 0.97)
            if case == "nothing":
                bars.most(f"false claims, fixed, {metric}", np.mean(better), 0.05)


# -- trained models --------------------------------------------------------------------------------


def trained(case, seed):
    """Return estimate, low and high, and the true difference of the models."""
    rng = np.random.default_rng([seed, 7, list(ADDS).index(case)])
    y, views = draw(case, PEOPLE, rng)
    y_new, new = draw(case, LARGE // 10, rng)
    sets = {"clinical": ["clinical"], "both": list(WIDTHS)}
    X = {m: np.hstack([views[v] for v in s]) for m, s in sets.items()}
    X_new = {m: np.hstack([new[v] for v in s]) for m, s in sets.items()}
    p = {m: np.zeros(PEOPLE) for m in sets}
    true = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X["both"], y):
        aucs = {}
        for m in sets:
            model = LogisticRegression(C=0.3, max_iter=500).fit(X[m][train], y[train])
            p[m][test] = model.predict_proba(X[m][test])[:, 1]
            aucs[m] = roc_auc_score(y_new, model.decision_function(X_new[m]))
        true.append(aucs["both"] - aucs["clinical"])
    found = differences(y, p).loc["auc"]
    columns = ["difference", "low", "high"]
    return [*found[columns].astype(float), float(np.mean(true))]


def part_trained(given, bars):
    """Claims about models that are fitted in cross-validation."""
    header("trained models", "true difference", "mean estimate", "covers that of its models",
           "covers the mean", "better", "worse")  # fmt: skip
    studies = min(given.seeds, TRAINED_STUDIES)
    for case in ADDS:
        found = np.array(run(trained, [(case, s) for s in range(studies)], given.jobs))
        d, low, high, true = found.T
        own = np.mean((low <= true) & (true <= high))
        mean = np.mean((low <= true.mean()) & (true.mean() <= high))
        row(case, true.mean(), d.mean(), own, mean, np.mean(low > 0), np.mean(high < 0))
        if case == "nothing":
            bars.most("false claims, trained models", np.mean(low > 0), 0.05)


def baldur(case, seed):
    """Return difference, low and high of the AUC with BALDUR."""
    rng = np.random.default_rng([seed, 11, list(ADDS).index(case)])
    y, views = draw(case, BALDUR_PEOPLE, rng)
    found = added_value(MultiView(views), y, ["clinical"], random_state=seed).table
    found = found[(found["question"] == ADDED) & (found["metric"] == "auc")].iloc[0]
    return [float(found[c]) for c in ("difference", "low", "high", "detectable")]


def part_baldur(given, bars):
    """Claims with the default model."""
    header("BALDUR", "studies", "mean difference", "better", "worse", "detectable")
    studies = min(given.seeds, BALDUR_STUDIES)
    for case in ("nothing", "much"):
        found = np.array(run(baldur, [(case, s) for s in range(studies)], given.jobs))
        d, low, high, detectable = found.T
        row(case, studies, d.mean(), np.mean(low > 0), np.mean(high < 0), np.median(detectable))
        if case == "nothing":
            bars.most("false claims, BALDUR", np.mean(low > 0), 0.05)


# -- cost ------------------------------------------------------------------------------------------


def part_cost(_, bars):
    """Processor time of five view sets of ad_csf against one, and of the same again."""
    cohort = load("ad_csf")
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for sets in ([None], SETS, SETS):
            store = Path(folder) / str(len(sets))
            started = time.process_time()
            models = [make_model("BALDUR", views=None if s is None else list(s)) for s in sets]
            nested_cv(models, cohort.data, cohort.y, store=store).table()
            seconds.append(time.process_time() - started)
    header("ad_csf", "one view set", "five", "five, again from the store")
    row("processor seconds", *seconds)
    bars.most("cost of five view sets over one", seconds[1] / seconds[0], 5.0)


def main():
    """Run the parts that were asked for."""
    parts = {"fixed": part_fixed, "trained": part_trained, "baldur": part_baldur, "cost": part_cost}
    given = parse(__doc__, parts, 1000)
    bars = Bars()
    for name in given.part:
        parts[name](given, bars)
        print()
    bars.show()


if __name__ == "__main__":
    main()
