"""Labels from a linear predictor: logistic for two classes, softmax for more, or continuous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, softmax

from baldur.core.parameters import Constraint, check, integer, is_number
from baldur.exceptions import InputError

# Enough Monte Carlo draws for class shares to the third digit; the seed is fixed because the
# intercept is a property of the truth, not of the draw of rows.
_DRAWS = 20_000


def draw_labels(
    score: NDArray[np.float64], noise: float, n_classes: int | None, rng: np.random.Generator
) -> NDArray[Any]:
    """Draw a label per row of `score` (n, 1) or (n, C), after adding noise with the s.d. `noise`.

    Without classes (`n_classes` None) return the noisy score itself, as an outcome.
    """
    for_noise, for_labels = rng.spawn(2)
    if noise > 0:
        score = score + noise * for_noise.standard_normal(score.shape)
    if n_classes is None:
        return score[:, 0].copy()
    if n_classes == 2:
        cumulative = 1.0 - expit(score)
    else:
        cumulative = np.cumsum(softmax(score, axis=1), axis=1)[:, :-1]
    # A label is the number of classes whose cumulative probability a uniform number exceeds.
    u = for_labels.random(len(score))
    return (u[:, None] >= cumulative).sum(axis=1).astype(np.int64)


def calibrate_intercept(
    covariance: NDArray[np.float64],
    noise: float,
    n_classes: int | None,
    weights: Sequence[float] | None,
) -> NDArray[np.float64]:
    """Return the intercept at which classes have the expected shares `weights`.

    The linear predictors are Gaussian around it, with `covariance` and independent noise.

    Shapes: covariance (C, C); returns (C,), with C = 1 for two classes.
    """
    outputs = len(covariance)
    if weights is None:
        return np.zeros(outputs)
    if n_classes is None:
        raise InputError("weights (class shares) have no meaning with n_classes=None; leave it out")
    shares = np.asarray(weights, dtype=float)
    if shares.shape != (n_classes,) or not np.all(shares > 0) or not np.isclose(shares.sum(), 1):
        raise InputError(
            f"weights must be {n_classes} positive shares that sum to 1, got {list(weights)}"
        )
    if outputs == 1:
        nodes, mass = np.polynomial.hermite_e.hermegauss(64)
        mass = mass / mass.sum()
        sd = float(np.sqrt(covariance[0, 0] + noise**2))

        def excess(b: float) -> float:
            """Return how far the expected share of the second class is too large."""
            return float(mass @ expit(b + sd * nodes)) - shares[1]

        reach = 40.0 + 10.0 * sd
        return np.array([brentq(excess, -reach, reach)])

    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(covariance + (noise**2 + 1e-12) * np.eye(outputs))
    draws = rng.standard_normal((_DRAWS, outputs)) @ root.T
    # Several classes: shares are means over draws, and the intercept moves by their log ratio.
    b = np.log(shares)
    for _ in range(500):
        step = np.log(shares) - np.log(softmax(draws + b, axis=1).mean(axis=0))
        b += step
        if np.abs(step).max() < 1e-6:
            break
    return b - b.mean()


SCALE = Constraint(lambda v: is_number(v, 0.0, 1.0) and v > 0.0, "a number above 0 and at most 1")
"""What the scale of a cohort must be: the share of the columns that are drawn."""


def scaled_width(scale: Any, full: int, least: int) -> int:
    """Return the width ``round(full * scale)``, which must be at least `least`."""
    check("scale", scale, SCALE)
    width = round(full * float(scale))
    if width < least:
        raise InputError(
            f"scale={scale!r} gives {width} of {full} columns, but at least {least} are needed. "
            f"Use scale={least / full:.2g} or more."
        )
    return width


def per_view(value: Any, names: list[str], name: str, default: Any) -> dict[str, Any]:
    """Return the value of an argument for each view.

    A mapping has values by view name (`default` where a view is not named), a sequence has one
    value per view, and any other value is used for every view.
    """
    if isinstance(value, Mapping):
        unknown = [v for v in value if v not in names]
        if unknown:
            raise InputError(f"{name} names the views {unknown}, which are not among {names}.")
        return {v: value.get(v, default) for v in names}
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        if len(value) != len(names):
            raise InputError(
                f"{name} has {len(value)} values and there are {len(names)} views ({names}); give "
                "one value per view, or a dict by view name."
            )
        return dict(zip(names, value, strict=True))
    return dict.fromkeys(names, value)


SEED = Constraint(
    lambda v: v is None or integer(least=0).is_legal(v),
    "an integer of at least 0, a numpy Generator or RandomState, a SeedSequence or None",
)
RandomState = int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None


def streams(random_state: RandomState, count: int) -> list[np.random.Generator]:
    """Return `count` generators that depend only on `random_state`.

    Examples
    --------
    >>> a, b = streams(0, 2)
    >>> bool(a.random() == streams(0, 1)[0].random())
    True
    """
    root: np.random.SeedSequence
    if isinstance(random_state, np.random.SeedSequence):
        # A copy, because spawning changes a sequence.
        root = np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)
    elif isinstance(random_state, np.random.Generator):
        root = np.random.SeedSequence([int(v) for v in random_state.integers(2**32, size=4)])
    elif isinstance(random_state, np.random.RandomState):
        root = np.random.SeedSequence([int(v) for v in random_state.randint(2**31 - 1, size=4)])
    else:
        check("random_state", random_state, SEED)
        root = np.random.SeedSequence(None if random_state is None else int(random_state))
    return [np.random.default_rng(child) for child in root.spawn(count)]


def draw_cohort(n_first: int, n_second: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the target of a cohort in random order: 1 for `n_first` people, 0 for `n_second`."""
    target = np.repeat(np.array([1, 0], dtype=np.int64), [n_first, n_second])
    rng.shuffle(target)
    return target


