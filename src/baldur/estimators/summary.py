"""Summary of a fitted model: one row per selected feature, with the answer in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from baldur.views.container import MultiView

FEW = (1, 2, 3, 5, 10, 20)
"""Numbers of features whose held-out figures are shown."""
PRINTED = 10
"""Rows of the table of costs that are printed."""
NAMED_FEATURES = 3
"""Features named in a printed row."""
_HEADINGS = {"auc": "AUC", "r2": "R2"}


def few_features_table(model: Any) -> pd.DataFrame:
    """Return held-out figures of 1, 2, 3, 5, 10, 20 features and all, on the inner folds."""
    path = getattr(model, "sparsity_path_", None)
    metric = None if path is None else next((m for m in _HEADINGS if m in path), None)
    if path is None or metric is None:
        return pd.DataFrame()
    figures = [f"{name}{end}" for name in (metric, "loss") for end in ("", "_lower", "_upper")]
    whole = path[path["step"] == "views"].iloc[-1]  # all features of all views
    rows: list[dict[str, Any]] = []
    names: list[str] = []  # what enters since the last row
    for _, step in path[path["step"] == "features"].iterrows():
        names += split_names(step["enters"], model.view_names_)
        if step["n_features"] in FEW and step["n_features"] < whole["n_features"]:
            rows.append({"n_features": int(step["n_features"]), **step[figures], "enters": names})
            names = []
    rows.append({"n_features": int(whole["n_features"]), **whole[figures], "enters": []})
    return pd.DataFrame(rows)


def few_features_text(model: Any) -> str:
    """Return the table of few features as the summary prints it, empty where there is none."""
    table = few_features_table(model)
    if not len(table):
        return ""
    metric = next(m for m in _HEADINGS if m in table)
    last = len(table) - 1
    rows = [
        (
            f"{row['n_features']:,}" + (" (all)" if place == last else ""),
            _interval(row, metric),
            _interval(row, "loss"),
            _shortened(row["enters"]),
        )
        for place, row in enumerate(table.to_dict("records"))
    ]
    heading = ("features", _HEADINGS[metric], "loss", "which enter")
    order = ", which enter by gain per cost" if len(getattr(model, "cost_path_", ())) else ""
    title = (
        f"How few features are enough{order}, on held-out rows with 95 % intervals (see submodel):"
    )
    return title + "\n" + _aligned([heading, *rows])


def cost_text(model: Any) -> str:
    """Return the table of costs as the summary prints it, empty where there are no costs."""
    table = getattr(model, "cost_path_", pd.DataFrame())
    if not len(table):
        return ""
    metric = next(m for m in _HEADINGS if m in table)
    rows = [
        (
            f"{row['cost']:g}",
            _interval(row, metric),
            _interval(row, "loss"),
            f"{row['n_features']:,}",
            _shortened(split_names(row["orders"], model.view_names_)) or unpaid(row["n_features"]),
        )
        for row in table.head(PRINTED).to_dict("records")
    ]
    heading = ("cost", _HEADINGS[metric], "loss", "features", "ordered")
    title = "Which tests give which accuracy, in a greedy order by gain per cost:"
    more = len(table) - len(rows)
    rest = f"\n... and {more:,} more rows of cost_path_." if more else ""
    return title + "\n" + _aligned([heading, *rows]) + rest


def split_names(text: str, views: Sequence[str]) -> list[str]:
    """Return the names in a cell of `enters` or `orders`; a name may have commas itself.

    Examples
    --------
    >>> from baldur.estimators.summary import split_names
    >>> split_names("mri, blood:HDL, fasting, blood:age", ["mri", "blood"])
    ['mri', 'blood:HDL, fasting', 'blood:age']
    """
    # A name begins with a view, which a colon, a comma or the end follows.
    begins = "|".join(map(re.escape, views))
    return [name for name in re.split(rf", (?=(?:{begins})(?::|, |$))", str(text)) if name]


def unpaid(n_features: int) -> str:
    """Return in words what is measured where nothing is paid for."""
    return "what costs nothing" if n_features else "nothing"


def _interval(row: dict[Any, Any], name: str) -> str:
    return f"{row[name]:.2f} [{row[f'{name}_lower']:.2f}, {row[f'{name}_upper']:.2f}]"


def _shortened(names: list[str]) -> str:
    text = ", ".join(names[:NAMED_FEATURES])
    return (
        text if len(names) <= NAMED_FEATURES else f"{text} and {len(names) - NAMED_FEATURES:,} more"
    )


def _aligned(rows: list[tuple[str, ...]]) -> str:
    """Return rows of cells as lines of text, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


