"""States of estimators: settings, preparation, predictor, and fitted attributes by a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from baldur.core.dataframe_state import Table
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
    Plain,
    Sizes,
    StateError,
    Texts,
    at,
    need,
    read_fields,
    read_state,
    write_state,
)
from baldur.estimators.classifier import BaldurClassifier
from baldur.estimators.regressor import BaldurRegressor
from baldur.exceptions import InputError
from baldur.inference.predictor import Predictor
from baldur.paper.estimators import PaperClassifier, PaperRegressor
from baldur.paper.predictor import MeanFieldPredictor
from baldur.preparation import Preparation
from baldur.saving.setting_state import read_settings, settings_state
from baldur.views.view import default_names


def _path_fault(path: Any) -> str | None:
    """Return what is wrong with the rows of a submodel path, or None."""
    whole, selected = path[path["step"] == "views"], path[path["selected"]]
    if len(selected) != 1:
        return "expected one selected row"
    if not len(whole) or (path["step"] == "nothing").sum() != 1:
        return "expected one row of nothing, and rows of views"
    if selected["step"].iloc[0] == "per view":
        return None
    if selected["n_views"].iloc[0] not in {0, *whole["n_views"]}:
        return "expected a row of as many views as are selected"
    return None


@dataclass(frozen=True)
class _FactorTable(Table):
    """A DataFrame with one row per factor and one column per view."""

    def _read(self, value: Any, sizes: Sizes) -> Any:
        frame = super()._read(value, sizes)
        same = list(frame.columns) == list(sizes.widths)
        need(same, "expected one column per view", "columns")
        need(len(frame) == sizes.known["K"], "expected one row per factor")
        return frame


# -- the table -----------------------------------------------------------------------------------

# Per unit of the input, which may be as small as 1e-140.
_WEIGHTS = ByView(Numbers("C D", largest=np.inf))
_DEVIATIONS = ByView(Numbers("C D", largest=np.inf, low=0.0))
_OUTPUTS = Numbers("C", largest=np.inf)

_SHARED: dict[str, Form] = {
    # Read first: they say how many outputs and factors there are.
    "loadings_": Numbers("C K"),
    "n_factors_": Integer(),
    "n_features_in_": Integer(1),
    "feature_names_in_": Texts("?", optional=True),
    "feature_info_": ByView(Table(), some=True),
    "coef_": _WEIGHTS,
    "coef_std_": _DEVIATIONS,
    "coef_scaled_": _WEIGHTS,
    "coef_scaled_std_": _DEVIATIONS,
    "intercept_": _OUTPUTS,
    "intercept_scaled_": _OUTPUTS,
    "selected_features_": ByView(Flags("D")),
    "view_relevance_": ByView(Number(low=0.0, high=1.0 + 1e-9)),
    "factor_relevance_": _FactorTable(),
    "history_": Each(ByName(Plain())),
    "n_iter_": Integer(),
    "converged_": Boolean(),
}

_CLASSIFIER: dict[str, Form] = {
    "classes_": Labels(),
    "class_count_": Numbers("?", "int", low=0),
    "_row_noise": Numbers("C", low=0.0, optional=True),
}

_REGRESSOR: dict[str, Form] = {
    "_center": _OUTPUTS,
    "_spread": replace(_OUTPUTS, low=0.0),
    "_one_output": Boolean(),
    "noise_std_": replace(_OUTPUTS, low=0.0),
}

_MEAN_FIELD: dict[str, Form] = {
    "elbo_": Number(finite=False),
    "relevance_vectors_": ByView(Numbers("?", "int", low=0)),
}

_PATH_COLUMNS = {
    "step": "text",
    "n_views": "whole numbers",
    "n_features": "whole numbers",
    "loss": "numbers",
    "loss_difference": "numbers",
    "standard_error": "numbers",
    "upper": "numbers",
    "candidate": "truth values",
    "selected": "truth values",
}


def _path_table(metric: str) -> Table:
    """The table of the submodel path."""
    bounds = ("loss_lower", "loss_upper", metric, f"{metric}_lower", f"{metric}_upper")
    more = dict.fromkeys(bounds, "numbers") | {"enters": "text"}
    return Table(_PATH_COLUMNS, more, _path_fault)


def _cost_table(metric: str) -> Table:
    """The table of the costs along the submodel path."""
    figures = [f"{name}{end}" for name in ("loss", metric) for end in ("", "_lower", "_upper")]
    columns: dict[str, str | None] = {
        "cost": "numbers",
        "orders": "text",
        "n_views": "whole numbers",
        "n_features": "whole numbers",
        **dict.fromkeys(figures, "numbers"),
        "enters": "text",
    }
    return Table(columns, optional=True)


_SELECTION: dict[str, Form] = {
    "inclusion_probability_": ByView(Numbers("D", low=0.0, high=1.0 + 1e-9)),
    "factor_path_": Table(
        {
            "n_factors": "whole numbers",
            "loss": "numbers",
            "loss_difference": "numbers",
            "standard_error": "numbers",
            "selected": "truth values",
        }
    ),
    "stacking_weights_": ByName(Number()),
    "signal_": Number(finite=False),
    "credible_sets_": Table(
        {
            "view": "text",
            "feature": "text",
            "member_view": "text",
            "member_feature": "text",
            "probability": "numbers",
            "min_abs_correlation": "numbers",
        }
    ),
}


def attributes_of(kind: str, task: str) -> Mapping[str, Form]:
    """Return the attributes of a kind of estimator fitted for a task, in the order of reading."""
    made = {**_SHARED, **(_REGRESSOR if task == "regression" else _CLASSIFIER)}
    if not kind.startswith("baldur"):
        return made | _MEAN_FIELD
    metric = "r2" if task == "regression" else "auc"
    tables = {"sparsity_path_": _path_table(metric), "cost_path_": _cost_table(metric)}
    return made | _SELECTION | tables


@dataclass(frozen=True)
class _Known:
    """The class of an estimator, and which tasks it has."""

    type: Any
    tasks: tuple[str, ...]


_CLASSES = ("binary", "multiclass", "multilabel")

ESTIMATORS: Mapping[str, _Known] = MappingProxyType(
    {
        "baldur classifier": _Known(BaldurClassifier, _CLASSES),
        "baldur regressor": _Known(BaldurRegressor, ("regression",)),
        "mean-field classifier": _Known(PaperClassifier, _CLASSES),
        "mean-field regressor": _Known(PaperRegressor, ("regression",)),
    }
)
"""Estimators that can be saved, by the name of their kind in model folders."""


def kind_of(estimator: Any) -> str:
    """Return the kind under which an estimator is stored; an InputError if it has none."""
    for kind, known in ESTIMATORS.items():
        if type(estimator) is known.type:
            return kind
    raise InputError(
        f"{type(estimator).__name__} cannot be saved: model folders have BALDUR and its mean-field "
        "form only. Save another estimator with skops, as docs/howto/models.md shows."
    )


def estimator_state(estimator: Any) -> dict[str, Any]:
    """Return the state of a fitted estimator."""
    kind = kind_of(estimator)
    task = getattr(estimator, "_task", "regression")
    attributes = vars(estimator)
    return {
        "kind": kind,
        "settings": settings_state(estimator),
        "task": task,
        "preparation": write_state(estimator.preparation_),
        "predictor": write_state(estimator.predictor),
        "fitted": {
            name: form.write(attributes.get(name) if form.optional else attributes[name])
            for name, form in attributes_of(kind, task).items()
        },
    }


@dataclass(frozen=True)
class FittedEstimator(Form):
    """A fitted estimator; `ByView` then refers to the views that it was fitted on."""

    def _write(self, value: Any) -> Any:
        return estimator_state(value)

    def _read(self, value: Any, sizes: Sizes) -> Any:
        estimator = read_estimator(value)
        sizes.widths = dict(estimator.preparation_.n_features_)
        return estimator


def read_estimator(state: Any) -> Any:
    """Build a fitted estimator from its state; every part is checked."""
    kind = state.get("kind") if type(state) is dict else None
    if type(kind) is not str or kind not in ESTIMATORS:
        wanted = " or ".join(map(repr, ESTIMATORS))
        raise StateError(("kind",), f"expected {wanted}, but got {str(kind)[:40]!a}")
    known = ESTIMATORS[kind]
    fields = {
        "task": Choice(known.tasks),
        "settings": Plain(),
        "preparation": Object((Preparation,)),
        "predictor": Plain(),
        "fitted": Plain(),
    }
    values = read_fields(state, fields, Sizes(), known=("kind",))
    with at("settings"):
        made = known.type(**read_settings(values["settings"], known.type))
        made._check_parameters()
    preparation = made.preparation_ = values["preparation"]
    widths = preparation.n_features_
    made.view_names_ = list(widths)
    # Stored once, with the preparation.
    made.feature_names_ = {
        name: default_names(name, np.arange(widths[name]), widths[name]) if names is None else names
        for name, names in preparation.feature_names.items()
    }
    sizes = Sizes(widths)
    with at("fitted"):
        _read_fitted(made, values["fitted"], kind, values["task"], sizes)
    # The predictor sees prepared columns; everything else is about those of the input.
    known_sizes = {name: sizes.known[name] for name in "CK"}
    prepared = Sizes(preparation.scaling_.n_features_, **known_sizes)
    mean_field = kind.startswith("mean-field")
    with at("predictor"):
        predictor_type = MeanFieldPredictor if mean_field else Predictor
        made._predictor = read_state(values["predictor"], predictor_type, sizes=prepared)
        if mean_field:
            pairs = zip(widths, made._predictor.result.features, strict=True)
            for name, mask in pairs:
                selected = preparation.expand(name, mask, False)
                same = np.array_equal(selected, made.selected_features_[name])
                need(same, "expected the features that were selected")
    return made


def _read_fitted(made: Any, state: Any, kind: str, task: str, sizes: Sizes) -> None:
    """Set the fitted attributes of an estimator from their state."""
    forms = attributes_of(kind, task)
    for name, value in read_fields(state, forms, sizes).items():
        if value is not None or not forms[name].optional:
            setattr(made, name, value)
    outputs, factors = sizes.known["C"], sizes.known["K"]
    need(made.n_factors_ == factors, f"expected {factors}", "n_factors_")
    if task != "regression":
        made._task = task
        expected = 1 if task == "binary" else len(made.classes_)
        need(outputs == expected, "expected one output per class", "classes_")
        need(task != "binary" or len(made.classes_) == 2, "expected two classes", "classes_")
