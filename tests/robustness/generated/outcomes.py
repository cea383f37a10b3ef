"""Awkward outcomes and weights."""

import numpy as np


def labels(kind, score, rng):
    """Labels of one of several kinds, most of them with some relation to a score."""
    n = len(score)
    order = np.argsort(np.argsort(score))
    if kind == "separated":
        return (order >= n // 2).astype(int)
    if kind == "noise":
        return np.arange(n) % 2
    if kind == "text":
        return np.where(order >= n // 2, "ill", "well")
    if kind == "rare":  # two of one class
        return (order >= n - 2).astype(int)
    if kind == "single":  # one of one class
        return (order >= n - 1).astype(int)
    if kind == "three":
        return order * 3 // n
    if kind == "many":
        return np.arange(n) % max(2, min(60, n // 2))
    if kind == "one":
        return np.ones(n, dtype=int)
    if kind == "multilabel":
        made = np.column_stack([order >= n // 2, np.arange(n) % 2, order % 3 == 0])
        return made.astype(int)
    if kind == "flat multilabel":
        return np.column_stack([order >= n // 2, np.ones(n)]).astype(int)
    raise KeyError(kind)


LABELS = ("separated", "noise", "text", "rare", "single", "three", "many", "one", "multilabel",
          "flat multilabel")  # fmt: skip


def numbers(kind, score, rng):
    """Outcomes of one of several kinds, most of them with some relation to a score."""
    y = score + 0.1 * rng.normal(size=len(score))
    if kind == "exact":
        return score
    if kind == "constant":
        return np.full(len(y), 0.1)
    if kind == "nearly constant":
        return 1.0 + np.finfo(float).eps * (np.arange(len(y)) % 2)
    if kind == "scaled":
        return y * 10.0 ** rng.integers(-140, 140)
    if kind == "extreme":
        return y * 10.0 ** rng.choice([-320, -300, -200, 154, 200, 300])
    if kind == "offset":
        return 1e9 + 1e-5 * y
    if kind == "outlier":
        y[0] = 10.0 ** rng.integers(3, 140)
        return y
    if kind == "whole":
        return np.round(y).astype(int)
    if kind == "two":
        return np.column_stack([y, 10.0 ** rng.integers(-10, 10) * rng.normal(size=len(y))])
    if kind == "one of two constant":
        return np.column_stack([y, np.zeros(len(y))])
    if kind == "nan":
        y[0] = np.nan
        return y
    return y


NUMBERS = ("plain", "exact", "constant", "nearly constant", "scaled", "extreme", "offset",
           "outlier", "whole", "two", "one of two constant", "nan")  # fmt: skip


def sample_weights(kind, n, rng):
    """Weights of one of several kinds, or None."""
    if kind == "zeros":
        return (rng.random(n) < 0.7).astype(float)
    if kind == "counts":
        return rng.integers(1, 4, n).astype(float)
    if kind == "very large":
        return 1e200 * (1 + rng.random(n))
    if kind == "very small":
        return 1e-200 * (1 + rng.random(n))
    if kind == "enormous":
        return np.full(n, np.finfo(float).max)
    if kind == "three decades":
        return 10.0 ** rng.uniform(-1.5, 1.5, n)
    if kind == "24 decades":
        return 10.0 ** rng.uniform(-12, 12, n)
    if kind == "one heavy":
        return np.where(np.arange(n) == rng.integers(n), 1e5, 1.0)
    if kind == "negative":
        return np.where(np.arange(n) == 0, -1.0, 1.0)
    if kind == "nan":
        return np.where(np.arange(n) == 0, np.nan, 1.0)
    return None


SAMPLE_WEIGHTS = ("zeros", "counts", "very large", "very small", "enormous", "three decades",
                  "24 decades", "one heavy", "negative", "nan")  # fmt: skip


def class_weights(kind, y):
    """Weights of classes, or None."""
    classes = np.unique(y).tolist()
    values = {"uneven": 1e3, "huge": 1e200, "tiny": 1e-200, "zero": 0.0, "negative": -1.0,
              "nan": np.nan, "infinite": np.inf}  # fmt: skip
    if kind == "balanced":
        return "balanced"
    if kind == "unknown":
        return {"nobody": 1.0}
    if kind == "word":
        return "heavy"
    return {c: values[kind] if i == 0 else 1.0 for i, c in enumerate(classes)}


CLASS_WEIGHTS = ("balanced", "uneven", "huge", "tiny", "zero", "negative", "nan", "infinite",
                 "unknown", "word")  # fmt: skip
