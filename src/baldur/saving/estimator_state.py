"""States of estimators: settings, preparation, predictor, and fitted attributes by a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from baldur.core.dataframe_state import dataframe_state, read_dataframe
from baldur.core.state import Fields, State, by_kind, made_by, plain
from baldur.estimators.classifier import BaldurClassifier
from baldur.estimators.regressor import BaldurRegressor
from baldur.exceptions import InputError
from baldur.inference.predictor import Predictor
from baldur.paper.estimators import PaperClassifier, PaperRegressor
from baldur.paper.predictor import MeanFieldPredictor
from baldur.preparation import Preparation
from baldur.saving.setting_state import read_settings, settings_state
from baldur.views.view import default_names


@dataclass(frozen=True)
class Outline:
    """What the shapes of attributes refer to."""

    task: str
    views: list[str]
    widths: dict[str, int]  # Features of each view after preparation
    sizes: dict[str, int] = field(default_factory=dict)


Read = Callable[[Fields, str, Outline], Any]


@dataclass(frozen=True)
class Attribute:
    """How one attribute is stored."""

    read: Read  # ReadCounter it from fields, given its name and the outline of the model
    write: Callable[[Any], Any] = plain  # Returns its state
    optional: bool = False  # Whether it may be missing


def read_attribute(read: Fields, name: str, attribute: Attribute, outline: Outline) -> Any:
    """Return one attribute, with shapes in terms of the outline."""
    read.sizes = outline.sizes
    return attribute.read(read, name, outline)


# -- forms ---------------------------------------------------------------------------------------


def _by_view(read_one: Callable[[Fields, str, int], Any]) -> Attribute:
    """One entry for each view, given the number of its features."""
    return Attribute(
        lambda f, name, o: f.by_name(name, o.views, lambda g, v: read_one(g, v, o.widths[v]))
    )


def _weights(f: Fields, view: str, width: int) -> np.ndarray:
    # Per unit of the input, which may be as small as 1e-140.
    return f.array(view, ("C", width), largest=np.inf)


def _deviations(f: Fields, view: str, width: int) -> np.ndarray:
    return f.array(view, ("C", width), largest=np.inf, low=0.0)


def _shares(f: Fields, view: str, width: int) -> float:
    return f.number(view, low=0.0, high=1.0 + 1e-9)


def _array(*shape: str, **conditions: Any) -> Attribute:
    return Attribute(lambda f, name, o: f.array(name, shape, **conditions))


_COLUMN_TYPES = {"text": "OU", "whole numbers": "iu", "numbers": "f", "truth values": "b"}


def _table(
    columns: dict[str, str],
    fault: Callable[[Any], str | None] = lambda table: None,
    more: dict[str, str] | None = None,
) -> Attribute:
    """A table with these columns and their types; `fault` says what else is wrong with it.

    The columns `more` follow, or all of them are missing.
    """

    def read(f: Fields, name: str, o: Outline) -> Any:
        made = f.part(name, read_dataframe, columns=None if more else list(columns))
        types = {**columns, **(more or {})} if len(made.columns) > len(columns) else columns
        f.need(list(made.columns) == list(types), f"expected the columns {list(types)}", name)
        for column, wanted in types.items():
            cells = made[column]
            fits = cells.dtype.kind in _COLUMN_TYPES[wanted]
            if wanted == "text":
                fits = fits and all(type(cell) is str for cell in cells)
            # An empty table has no types.
            f.need(fits or not len(made), f"expected {wanted} in the column {column}", name)
        said = fault(made)
        f.need(said is None, f"{said}", name)
        return made

    return Attribute(read, dataframe_state)


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


def _tables_by_view() -> Attribute:
    return Attribute(
        lambda f, name, o: f.by_name(
            name, o.views, lambda g, v: g.part(v, read_dataframe), some=True
        ),
        lambda tables: {name: dataframe_state(one) for name, one in tables.items()},
    )


def _factor_relevance(f: Fields, name: str, o: Outline) -> Any:
    made = f.part(name, read_dataframe, columns=o.views)
    f.need(len(made) == o.sizes["K"], "expected one row per factor", name)
    return made


def _optional(attribute: Attribute) -> Attribute:
    return Attribute(attribute.read, attribute.write, optional=True)


# -- the table -----------------------------------------------------------------------------------

_SHARED: dict[str, Attribute] = {
    # Read first: they say how many outputs and factors there are.
    "loadings_": _array("C", "K"),
    "n_factors_": Attribute(lambda f, name, o: f.integer(name, o.sizes["K"], o.sizes["K"])),
    "n_features_in_": Attribute(lambda f, name, o: f.integer(name, 1)),
    "feature_names_in_": _optional(
        Attribute(lambda f, name, o: f.texts(name, (None,)), lambda names: np.asarray(names))
    ),
    "feature_info_": _tables_by_view(),
    "coef_": _by_view(_weights),
    "coef_std_": _by_view(_deviations),
    "coef_scaled_": _by_view(_weights),
    "coef_scaled_std_": _by_view(_deviations),
    "intercept_": _array("C", largest=np.inf),
    "intercept_scaled_": _array("C", largest=np.inf),
    "selected_features_": _by_view(lambda f, view, width: f.flags(view, (width,))),
    "view_relevance_": _by_view(_shares),
    "factor_relevance_": Attribute(_factor_relevance, dataframe_state),
    "history_": Attribute(lambda f, name, o: f.records(name)),
    "n_iter_": Attribute(lambda f, name, o: f.integer(name)),
    "converged_": Attribute(lambda f, name, o: f.boolean(name)),
}

_CLASSIFIER: dict[str, Attribute] = {
    "classes_": Attribute(lambda f, name, o: f.labels(name)),
    "class_count_": Attribute(lambda f, name, o: f.array(name, (None,), "int", low=0)),
    "_row_noise": _optional(_array("C", low=0.0)),
}

_REGRESSOR: dict[str, Attribute] = {
    "_center": _array("C", largest=np.inf),
    "_spread": _array("C", largest=np.inf, low=0.0),
    "_one_output": Attribute(lambda f, name, o: f.boolean(name)),
    "noise_std_": _array("C", largest=np.inf, low=0.0),
}

_MEAN_FIELD: dict[str, Attribute] = {
    "elbo_": Attribute(lambda f, name, o: f.number(name, finite=False)),
    "relevance_vectors_": _by_view(lambda f, view, width: f.array(view, (None,), "int", low=0)),
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


def _path_table(task: str) -> Attribute:
    """The table of the submodel path, with AUC or R2."""
    metric = "r2" if task == "regression" else "auc"
    bounds = ("loss_lower", "loss_upper", metric, f"{metric}_lower", f"{metric}_upper")
    return _table(_PATH_COLUMNS, _path_fault, dict.fromkeys(bounds, "numbers") | {"enters": "text"})


def _cost_table(task: str) -> Attribute:
    """The table of the costs along the submodel path, with AUC or R2."""
    metric = "r2" if task == "regression" else "auc"
    figures = [f"{name}{end}" for name in ("loss", metric) for end in ("", "_lower", "_upper")]
    return _optional(
        _table(
            {
                "cost": "numbers",
                "orders": "text",
                "n_views": "whole numbers",
                "n_features": "whole numbers",
                **dict.fromkeys(figures, "numbers"),
                "enters": "text",
            }
        )
    )


_SELECTION: dict[str, Attribute] = {
    "inclusion_probability_": _by_view(
        lambda f, view, width: f.array(view, (width,), low=0.0, high=1.0 + 1e-9)
    ),
    "factor_path_": _table(
        {
            "n_factors": "whole numbers",
            "loss": "numbers",
            "loss_difference": "numbers",
            "standard_error": "numbers",
            "selected": "truth values",
        }
    ),
    "stacking_weights_": Attribute(lambda f, name, o: f.by_any_name(name, Fields.number)),
    "signal_": Attribute(lambda f, name, o: f.number(name, finite=False)),
    "credible_sets_": _table(
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


def attributes_of(kind: str, task: str) -> Mapping[str, Attribute]:
    """Return the attributes of a kind of estimator fitted for a task, in the order of reading."""
    made = {**_SHARED, **(_REGRESSOR if task == "regression" else _CLASSIFIER)}
    if not kind.startswith("baldur"):
        return made | _MEAN_FIELD
    tables = {"sparsity_path_": _path_table(task), "cost_path_": _cost_table(task)}
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


def estimator_state(estimator: Any) -> State:
    """Return the state of a fitted estimator."""
    kind = kind_of(estimator)
    task = getattr(estimator, "_task", "regression")
    own = vars(estimator)
    return {
        "kind": kind,
        "settings": settings_state(estimator),
        "task": task,
        "views": list(estimator.view_names_),
        "preparation": estimator.preparation_.to_state(),
        "predictor": estimator.predictor.to_state(),
        "fitted": {
            name: attribute.write(own[name])
            for name, attribute in attributes_of(kind, task).items()
            if name in own
        },
    }


def read_estimator(state: Any) -> Any:
    """Build a fitted estimator from its state; every part is validated."""
    return by_kind(dict.fromkeys(ESTIMATORS, _read_own))(state)


def _read_own(state: Any) -> Any:
    kind = state["kind"]
    known = ESTIMATORS[kind]
    with Fields(state, kind) as read:
        task = read.choice("task", known.tasks)
        made = known.type(**read.part("settings", read_settings, kind=known.type))
        made_by(("settings",), lambda _: made._check_parameters(), None, {})
        made.view_names_ = read.names("views")
        made.preparation_ = read.part("preparation", Preparation.from_state)
        widths = {name: int(width) for name, width in made.preparation_.n_features_.items()}
        same = list(widths) == made.view_names_
        read.need(same, "expected the views of the preparation", "views")
        # Stored once, with the preparation.
        made.feature_names_ = {
            name: default_names(name, np.arange(widths[name]), widths[name]) if one is None else one
            for name, one in made.preparation_.feature_names.items()
        }
        outline = Outline(task, made.view_names_, widths)
        read.part("fitted", _read_fitted, made=made, kind=kind, outline=outline)
        read.part("predictor", _read_predictor, made=made, kind=kind, outline=outline)
        return made


FORMER = frozenset({"sparsity_", "space_", "factor_names_", "fit_seconds_", "signal_shown_"})
"""Attributes in folders of earlier versions that are left out, or computed from others."""


def _read_fitted(state: Any, made: Any, kind: str, outline: Outline) -> None:
    if isinstance(state, dict):
        state = {name: value for name, value in state.items() if name not in FORMER}
    with Fields(state) as read:
        table = attributes_of(kind, outline.task)
        # Outputs and factors are counted first; all other shapes refer to them.
        for name, attribute in table.items():
            if name in state or not attribute.optional:
                setattr(made, name, read_attribute(read, name, attribute, outline))
    if outline.task != "regression":
        made._task = outline.task
        outputs = 1 if outline.task == "binary" else len(made.classes_)
        read.need(outputs == outline.sizes["C"], "expected one output per class", "classes_")
        binary = outline.task != "binary" or len(made.classes_) == 2
        read.need(binary, "expected two classes", "classes_")


# -- preparation and predictor -------------------------------------------------------------------


def _read_predictor(state: Any, made: Any, kind: str, outline: Outline) -> None:
    mean_field = kind.startswith("mean-field")
    read: Any = MeanFieldPredictor.from_state if mean_field else Predictor.from_state
    made._predictor = read(
        state,
        # The predictor sees prepared columns; everything else is about those of the input.
        widths=list(made.preparation_.scaling_.n_features_.values()),
        outputs=outline.sizes["C"],
        factors=outline.sizes["K"],
    )
    if mean_field:
        pairs = zip(outline.widths, made._predictor.result.features, strict=True)
        for name, mask in pairs:
            selected = made.preparation_.expand(name, mask, False)
            if not np.array_equal(selected, made.selected_features_[name]):
                raise InputError("expected the features that were selected")
