"""A generated case: an estimator, awkward data to fit it on, and awkward rows to predict."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.paper import PaperClassifier, PaperRegressor
from robustness.generated import features, outcomes

MEMBERS = BaldurClassifier().members
CLASSES = (BaldurClassifier, BaldurRegressor, PaperClassifier, PaperRegressor)

FORMS = ("array", "array", "views", "views", "views", "float32", "float16", "int8", "frame",
         "csr", "csc", "columns")  # fmt: skip
"""How the matrix arrives; twice named, twice as often."""

REFUSED = frozenset(
    {
        *("one_scale", "mixed_scales", "largest", "infinite_cell"),  # views
        *("single", "one", "flat multilabel"),  # labels
        *("constant", "nearly constant", "extreme"),  # numbers
        *("24 decades", "negative", "nan"),  # weights, and numbers
        *("huge", "tiny", "zero", "infinite", "unknown", "word"),  # weights of classes
    }
)
"""Kinds that are always or mostly refused."""


@dataclass
class Case:
    """Everything one run needs.

    Attributes
    ----------
    name : str
        What was drawn, for messages.
    estimator : estimator
        Not fitted.
    X, y : object
        Training data.
    new : object
        Rows to predict.
    fit : dict
        Further arguments of ``fit``.
    """

    name: str
    estimator: Any
    X: Any
    y: Any
    new: Any
    fit: dict = field(default_factory=dict)


def make_case(seed, number, quick=False):
    """Draw case `number` of a seed.

    Parameters
    ----------
    seed, number : int
        Together they decide everything.
    quick : bool
        Draw a case that takes a few hundredths of a second, for the fast suite.
    """
    rng = np.random.default_rng([seed, number])
    classify = bool(rng.integers(2))
    kind = _drawn(rng, outcomes.LABELS if classify else outcomes.NUMBERS)
    n = int(rng.choice([2, 3, 4, 5, 6, 9, 14, 24, 40]))
    widths = rng.choice([1, 1, 2, 3, 3, 5, 12, 60], size=rng.choice([1, 1, 2, 3]))
    if quick:
        n, widths = min(n, 9), np.minimum(widths, 3)
    if kind == "many":
        # Sixty classes in one case of ten: they take their time.
        most = 120 if rng.random() < 0.1 else 20
        n, widths = 9 if quick else most, np.minimum(widths, 3)
    # Rows to predict come with those of training, so that quirks of a row fall on both.
    m, parts, drawn = n + 5, {}, []
    signal = rng.normal(size=m)
    for v, width in enumerate(widths):
        quirk = _drawn(rng, features.QUIRKS)
        X = rng.normal(size=(m, width))
        X[:, 0] += 2 * signal
        with np.errstate(all="ignore"):
            parts[f"v{v}"] = features.QUIRKS[quirk](X, rng)
        drawn.append(f"{quirk}({width})")
    made = (outcomes.labels if classify else outcomes.numbers)(kind, signal[:n], rng)
    options, fit = _options(rng, classify, kind, made, n, quick)
    later = str(rng.choice(features.NEW_ROWS))
    new = {v: features.new_rows(later, X[n:], rng) for v, X in parts.items()}
    form = str(rng.choice(FORMS))
    X, estimator = _form(form, {v: X[:n] for v, X in parts.items()}, options)
    new, _ = _form(form, new, dict(options))
    name = (
        f"{number}: {type(estimator).__name__}({_said(options)}), n={n}, {form}: "
        f"{' '.join(drawn)}; y {kind}; fit {fit and list(fit)}; new {later}"
    )
    return Case(name, estimator, X, made, new, fit)


def _drawn(rng, kinds):
    """Draw a kind; those that no fit survives come a fifth as often as the others."""
    names = list(kinds)
    share = np.array([0.2 if name in REFUSED else 1.0 for name in names])
    return names[rng.choice(len(names), p=share / share.sum())]


def _options(rng, classify, kind, y, n, quick):
    structured = bool(rng.random() < 0.6)
    # Drawn for both kinds alike, so that what follows is drawn as it always was.
    choice = int(rng.integers(4 if structured else 3))
    options = {
        "class": CLASSES[(0 if structured else 2) + (not classify)],
        "preparation": str(rng.choice(["clipped", "clipped", "standard", "rank"])),
    }
    if structured:
        options["members"] = [MEMBERS, ("pooled",), ("spike_slab",), ("per_view",)][choice]
    else:
        options["sparsity"] = [1e-6, 0.5, np.inf][choice]
        # Iterations beyond the first few repeat the same steps; one case in twenty has all.
        options["max_iter"] = 200 if rng.random() < 0.05 else 8
        if rng.random() < 0.15:
            options["space"] = "dual"
    if quick:
        options["max_iter"] = 3
        if options.get("members") == MEMBERS and rng.random() < 0.8:
            options["members"] = ("pooled",)
    if kind == "many" and n > 40:
        options["max_iter"] = 3  # sixty outputs take their time, and hide nothing else
    if rng.random() < 0.2:
        options["n_factors"] = int(rng.integers(1, 4))
    if classify and rng.random() < 0.2 and not structured:
        options["bound"] = "jaakkola"
    fit = {}
    if classify and rng.random() < 0.3:
        chosen = _drawn(rng, outcomes.CLASS_WEIGHTS)
        options["class_weight"] = outcomes.class_weights(chosen, y)
    if rng.random() < 0.35:
        chosen = _drawn(rng, outcomes.SAMPLE_WEIGHTS)
        fit["sample_weight"] = outcomes.sample_weights(chosen, n, rng)
    if structured and rng.random() < 0.1:
        fit["groups"] = np.arange(n) // 2
    return options, fit


def _form(form, parts, options):
    """Return the matrix in its form, and the estimator that knows its views."""
    options = dict(options)
    kind = options.pop("class")
    if form == "views":
        return MultiView(parts), kind(**options)
    X = np.concatenate(list(parts.values()), axis=1)
    if form in ("float32", "float16"):
        with np.errstate(over="ignore"):
            return X.astype(form), kind(**options)
    if form == "int8":
        with np.errstate(all="ignore"):
            return np.clip(np.nan_to_num(X), -100, 100).astype(np.int8), kind(**options)
    if form in ("csr", "csc"):
        made = sparse.csr_matrix if form == "csr" else sparse.csc_matrix
        return made(np.where(np.abs(X) < 0.5, 0, X)), kind(**options)
    if form == "frame":
        frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
        return frame, kind(**options)
    if form == "columns" and X.shape[1] > 1:
        cut = X.shape[1] // 2
        views = {"left": slice(0, cut), "right": slice(cut, None)}
        return X, kind(views=views, **options)
    return X, kind(**options)


def _said(options):
    return ", ".join(f"{k}={v!r}" for k, v in options.items() if k != "class")
