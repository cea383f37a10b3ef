"""The table of fitted attributes: which ones an estimator has, and how each is stored.

An attribute that is not in the table is not saved. One that is there but marked as optional was
added later, or belongs to some fits only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baldur.state import Fields, dataframe_state, plain, read_dataframe


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


def _sparsity(f: Fields, name: str, o: Outline) -> Any:
    value = f.plain(name)
    if type(value) is dict:
        return f.by_name(name, o.views, lambda g, v: g.number(v))
    return f.number(name, finite=False)


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
    "factor_names_": Attribute(
        lambda f, name, o: f.texts(name, (o.sizes["K"],)).tolist(),
        lambda names: np.asarray(names, dtype=str),
    ),
    "factor_relevance_": Attribute(_factor_relevance, dataframe_state),
    "sparsity_": Attribute(_sparsity),
    "space_": _by_view(lambda f, view, width: f.text(view)),
    "history_": Attribute(lambda f, name, o: f.records(name)),
    "n_iter_": Attribute(lambda f, name, o: f.integer(name)),
    "converged_": Attribute(lambda f, name, o: f.boolean(name)),
    "fit_seconds_": Attribute(lambda f, name, o: f.number(name, low=0.0)),
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
    "signal_shown_": Attribute(lambda f, name, o: f.boolean(name)),
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
