"""BALDUR with default settings in simulated regimes of many kinds: never worse than the plain ones.

Usage::

    python benchmarks/regimes.py [--part dense weak small] [--seeds 10] [--jobs 2]

Unless a regime says otherwise: 200 training and 2,000 test rows, views of 50 and 500 features, 12
features with an effect, logit s.d. 2.5, two equal classes.

Competitors are cross-validated ridge, l1 and elastic-net logistic regression on the same rows.
Bars: in every regime mean AUC within .015 of the best of the three and mean log-loss within .01 of
the best of the three and of the base rate; over all regimes mean AUC above each of the three.
"""

from dataclasses import dataclass

import numpy as np
from common import Bars, auc, fit_default, header, kept_features, loss, parse, row, run_parts, store
from competitors import competitor, concatenate
from scipy.special import expit, softmax

from baldur import BaldurClassifier, MultiView

RIVALS = ("ridge", "l1", "elastic net", "base rate")
AUC_MARGIN, LOSS_MARGIN = 0.015, 0.01
BLOCK = 10


@dataclass(frozen=True)
class Regime:
    """How features, effects and labels of a regime are drawn."""

    law: str = "gaussian"
    design: str = "independent"
    n_effects: int | None = 12
    logit_sd: float = 2.5
    n_train: int = 200
    n_test: int = 2000
    rate: float = 0.5
    widths: tuple[int, ...] = (50, 500)
    n_classes: int = 2
    in_views: tuple[int, ...] | None = None


REGIMES = {
    "gaussian": Regime(),
    "laplace": Regime("laplace", n_effects=40),
    "student": Regime("student", n_effects=None),
    "dense": Regime(n_effects=None),
    "dense factors": Regime(n_effects=None, design="factors"),
    "dense blocks": Regime("student", n_effects=None, design="blocks"),
    "ar": Regime("laplace", design="ar"),
    "factors": Regime(design="factors"),
    "blocks": Regime("laplace", design="blocks"),
    "weak": Regime(logit_sd=1.0),
    "weak dense": Regime(n_effects=None, design="ar", logit_sd=1.0),
    "imbalanced": Regime("laplace", rate=0.1),
    "small": Regime(n_train=60, n_effects=5),
    "six views": Regime("laplace", widths=(5, 10, 20, 50, 100, 300), in_views=(1, 3)),
    "three classes": Regime(n_classes=3, logit_sd=3.0),
    "many rows": Regime("student", n_train=600, n_effects=None, widths=(20, 100)),
}