INTERVAL = 1.959964
"""Standard deviations on either side of a 95 % interval."""
STRONGEST = 10
"""Rows of the table that are printed."""
NAMED = 3
"""Interchangeable features named in a cell; `credible_sets_` has them all."""
PURE = 0.5
"""Smallest absolute correlation within a credible set that is informative; SuSiE calls it purity.

Features of a set that are hardly correlated cannot be interchangeable: such a set only says that
the data do not identify which feature has the effect.
"""
PROBABLE = 0.9
"""Inclusion probability from which an interval that includes 0 needs an explanation."""
BOTH = (
    "An inclusion probability near 1 does not contradict an interval that includes 0. The "
    "probability is that of the spike-and-slab members, which ask whether the feature is used at "
    "all; the interval is that of its weight in the whole ensemble, where other members and "
    "correlated features share the effect. Such a feature helps to predict, but the size and the "
    "sign of its own weight are uncertain."
)
"""Reconciles the two figures of a feature."""


class Summary(pd.DataFrame):
    """A table of features whose ``str`` begins with the answer in words."""

    _metadata: ClassVar[list[str]] = ["heading", "few_features"]  # kept when the table is cut
    heading: str  # The lines printed before the table
    few_features: pd.DataFrame

    @property
    def _constructor(self) -> type[Summary]:
        return Summary

    def __str__(self) -> str:
        """Return the heading, the first rows, and a note if their figures look contradictory."""
        shown = self.head(STRONGEST)
        lines = [self.__dict__.get("heading", "")]
        if len(shown):
            columns = ["view", "feature", "output", "weight_scaled", "lower", "upper"]
            columns += [c for c in ("inclusion_probability", "credible_set") if c in shown]
            if shown["output"].nunique() == 1 and self["output"].nunique() == 1:
                columns.remove("output")
            lines.append(pd.DataFrame(shown[columns]).to_string(index=False, float_format="%.3g"))
        if len(self) > len(shown):
            lines.append(f"... and {len(self) - len(shown):,} more rows.")
        if uncertain_weights(pd.DataFrame(shown)):
            lines.append(BOTH)
        return "\n".join(line for line in lines if line)


def uncertain_weights(summary: pd.DataFrame) -> list[str]:
    """Return features that look contradictory: probable, but with all intervals around 0."""
    if "inclusion_probability" not in summary or not len(summary):
        return []
    table = summary.assign(
        includes_zero=(summary["lower"] <= 0) & (summary["upper"] >= 0),
        probable=summary["inclusion_probability"] >= PROBABLE,
    )
    outputs = table.groupby(["view", "feature"], sort=False)[["includes_zero", "probable"]]
    both = outputs.all().all(axis=1)
    return [str(feature) for _, feature in both.index[both.to_numpy(dtype=bool)]]


def _learns_inclusion(model: Any) -> bool:
    """Return whether a model has spike-and-slab members, whose inclusion probabilities are learned.

    Dense priors include every feature; a column of ones would say nothing.
    """
    members = getattr(model, "stacking_weights_", {})
    return any(member.startswith("spike_slab") for member in members)


def views_used(mv: MultiView, selected: Mapping[str, Any]) -> pd.DataFrame:
    """Return whether each sample has each view with selected features, (n, M) of bool."""
    used = {name: mv.view(name).present & bool(np.any(mask)) for name, mask in selected.items()}
    return pd.DataFrame(used, index=pd.Index(mv.sample_ids, name="sample"))


