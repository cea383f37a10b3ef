"""make_multiview: Gaussian views of any width, with signal in chosen features."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import Bunch

from baldur.core.parameters import FRACTION, NON_NEGATIVE, check, integer, optional
from baldur.datasets.simulated_outcomes import (
    RandomState,
    Truth,
    calibrate_intercept,
    draw_labels,
    per_view,
    streams,
)
from baldur.exceptions import InputError
from baldur.views import MultiView

ByView = Mapping[str, Any] | Sequence[Any]


def make_multiview(
    n: int = 200,
    dims: Mapping[str, int] | Sequence[int] = (20, 2000),
    *,
    informative: ByView | int | None = None,
    correlation: ByView | float = 0.0,
    block_size: int = 10,
    effect_range: tuple[float, float] = (0.7, 1.3),
    logit_sd: float = 3.0,
    n_classes: int | None = 2,
    weights: Sequence[float] | None = None,
    noise: float = 0.0,
    missing_cells: ByView | float = 0.0,
    missing_views: ByView | float = 0.0,
    dtype: DTypeLike = np.float64,
    random_state: RandomState = None,
) -> Bunch:
    """Simulate Gaussian views whose informative features are known.

    Features are standard normal. Each informative feature has an effect of random sign and a size
    drawn evenly from `effect_range`; all effects are then scaled together so that the linear
    predictor has the standard deviation `logit_sd`. Labels are drawn from the logistic (two
    classes) or softmax (more) probabilities of the predictor.

    Parameters
    ----------
    n : int, default=200
        Number of rows. For training and test rows with the same truth ask for all of them at once
        and split: rows are exchangeable, and the effects do not depend on `n`.
    dims : dict of str to int, or sequence of int, default=(20, 2000)
        Width of each view. A sequence gives views called "view0", "view1", ...
    informative : int, or one value per view (sequence or dict), optional
        For each view the number of informative columns, placed at random, or a list of columns.
        By default five columns of every view, or all columns where a view has fewer. Views that a
        dict does not name have no signal. With 0 everywhere the labels are random.
    correlation : float, or one value per view, default=0.0
        Correlation of neighbouring features, in blocks of `block_size` columns.
    block_size : int, default=10
        Width of the correlated blocks.
    effect_range : (float, float), default=(0.7, 1.3)
        Smallest and largest absolute effect before scaling.
    logit_sd : float, default=3.0
        Standard deviation of the linear predictor over the population, which determines how well
        the classes are separated. With more than two classes, that of each class's predictor.
    n_classes : int or None, default=2
        Number of classes; None gives a continuous target, predictor plus noise.
    weights : sequence of float, optional
        Expected share of each class. By default the intercepts are zero.
    noise : float, default=0.0
        Standard deviation of Gaussian noise added to the linear predictor before labels are drawn
        (with ``n_classes=None``: the residual).
    missing_cells : float, or one value per view, default=0.0
        Share of single cells replaced by NaN, completely at random.
    missing_views : float, or one value per view, default=0.0
        Share of samples with the view missing (a row of NaN). Every sample has at least one
        view.
    dtype : {float64, float32}, default=float64
        Type of the matrices.
    random_state : int, Generator, RandomState, SeedSequence or None
        Seed. The same seed gives the same bytes.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (`MultiView`), ``target`` (n,) and ``truth`` (`Truth`). Effects are coefficients
        of the linear predictor per standard deviation of the feature, and ``truth.score`` is the
        predictor without `noise`, intercept included.

    Notes
    -----
    The first rows do not depend on `n`: a call with ``n=200`` gives the first 200 rows of a call
    with ``n=2200``.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(100, {"a": 20, "b": 300}, informative={"b": 4}, random_state=0)
    >>> sim.data.shape
    (100, 320)
    >>> sim.truth.views
    ['b']
    """
    check("n", n, integer())
    check("block_size", block_size, integer())
    check("logit_sd", logit_sd, NON_NEGATIVE)
    check("n_classes", n_classes, optional(integer(least=2)))
    check("noise", noise, NON_NEGATIVE)
    widths = _check_dims(dims)
    names = list(widths)
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):  # the types that can hold NaN for gaps
        raise InputError(f"dtype must be float32 or float64, but got {dtype}.")
    correlations = _rates("correlation", correlation, names)
    cells = _rates("missing_cells", missing_cells, names)
    whole = _rates("missing_views", missing_views, names)

    place_rng, effect_rng, label_rng, gap_rng, *view_rngs = streams(
        random_state, 4 + 2 * len(names)
    )
    features = _place_features(informative, widths, place_rng)
    effects, covariance = _draw_effects(
        features, correlations, block_size, effect_range, logit_sd, n_classes, effect_rng
    )
    intercept = calibrate_intercept(covariance, noise, n_classes, weights)

    views: dict[str, NDArray[np.floating]] = {}
    score = np.tile(intercept, (n, 1))
    for i, name in enumerate(names):
        rngs = view_rngs[2 * i : 2 * i + 2]
        X = _draw_view(n, widths[name], correlations[name], block_size, dtype, rngs)
        coefficients = effects[name].reshape(len(features[name]), len(intercept))
        # einsum, not BLAS: the order of summation must not depend on the number of threads.
        score += np.einsum("nk,kc->nc", X[:, features[name]].astype(np.float64), coefficients)
        views[name] = X
    target = draw_labels(score, noise, n_classes, label_rng)
    _make_gaps(views, cells, whole, gap_rng)
    truth = Truth(
        n_features=widths,
        features=features,
        effects=effects,
        intercept=intercept,
        score=score[:, 0] if score.shape[1] == 1 else score,
    )
    return Bunch(data=MultiView(views), target=target, truth=truth)


def _check_dims(dims: Mapping[str, int] | Sequence[int]) -> dict[str, int]:
    """Return the number of features of every view by name; views of a sequence get names."""
    if isinstance(dims, Mapping):
        widths = {str(v): d for v, d in dims.items()}
    elif isinstance(dims, (Sequence, np.ndarray)) and not isinstance(dims, str):
        widths = {f"view{i}": d for i, d in enumerate(dims)}
    else:
        raise InputError(
            "dims must be a dict of view names to widths or a sequence of widths, but got "
            f"{dims!r}."
        )
    if not widths:
        raise InputError("dims is empty; give the width of at least one view.")
    for view, width in widths.items():
        check(f"dims[{view!r}]", width, integer())
    return {view: int(width) for view, width in widths.items()}


def _rates(name: str, value: ByView | float, views: list[str]) -> dict[str, float]:
    """Return the value of an argument for each view, which must be a share below 1."""
    rates = per_view(value, views, name, 0.0)
    for view, rate in rates.items():
        check(f"{name} of view {view!r}", rate, FRACTION)
    return {view: float(rate) for view, rate in rates.items()}


def _place_features(
    informative: ByView | int | None, widths: dict[str, int], rng: np.random.Generator
) -> dict[str, NDArray[np.intp]]:
    """Return the informative columns of every view, ascending: those given, or a random choice."""
    names = list(widths)
    if informative is None:
        wanted: dict[str, Any] = {v: min(5, d) for v, d in widths.items()}
    else:
        wanted = per_view(informative, names, "informative", 0)
    places = {}
    for name, width in widths.items():
        want = wanted[name]
        if isinstance(want, (Sequence, np.ndarray)) and not isinstance(want, str):
            columns = np.asarray(want, dtype=np.intp).reshape(-1)
            if len(np.unique(columns)) != len(columns):
                raise InputError(f"informative of view {name!r} repeats a column: {want!r}")
            if len(columns) and not (columns.min() >= 0 and columns.max() < width):
                raise InputError(
                    f"informative of view {name!r}: column numbers must be between 0 and "
                    f"{width - 1}, but got {want!r}"
                )
        else:
            check(f"informative of view {name!r}", want, integer(least=0))
            if want > width:
                raise InputError(
                    f"informative of view {name!r} asks for {want} columns and the view has "
                    f"{width}."
                )
            columns = rng.choice(width, int(want), replace=False)
        places[name] = np.sort(columns)
    return places


def _draw_effects(
    features: dict[str, NDArray[np.intp]],
    correlation: dict[str, float],
    block_size: int,
    effect_range: tuple[float, float],
    logit_sd: float,
    n_classes: int | None,
    rng: np.random.Generator,
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """Draw effects of the features; return them with the covariance of the linear predictors.

    Each predictor has the standard deviation `logit_sd`. Its variance is that of the population,
    known in closed form: within a block of correlation r it is
    (1 - r) sum_j b_j^2 + r (sum_j b_j)^2.

    Shapes: returns effects (k,) of k features in a view, or (k, C) for C > 2 classes, and
    covariance (1, 1), or (C, C).
    """
    for value in effect_range:
        check("effect_range", value, NON_NEGATIVE)
    low, high = (float(value) for value in effect_range)
    if not low <= high or high == 0:
        raise InputError(
            "effect_range must have a smaller first than second value, and a second one above 0, "
            f"but got {effect_range}."
        )
    outputs = n_classes if n_classes is not None and n_classes > 2 else 1
    raw = {}
    covariance = np.zeros((outputs, outputs))
    for name, columns in features.items():
        shape = (len(columns), outputs)
        b = rng.uniform(low, high, shape) * rng.choice([-1.0, 1.0], shape)
        raw[name] = b
        if len(columns):
            r = correlation[name]
            blocks, member = np.unique(columns // block_size, return_inverse=True)
            sums = np.zeros((len(blocks), outputs))
            np.add.at(sums, member, b)
            covariance += (1.0 - r) * b.T @ b + r * sums.T @ sums
    sd = np.sqrt(np.diag(covariance))
    factor = np.divide(logit_sd, sd, out=np.zeros(outputs), where=sd > 0)
    effects = {name: (b * factor)[:, 0] if outputs == 1 else b * factor for name, b in raw.items()}
    return effects, covariance * np.outer(factor, factor)


def _draw_view(
    n: int,
    width: int,
    correlation: float,
    block_size: int,
    dtype: np.dtype[Any],
    rngs: Sequence[np.random.Generator],
) -> NDArray[Any]:
    """Draw one view row by row, so that more rows leave the first ones as they are."""
    for_cells, for_blocks = rngs
    X: NDArray[Any] = for_cells.standard_normal((n, width), dtype=dtype.type)
    if correlation > 0:
        X *= np.sqrt(1.0 - correlation)
        shared = for_blocks.standard_normal((n, -(-width // block_size)), dtype=dtype.type)
        shared *= np.sqrt(correlation)
        X += np.repeat(shared, block_size, axis=1)[:, :width]
    return X


def _make_gaps(
    views: dict[str, NDArray[Any]],
    cells: dict[str, float],
    whole: dict[str, float],
    rng: np.random.Generator,
) -> None:
    """Write NaN into cells and whole views in place; every sample keeps at least one view."""
    for_cells, for_views = rng.spawn(2)
    n = len(next(iter(views.values())))
    draws = for_views.random((n, len(views) + 1))
    absent = draws[:, :-1] < np.array(list(whole.values()))
    without = np.flatnonzero(absent.all(axis=1))  # these get back one view at random
    absent[without, (draws[without, -1] * len(views)).astype(int)] = False
    for i, (name, rng_cells) in enumerate(zip(views, for_cells.spawn(len(views)), strict=True)):
        X = views[name]
        if cells[name] > 0:
            X[rng_cells.random(X.shape, dtype=np.float32) < cells[name]] = np.nan
        X[absent[:, i]] = np.nan
