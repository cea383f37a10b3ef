"""Checks with codes: what a reader should know before relying on a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from baldur.estimators.summary import against_base_rate
from baldur.evaluation.results import Results
from baldur.report.answer import interval_of, linear_evidence, prediction_of
from baldur.report.fitted import FittedModel
from baldur.report.formatting import count, distinct, estimate, listed, number, percent, short
from baldur.report.sentences import CARE, NOTE, PREDICTION, SERIOUS, SHOWN, Check, case_of

FEW = 20
"""People of a class, below which one person moves its figures by more than 5 percentage points."""
POOR_STABILITY = 0.4
"""Nogueira, Sechidis and Brown (2018) call agreement below this poor."""
MOST = 0.8
"""Share of the squared weights that counts as nearly all."""
MANY_MISSING = 0.2
"""Share of samples with a missing view that changes who a result is about."""
SWING = 0.4
"""Difference of a view's share between folds that can turn a minor view into the main one."""
LIMITS = {
    "FEW": FEW, "POOR_STABILITY": POOR_STABILITY, "MOST": MOST, "MANY_MISSING": MANY_MISSING,
    "SWING": f"{100 * SWING:.0f}",
}  # fmt: skip
"""What the texts in ``templates/checks.toml`` name in braces."""

_OF_MAIN = ("stability", "selection", "calibration", "view_shares")
"""Tables that checks of the main model are made from."""


def checks_of_run(run: Results, main: str | None) -> list[Check]:
    """Return the checks that apply to a comparison, the serious ones first."""
    found: list[Check | None] = []
    if main is not None:
        found += [
            _chance(run, main),
            _unstable(run, main),
            _swinging(run, main),
            _one_feature_of_folds(run, main),
            _calibration(run, main),
        ]
    found += [_small_classes(run), _sites(run), _missing_views(run), *_warnings(run)]
    found.append(_trees(run))
    found += [
        Check("B09", CARE, f"{short(model)} has no figures: {short(reason, 300)}")
        for model, reason in run.record.get("failures", {}).items()
    ]
    found += [Check("B11", CARE, short(text, 400)) for text in run.record.get("findings", [])]
    found += [Check("B14", SERIOUS, short(text, 400)) for text in run.problems]
    return in_order(found)


def checks_of_model(model: FittedModel) -> list[Check]:
    """Return the checks that apply to a fitted model without a comparison."""
    inner, found = model.inner, []
    if inner is None:
        return []
    selected = sum(int(np.sum(mask)) for mask in inner.selected_features_.values())
    if not getattr(inner, "signal_shown_", True):
        text = (
            f"In the fit on all people, held-out rows are {against_base_rate(inner.signal_)}, less "
            "than 95 % confidence needs."
        )
        found.append(Check("B01", SERIOUS, text))
    if not selected:
        found.append(Check("B13", SERIOUS, "No feature was selected."))
    if not getattr(inner, "converged_", True):
        found.append(Check("B07", CARE, "The fit on all people did not converge."))
    found += [c for c in (_flat_path(model.path()), _one_feature(model.summary())) if c]
    return in_order(found)


def made_of_run(run: Results, main: str | None) -> tuple[list[str], list[str]]:
    """Return which checks the tables of a comparison allow, whether they apply or not."""
    own = {} if main is None else {name: len(run.of_model(name, main)) for name in _OF_MAIN}
    known = {
        "B01": main is not None,
        "B03": bool(own.get("stability")),
        "B05": "site" in run.people,
        "B06": bool(own.get("selection")),
        "B08": bool(own.get("calibration")),
        "B11": "findings" in run.record,
        "B15": bool(own.get("view_shares")),
    }
    if linear_evidence(run) is not None:
        known["B22"] = True
    if run.classes:
        known["B02"] = "label" in run.people
    known |= dict.fromkeys(("B07", "B09", "B10", "B16", "B17"), True)
    if run.folder is not None:
        known["B14"] = True
    return _parted(known)


