"""A methods paragraph to paste, and how to repeat the study."""

from __future__ import annotations

from typing import Any

from baldur.evaluation.metrics import METRICS
from baldur.report.fitted import FittedModel
from baldur.report.formatting import count, distinct, listed, short
from baldur.report.results import StudyResults

_SCHEMES = {
    "stratified": "stratified by outcome",
    "grouped": "with groups kept whole",
    "leave-one-site-out": "leaving out one site at a time",
    "fixed": "with one fixed split into training and test people",
}
_SCALES = {
    "clipped": "standardised and clipped at 3 standard deviations",
    "standard": "standardised",
    "rank": "transformed to normal scores",
}


def methods_of_run(run: StudyResults, main: str | None, *, added: bool | None = None) -> str:
    """Return a methods paragraph about a comparison, from its record."""
    record = run.record
    views = [f"{short(v['name'])} ({v['features']:,})" for v in record.get("views", [])]
    sentences = [
        f"We studied {count(record.get('people', 0), 'person', 'people')} with "
        f"{count(len(views), 'data view')} (number of features): {listed(views, 20)}.",
        _outcome(run),
        _folds(record, run),
        "Scaling, imputation, feature selection and every other fitted step were estimated on "
        "training people only; settings were chosen on inner folds by "
        f"{_metric(record)}.",
    ]
    scale = _SCALES.get(str(record.get("scale") or ""))
    if scale:
        sentences.append(
            f"Features were {scale}; missing values were replaced by the training mean. "
            f"{missing_views(record)}"
        )
    if record.get("regress_out"):
        names = listed(distinct(record["regress_out"]))
        sentences.append(f"{names} were regressed out of every view within training people.")
    some = record.get("view_sets", {})
    whole = [model for model in record.get("models", []) if model not in some]
    sentences.append(f"Models compared: {listed(distinct(whole), 20)}." if whole else "")
    if some:
        sentences.append(f"Fitted on some of the views: {listed(distinct(some), 20)}.")
    if len(run.table("added_value")) if added is None else added:
        sentences.append(
            "What a view adds was estimated by the paired difference between models with and "
            "without it on the same held-out people, among those who have the view."
        )
    if main is not None and main.startswith("BALDUR"):
        sentences.append(
            "BALDUR is a Bayesian multi-view model: members with sparse and dense priors are "
            "stacked into an ensemble by their predictions on held-out training people. Among the "
            "submodels shown to lose little of the ensemble's gain (95 % confidence), the smallest "
            "within 0.5 standard errors of the best is selected. Predictions integrate the "
            "uncertainty of the weights."
        )
    sentences.append(
        "Performance was estimated on pooled held-out predictions, with 95 % intervals from 2,000 "
        f"bootstrap samples of {'groups' if record.get('groups') else 'people'}, without refitting "
        "the models. Differences between models have intervals from the same bootstrap samples; "
        "the corrected resampled t-test over the folds is given beside them. "
        "Agreement of the folds on features was measured by Nogueira's index."
    )
    version = record.get("versions", {})
    seed = f" Random seed {record['seed']}." if record.get("seed") is not None else ""
    sentences.append(
        f"Computed with baldur {version.get('baldur', '?')}, scikit-learn "
        f"{version.get('scikit-learn', '?')} and Python {version.get('Python', '?')}.{seed}"
    )
    return " ".join(s for s in sentences if s)


def missing_views(record: dict[str, Any]) -> str:
    """Return a sentence on samples with a missing view: included, left out, both or neither."""
    people, left = int(record.get("people", 0)), int(record.get("left_out", 0))
    included = any(view["people"] < people for view in record.get("views", []))
    out = f"{count(left, 'sample')} with a missing view {'was' if left == 1 else 'were'} left out"
    if left and included:
        return f"{out}; the others with a missing view were included."
    if left:
        return f"{out}."
    if included:
        return "Samples with a missing view were included."
    return "No sample had a missing view."


def _metric(record: dict[str, Any]) -> str:
    name = str(record.get("select_by", ""))
    return METRICS[name].heading if name in METRICS else "the chosen metric"


def _outcome(run: StudyResults) -> str:
    name = short(run.record.get("outcome") or "as given")
    if not run.classes:
        return f"The outcome, {name}, is numeric."
    people = run.people
    if "label" not in people:
        return ""
    counts = people["label"].astype(str).value_counts()
    parts = [f"{short(c)} ({int(counts.get(c, 0)):,})" for c in run.classes]
    positive = f"; {short(run.classes[-1])} is the positive class" if len(run.classes) == 2 else ""
    return f"The outcome, {name}, has the classes {listed(parts, 20)}{positive}."


def _folds(record: dict[str, Any], run: StudyResults) -> str:
    repeats = record.get("repeats", 1)
    inner = f" and {record['inner']} inner folds" if record.get("inner") else ""
    given = str(record.get("scheme") or "")
    if not given:
        given = "grouped" if record.get("groups") else ("stratified" if run.classes else "")
    scheme = _SCHEMES.get(given, "")
    times = f", repeated {repeats} times" if repeats > 1 else ""
    return (
        f"Models were compared by nested cross-validation with {record.get('folds', '?')} outer "
        f"folds{inner}{', ' + scheme if scheme else ''}{times}."
    )


def methods_of_model(model: FittedModel) -> str:
    """Return a methods paragraph about one fitted model."""
    views = [f"{short(v)} ({n:,})" for v, n in model.n_features.items()]
    people = model.details.get("samples") or getattr(
        getattr(model.inner, "preparation_", None), "n_samples_", None
    )
    who = count(people, "person", "people") if people else "the training people"
    sentences = [
        f"{short(model.name)} was fitted on {who} with {count(len(views), 'data view')} "
        f"(number of features): {listed(views, 20)}.",
    ]
    if model.details.get("outcome"):
        sentences.append(f"The outcome was {short(model.details['outcome'])}.")
    if model.inner is not None:
        sentences.append(
            "Weights are posterior means per standard deviation of the feature, with 95 % "
            "intervals; predictions integrate their uncertainty."
        )
    return " ".join(sentences)


def repeat_of_run(run: StudyResults) -> list[str]:
    """Return the commands that give these results again."""
    version = run.record.get("versions", {}).get("baldur", "")
    if run.folder is not None:
        return [
            f"pip install 'baldur-multiview[report]=={version}'",
            "baldur evaluate study.toml --data FOLDER_OF_THE_DATA   # study.toml of this folder",
            "baldur report results",
        ]
    return [
        "result = nested_cv(models, X, y, ...)   # with the same arguments",
        "result.report('report.html')",
    ]


def repeat_of_model(model: FittedModel) -> list[str]:
    """Return the commands that give this model again."""
    if model.details.get("model"):
        return [
            f"baldur fit study.toml --model {short(model.details['model'])!r} --out model",
            "baldur report model",
        ]
    inner = model.inner if model.inner is not None else model.estimator
    return [
        f"model = {type(inner).__name__}(...).fit(X, y)   # settings as listed",
        "model.report('report.html', X, y)",
    ]
