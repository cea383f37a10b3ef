"""Awkward matrices: each function takes an ordinary matrix and a generator, and spoils it."""

import numpy as np

LARGEST = np.finfo(np.float64).max


def plain(X, rng):
    return X


def constant_columns(X, rng):
    X[:, rng.random(X.shape[1]) < 0.5] = rng.choice([0.0, 1.0, -3.7, 0.1, 1e9])
    return X


def all_constant(X, rng):
    X[:] = 0.1
    return X


def duplicated(X, rng):
    return X[:, rng.integers(0, X.shape[1], X.shape[1])]


def negated(X, rng):
    half = X.shape[1] // 2
    X[:, X.shape[1] - half :] = -X[:, :half]
    return X


def collinear(X, rng):
    rank = min(2, *X.shape)
    return X[:, :rank] @ rng.normal(size=(rank, X.shape[1]))


def equal_rows(X, rng):
    return X[rng.integers(0, 2, len(X))]


def one_scale(X, rng):
    return X * 10.0 ** rng.integers(-300, 300)


def mixed_scales(X, rng):
    return X * 10.0 ** rng.integers(-300, 300, X.shape[1])


def usable_scales(X, rng):
    return X * 10.0 ** rng.integers(-140, 140, X.shape[1])


def scales_within_columns(X, rng):
    return X * 10.0 ** rng.integers(-20, 20, X.shape)


def offsets(X, rng):
    return X * 10.0 ** rng.integers(-8, 3, X.shape[1]) + 10.0 ** rng.integers(0, 15, X.shape[1])


def subnormal(X, rng):
    return X * 1e-310


def largest(X, rng):
    X[rng.random(X.shape) < 0.1] = LARGEST
    return X


def one_outlier(X, rng):
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = 10.0 ** rng.integers(3, 140)
    return X


def two_values(X, rng):
    return np.where(X > 0, 1e7, 1e7 + 1.0)


def one_differs(X, rng):
    made = np.zeros(X.shape)
    made[0] = 1.0
    return made


def counts(X, rng):
    return np.exp(6 * X).round()


def nearly_constant(X, rng):
    return 1.0 + np.finfo(float).eps * np.round(2 * X)


def missing_cells(X, rng):
    X[rng.random(X.shape) < rng.choice([0.1, 0.5, 0.9])] = np.nan
    return X


def missing_columns(X, rng):
    X[:, rng.random(X.shape[1]) < 0.4] = np.nan
    return X


def missing_rows(X, rng):
    X[rng.random(len(X)) < 0.5] = np.nan
    return X


def all_missing(X, rng):
    X[:] = np.nan
    return X


def infinite_cell(X, rng):
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = rng.choice([-np.inf, np.inf])
    return X


QUIRKS = {
    f.__name__: f
    for f in (
        plain, constant_columns, all_constant, duplicated, negated, collinear, equal_rows,
        one_scale, mixed_scales, usable_scales, scales_within_columns, offsets, subnormal, largest,
        one_outlier, two_values, one_differs, counts, nearly_constant, missing_cells,
        missing_columns, missing_rows, all_missing, infinite_cell,
    )
}  # fmt: skip
"""What a view may look like."""

NEW_ROWS = ("alike", "huge", "largest", "tiny", "missing", "zero", "mixed")
"""What rows to predict may look like."""


def new_rows(kind, X, rng):
    """Rows to predict, from rows like those of training."""
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "huge":
            X = X * 10.0 ** rng.integers(150, 300)
        elif kind == "largest":
            X = np.where(rng.random(X.shape) < 0.5, -LARGEST, LARGEST)
        elif kind == "tiny":
            X = X * 1e-300
        elif kind == "missing":
            X = np.full(X.shape, np.nan)
        elif kind == "zero":
            X = np.zeros(X.shape)
        elif kind == "mixed":
            X = X * 10.0 ** rng.integers(-20, 200, X.shape)
    # Infinities are refused, which another case looks at.
    return np.clip(X, -LARGEST, LARGEST)