def made_of_model(model: FittedModel) -> tuple[list[str], list[str]]:
    """Return which checks a fitted model alone allows, whether they apply or not."""
    inner = model.inner
    known = dict.fromkeys(("B02", "B03", "B05", "B08", "B10", "B11", "B15", "B16"), False)
    known |= dict.fromkeys(("B06", "B13"), inner is not None)
    known["B01"] = hasattr(inner, "signal_shown_")
    known["B04"] = inner is not None and len(model.path()) > 0
    known["B07"] = hasattr(inner, "converged_")
    return _parted(known)


def _parted(known: dict[str, bool]) -> tuple[list[str], list[str]]:
    """Return the codes that are true, and the others."""
    codes = sorted(known)
    return [c for c in codes if known[c]], [c for c in codes if not known[c]]


def in_order(found: Sequence[Check | None]) -> list[Check]:
    """Return the checks that apply, serious ones first, each once."""
    rank = {SERIOUS: 0, CARE: 1, NOTE: 2}
    there = list(dict.fromkeys(c for c in found if c is not None))
    return sorted(there, key=lambda c: (rank[c.level], c.code))


def _chance(run: Results, main: str) -> Check | None:
    """Return the check of chance level, which applies if the first headline is not "shown"."""
    evidence = prediction_of(run, main)
    case = case_of(PREDICTION, evidence)
    if case.outcome == SHOWN:
        return None
    seen = f"{evidence.metric} of {short(main)}"
    text = f"{seen} on held-out people is {evidence.value}; guessing gives "
    text += f"{number(evidence.chance)}."
    if evidence.p is not None:
        text += f" Permutation test: p = {number(evidence.p, 3)}."
    return Check("B01", SERIOUS, text[0].upper() + text[1:])


def _small_classes(run: Results) -> Check | None:
    people = run.people
    if not run.classes or "label" not in people:
        return None
    counts = people["label"].astype(str).value_counts()
    small = {c: int(counts.get(c, 0)) for c in run.classes if counts.get(c, 0) < FEW}
    if not small:
        return None
    named = listed([f"{short(c)} ({count(n, 'person', 'people')})" for c, n in small.items()], 5)
    return Check("B02", CARE, f"Few people in: {named}.")


def _unstable(run: Results, main: str) -> Check | None:
    rows = run.of_model("stability", main)
    if "view" not in rows:
        return None
    whole = rows[rows["view"] == "*"]
    if not len(whole) or not float(whole["stability"].iloc[0]) < POOR_STABILITY:
        return None
    seen = estimate(*whole[["stability", "low", "high"]].iloc[0])
    return Check("B03", CARE, f"Nogueira's index of {short(main)} over folds is {seen}.")


def _swinging(run: Results, main: str) -> Check | None:
    rows = run.of_model("view_shares", main)
    if "variance_share" not in rows:
        return None
    shares = rows.groupby("view", sort=False)["variance_share"].agg(["min", "max"])
    wide = shares[shares["max"] - shares["min"] > SWING]
    if not len(wide):
        return None
    seen = [
        f"{short(view)} ({percent(row['min'])} to {percent(row['max'])})"
        for view, row in wide.iterrows()
    ]
    return Check("B15", CARE, f"Share of the prediction's variance over the folds: {listed(seen)}.")