def named_outputs(model: Any, table: pd.DataFrame, classes: Sequence[Any]) -> pd.DataFrame:
    """Return a table of a model that was fitted on codes, its outputs named by `classes`."""
    codes = getattr(model, "classes_", range(len(classes)))
    names = {str(output): str(label) for output, label in zip(codes, classes, strict=False)}
    out = table.copy()
    out["output"] = [names.get(str(output), output) for output in table["output"]]
    return out


def summarise(model: Any, *, everything: bool = False) -> Summary:
    """Return one row per selected feature and output, the largest weight first."""
    outputs = output_names(model)
    sets = getattr(model, "credible_sets_", None)
    set_texts = {} if sets is None else _credible_set_texts(sets)
    frames = []
    for name in model.view_names_:
        selected = model.selected_features_[name]
        index = np.arange(len(selected)) if everything else np.flatnonzero(selected)
        if not len(index):
            continue
        features = np.asarray(model.feature_names_[name])[index].astype(str)
        for c, output in enumerate(outputs):
            weight, std = model.coef_[name][c, index], model.coef_scaled_std_[name][c, index]
            scaled = model.coef_scaled_[name][c, index]
            columns: dict[str, Any] = {
                "view": name,
                "feature": features,
                "output": output,
                "weight": weight,
                "weight_scaled": scaled,
                "lower": scaled - INTERVAL * std,
                "upper": scaled + INTERVAL * std,
                "selected": selected[index],
            }
            if _learns_inclusion(model):
                columns["inclusion_probability"] = model.inclusion_probability_[name][index]
            if sets is not None:
                columns["credible_set"] = [set_texts.get((name, f), "") for f in features]
            frame = pd.DataFrame(columns)
            info = model.feature_info_.get(name)
            if info is not None:
                extra = info.iloc[index].reset_index(drop=True)
                frame = pd.concat([frame, extra.loc[:, ~extra.columns.isin(frame.columns)]], axis=1)
            frames.append(frame)
    names = ["view", "feature", "output", "weight", "weight_scaled", "lower", "upper", "selected"]
    table = Summary(pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=names))
    order = np.argsort(-np.abs(table["weight_scaled"].to_numpy(dtype=float)), kind="stable")
    table = table.iloc[order].reset_index(drop=True)
    table.heading = heading(model)
    table.few_features = few_features_table(model)
    return table


def n_usable_features(model: Any) -> int:
    """Return the number of features that a model can use: all but reference levels."""
    columns = sum(len(mask) for mask in model.selected_features_.values())
    return columns - sum(model.preparation_.n_reference_levels.values())


def heading(model: Any) -> str:
    """Return how many features were selected, from which views, and the evidence of signal."""
    selected = {name: int(mask.sum()) for name, mask in model.selected_features_.items()}
    lines = [f"{sum(selected.values()):,} of {n_usable_features(model):,} features selected."]
    if sum(selected.values()):
        shares = sorted(model.view_relevance_.items(), key=lambda item: -item[1])
        views = [f"{v} {share:.0%} ({selected[v]:,})" for v, share in shares if selected[v]]
        lines.append("Views by share of the prediction's variance: " + ", ".join(views) + ".")
    if hasattr(model, "signal_shown_"):
        lines.append(signal_sentence(model))
        lines.append(path_sentence(model))
        lines += [few_features_text(model), cost_text(model)]
    lines.append(
        "Weights per standard deviation with 95 % intervals:" if sum(selected.values()) else ""
    )
    return "\n".join(line for line in lines if line)


