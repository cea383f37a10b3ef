"""Checks with codes: what a reader should know before relying on a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import pandas as pd

from baldur.estimators.summary import against_base_rate
from baldur.evaluation.results import Results
from baldur.report.fitted import FittedModel
from baldur.report.formatting import distinct, estimate, listed, number, percent, short
from baldur.report.sentences import (
    SHOWN,
    better_trees,
    gains_of_trees,
    interval_of,
    named_trees,
    prediction_of,
    prediction_sentence,
    trees_legend,
)
from baldur.views.validate import counted

SERIOUS, CARE, NOTE = "serious", "care", "note"
"""Levels of a check."""

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

_SERIOUS, _NOTES = {"B01", "B05", "B13", "B14"}, {"B12", "B17", "B20"}
Judged = dict[str, list[str] | None]
"""Code of a check to what was seen: nothing if it does not apply, None if it cannot be made."""


@dataclass(frozen=True)
class Check:
    """A check that applies to a result, with its evidence."""

    code: str
    level: str  # SERIOUS, CARE or NOTE
    text: str  # What was seen, with its numbers


def judge_run(run: Results, main: str | None) -> Judged:
    """Return what the checks of a comparison saw, by code; `main` is the model of the page."""
    record = run.record
    judged: Judged = {
        "B05": _sites(run),
        "B09": [
            f"{short(model)} has no figures: {short(reason, 300)}"
            for model, reason in record.get("failures", {}).items()
        ],
        "B10": _missing_views(run),
        "B11": [short(t, 400) for t in record["findings"]] if "findings" in record else None,
        **_warnings(run),
    }
    of_main = {
        "B01": _chance,
        "B03": _unstable,
        "B06": _one_feature_of_folds,
        "B08": _calibration,
        "B15": _unstable_shares,
    }
    judged |= {code: None if main is None else judge(run, main) for code, judge in of_main.items()}
    if run.classes:
        judged["B02"] = _small_classes(run)
    if run.folder is not None:
        judged["B14"] = [short(text, 400) for text in run.problems]
    gains = gains_of_trees(run)
    if len(gains):
        better = better_trees(gains)
        seen = f"{named_trees(gains, better)}. {trees_legend(gains)}"
        judged["B22"] = [f"Better than every linear model: {seen}"] if better else []
    return judged


def judge_model(model: FittedModel) -> Judged:
    """Return what the checks of a fitted model saw, by code; the others need a comparison."""
    inner = model.inner
    judged: Judged = dict.fromkeys(("B01", "B02", "B03", "B04", "B05", "B06", "B07"))
    judged |= dict.fromkeys(("B08", "B10", "B11", "B13", "B15", "B16"))
    if inner is None:
        return judged
    selected = any(np.any(mask) for mask in inner.selected_features_.values())
    summary = model.summary()
    judged["B06"] = _dominant(summary, summary["weight_scaled"]) if len(summary) else []
    judged["B13"] = [] if selected else ["No feature was selected."]
    if len(model.path()):
        judged["B04"] = _flat_path(model.path())
    if hasattr(inner, "converged_"):
        judged["B07"] = [] if inner.converged_ else ["The fit on all people did not converge."]
    if hasattr(inner, "signal_shown_"):
        seen = (
            f"In the fit on all people, held-out rows are {against_base_rate(inner.signal_)}, less "
            "than 95 % confidence needs."
        )
        judged["B01"] = [] if inner.signal_shown_ else [seen]
    return judged


def checks_of(*judged: Judged, serious: Set[str] = frozenset()) -> list[Check]:
    """Return the checks that apply, each once and serious ones first."""
    serious = _SERIOUS | serious
    checks = [
        Check(code, SERIOUS if code in serious else NOTE if code in _NOTES else CARE, text)
        for texts_by_code in judged
        for code, texts in texts_by_code.items()
        for text in texts or ()
    ]
    levels = (SERIOUS, CARE, NOTE)
    return sorted(dict.fromkeys(checks), key=lambda c: (levels.index(c.level), c.code))


def doubts_of(checks: Sequence[Check]) -> list[str]:
    """Return the codes of checks that may make the main figure wrong (B11: data may be wrong)."""
    return list(dict.fromkeys(c.code for c in checks if c.level == SERIOUS or c.code == "B11"))


def codes_of(judged: Judged) -> tuple[list[str], list[str]]:
    """Return the codes of the checks that could be made, and of those that could not."""
    possible = {code for code, texts in judged.items() if texts is not None}
    return sorted(possible), sorted({*judged} - possible)


def _chance(run: Results, main: str) -> list[str]:
    """Return a text if it is not shown that the outcome can be predicted, as in the headline."""
    prediction = prediction_of(run, main)
    if prediction_sentence(prediction).outcome == SHOWN:
        return []
    text = (
        f"{prediction.metric} of {short(main)} on held-out people is {prediction.value}; guessing "
        f"gives {number(prediction.chance)}."
    )
    if prediction.p is not None:
        text += f" Permutation test: p = {number(prediction.p, 3)}."
    return [text[0].upper() + text[1:]]


def _small_classes(run: Results) -> list[str] | None:
    """Return a text if classes have few people; None if labels are not known."""
    people = run.people
    if "label" not in people:
        return None
    counts = people["label"].astype(str).value_counts()
    small = {c: int(counts.get(c, 0)) for c in run.classes if counts.get(c, 0) < FEW}
    named = listed([f"{short(c)} ({counted(n, 'person', 'people')})" for c, n in small.items()], 5)
    return [f"Few people in: {named}."] if small else []


def _unstable(run: Results, main: str) -> list[str] | None:
    """Return a text if folds select different features; None if not known."""
    rows = run.of_model("stability", main)
    if "view" not in rows or not len(rows):
        return None
    all_views = rows[rows["view"] == "*"]
    if not len(all_views) or not float(all_views["stability"].iloc[0]) < POOR_STABILITY:
        return []
    index = estimate(*all_views[["stability", "low", "high"]].iloc[0])
    return [f"Nogueira's index of {short(main)} over folds is {index}."]


def _unstable_shares(run: Results, main: str) -> list[str] | None:
    """Return a text if the share of a view differs between folds; None if not known."""
    rows = run.of_model("view_shares", main)
    if "variance_share" not in rows or not len(rows):
        return None
    shares = rows.groupby("view", sort=False)["variance_share"].agg(["min", "max"])
    wide = shares[shares["max"] - shares["min"] > SWING]
    ranges = [
        f"{short(view)} ({percent(row['min'])} to {percent(row['max'])})"
        for view, row in wide.iterrows()
    ]
    text = f"Share of the prediction's variance over the folds: {listed(ranges)}."
    return [text] if ranges else []


def _flat_path(path: pd.DataFrame) -> list[str]:
    """Return a text if half of the features would lose less than one standard error."""
    if "selected" not in path or not path["selected"].any():
        return []
    selected = path[path["selected"]].iloc[0]
    size = int(selected["n_features"])
    smaller = path[(path["n_features"] <= size // 2)]
    if not size or not len(smaller):
        return []
    half = smaller.sort_values("n_features").iloc[-1]
    increase = float(half["loss"]) - float(selected["loss"])
    if not increase < float(half["standard_error"]):
        return []
    text = (
        f"{counted(half['n_features'], 'feature')} instead of {size:,} would lose "
        f"{number(increase, 3)} of held-out loss, with a standard error of "
        f"{number(half['standard_error'], 3)}."
    )
    return [text]


def _sites(run: Results) -> list[str] | None:
    """Return a text if sites predict the outcome; None if sites are not known."""
    people = run.people
    if "site" not in people or "label" not in people or not len(people):
        return None
    from baldur.study.suspicious_data import site_predicts

    y = people["label"].astype(str) if run.classes else people["label"].astype(float)
    outcome = str(run.record.get("outcome") or "the outcome")
    scheme = str(run.record.get("scheme") or "")
    findings = site_predicts(
        people["site"].astype(str).to_numpy(), y.to_numpy(), outcome, bool(run.classes), scheme
    )
    return [f"{short(findings[0].what, 300)}."] if findings else []


def _one_feature_of_folds(run: Results, main: str) -> list[str] | None:
    """Return a text if one feature dominates the mean weights of folds; None if not known."""
    rows = run.of_model("selection", main)
    if "mean_weight" not in rows or not len(rows):
        return None
    rows = rows[rows["feature"] != "*"]
    # The mean weight is of the folds that select the feature; in the others it is 0.
    return _dominant(rows, rows["mean_weight"].astype(float) * rows["frequency"].astype(float))


def _dominant(features: pd.DataFrame, weight: pd.Series) -> list[str]:
    """Return which feature holds nearly all of the squared weights, if one does."""
    squared = features.assign(square=weight.astype(float) ** 2)
    by_feature = squared.groupby(["view", "feature"], sort=False)["square"].sum()  # over classes
    if not len(by_feature) or not 0 < by_feature.sum() < np.inf:
        return []
    share = float(by_feature.max() / by_feature.sum())
    view, feature = by_feature.index[int(np.argmax(by_feature.to_numpy()))]
    text = f"{short(feature)} ({short(view)}) holds {percent(share)} of the squared weights."
    return [text] if share > MOST else []


def _calibration(run: Results, main: str) -> list[str] | None:
    """Return a text if intervals exclude slope 1 or intercept 0; None if not known."""
    rows = run.of_model("calibration", main)
    if "measure" not in rows or not len(rows):
        return None
    wrong = []
    for name in dict.fromkeys(rows["class"].astype(str)):
        of_class = rows[rows["class"].astype(str) == name]
        which = f" of {short(name)}" if len(run.classes) > 2 else ""
        for measure, right in (("slope", 1.0), ("intercept", 0.0)):
            interval = interval_of(of_class, measure=measure)
            if interval.known and not interval.low <= right <= interval.high:
                wrong.append(f"{measure}{which} {interval}")
    return [f"Calibration of {short(main)}: {listed(wrong)}."] if wrong else []


def _warnings(run: Results) -> Judged:
    """Return the checks of warnings (no convergence, no signal, others), each with its models."""
    not_converged, no_signal, other = [], [], []
    for model, notes in run.record.get("notes", {}).items():
        for note in notes:
            if "NoSignalWarning" in note or "no evidence of" in note.lower():
                no_signal.append(model)
            elif "converge" in note:
                not_converged.append(model)
            else:
                other.append(model)
    converge_text = f"In some folds: {listed(distinct(dict.fromkeys(not_converged)))}."
    signal_text = listed(distinct(dict.fromkeys(no_signal)))
    signal_text += " found no evidence of signal in at least one fold; the note is at the end."
    others = listed([f"{short(m)} ({n})" for m, n in Counter(other).items()])
    notes = [short(text, 400) for text in run.record.get("notes_on_data", [])]
    judged: Judged = {"B20": notes} if notes else {}
    return judged | {
        "B07": [converge_text] if not_converged else [],
        "B16": [signal_text] if no_signal else [],
        "B17": [f"Warnings of {others}, listed at the end of the page."] if other else [],
    }


def _missing_views(run: Results) -> list[str]:
    """Return a text if many samples lack a view."""
    people = max(int(run.record.get("people", 0)), 1)
    shares = {v["name"]: 1 - v["people"] / people for v in run.record.get("views", [])}
    many = [f"{short(v)} ({percent(s)})" for v, s in shares.items() if s > MANY_MISSING]
    return [f"Share of samples with a missing view: {listed(many)}."] if many else []