def draw_features(regime, n, rng):
    """Return all features (n, D), each with mean 0 and variance 1."""
    D = sum(regime.widths)
    noise = rng.standard_normal((n, D))
    if regime.design == "independent":
        return noise
    if regime.design == "ar":
        X = noise
        for d in range(1, D):
            X[:, d] = 0.9 * X[:, d - 1] + np.sqrt(1 - 0.81) * noise[:, d]
        return X
    if regime.design == "blocks":  # correlation .8 within neighbours of ten
        shared = rng.standard_normal((n, D // BLOCK + 1)).repeat(BLOCK, axis=1)[:, :D]
        return np.sqrt(0.8) * shared + np.sqrt(0.2) * noise
    loadings = rng.standard_normal((8, D)) / np.sqrt(8)  # eight factors, about half the variance
    X = rng.standard_normal((n, 8)) @ loadings + noise * np.sqrt(0.5)
    return X / np.sqrt((loadings**2).sum(axis=0) + 0.5)


def draw_effects(regime, rng):
    """Return effects (D, outputs) before scaling."""
    edges = np.cumsum((0, *regime.widths))
    views = range(len(regime.widths)) if regime.in_views is None else regime.in_views
    where = np.concatenate([np.arange(edges[v], edges[v + 1]) for v in views])
    if regime.n_effects is not None:
        where = rng.choice(where, regime.n_effects, replace=False)
    outputs = 1 if regime.n_classes == 2 else regime.n_classes
    draw = {
        "gaussian": lambda size: rng.standard_normal(size),
        "laplace": lambda size: rng.laplace(size=size),
        "student": lambda size: rng.standard_t(2, size=size),
    }[regime.law]
    effects = np.zeros((edges[-1], outputs))
    effects[where] = draw((len(where), outputs))
    return effects


def draw_labels(eta, rate, rng):
    """Return labels 0 and 1 with the log odds eta (n,), moved so that the rate is as given."""
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if expit(eta + middle).mean() < rate else (low, middle)
    return (rng.random(len(eta)) < expit(eta + low)).astype(int)


def simulate(name, seed):
    """Return views, labels and the number of training rows of a regime."""
    regime = REGIMES[name]
    rng = np.random.default_rng([seed, list(REGIMES).index(name)])
    n = regime.n_train + regime.n_test
    X = draw_features(regime, n, rng)
    eta = X @ draw_effects(regime, rng)
    eta = regime.logit_sd * (eta - eta.mean(axis=0)) / eta.std(axis=0)
    if regime.n_classes == 2:
        y = draw_labels(eta[:, 0], regime.rate, rng)
    else:
        p = softmax(eta, axis=1).cumsum(axis=1)
        y = (rng.random((n, 1)) > p[:, :-1]).sum(axis=1)
    parts = np.split(X, np.cumsum(regime.widths)[:-1], axis=1)
    data = MultiView({f"view{v}": part for v, part in enumerate(parts)})
    return data, y, regime.n_train


def baldur(name, seed):
    """Return AUC, log-loss, features kept and seconds of BALDUR."""
    return baldur_on(*simulate(name, seed))


def rivals(name, seed):
    """Return AUC and log-loss of every rival."""
    return rivals_on(*simulate(name, seed))


def baldur_on(data, y, n):
    """Return the figures of BALDUR fitted to the first n rows, on the others."""
    model, seconds = fit_default(BaldurClassifier, data[:n], y[:n])
    p = model.predict_proba(data[n:])
    return auc(y[n:], p), loss(y[n:], p), kept_features(model), seconds


def rivals_on(data, y, n):
    """Return the figures of every rival fitted to the first n rows, on the others."""
    X, X_new = concatenate(data, np.arange(n), np.arange(n, len(y)))
    found = [competitor(rival)(X, y[:n], X_new)[0] for rival in RIVALS]
    return [(auc(y[n:], p), loss(y[n:], p)) for p in found]


def compare(given, baldur, rivals):
    """Print the table and the bars."""
    ours = run_parts(baldur, given)
    theirs = run_parts(rivals, given, cache=given.cache).mean(axis=1)
    there = store(given, {name: ours[i].tolist() for i, name in enumerate(given.part)}) or {}
    mean = ours.mean(axis=1)
    for at, title in enumerate(("AUC", "log-loss")):
        shown = RIVALS[:3] if at == 0 else RIVALS
        print(f"\n{title}, means over {given.seeds} seeds:\n")
        other = ["other checkout"] if there else []
        header("regime", "BALDUR", *shown, "kept", "seconds", *other)
        for i, name in enumerate(given.part):
            other = [np.mean(there[name], axis=0)[at]] if name in there else []
            cells = (f"{mean[i, 2]:.1f}", f"{mean[i, 3]:.1f}", *other)
            row(name, mean[i, at], *theirs[i, : len(shown), at], *cells)
    bars = Bars()
    for i, name in enumerate(given.part):
        bars.least(f"{name}: AUC", mean[i, 0], theirs[i, :3, 0].max() - AUC_MARGIN)
        bars.most(f"{name}: log-loss", mean[i, 1], theirs[i, :, 1].min() + LOSS_MARGIN)
    average = theirs[:, :, 0].mean(axis=0)
    for rival, value in zip(RIVALS[:3], average[:3], strict=True):
        bars.above(f"average AUC, against {rival}", mean[:, 0].mean(), value)
    bars.show()


if __name__ == "__main__":
    compare(parse(__doc__, REGIMES, 10), baldur, rivals)
