"""The people of a page, numbered by their predictions; identifiers only where asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.participants import HAS
from baldur.evaluation.results import Results
from baldur.exceptions import InputError
from baldur.report.fitted import FittedModel
from baldur.report.formatting import short

PEOPLE = ("hidden", "named", "none")
"""Show people without identifiers, with them, or not at all."""
MOST = 2000
"""People listed; more make a page slow, and nobody reads them."""
TERMS = 12
"""Contributions listed for one person."""


@dataclass
class Person:
    """One person of the page."""

    name: str  # Number, or identifier where asked for
    truth: str
    predicted: str  # By the model that the page is about
    value: float
    right: bool | None
    missing: list[str] = field(default_factory=list)  # Views that were not measured
    site: str = ""
    models: list[tuple[str, str, float]] = field(default_factory=list)  # (model, predicted, value)
    terms: list[tuple[str, str, float]] = field(default_factory=list)


def check_people(people: str) -> None:
    """Refuse a value of `people` other than "hidden", "named" and "none"."""
    if people not in PEOPLE:
        raise InputError(f"people must be one of {PEOPLE}, but got {people!r}.")


def _fields(people: str, listed: list[Person], left: int, absent: str) -> dict[str, Any]:
    """Return the fields of a page about people; `absent` says why none are listed."""
    return {
        "people": listed,
        "people_left": left,
        "people_absent": "People are left out of this page." if people == "none" else absent,
        "hidden": people == "hidden",
    }


def people_of_run(run: Results, main: str | None, people: str) -> dict[str, Any]:
    """Return the fields of a page about the people of a comparison.

    Predictions are means over repeats. People are in the order of what was predicted, which says
    nothing about their place in the file.
    """
    table = run.table("predictions")
    if people == "none" or main is None or "sample" not in table:
        return _fields(people, [], 0, "There are no predictions to show.")
    means = _means(table[table["model"].isin(run.finished)], run.classes)
    value, label = means["value"].to_dict(), means["label"].to_dict()  # by (model, sample)
    order = [
        sample
        for model, sample in means.sort_values("value", ascending=False, kind="stable").index
        if model == main
    ]
    of_sample = table.drop_duplicates("sample").set_index("sample")
    truths = of_sample["label"].to_dict()
    sites = of_sample["site"].to_dict() if "site" in of_sample else {}
    missing = _missing_views(run.people)
    listed = [
        Person(
            name=short(sample, 200) if people == "named" else f"Person {i}",
            truth=_shown(truths[sample], bool(run.classes)),
            predicted=_shown(label[(main, sample)], bool(run.classes)),
            value=value[(main, sample)],
            right=str(truths[sample]) == str(label[(main, sample)]) if run.classes else None,
            missing=missing.get(sample, []),
            site=str(sites.get(sample, "")),
            models=[
                (m, str(label[(m, sample)]) if run.classes else "", value[(m, sample)])
                for m in run.finished
                if (m, sample) in value
            ],
        )
        for i, sample in enumerate(order[:MOST], start=1)
    ]
    return _fields(people, listed, max(len(order) - MOST, 0), "There are no predictions to show.")


def _missing_views(people: pd.DataFrame) -> dict[str, list[str]]:
    """Return the missing views of every sample with missing views."""
    missing: dict[str, list[str]] = {}
    for column in people.columns:
        if column.startswith(HAS):
            for sample in people.loc[people[column] == 0, "sample"]:
                missing.setdefault(str(sample), []).append(column.removeprefix(HAS))
    return missing


def _means(table: pd.DataFrame, classes: list[str]) -> pd.DataFrame:
    """Return what every model predicts for every person, one row per (model, sample).

    Columns: value (the mean over repeats of the predicted number, of the probability of the
    positive class, or of the largest probability of several) and label (the predicted class).
    """
    grouped = table.groupby(["model", "sample"], sort=False)
    if not classes:
        predicted = grouped["predicted"].mean().astype(float)
        return pd.DataFrame({"value": predicted, "label": predicted})
    columns = [f"p_{c}" for c in classes]
    p = grouped[columns].mean()
    best = np.array(classes)[np.nan_to_num(p.to_numpy(dtype=float), nan=-1.0).argmax(axis=1)]
    # A model without probabilities has only its labels.
    label = np.where(p.notna().all(axis=1), best, grouped["predicted"].first())
    value = p[columns[-1]] if len(classes) == 2 else p.max(axis=1)
    return pd.DataFrame({"value": value.astype(float), "label": label}, index=p.index)


def people_of_model(model: FittedModel, people: str) -> dict[str, Any]:
    """Return the fields of a page about people passed with a model, with contributions."""
    if people == "none" or model.X is None:
        return _fields(people, [], 0, "No people were passed with the model.")
    estimator, X = model.estimator, model.X
    predicted = np.asarray(estimator.predict(X))
    if predicted.ndim > 1:
        absent = "People are not listed for a model with several outcomes."
        return _fields(people, [], len(predicted), absent)
    classes = list(getattr(estimator, "classes_", []))
    if classes and hasattr(estimator, "predict_proba"):
        p = np.asarray(estimator.predict_proba(X), dtype=float)
        value = p[:, -1] if len(classes) == 2 else p.max(axis=1)
    else:
        value = predicted.astype(float) if not classes else np.full(len(predicted), np.nan)
    ids = [str(s) for s in getattr(X, "sample_ids", getattr(X, "index", range(len(predicted))))]
    order = np.argsort(-value, kind="stable")[:MOST]
    truth = None if model.y is None else np.asarray(model.y)
    terms = _terms(model, X, order)
    listed = [
        Person(
            name=short(ids[row], 200) if people == "named" else f"Person {i}",
            truth="" if truth is None else _shown(truth[row], bool(classes)),
            predicted=_shown(predicted[row], bool(classes)),
            value=float(value[row]),
            right=str(truth[row]) == str(predicted[row]) if truth is not None and classes else None,
            missing=_missing(X, int(row)),
            terms=terms.get(int(row), []),
        )
        for i, row in enumerate(order, start=1)
    ]
    return _fields(people, listed, len(predicted) - len(order), "")


def _shown(value: Any, is_class: bool) -> str:
    return str(value) if is_class else f"{float(value):.4g}"


def _missing(X: Any, row: int) -> list[str]:
    if not hasattr(X, "view_names"):
        return []
    return [name for name in X.view_names if not bool(X.view(name).present[row])]


def _terms(model: FittedModel, X: Any, rows: np.ndarray) -> dict[int, list[tuple[str, str, float]]]:
    """Return the largest contributions to the last output (the positive class) of each row of X.

    A term is (view, feature, contribution). Nothing where the model does not explain.
    """
    if model.inner is None or not hasattr(model.estimator, "explain"):
        return {}
    from baldur.estimators.contributions import AVERAGE, UNCERTAINTY

    X_rows = X[rows] if not hasattr(X, "iloc") else X.iloc[rows]
    explained = pd.DataFrame(model.estimator.explain(X_rows, most=TERMS))
    if not len(explained):
        return {}
    explained = explained[explained["output"] == explained["output"].iloc[-1]]
    # Rows come back sample by sample, in the order given.
    samples = list(dict.fromkeys(explained["sample"]))
    if len(samples) != len(rows):
        return {}
    terms: dict[int, list[tuple[str, str, float]]] = {int(row): [] for row in rows}
    row_of = dict(zip(samples, terms, strict=True))
    for explanation in explained.to_dict("records"):
        feature, of_sample = explanation["feature"], terms[row_of[explanation["sample"]]]
        # The average and the uncertainty are always there, beside `TERMS` features.
        if feature in (AVERAGE, UNCERTAINTY) or len(of_sample) < TERMS + 2:
            term = (str(explanation["view"]), str(feature), float(explanation["contribution"]))
            of_sample.append(term)
    return terms