def path_sentence(model: Any) -> str:
    """Return a sentence on how the selection was made, from all features to the fewest."""
    path = model.sparsity_path_
    base = path[path["step"] == "nothing"].iloc[0]
    whole = path[path["step"] == "views"].iloc[-1]  # all features of all views
    chosen = path[path["selected"]].iloc[0]
    losses = (
        f"Loss on held-out rows: {base['loss']:.3f} at the base rate, {whole['loss']:.3f} with all "
        f"{_count(whole['n_features'], 'feature')} of {_count(whole['n_views'], 'view')}"
    )
    given = getattr(model, "n_features", "auto") != "auto"
    if given and not chosen["n_features"]:
        return f"{losses}; no feature is selected, as n_features=0 asks."
    if given:
        return (
            f"{losses}, {chosen['loss']:.3f} with the {_count(chosen['n_features'], 'feature')} "
            f"selected, because n_features={model.n_features} was set."
        )
    if chosen["n_features"] == whole["n_features"]:
        return f"{losses}; no smaller set was shown to have as low a loss, so all are selected."
    # The selected views with all their features.
    of_views = path[(path["step"] == "views") & (path["n_views"] == chosen["n_views"])].iloc[0]
    views_alone = f"{of_views['loss']:.3f} with {_count(chosen['n_views'], 'view')} alone, "
    if chosen["n_views"] >= whole["n_views"]:
        views_alone = ""
    if chosen["n_features"] == of_views["n_features"]:
        size = _count(chosen["n_features"], "feature")
        return f"{losses}, {views_alone}of which all features are selected ({size})."
    return (
        f"{losses}, {views_alone}{chosen['loss']:.3f} with the "
        f"{_count(chosen['n_features'], 'feature')} selected, the fewest that predict about as "
        "well as the best."
    )


def _count(number: float, what: str) -> str:
    return f"{int(number):,} {what}{'' if number == 1 else 's'}"


def signal_sentence(model: Any) -> str:
    """Return whether there is evidence of signal on held-out rows, as one sentence."""
    gain = against_base_rate(model.signal_)
    if model.signal_shown_:
        return f"There is evidence of signal on held-out rows: {gain}."
    return (
        f"NO EVIDENCE OF SIGNAL: held-out rows are {gain}, less than 95 % confidence needs. Do not "
        "interpret the selected features."
    )


def output_names(model: Any) -> list[str]:
    """Return the name of every output: the second of two classes, or each class."""
    outputs = len(model.intercept_)
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [f"y{c}" for c in range(outputs)] if outputs > 1 else ["y"]
    return [str(classes[-1])] if outputs == 1 else [str(label) for label in classes]


def _credible_set_texts(sets: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Return the features that are interchangeable with each selected one, as text.

    Empty for a set of one; "not identified" for a set whose features are hardly correlated.
    """
    texts: dict[tuple[str, str], str] = {}
    for (view, feature), group in sets.groupby(["view", "feature"], sort=False):
        others = [
            f"{row.member_feature} ({row.probability:.2f})"
            if row.member_view == view
            else f"{row.member_view}: {row.member_feature} ({row.probability:.2f})"
            for row in group.itertuples()
            if (row.member_view, row.member_feature) != (view, feature)
        ]
        text = ", ".join(others[:NAMED])
        if len(others) > NAMED:
            text += f" and {len(others) - NAMED:,} more"
        if others and float(group["min_abs_correlation"].iloc[0]) < PURE:
            text = f"not identified ({len(group):,} candidates)"
        texts[(str(view), str(feature))] = text
    return texts


COLUMNS = ("view", "feature", "output", "weight_scaled", "lower", "upper", "inclusion_probability")
"""Columns of the summary that are shown; `summary()` has the others."""


def results_html(model: Any) -> str:
    """Return evidence of signal, views and the strongest selected features as HTML.

    Every text that comes from the data is escaped.
    """
    summary = model.summary()
    lines = [f"<p>{escape(line)}</p>" for line in summary.heading.splitlines()]
    shown = summary.head(STRONGEST)
    if len(shown):
        columns = [name for name in COLUMNS if name in shown]
        lines.append(shown[columns].to_html(index=False, float_format="%.3g", border=0))
    if len(summary) > len(shown):
        more = len(summary) - len(shown)
        lines.append(f"<p>{more:,} more rows are in <code>model.summary()</code>.</p>")
    return f'<div class="baldur-results">{"".join(lines)}</div>'


def against_base_rate(errors: float) -> str:
    """Return in words how many standard errors a model is better, or worse, than the base rate."""
    than = "better" if errors >= 0 else "worse"
    return f"{abs(errors):.1f} standard errors {than} than the base rate"


# -- contributions --------------------------------------------------------------------------------
