"""Do the parts of a loaded model fit together? Asked before anybody predicts with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.persist.classes import METHODS, name_of
from baldur.persist.forms import FORMS, LATER
from baldur.persist.shapes import Scope, object_of, places

__all__ = ["verify"]

_ESTIMATORS = ("BaldurClassifier", "BaldurRegressor", "MeanFieldClassifier", "MeanFieldRegressor")


def verify(model: Any) -> None:
    """Refuse a model whose parts do not fit each other.

    Parameters
    ----------
    model : estimator
        As `Decoder` made it. A baseline, which skops made, is left to it.
    """
    if name_of(model) is not None:
        _look(model, Scope({}, [], [], _look), name_of(model) or "")


def _look(value: Any, scope: Scope, what: str) -> None:
    name = name_of(value) or ""
    if name in _ESTIMATORS or name == "SideBySide":
        scope = _scope_of(value.preparation_, what)
    elif name == "Preparation" and not scope.views:
        scope = _scope_of(value, what)
    inside = scope.inside()
    if name == "NormalScores":
        inside = scope.inside(D=len(np.atleast_1d(value.position)))
    own = vars(value)
    for attribute, check in FORMS[name].items():
        if attribute not in own:
            raise InputError(f"{what}: it has no {attribute}")
        check(own[attribute], inside, f"{what}.{attribute}")
    for attribute, check in LATER.get(name, {}).items():
        if attribute in own:
            check(own[attribute], inside, f"{what}.{attribute}")
    if name in _RELATIONS:
        _RELATIONS[name](value, scope, what)


def _scope_of(preparation: Any, what: str) -> Scope:
    widths = getattr(preparation, "n_features_", None)
    good = isinstance(widths, dict) and all(
        isinstance(k, str) and type(n) is int and n > 0 for k, n in widths.items()
    )
    if not good or not widths:
        raise InputError(f"{what}: it does not say which views it was fitted on")
    return Scope({"M": len(widths)}, list(widths), list(widths.values()), _look)


def _need(holds: Any, what: str, said: str) -> None:
    if not holds:
        raise InputError(f"{what}: {said}")


# -- relations between attributes ----------------------------------------------------------------


def _estimator(model: Any, scope: Scope, what: str) -> None:
    _need(model.view_names_ == scope.views, what, "its views are not those of its preparation")
    # The posterior is of prepared columns, of which there may be fewer than columns of the input.
    widths = list(model.preparation_.scaling_.n_features_.values())
    posterior = replace(scope, widths=widths)
    object_of("Fitted")(model._posterior, posterior.inside(), f"{what}._posterior")
    model._check_parameters()
    K, C = scope.sizes["K"], scope.sizes["C"]
    _need(model.n_factors_ == K, what, "it has another number of factors than it says")
    classes = getattr(model, "classes_", None)
    if classes is None:
        return
    _need(isinstance(classes, np.ndarray) and classes.ndim == 1, what, "its classes are no list")
    outputs = 1 if model._task == "binary" else len(classes)
    _need(outputs == C, what, f"it has {C} outputs for {len(classes)} classes")
    _need(model._task != "binary" or len(classes) == 2, what, "two classes are needed")


def _preparation(made: Any, scope: Scope, what: str) -> None:
    _need(hasattr(made, "scaling_"), what, "nothing was learned")


def _normal_scores(made: Any, scope: Scope, what: str) -> None:
    ranked = made.knots.shape[1]
    inside = made.position.size == 0 or (made.position.min() >= -1 and made.position.max() < ranked)
    _need(inside and len(made.knots) > 0, what, "a column refers to knots that are not there")
    _need((np.diff(made.knots, axis=0) >= 0).all(), what, "knots do not rise")


def _fitted(made: Any, scope: Scope, what: str) -> None:
    for rule in (made.latent, made.moments):
        _predictor(rule, scope, what)


def _predictor(rule: Any, scope: Scope, what: str) -> None:
    """A method of a mixture, or one of the objects that stand for one."""
    owner = getattr(rule, "__self__", None)
    if name_of(owner) in METHODS:
        _look(owner, scope, what)
    else:
        object_of("_Predict", "_Latent")(rule, scope, what)


def _mixture(made: Any, scope: Scope, what: str) -> None:
    _need(list(made.widths) == scope.widths, what, "it is of views of another width")
    pairs = len(made.components) if made.pool is None else 1
    _need(pairs == scope.sizes["J"], what, "another number of moments than of their weights")
    if made.loadings is None:
        _need(scope.sizes["K"] == scope.sizes["C"], what, "factors and outputs differ in number")
    else:
        b = made.loadings.b_var
        _need(np.shape(b) in ((), (scope.sizes["C"],)), what, "variances of intercepts are cut")


def _explicit(made: Any, scope: Scope, what: str) -> None:
    kept = sum(map(len, made.index))
    _need(made.mean.shape[1] == kept + 1, what, "it has more or fewer weights than features")


def _implicit(made: Any, scope: Scope, what: str) -> None:
    features, kept = made.features, sum(map(len, made.index))
    kind = name_of(features)
    if kind == "Columns":
        rows, width = features.X.shape
        _need(width == kept == made.s.shape[1], what, "it has more or fewer columns than features")
    else:
        views = made.train if kind == "Grams" else features.views
        _need(len(views) == len(scope.widths), what, "training rows of a view are missing")
        rows, width = views[0].shape[0], kept
        for view, D in zip(views, scope.widths, strict=True):
            _need(view.shape == (rows, D), what, f"training rows of {view.name!r} do not fit")
        terms = len(scope.widths) if kind == "Grams" else sum(scope.widths)
        _need(made.s.shape[1] == terms, what, "it has more or fewer variances than it needs")
    for side in made.sides:
        if name_of(side) == "SampleSide":
            _need(len(side.alpha) == rows, what, "a posterior is of other training rows")
        else:
            _need(kind == "Columns" and len(side.w) == width + 1, what, "a posterior is cut")


def _prepared_view(made: Any, scope: Scope, what: str) -> None:
    cells = vars(made)["_cells"]
    array = cells.array if name_of(cells) == "Kept" else cells.source.array
    fits = isinstance(array, np.ndarray) and array.ndim == 2 and array.shape == made.shape
    _need(fits and array.dtype.kind in "biuf", what, "its rows do not fit")
    if name_of(cells) == "Standardised":
        _need(len(cells.mean) == array.shape[1], what, "its statistics are of another width")
        scores = cells.scores
        _need(scores is None or len(scores.position) == array.shape[1], what, "ranks do not fit")
        if scores is not None:
            object_of("NormalScores")(scores, scope, what)
            _need(cells.score_factor is not None, what, "ranks without their factor")


def _mean_field(made: Any, scope: Scope, what: str) -> None:
    alive = int(made.factors.sum())
    _need(made.tau > 0 and made.psi > 0, what, "a precision is not positive")
    for spread, width in zip(made.spread, scope.widths, strict=True):
        places("*", "D")(spread.index, scope.inside(D=width), what)
        _need(len(spread.basis) == len(spread.index), what, "a basis does not fit its features")
        _need(len(spread.null_var) == alive, what, "a basis does not fit its factors")
        full = len(spread.null_scale) == len(spread.index) or not spread.null_var.any()
        _need(full, what, "a basis does not fit its features")


_RELATIONS: Mapping[str, Callable[[Any, Scope, str], None]] = {
    **dict.fromkeys(_ESTIMATORS, _estimator),
    "Preparation": _preparation,
    "NormalScores": _normal_scores,
    "Fitted": _fitted,
    "Mixture": _mixture,
    "Explicit": _explicit,
    "Implicit": _implicit,
    "PreparedView": _prepared_view,
    "MeanFieldResult": _mean_field,
}
