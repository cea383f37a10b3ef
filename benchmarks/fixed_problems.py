"""Do two checkouts give the same answers? The default estimators on twenty fixed problems.

Usage::

    PYTHONPATH=../other/src python benchmarks/fixed_problems.py --save other.npz
    python benchmarks/fixed_problems.py --against other.npz [--part "multi-label" "six views"]
    python benchmarks/fixed_problems.py --load new.npz --against other.npz    # no fits

Each problem is drawn with a fixed seed or read from the shared data, fitted on its training rows
with default settings, and predicted on its test rows. Saved are predictions, selected features,
view relevance, coefficients, stacking weights, test scores and seconds. Only the part of the
public interface that all checkouts share is used.

A change is the absolute difference of two predictions: of probabilities, or, in regression, of
means divided by the standard deviation of the test outcomes. The scores are AUC and log-loss, means
over classes against the rest or over labels; for regression R2. Seconds are processor time of
``fit``, one thread, with wall time beside it.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import auc, header, loss, row
from scipy.special import expit
from shared_sets import load
from sklearn.metrics import r2_score, roc_auc_score
from threadpoolctl import threadpool_limits

import baldur
from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.datasets import make_multiview

N_TEST = 500
STACKING_NAMES = ("stacking_weights_", "stack_")


class Problem(NamedTuple):
    """Training and test rows, the estimator, and what `fit` is passed besides."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    model: Any
    fit_arguments: dict


# -- the problems -----------------------------------------------------------------------------


def split(X, y, n_train, model=None, **fit_arguments):
    """Return a problem that trains on the first rows and tests on the others."""
    model = BaldurClassifier() if model is None else model
    return Problem(X[:n_train], y[:n_train], X[n_train:], y[n_train:], model, fit_arguments)


def simulated(n_train, clinic, genes, seed, model=None, fit_arguments=None, **options):
    """Return a problem of two Gaussian views with three and five informative features."""
    options = {"informative": {"clinic": 3, "genes": 5}, "random_state": seed} | options
    sim = make_multiview(n_train + N_TEST, {"clinic": clinic, "genes": genes}, **options)
    return split(sim.data, sim.target, n_train, model, **(fit_arguments or {}))


def linear_views(rng, n, *widths):
    """Return standard normal matrices of n rows."""
    return [rng.standard_normal((n, width)) for width in widths]


def narrow(folder):
    """100 training rows, 8 and 30 columns."""
    return simulated(100, 8, 30, seed=1)


def wide(folder):
    """100 training rows, 20 and 200 columns."""
    return simulated(100, 20, 200, seed=2)


def one_view(folder):
    """Leukaemia types by their published split: 38 training rows, one view of 7,129 genes."""
    cohort = load("golub_leukemia")
    train, test = np.flatnonzero(cohort.split == "train"), np.flatnonzero(cohort.split == "test")
    X, y = cohort.data.view("expression").read(), cohort.y
    return Problem(X[train], y[train], X[test], y[test], BaldurClassifier(), {})


def six_views(folder):
    """120 training rows, six views of 5 to 160 columns, signal in two."""
    dims = dict(zip("abcdef", (5, 10, 20, 40, 80, 160), strict=True))
    sim = make_multiview(120 + N_TEST, dims, informative={"b": 3, "e": 3}, random_state=3)
    return split(sim.data, sim.target, 120)


def ten_classes(folder):
    """Handwritten digits: 120 training rows, views of 47 and 6 columns."""
    cohort = load("mfeat_digits")
    order = np.random.default_rng(4).permutation(len(cohort.y))[: 120 + N_TEST]
    data = cohort.data.select(["zernike", "morphological"])[order]
    return split(data, cohort.y[order], 120)


def three_classes(folder):
    """90 training rows, three classes, 10 and 60 columns."""
    return simulated(90, 10, 60, seed=5, n_classes=3)


def multi_label(folder):
    """100 training rows, three labels, 10 and 60 columns."""
    X, y = labels(100, 3, np.random.default_rng(6))
    return split(X, y, 100)


