"""The truth behind simulated data: features with signal, and their effects."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from baldur.exceptions import InputError


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
