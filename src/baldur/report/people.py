"""The people of a page: numbered by what was predicted, without their identifiers unless asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from baldur.estimators.explain import AVERAGE, UNCERTAINTY
from baldur.exceptions import InputError
from baldur.report.fitted import FittedModel
from baldur.report.source import HAS, Run
from baldur.report.words import short

__all__ = ["PEOPLE", "Person", "people_of_model", "people_of_run"]

PEOPLE = ("hidden", "named", "none")
"""Show people without identifiers, with them, or not at all."""
MOST = 2000
"""People listed; more make a page slow, and nobody reads them."""
TERMS = 12
"""Contributions listed for one person."""


@dataclass
class Person:
    """One person of the page.

    Attributes
    ----------
    name : str
        Number, or identifier where asked for.
    truth : str
    predicted : str
        By the model that the page is about.
    value : float
        Probability of the positive class (or of the predicted one), or the number predicted.
    right : bool or None
        Whether the prediction is; None for numbers, or where the truth is not known.
    lacks : list of str
        Views.
    models : list of (model, predicted, value)
    terms : list of (view, feature, contribution)
    """

    name: str
    truth: str
    predicted: str
    value: float
    right: bool | None
    lacks: list[str] = field(default_factory=list)
    site: str = ""
    models: list[tuple[str, str, float]] = field(default_factory=list)
    terms: list[tuple[str, str, float]] = field(default_factory=list)


def check_people(people: str) -> None:
    """Refuse anything but the three ways of showing people."""
    if people not in PEOPLE:
        raise InputError(f"people must be one of {PEOPLE}, but got {people!r}.")


def people_of_run(run: Run, main: str | None, people: str) -> tuple[list[Person], int]:
    """Return the people of a comparison and how many were left out.

    Predictions are means over repeats. People are in the order of what was predicted, which says
    nothing about their place in the file.

    Parameters
    ----------
    run : Run
    main : str or None
        The model that the page is about.
    people : {"hidden", "named", "none"}

    Returns
    -------
    list of Person, int
    """
    check_people(people)
    table = run.table("predictions")
    if people == "none" or main is None or "sample" not in table:
        return [], 0
    value, label = _means(table, run.classes)
    own = value.loc[main].sort_values(ascending=False, kind="stable")
    who = run.people.set_index("sample")
    shown = own.index[:MOST]
    has = [c for c in who.columns if c.startswith(HAS)]
    made = []
    for place, sample in enumerate(shown, start=1):
        row = who.loc[sample] if sample in who.index else pd.Series(dtype=object)
        if isinstance(row, pd.DataFrame):  # the same identifier twice
            row = row.iloc[0]
        truth = row.get("label", "")
        guess = label.loc[(main, sample)]
        made.append(
            Person(
                name=short(sample, 200) if people == "named" else f"Person {place}",
                truth=str(truth) if run.classes else f"{float(truth):.4g}",
                predicted=str(guess) if run.classes else f"{float(own[sample]):.4g}",
                value=float(own[sample]),
                right=bool(str(truth) == str(guess)) if run.classes else None,
                lacks=[c.removeprefix(HAS) for c in has if not int(row.get(c, 1))],
                site=str(row.get("site", "")),
                models=[
                    (m, str(label.loc[(m, sample)]) if run.classes else "", float(v))
                    for m, v in _each(value, sample, run.finished)
                ],
            )
        )
    return made, len(own) - len(shown)


def _each(value: pd.Series, sample: str, models: list[str]) -> list[tuple[str, float]]:
    return [(m, value.loc[(m, sample)]) for m in models if (m, sample) in value.index]


def _means(table: pd.DataFrame, classes: list[str]) -> tuple[pd.Series, pd.Series]:
    """Return value and label of every model and person, over repeats."""
    if not classes:
        value = table.groupby(["model", "sample"], sort=False)["predicted"].mean()
        return value.astype(float), value
    columns = [f"p_{c}" for c in classes]
    p = table.groupby(["model", "sample"], sort=False)[columns].mean()
    votes = table.groupby(["model", "sample"], sort=False)["predicted"].first()
    best = np.array(classes)[np.nan_to_num(p.to_numpy(dtype=float), nan=-1.0).argmax(axis=1)]
    known = p.notna().all(axis=1)
    label = pd.Series(np.where(known, best, votes.reindex(p.index)), index=p.index)
    chosen = p[columns[-1]] if len(classes) == 2 else p.max(axis=1)
    return chosen.astype(float), label


def people_of_model(model: FittedModel, people: str) -> tuple[list[Person], int]:
    """Return the people handed over with a model, with what each feature contributes.

    Parameters
    ----------
    model : FittedModel
    people : {"hidden", "named", "none"}

    Returns
    -------
    list of Person, int
    """
    check_people(people)
    if people == "none" or model.X is None:
        return [], 0
    estimator, X = model.estimator, model.X
    guess = np.asarray(estimator.predict(X))
    if guess.ndim > 1:
        return [], len(guess)
    classes = list(getattr(estimator, "classes_", []))
    if classes and hasattr(estimator, "predict_proba"):
        p = np.asarray(estimator.predict_proba(X), dtype=float)
        value = p[:, -1] if len(classes) == 2 else p.max(axis=1)
    else:
        value = guess.astype(float) if not classes else np.full(len(guess), np.nan)
    ids = [str(s) for s in getattr(X, "sample_ids", getattr(X, "index", range(len(guess))))]
    order = np.argsort(-value, kind="stable")[:MOST]
    truth = None if model.y is None else np.asarray(model.y)
    terms = _terms(model, X, order)
    made = []
    for place, i in enumerate(order, start=1):
        known = truth is not None
        right = bool(str(truth[i]) == str(guess[i])) if truth is not None and classes else None
        made.append(
            Person(
                name=short(ids[i], 200) if people == "named" else f"Person {place}",
                truth=_shown(truth[i], bool(classes)) if known and truth is not None else "",
                predicted=_shown(guess[i], bool(classes)),
                value=float(value[i]),
                right=right,
                lacks=_lacks(X, int(i)),
                terms=terms.get(int(i), []),
            )
        )
    return made, len(guess) - len(order)


def _shown(value: Any, is_class: bool) -> str:
    return str(value) if is_class else f"{float(value):.4g}"


def _lacks(X: Any, row: int) -> list[str]:
    if not hasattr(X, "view_names"):
        return []
    return [name for name in X.view_names if not bool(X.view(name).present[row])]


def _terms(model: FittedModel, X: Any, rows: np.ndarray) -> dict[int, list[tuple[str, str, float]]]:
    """Return the largest contributions of each row, the first output's."""
    if model.inner is None or not hasattr(model.estimator, "explain"):
        return {}
    few = [int(r) for r in rows[:MOST]]
    part = X[np.array(few)] if not hasattr(X, "iloc") else X.iloc[few]
    found = pd.DataFrame(model.estimator.explain(part, most=TERMS))
    found = found[found["output"] == found["output"].iloc[-1]] if len(found) else found
    # Rows come back sample by sample, in the order given.
    names = list(dict.fromkeys(found["sample"]))
    if len(names) != len(few):
        return {}
    at = dict(zip(names, few, strict=True))
    made: dict[int, list[tuple[str, str, float]]] = {}
    for row in found.to_dict("records"):
        listed = made.setdefault(at[row["sample"]], [])
        special = row["feature"] in (AVERAGE, UNCERTAINTY)
        if special or len(listed) < TERMS + 2:
            listed.append((str(row["view"]), str(row["feature"]), float(row["contribution"])))
    return made
