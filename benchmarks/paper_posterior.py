"""The paper's posterior: processor seconds of one fit, and relevance vectors of dual views.

Usage::

    python benchmarks/paper_posterior.py [--part adni labels biofind relevance compared] [--seeds 1]

- adni: cohort of the ADNI shape at scale 0.05, 850 of 1,063 people, 4,172 features.
- labels: four labels that share two factors, 300 people, 330 features.
- biofind: cohort of the BioFIND shape at full width, 172 of 215 people, 841,732 features.
- relevance: signal in a wide dual view, 200 training samples. The share of the training samples
  that are relevance vectors, and the AUC that is lost against all of them as relevance vectors, on
  held-out samples, means over five folds.
- compared: AUC and selected features of the paper's posterior, of the default and of l1 logistic
  regression on the same five folds: the BioFIND shape at scale 0.02, seeds 0 to 2, and the ADNI
  shape at 0.05, seed 0.

Seconds are processor time of one thread, so that other processes do not matter much.
"""

import time

import numpy as np
from common import Bars, auc, header, kept_features, parse, row, run
from competitors import competitor, concatenate
from sklearn.model_selection import StratifiedKFold

from baldur import BaldurClassifier
from baldur.datasets import make_adni_like, make_biofind_like, make_multiview
from baldur.paper import PaperClassifier

MOST_SECONDS = {"adni": 20, "labels": 20, "biofind": 90}
PARTS = (*MOST_SECONDS, "relevance", "compared")
COMPARED = (("biofind", 0.02, 0), ("biofind", 0.02, 1), ("biofind", 0.02, 2), ("adni", 0.05, 0))
MOST_SHARE, MOST_LOSS = 0.5, 0.01
VIEWS = {"clinical": slice(0, 30), "genes": slice(30, 330)}


def labels(seed):
    """Return 300 people with 30 and 300 features, and four labels behind which are two factors."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 330))
    W = np.zeros((330, 2))
    for k in range(2):
        W[rng.choice(30, 3, replace=False), k] = rng.normal(size=3)
        W[30 + rng.choice(300, 4, replace=False), k] = rng.normal(size=4)
    factors = X @ W
    eta = 2.0 * factors / factors.std(axis=0) @ rng.normal(size=(2, 4))
    y = (rng.random(eta.shape) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    return X, y


def simulate(study, scale, seed):
    """Return a cohort and five folds of it."""
    make = {"adni": make_adni_like, "biofind": make_biofind_like}[study]
    cohort = make(scale=scale, random_state=seed)
    split = StratifiedKFold(5, shuffle=True, random_state=0).split
    return cohort, list(split(np.zeros(len(cohort.target)), cohort.target))


def compare(study, scale, seed):
    """Return AUC and selected features of three models, means over five folds."""
    cohort, folds = simulate(study, scale, seed)
    y, found = cohort.target, []
    for train, test in folds:
        figures = []
        for model in (PaperClassifier(), BaldurClassifier()):
            model.fit(cohort.data[train], y[train])
            held_out = auc(y[test], model.predict_proba(cohort.data[test]))
            figures += [held_out, kept_features(model)]
        X, X_new = concatenate(cohort.data, train, test)
        p, kept = competitor("l1")(X, y[train], X_new)
        found.append([*figures, auc(y[test], p), kept])
    return np.mean(found, axis=0)


def time_fit(part, seed):
    """Return processor seconds, features selected, factors, and AUC of held-out people."""
    if part == "labels":
        X, y = labels(seed)
        started = time.process_time()
        model = PaperClassifier(views=VIEWS).fit(X, y)
        return time.process_time() - started, kept_features(model), model.n_factors_, np.nan
    cohort, folds = simulate(part, {"adni": 0.05, "biofind": 1.0}[part], seed)
    y = cohort.target
    train, test = folds[0]
    started = time.process_time()
    model = PaperClassifier().fit(cohort.data[train], y[train])
    seconds = time.process_time() - started
    held_out = auc(y[test], model.predict_proba(cohort.data[test]))
    return seconds, kept_features(model), model.n_factors_, held_out


def relevance(seed):
    """Return the largest share of relevance vectors, and both AUCs, means over folds."""
    dims, informative = {"a": 20, "b": 2000, "noise": 800}, {"b": 6}
    sim = make_multiview(250, dims, informative=informative, random_state=seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(250), sim.target)
    shares, few, every = [], [], []
    for train, test in folds:
        for chosen, scores in (("auto", few), (None, every)):
            model = PaperClassifier(space="dual", relevance_vectors=chosen)
            model.fit(sim.data[train], sim.target[train])
            scores.append(auc(sim.target[test], model.predict_proba(sim.data[test])))
            if chosen is not None:
                shares.append(max(map(len, model.relevance_vectors_.values())) / len(train))
    return max(shares), float(np.mean(few)), float(np.mean(every))


def main():
    """Read the arguments and measure."""
    given = parse(__doc__, PARTS, 1)
    bars = Bars()
    timed = [part for part in given.part if part in MOST_SECONDS]
    tasks = [(part, seed) for part in timed for seed in range(given.seeds)]
    if timed:
        header("part", "seed", "seconds", "selected", "factors", "AUC")
    found = run(time_fit, tasks, given.jobs)
    for task, figures in zip(tasks, found, strict=True):
        row(*task, *figures)
    for part in timed:
        worst = max(f[0] for t, f in zip(tasks, found, strict=True) if t[0] == part)
        bars.most(f"{part}: processor seconds of a fit", worst, MOST_SECONDS[part])
    if "relevance" in given.part:
        header("seed", "share of samples", "AUC", "AUC, all samples")
        for seed, figures in enumerate(
            run(relevance, [(s,) for s in range(given.seeds)], given.jobs)
        ):
            row(seed, *figures)
            bars.most(f"relevance vectors, seed {seed}: share", figures[0], MOST_SHARE)
            bars.most(f"relevance vectors, seed {seed}: loss", figures[2] - figures[1], MOST_LOSS)
    if "compared" in given.part:
        header("study", "scale", "seed", "paper", "kept", "default", "kept", "l1", "kept")
        for task, figures in zip(COMPARED, run(compare, COMPARED, given.jobs), strict=True):
            row(*task, *figures)
    bars.show()


if __name__ == "__main__":
    main()