def two_factors(folder):
    """100 training rows, four labels that share two factors, ``n_factors=2``."""
    X, y = labels(100, 4, np.random.default_rng(7))
    return split(X, y, 100, BaldurClassifier(n_factors=2))


def labels(n_train, n_labels, rng):
    """Return two views and labels that depend on two factors of six features."""
    a, b = linear_views(rng, n_train + N_TEST, 10, 60)
    factors = np.column_stack([a[:, :3].sum(axis=1), b[:, :3].sum(axis=1)])
    eta = 1.5 * factors @ rng.standard_normal((2, n_labels))
    y = (rng.random(eta.shape) < expit(eta)).astype(int)
    return MultiView({"clinic": a, "genes": b}), y


def regression(folder):
    """100 training rows, one continuous outcome, 20 and 200 columns."""
    return simulated(100, 20, 200, 8, BaldurRegressor(), n_classes=None, noise=2.0)


def several_outcomes(folder):
    """100 training rows, three continuous outcomes, 10 and 60 columns."""
    rng = np.random.default_rng(9)
    a, b = linear_views(rng, 100 + N_TEST, 10, 60)
    signal = a[:, :4] @ rng.standard_normal((4, 3)) + b[:, :3] @ rng.standard_normal((3, 3))
    y = 5.0 + 10.0 * (signal + rng.standard_normal(signal.shape))
    return split(MultiView({"clinic": a, "genes": b}), y, 100, BaldurRegressor())


def missing_cells(folder):
    """100 training rows, 10 % of all cells missing."""
    return simulated(100, 20, 200, seed=10, missing_cells=0.1)


def missing_views(folder):
    """100 training rows; a quarter of the samples lacks the clinic, a quarter the genes."""
    return simulated(100, 20, 100, seed=11, missing_views=0.25)


def sample_weights(folder):
    """150 training rows, 20 and 2,000 columns, weights between 0 and 2."""
    weight = np.random.default_rng(12).uniform(0.0, 2.0, 150)
    weight[:5] = 0.0
    return simulated(150, 20, 2000, seed=12, fit_arguments={"sample_weight": weight})


def class_weights(folder):
    """100 training rows, a quarter of them in one class, ``class_weight="balanced"``."""
    model = BaldurClassifier(class_weight="balanced")
    return simulated(100, 10, 100, seed=13, model=model, weights=[0.75, 0.25])