def _flat_path(path: pd.DataFrame) -> Check | None:
    if "selected" not in path or not path["selected"].any():
        return None
    selected = path[path["selected"]].iloc[0]
    size = int(selected["n_features"])
    if not size:
        return None
    smaller = path[(path["n_features"] <= size // 2)]
    if not len(smaller):
        return None
    half = smaller.sort_values("n_features").iloc[-1]
    loses = float(half["loss"]) - float(selected["loss"])
    if not loses < float(half["standard_error"]):
        return None
    text = (
        f"{count(half['n_features'], 'feature')} instead of {size:,} would lose "
        f"{number(loses, 3)} of held-out loss, with a standard error of "
        f"{number(half['standard_error'], 3)}."
    )
    return Check("B04", CARE, text)


def _sites(run: Results) -> Check | None:
    people = run.people
    if "site" not in people or "label" not in people or not len(people):
        return None
    from baldur.study.data_checks import site_predicts

    y = people["label"].astype(str) if run.classes else people["label"].astype(float)
    outcome = str(run.record.get("outcome") or "the outcome")
    scheme = str(run.record.get("scheme") or "")
    made = site_predicts(
        people["site"].astype(str).to_numpy(), y.to_numpy(), outcome, bool(run.classes), scheme
    )
    return Check("B05", SERIOUS, f"{short(made[0].what, 300)}.") if made else None


def _one_feature_of_folds(run: Results, main: str) -> Check | None:
    rows = run.of_model("selection", main)
    if "mean_weight" not in rows:
        return None
    rows = rows[rows["feature"] != "*"]
    weight = rows["mean_weight"].astype(float) * rows["frequency"].astype(float)
    return _dominant(rows["view"], rows["feature"], weight)


def _one_feature(summary: pd.DataFrame) -> Check | None:
    if not len(summary):
        return None
    return _dominant(summary["view"], summary["feature"], summary["weight_scaled"].astype(float))


def _dominant(view: pd.Series, feature: pd.Series, weight: pd.Series) -> Check | None:
    square = pd.DataFrame({"view": view, "feature": feature, "square": weight**2})
    total = square.groupby(["view", "feature"], sort=False)["square"].sum()
    if not len(total) or not 0 < total.sum() < np.inf:
        return None
    share = float(total.max() / total.sum())
    if share <= MOST:
        return None
    name = total.index[int(np.argmax(total.to_numpy()))]
    text = f"{short(name[1])} ({short(name[0])}) holds {percent(share)} of the squared weights."
    return Check("B06", CARE, text)


def _calibration(run: Results, main: str) -> Check | None:
    rows = run.of_model("calibration", main)
    if "measure" not in rows:
        return None
    seen = []
    for name in dict.fromkeys(rows["class"].astype(str)):
        own = rows[rows["class"].astype(str) == name]
        which = f" of {short(name)}" if len(run.classes) > 2 else ""
        for measure, right in (("slope", 1.0), ("intercept", 0.0)):
            found = interval_of(own, measure=measure)
            if found.known and not found.includes(right):
                seen.append(f"{measure}{which} {found}")
    if not seen:
        return None
    return Check("B08", CARE, f"Calibration of {short(main)}: {listed(seen)}.")


def _warnings(run: Results) -> list[Check]:
    """Return checks for the warnings of the models, so that all of them are shown."""
    converged, silent, other = [], [], []
    for model, notes in run.record.get("notes", {}).items():
        for note in notes:
            if "NoSignalWarning" in note or "no evidence of" in note.lower():
                silent.append(model)
            elif "converge" in note:
                converged.append(model)
            else:
                other.append(model)
    found = []
    if converged:
        named = listed(distinct(dict.fromkeys(converged)))
        found.append(Check("B07", CARE, f"In some folds: {named}."))
    if silent:
        named = listed(distinct(dict.fromkeys(silent)))
        text = f"{named} found no evidence of signal in at least one fold; the note is at the end."
        found.append(Check("B16", CARE, text))
    if other:
        each = {m: other.count(m) for m in other}
        named = listed([f"{short(m)} ({n})" for m, n in each.items()])
        found.append(Check("B17", NOTE, f"Warnings of {named}, listed at the end of the page."))
    data = run.record.get("notes_on_data", [])
    found += [Check("B20", NOTE, short(text, 400)) for text in data]
    return found


def _trees(run: Results) -> Check | None:
    """Return the check that applies where models of trees are shown to be better."""
    evidence = linear_evidence(run)
    if evidence is None or not evidence.better:
        return None
    text = f"Better than every linear model: {evidence.named(evidence.better)}. {evidence.legend}"
    return Check("B22", CARE, text)


def _missing_views(run: Results) -> Check | None:
    people = max(int(run.record.get("people", 0)), 1)
    shares = {v["name"]: 1 - v["people"] / people for v in run.record.get("views", [])}
    many = [f"{short(v)} ({percent(s)})" for v, s in shares.items() if s > MANY_MISSING]
    if not many:
        return None
    return Check("B10", CARE, f"Share of samples with a missing view: {listed(many)}.")