@dataclass(frozen=True, eq=False)
class Truth:
    """Features, views and effect sizes behind a simulated data set.

    Parameters
    ----------
    n_features : dict of str to int
        Width of every view, in view order.
    features : dict of str to ndarray of int
        Columns that carry signal, ascending; an empty array for a view without signal.
    effects : dict of str to ndarray of float
        Effect of each of these columns, in the same order: shape (k,), or (k, n_classes) where
        every class has its own. The simulator's docstring says in what units.
    intercept : ndarray of float
        Constant of the linear predictor, shape (1,) or (n_classes,).
    score : ndarray of float, optional
        The linear predictor (or latent score) of every row, as the labels were drawn from it.
    redundant : tuple of str
        Views whose signal only repeats that of another view.

    Attributes
    ----------
    views : list of str
        Names of the views with informative features, without redundant views.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 5, "b": 8}, informative={"b": [2, 6]}, random_state=0)
    >>> truth = sim.truth
    >>> truth.views, truth.features["b"]
    (['b'], array([2, 6]))
    >>> truth.weights("b").round(2)
    array([ 0.  ,  0.  , -2.38,  0.  ,  0.  ,  0.  ,  1.82,  0.  ])
    """

    n_features: dict[str, int]
    features: dict[str, NDArray[np.intp]]
    effects: dict[str, NDArray[np.float64]]
    intercept: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    score: NDArray[np.float64] | None = None
    redundant: tuple[str, ...] = ()

    @property
    def views(self) -> list[str]:
        """Names of the views with informative features, without redundant views."""
        return [v for v, cols in self.features.items() if len(cols) and v not in self.redundant]

    def weights(self, view: str) -> NDArray[np.float64]:
        """Return the effects of one view at full width, zero where there is no signal.

        Parameters
        ----------
        view : str
            Name of the view.

        Returns
        -------
        ndarray of float
            Shape (n_features,) or (n_features, n_classes).
        """
        self._check(view)
        effects = self.effects[view]
        full = np.zeros((self.n_features[view], *effects.shape[1:]))
        full[self.features[view]] = effects
        return full

    def support(self, view: str) -> NDArray[np.bool_]:
        """Return a mask of the columns of one view that carry signal.

        Parameters
        ----------
        view : str
            Name of the view.

        Returns
        -------
        ndarray of bool
            Shape (n_features,).
        """
        self._check(view)
        mask = np.zeros(self.n_features[view], dtype=bool)
        mask[self.features[view]] = True
        return mask

    def _check(self, view: str) -> None:
        if view not in self.n_features:
            raise InputError(
                f"There is no view {view!r} in the simulated data; the views are "
                f"{list(self.n_features)}."
            )