def groups(folder):
    """Bowel disease, two thirds of the families, 508 genera and 4,626 metabolites."""
    cohort = load("ibd_families_jacobs")
    families = np.random.default_rng(14).permutation(np.unique(cohort.groups))
    known = np.isin(cohort.groups, families[: 2 * len(families) // 3])
    train, test = np.flatnonzero(known), np.flatnonzero(~known)
    arguments = {"groups": cohort.groups[train]}
    data, y = cohort.data, cohort.y
    return Problem(data[train], y[train], data[test], y[test], BaldurClassifier(), arguments)


def categories(folder):
    """100 training rows, two categories of four and three levels, eight numbers, 60 genes."""
    rng = np.random.default_rng(15)
    n = 100 + N_TEST
    codes = {"site": rng.integers(0, 4, n), "stage": rng.integers(0, 3, n)}
    effects = {"site": np.array([-2.0, 0.0, 0.0, 2.0]), "stage": np.zeros(3)}
    columns, info = [], []
    for name, code in codes.items():
        for level in range(len(effects[name])):
            columns.append((code == level).astype(float))
            info.append((name, f"level{level}"))
    numbers, genes = linear_views(rng, n, 8, 60)
    info += [(f"number{j}", None) for j in range(8)]
    eta = 1.5 * numbers[:, 0] + 1.5 * genes[:, 0] + effects["site"][codes["site"]]
    y = (rng.random(n) < expit(eta)).astype(int)
    info = pd.DataFrame(info, columns=["column", "level"])
    names = [c if pd.isna(v) else f"{c}={v}" for c, v in info.itertuples(index=False)]
    data = MultiView(
        {"clinic": np.column_stack([*columns, numbers]), "genes": genes},
        feature_names={"clinic": names},
        feature_info={"clinic": info},
    )
    return split(data, y, 100)


def on_disk(folder):
    """100 training rows; 20,000 columns in float32 are read from a ``.npy`` file."""
    rng = np.random.default_rng(16)
    a, b = linear_views(rng, 100 + N_TEST, 10, 20_000)
    y = (rng.random(len(a)) < expit(1.5 * a[:, :3].sum(axis=1) + 2.0 * b[:, 0])).astype(int)
    np.save(folder / "genes.npy", b.astype(np.float32))
    genes = np.load(folder / "genes.npy", mmap_mode="r")
    return split(MultiView({"clinic": a, "genes": genes}), y, 100)


def genotypes(folder):
    """150 training rows, 3,000 genotypes in int8 with 1 % missing, 10 clinical columns."""
    rng = np.random.default_rng(17)
    n = 150 + N_TEST
    g = rng.binomial(2, rng.uniform(0.05, 0.5, (1, 3000)), (n, 3000)).astype(np.int8)
    (a,) = linear_views(rng, n, 10)
    eta = 1.2 * (g[:, :4] - g[:, :4].mean(axis=0)).sum(axis=1) + 1.5 * a[:, 0]
    y = (rng.random(n) < expit(eta)).astype(int)
    g[rng.random(g.shape) < 0.01] = -127
    return split(MultiView({"clinic": a, "genotypes": g}), y, 150)


def imbalanced(folder):
    """150 training rows, a tenth of them ill."""
    return simulated(150, 10, 100, seed=18, weights=[0.9, 0.1])


def noise(folder):
    """100 training rows whose labels are pure chance."""
    return simulated(100, 20, 200, seed=19, informative=0)


PROBLEMS = {
    "binary, narrow": narrow,
    "binary, wide": wide,
    "one view": one_view,
    "six views": six_views,
    "three classes": three_classes,
    "ten classes": ten_classes,
    "multi-label": multi_label,
    "two factors": two_factors,
    "regression": regression,
    "several outcomes": several_outcomes,
    "missing cells": missing_cells,
    "missing views": missing_views,
    "sample weights": sample_weights,
    "class weights": class_weights,
    "groups": groups,
    "categories": categories,
    "on disk": on_disk,
    "genotypes": genotypes,
    "imbalanced": imbalanced,
    "noise": noise,
}


# -- measuring --------------------------------------------------------------------------------


def solve(problem):
    """Fit and predict; return a dictionary of arrays."""
    cpu, wall = time.process_time(), time.perf_counter()
    model = problem.model.fit(problem.X, problem.y, **problem.fit_arguments)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    continuous = isinstance(model, BaldurRegressor)
    predict = model.predict if continuous else model.predict_proba
    started = time.process_time()
    prediction = np.asarray(predict(problem.X_test))
    names = [
        f"{view}/{feature}"
        for view, mask in model.selected_features_.items()
        for feature in np.asarray(model.feature_names_[view])[np.asarray(mask)]
    ]
    stacking = next((getattr(model, a) for a in STACKING_NAMES if hasattr(model, a)), {})
    found = {
        "prediction": prediction,
        "unit": np.std(problem.y_test, axis=0) if continuous else np.array(1.0),
        "selected": np.array(names, dtype=str),
        "view_relevance": np.array(list(model.view_relevance_.values())),
        "stacking_names": np.array(list(stacking), dtype=str),
        "stacking_weights": np.array([np.mean(w) for w in dict(stacking).values()]),
        "seconds": np.array([cpu, wall, time.process_time() - started]),
    }
    found |= {f"coef of {view}": np.asarray(w) for view, w in model.coef_.items()}
    test_scores = scores(problem.y_test, prediction)
    return found | {f"score {name}": np.array(value) for name, value in test_scores.items()}


def scores(y, prediction):
    """Return R2, or AUC and log-loss, of predictions for test rows."""
    if y.dtype.kind == "f":
        return {"R2": r2_score(y, prediction)}
    if y.ndim == 1:
        return {"AUC": auc(y, prediction), "log-loss": loss(y, prediction)}
    p = np.clip(prediction, 1e-15, 1.0 - 1e-15)
    losses = -np.where(y == 1, np.log(p), np.log1p(-p))
    return {"AUC": roc_auc_score(y, p), "log-loss": losses.mean()}


def solve_all(names, save):
    """Solve the problems one after the other; save after each, so that no work is lost."""
    found = {}
    header("problem", "scores", "selected", "fit, CPU s", "wall s", "predict, CPU s")
    with (
        tempfile.TemporaryDirectory() as folder,
        threadpool_limits(limits=1),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for name in names:
            found[name] = one = solve(PROBLEMS[name](Path(folder)))
            seconds = [f"{s:.2f}" for s in one["seconds"]]
            row(name, show_scores(one), len(one["selected"]), *seconds)
            if save:
                flat = {f"{n}|{k}": v for n, values in found.items() for k, v in values.items()}
                np.savez_compressed(save, **flat)
    total = sum(one["seconds"] for one in found.values())
    row("total", "", "", *(f"{s:.1f}" for s in total))
    return found


def show_scores(one):
    """Return the scores of a problem as text."""
    return ", ".join(f"{k[6:]} {v:.3f}" for k, v in one.items() if k.startswith("score "))


def read(path):
    """Return what `solve_all` saved."""
    found = {}
    with np.load(path) as file:
        for key in file.files:
            name, what = key.split("|")
            found.setdefault(name, {})[what] = file[key]
    return found


# -- comparing --------------------------------------------------------------------------------


def compare(before, after):
    """Print how far the answers moved, problem by problem, and the summary."""
    print()
    title = ("largest change", "mean change", "Jaccard", "selected", "scores", "CPU s", "ratio")
    header("problem", *title)
    both = [name for name in after if name in before]
    lines = []
    for name in both:
        old, new = before[name], after[name]
        moved = np.abs(new["prediction"] - old["prediction"]) / old["unit"]
        a, b = set(old["selected"]), set(new["selected"])
        overlap = len(a & b) / len(a | b) if a | b else 1.0
        cpu = old["seconds"][0], new["seconds"][0]
        row(
            name, f"{moved.max():.1e}", f"{moved.mean():.1e}", f"{overlap:.2f}",
            f"{len(a)} -> {len(b)}", f"{show_scores(old)} -> {show_scores(new)}",
            f"{cpu[0]:.2f} -> {cpu[1]:.2f}", f"{cpu[1] / cpu[0]:.2f}",
        )  # fmt: skip
        lines.append((moved.max(), moved.mean(), overlap, *cpu))
    if not both:
        raise SystemExit("The two files have no problem in common.")
    largest, average, overlap, old, new = np.array(lines).T
    print(f"\n{len(both)} problems: largest change {largest.max():.2e} ({both[largest.argmax()]}),")
    print(f"mean change {average.mean():.2e}; mean Jaccard index {overlap.mean():.3f},")
    print(f"the same features selected in {np.sum(overlap == 1.0)};")
    for score in ("AUC", "log-loss", "R2"):
        key = f"score {score}"
        pairs = [(before[n][key], after[n][key]) for n in both if key in before[n]]
        if pairs:
            a, b = np.mean(pairs, axis=0)
            print(f"mean {score} {a:.4f} -> {b:.4f} over {len(pairs)};")
    ratio = np.exp(np.mean(np.log(new / old)))
    print(f"CPU seconds {old.sum():.1f} -> {new.sum():.1f}, geometric mean of ratios {ratio:.3f}")


def main():
    """Read the arguments; solve, save and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", nargs="+", choices=tuple(PROBLEMS), default=tuple(PROBLEMS))
    parser.add_argument("--save", type=Path, help="write the answers to this .npz file")
    parser.add_argument("--load", type=Path, help="answers saved earlier, instead of new fits")
    parser.add_argument("--against", type=Path, help="answers saved by another checkout")
    given = parser.parse_args()
    if given.load:
        after = {name: one for name, one in read(given.load).items() if name in given.part}
    else:
        print(f"measured: {Path(baldur.__file__).parent}\n", flush=True)
        after = solve_all(given.part, given.save)
    if given.against:
        compare(read(given.against), after)


if __name__ == "__main__":
    main()
