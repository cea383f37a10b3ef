"""States of estimators: their settings, preparation, predictor, and fitted attributes by a table.

Settings are what constructors take. Plain values are stored as they are; tuples, dictionaries
(whose keys may be numbers), slices, random states and templates of preparations are objects with a
``kind``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np

from baldur.core.dataframe_state import Table
from baldur.core.parameters import check_parameters
from baldur.core.state import (
    Boolean,
    ByName,
    ByView,
    Choice,
    Each,
    Flags,
    Form,
    Integer,
    Labels,
    Number,
    Numbers,
    Object,
    OrNone,
    Plain,
    Sizes,
    State,
    StateError,
    Texts,
    at,
    need,
    read_fields,
    read_state,
)
from baldur.estimators.classifier import BaldurClassifier
from baldur.estimators.regressor import BaldurRegressor
from baldur.exceptions import InputError
from baldur.inference.predictor import Predictor
from baldur.paper.estimators import PaperClassifier, PaperRegressor
from baldur.paper.predictor import MeanFieldPredictor
from baldur.preparation import Preparation
from baldur.preparation.preparation import STEPS
from baldur.views.view import default_names

# -- settings ------------------------------------------------------------------------------------


def settings_state(estimator: Any) -> State:
    """Return the settings of an estimator."""
    return {
        name: setting_state(value, name) for name, value in estimator.get_params(deep=False).items()
    }


def read_settings(state: Any, kind: type) -> dict[str, Any]:
    """Return the arguments for the constructor of an estimator.

    Settings that came after the file was written have their defaults.
    """
    names = [name for name in signature(kind).parameters if type(state) is dict and name in state]
    return read_fields(state, dict.fromkeys(names, _read_setting), Sizes())


def setting_state(value: Any, name: str) -> Any:
    """Return one setting as a plain value, which `_read_setting` reads; `name` is for the error."""
    if value is None or isinstance(value, (bool, int, float, str, np.generic, np.ndarray)):
        return value
    if isinstance(value, list):
        return [setting_state(entry, name) for entry in value]
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [setting_state(entry, name) for entry in value]}
    if isinstance(value, Mapping):
        entries = [[setting_state(part, name) for part in pair] for pair in value.items()]
        return {"kind": "mapping", "entries": entries}
    if isinstance(value, slice):
        ends = [setting_state(end, name) for end in (value.start, value.stop, value.step)]
        return {"kind": "slice", "ends": ends}
    if isinstance(value, np.random.RandomState):
        state: Any = value.get_state(legacy=False)
        if state["bit_generator"] == "MT19937":
            return {
                "kind": "random state",
                "key": np.array(state["state"]["key"]),
                "position": int(state["state"]["pos"]),
                "has_gauss": int(state["has_gauss"]),
                "gauss": float(state["gauss"]),
            }
    if isinstance(value, Preparation):
        # A template: what it may have learned is not part of a setting.
        return {"kind": "preparation template", "settings": settings_state(value)}
    if type(value) in STEPS.values():
        settings = settings_state(value)
        return {"kind": "step template", "step": type(value).__name__, "settings": settings}
    raise InputError(
        f"The setting {name} cannot be saved: it is or holds a {type(value).__name__}. Fit with "
        "numbers, text, lists, dictionaries, slices or arrays as settings."
    )


def _read_setting(value: Any, sizes: Sizes) -> Any:
    """Return one setting from its plain value."""
    if type(value) is list:
        return _SETTINGS(value, sizes)
    if type(value) is not dict:
        return value
    kind = value.get("kind")
    if type(kind) is not str or kind not in _KINDS:
        raise StateError((), "a setting of an unknown kind")
    fields, build = _KINDS[kind]
    return build(**read_fields(value, fields, sizes, besides=("kind",)))


def _mapping(entries: list[Any]) -> dict[Any, Any]:
    are_pairs = all(type(pair) is list and len(pair) == 2 and _is_key(pair[0]) for pair in entries)
    need(are_pairs, "expected pairs of a key and a value", "entries")
    mapping = dict(entries)
    need(len(mapping) == len(entries), "expected no key twice", "entries")
    return mapping


def _is_key(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_key, value))
    return value is None or type(value) in (bool, int, float, str)


def _slice(ends: list[Any]) -> slice:
    sound = len(ends) == 3 and all(end is None or type(end) in (int, str) for end in ends)
    need(sound, "expected three whole numbers or names", "ends")
    return slice(*ends)


def _random_state(key: np.ndarray, position: int, **gauss: Any) -> np.random.RandomState:
    generator = np.random.RandomState()
    state = {"key": key.astype(np.uint32), "pos": position}
    generator.set_state({"bit_generator": "MT19937", "state": state, **gauss})
    return generator


def _template(step: str | None = None, settings: Any = None) -> Any:
    kind: Any = Preparation if step is None else STEPS[step]
    return kind(**read_settings(settings, kind))


_SETTINGS = Each(_read_setting)

_KINDS: dict[str, tuple[dict[str, Form], Callable[..., Any]]] = {
    "tuple": ({"items": _SETTINGS}, lambda items: tuple(items)),
    "mapping": ({"entries": _SETTINGS}, _mapping),
    "slice": ({"ends": _SETTINGS}, _slice),
    "random state": (
        {
            "key": Numbers("624", "int", low=0, high=2**32 - 1),
            "position": Integer(0, 624),
            "has_gauss": Integer(0, 1),
            "gauss": Number(),
        },
        _random_state,
    ),
    "preparation template": ({"settings": Plain()}, _template),
    "step template": ({"step": Choice(tuple(STEPS)), "settings": Plain()}, _template),
}
"""For each kind of setting its fields, and the function that builds it from them."""


# -- fitted attributes ---------------------------------------------------------------------------


def _path_fault(path: Any, sizes: Sizes) -> str | None:
    """Return what is wrong with the rows of a submodel path, or None."""
    whole_views, selected = path[path["step"] == "views"], path[path["selected"]]
    if len(selected) != 1:
        return "expected one selected row"
    if not len(whole_views) or (path["step"] == "nothing").sum() != 1:
        return "expected one row of nothing, and rows of views"
    if selected["step"].iloc[0] == "per view":
        return None
    if selected["n_views"].iloc[0] not in {0, *whole_views["n_views"]}:
        return "expected a row of as many views as are selected"
    return None


def _relevance_fault(frame: Any, sizes: Sizes) -> str | None:
    """Return what is wrong with a table of the relevance of views to factors, or None."""
    if list(frame.columns) != list(sizes.widths):
        return "expected one column per view"
    return None if len(frame) == sizes.known["K"] else "expected one row per factor"


# Per unit of the input, which may be as small as 1e-140.
_WEIGHTS = ByView(Numbers("C D", largest=np.inf))
_DEVIATIONS = ByView(Numbers("C D", largest=np.inf, low=0.0))
_OUTPUTS = Numbers("C", largest=np.inf)

_SHARED: dict[str, Form] = {
    # Read first: they say how many outputs (C) and factors (K) there are. D are columns of a view.
    "loadings_": Numbers("C K"),
    "n_factors_": Integer(),
    "n_features_in_": Integer(1),
    "feature_names_in_": OrNone(Texts("?")),
    "feature_info_": ByView(Table(), some=True),
    "coef_": _WEIGHTS,
    "coef_std_": _DEVIATIONS,
    "coef_scaled_": _WEIGHTS,
    "coef_scaled_std_": _DEVIATIONS,
    "intercept_": _OUTPUTS,
    "intercept_scaled_": _OUTPUTS,
    "selected_features_": ByView(Flags("D")),
    "view_relevance_": ByView(Number(low=0.0, high=1.0 + 1e-9)),
    "factor_relevance_": Table(fault=_relevance_fault),
    "history_": Each(ByName(Plain())),
    "n_iter_": Integer(),
    "converged_": Boolean(),
}

_CLASSIFIER: dict[str, Form] = {
    "classes_": Labels(),
    "class_count_": Numbers("?", "int", low=0),
    "_row_noise": OrNone(Numbers("C", low=0.0)),
}

_REGRESSOR: dict[str, Form] = {
    "_center": _OUTPUTS,
    "_spread": Numbers("C", largest=np.inf, low=0.0),
    "_one_output": Boolean(),
    "noise_std_": Numbers("C", largest=np.inf, low=0.0),
}

_MEAN_FIELD: dict[str, Form] = {
    "elbo_": Number(finite=False),
    "relevance_vectors_": ByView(Numbers("?", "int", low=0)),
}


def _columns(*types: tuple[str, str]) -> dict[str, str | None]:
    """Return the type of each column, from pairs of names (separated by blanks) and a type."""
    return {name: kind for names, kind in types for name in names.split()}


def _path_table(metric: str) -> Form:
    """The form of the table of the submodel path; `metric` is in the names of its columns."""
    columns = _columns(
        ("step", "text"),
        ("n_views n_features", "whole numbers"),
        ("loss loss_difference standard_error upper", "numbers"),
        ("candidate selected", "truth values"),
    )
    bounds = ("loss_lower", "loss_upper", metric, f"{metric}_lower", f"{metric}_upper")
    return Table(columns, dict.fromkeys(bounds, "numbers") | {"enters": "text"}, _path_fault)


def _cost_table(metric: str) -> Form:
    """The form of the table of costs along the submodel path; `metric` is in names of columns."""
    figures = " ".join(
        f"{name}{end}" for name in ("loss", metric) for end in ("", "_lower", "_upper")
    )
    columns = _columns(
        ("cost", "numbers"),
        ("orders", "text"),
        ("n_views n_features", "whole numbers"),
        (figures, "numbers"),
        ("enters", "text"),
    )
    return OrNone(Table(columns))


def _selection_forms(metric: str) -> dict[str, Form]:
    """Return the forms of the attributes of estimators with a submodel path, beside `_SHARED`."""
    return {
        "inclusion_probability_": ByView(Numbers("D", low=0.0, high=1.0 + 1e-9)),
        "factor_path_": Table(
            _columns(
                ("n_factors", "whole numbers"),
                ("loss loss_difference standard_error", "numbers"),
                ("selected", "truth values"),
            )
        ),
        "stacking_weights_": ByName(Number()),
        # Gain in standard errors; infinite where these are zero.
        "signal_": Number(finite=False),
        "credible_sets_": Table(
            _columns(
                ("view feature member_view member_feature", "text"),
                ("probability min_abs_correlation", "numbers"),
            )
        ),
        "sparsity_path_": _path_table(metric),
        "cost_path_": _cost_table(metric),
    }


# -- estimators ----------------------------------------------------------------------------------

_CLASSES = ("binary", "multiclass", "multilabel")
ESTIMATORS: dict[str, tuple[Any, Any, tuple[str, ...], dict[str, Form]]] = {
    "baldur classifier": (
        BaldurClassifier, Predictor, _CLASSES, _SHARED | _CLASSIFIER | _selection_forms("auc"),
    ),
    "baldur regressor": (
        BaldurRegressor, Predictor, ("regression",), _SHARED | _REGRESSOR | _selection_forms("r2"),
    ),
    "mean-field classifier": (
        PaperClassifier, MeanFieldPredictor, _CLASSES, _SHARED | _CLASSIFIER | _MEAN_FIELD,
    ),
    "mean-field regressor": (
        PaperRegressor, MeanFieldPredictor, ("regression",), _SHARED | _REGRESSOR | _MEAN_FIELD,
    ),
}  # fmt: skip
"""For each kind in model folders its class, predictor, tasks, and attributes as they are read."""


def kind_of(estimator: Any) -> str:
    """Return the kind under which an estimator is stored; an InputError if it has none."""
    for kind, (estimator_type, *_) in ESTIMATORS.items():
        if type(estimator) is estimator_type:
            return kind
    raise InputError(
        f"{type(estimator).__name__} cannot be saved: model folders have BALDUR and its mean-field "
        "form only. Save another estimator with skops, as docs/howto/models.md shows."
    )


def estimator_state(estimator: Any) -> State:
    """Return the parts of a fitted estimator that are stored."""
    kind = kind_of(estimator)
    *_, attributes = ESTIMATORS[kind]
    return {
        "kind": kind,
        "settings": settings_state(estimator),
        "task": estimator._task,
        "preparation": estimator.preparation_,
        "predictor": estimator.predictor,
        # Attributes that an estimator may lack, such as the names of columns, are null.
        "fitted": {name: vars(estimator).get(name) for name in attributes},
    }


def read_estimator(state: Any, sizes: Sizes) -> Any:
    """Build a fitted estimator from its state; `ByView` then refers to its views."""
    kind = state.get("kind") if type(state) is dict else None
    if type(kind) is not str or kind not in ESTIMATORS:
        wanted = " or ".join(map(repr, ESTIMATORS))
        raise StateError(("kind",), f"expected {wanted}, but got {str(kind)[:40]!a}")
    estimator_type, predictor_type, tasks, attributes = ESTIMATORS[kind]
    fields = {
        "task": Choice(tasks),
        "settings": Plain(),
        "preparation": Object(Preparation),
        "predictor": Plain(),
        "fitted": Plain(),
    }
    values = read_fields(state, fields, Sizes(), besides=("kind",))
    with at("settings"):
        estimator = estimator_type(**read_settings(values["settings"], estimator_type))
        check_parameters(estimator)
    preparation = estimator.preparation_ = values["preparation"]
    widths = preparation.n_features_
    estimator.view_names_ = list(widths)
    # Stored once, with the preparation.
    estimator.feature_names_ = {
        name: default_names(name, np.arange(widths[name]), widths[name]) if names is None else names
        for name, names in preparation.feature_names.items()
    }
    sizes.widths = dict(widths)
    input_sizes = Sizes(widths)
    with at("fitted"):
        fitted = read_fields(values["fitted"], attributes, input_sizes)
        _set_fitted(estimator, fitted, values["task"], input_sizes)
    # The predictor sees prepared columns; everything else is about those of the input.
    outputs_and_factors = {name: input_sizes.known[name] for name in ("C", "K")}
    prepared = Sizes(preparation.scaling_.n_features_, **outputs_and_factors)
    with at("predictor"):
        estimator._predictor = read_state(values["predictor"], predictor_type, sizes=prepared)
        if predictor_type is MeanFieldPredictor:
            masks = estimator._predictor.result.features
            for name, mask in zip(widths, masks, strict=True):
                selected = preparation.expand(name, mask, False)
                same = np.array_equal(selected, estimator.selected_features_[name])
                need(same, "expected the features that were selected")
    return estimator


def _set_fitted(estimator: Any, fitted: dict[str, Any], task: str, sizes: Sizes) -> None:
    """Set the fitted attributes of an estimator, and refuse those that do not agree."""
    vars(estimator).update({name: value for name, value in fitted.items() if value is not None})
    n_outputs, n_factors = sizes.known["C"], sizes.known["K"]
    need(estimator.n_factors_ == n_factors, f"expected {n_factors}", "n_factors_")
    if "sparsity_path_" in fitted:
        path = estimator.sparsity_path_
        is_empty = path.loc[path["selected"], "n_features"].iloc[0] == 0
        some = any(mask.any() for mask in estimator.selected_features_.values())
        need(not (is_empty and some), "expected the row of what is selected", "sparsity_path_")
    if task != "regression":
        estimator._task = task
        expected = 1 if task == "binary" else len(estimator.classes_)
        need(n_outputs == expected, "expected one output per class", "classes_")
        need(task != "binary" or len(estimator.classes_) == 2, "expected two classes", "classes_")
