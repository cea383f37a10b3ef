"""What a fitted model found, as one tidy table that also reads as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from baldur.inference.selection import against_base_rate
from baldur.views.container import MultiView

INTERVAL = 1.959964
"""Standard deviations on either side of a 95 % interval."""
STRONGEST = 10
NAMED = 3
"""Stand-ins named in a cell; `credible_sets_` has them all."""


class Summary(pd.DataFrame):
    """A table of features whose ``str`` opens with the answer in words.

    Attributes
    ----------
    heading : str
        The lines before the table.
    """

    _metadata: ClassVar[list[str]] = ["heading"]  # kept by pandas when the table is cut
    heading: str

    @property
    def _constructor(self) -> type[Summary]:
        return Summary

    def __str__(self) -> str:
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
        return "\n".join(line for line in lines if line)


def views_used(mv: MultiView, selected: Mapping[str, Any]) -> pd.DataFrame:
    """Return whether each sample has each view of which features were kept, (n, M) of bool.

    Parameters
    ----------
    mv : MultiView
    selected : dict of str to bool array
        Kept features of the views that a model has.
    """
    found = {name: mv.view(name).present & bool(np.any(mask)) for name, mask in selected.items()}
    return pd.DataFrame(found, index=pd.Index(mv.sample_ids, name="sample"))


def named_outputs(model: Any, table: pd.DataFrame, classes: Sequence[Any]) -> pd.DataFrame:
    """Return a summary or explanation of a fitted model, with its outputs named by `classes`.

    Parameters
    ----------
    model : fitted estimator
        One that was fitted on the labels, or on their places in `classes`.
    table : DataFrame
        With the column output.
    classes : sequence
        Labels, in the order of ``model.classes_``.
    """
    known = getattr(model, "classes_", range(len(classes)))
    names = {str(own): str(label) for own, label in zip(known, classes, strict=False)}
    out = table.copy()
    out["output"] = [names.get(str(output), output) for output in table["output"]]
    return out


def summarise(model: Any, *, everything: bool = False) -> Summary:
    """Return one row per kept feature and output, the strongest first.

    Parameters
    ----------
    model : fitted estimator
    everything : bool
        Also list features that were dropped.
    """
    outputs = output_names(model)
    sets = getattr(model, "credible_sets_", None)
    set_texts = {} if sets is None else _credible_set_texts(sets)
    parts = []
    for name in model.view_names_:
        kept = model.selected_features_[name]
        at = np.arange(len(kept)) if everything else np.flatnonzero(kept)
        if not len(at):
            continue
        features = np.asarray(model.feature_names_[name])[at].astype(str)
        for c, output in enumerate(outputs):
            weight, std = model.coef_[name][c, at], model.coef_scaled_std_[name][c, at]
            scaled = model.coef_scaled_[name][c, at]
            part: dict[str, Any] = {
                "view": name,
                "feature": features,
                "output": output,
                "weight": weight,
                "weight_scaled": scaled,
                "lower": scaled - INTERVAL * std,
                "upper": scaled + INTERVAL * std,
                "selected": kept[at],
            }
            if hasattr(model, "inclusion_probability_"):
                part["inclusion_probability"] = model.inclusion_probability_[name][at]
            if sets is not None:
                part["credible_set"] = [set_texts.get((name, f), "") for f in features]
            frame = pd.DataFrame(part)
            info = model.feature_info_.get(name)
            if info is not None:
                extra = info.iloc[at].reset_index(drop=True)
                frame = pd.concat([frame, extra.loc[:, ~extra.columns.isin(frame.columns)]], axis=1)
            parts.append(frame)
    columns = ["view", "feature", "output", "weight", "weight_scaled", "lower", "upper", "selected"]
    table = Summary(pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns))
    order = np.argsort(-np.abs(table["weight_scaled"].to_numpy(dtype=float)), kind="stable")
    table = table.iloc[order].reset_index(drop=True)
    table.heading = heading(model)
    return table


def heading(model: Any) -> str:
    """Return the answer in a few lines: what was kept, from which views, and how sure that is."""
    kept = {name: int(mask.sum()) for name, mask in model.selected_features_.items()}
    total = sum(len(mask) for mask in model.selected_features_.values())
    lines = [f"{sum(kept.values()):,} of {total:,} features kept."]
    if sum(kept.values()):
        shares = sorted(model.view_relevance_.items(), key=lambda item: -item[1])
        views = [f"{name} {share:.0%} ({kept[name]:,})" for name, share in shares if kept[name]]
        lines.append("Views by share of the prediction's variance: " + ", ".join(views) + ".")
    if hasattr(model, "signal_shown_"):
        lines.append(signal_sentence(model))
        lines.append(path_sentence(model))
    lines.append(
        "Weights per standard deviation with 95 % intervals:" if sum(kept.values()) else ""
    )
    return "\n".join(line for line in lines if line)


def path_sentence(model: Any) -> str:
    """Return how the kept set was reached, from all features to the fewest that do as well."""
    path = model.sparsity_path_
    base, whole = path[path["step"] == "nothing"].iloc[0], path[path["step"] == "views"].iloc[-1]
    kept = path[path["selected"]].iloc[0]
    losses = (
        f"Loss on held-out rows: {base['loss']:.3f} at the base rate, {whole['loss']:.3f} with all "
        f"{_count(whole['n_features'], 'feature')} of {_count(whole['n_views'], 'view')}"
    )
    if kept["n_features"] == whole["n_features"]:
        return f"{losses}; no smaller set was shown to predict as well, so all are kept."
    of_views = path[(path["step"] == "views") & (path["n_views"] == kept["n_views"])].iloc[0]
    first = f"{of_views['loss']:.3f} with {_count(kept['n_views'], 'view')} alone, "
    first = first if kept["n_views"] < whole["n_views"] else ""
    if kept["n_features"] == of_views["n_features"]:
        return f"{losses}, {first}which is kept whole ({_count(kept['n_features'], 'feature')})."
    return (
        f"{losses}, {first}{kept['loss']:.3f} with the {_count(kept['n_features'], 'feature')} "
        "that are kept, the fewest that predict about as well as the best."
    )


def _count(number: float, what: str) -> str:
    return f"{int(number):,} {what}{'' if number == 1 else 's'}"


def signal_sentence(model: Any) -> str:
    """Return whether held-out rows showed a signal, as one sentence."""
    gain = against_base_rate(model.signal_)
    if model.signal_shown_:
        return f"Held-out rows show a signal: {gain}."
    return (
        f"NO SIGNAL WAS SHOWN: held-out rows are {gain}, less than 95 % confidence needs. The "
        "features below are not to be read as findings."
    )


def output_names(model: Any) -> list[str]:
    """Return the name of every output: the second of two classes, or each class."""
    outputs = len(model.intercept_)
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [f"y{c}" for c in range(outputs)] if outputs > 1 else ["y"]
    return [str(classes[-1])] if outputs == 1 else [str(label) for label in classes]


def _credible_set_texts(sets: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Return who else could be in the place of each kept feature, as text."""
    found: dict[tuple[str, str], str] = {}
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
        found[(str(view), str(feature))] = text
    return found
