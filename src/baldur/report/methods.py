"""How a study was done: methods paragraph, settings, commands, and the TRIPOD+AI items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.evaluation.metrics import METRICS
from baldur.evaluation.record import versions
from baldur.evaluation.results import Results
from baldur.report.fitted import FittedModel
from baldur.report.formatting import count, distinct, listed, number, plain, short

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


def methods_of_run(run: Results, main: str | None, *, added: bool | None = None) -> str:
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


def _outcome(run: Results) -> str:
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


def _folds(record: dict[str, Any], run: Results) -> str:
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


def lead_of_run(run: Results, outcomes: str = "") -> str:
    """Return the first line of a page: people, views and features, models."""
    record = run.record
    views = record.get("views", [])
    some = record.get("view_sets", {})
    return (
        f"{count(record.get('people', 0), 'person', 'people')}, {count(len(views), 'data view')} "
        f"with {count(sum(v['features'] for v in views), 'feature')}, "
        f"{outcomes + ', ' if outcomes else ''}"
        f"{count(len(record.get('models', [])) - len(some), 'model')}"
        f"{' and ' + count(len(some), 'view set') if some else ''} compared by cross-validation."
    )


def settings_of_run(run: Results) -> list[tuple[str, str]]:
    """Return the settings of a comparison, each with its name."""
    record = run.record
    made = [
        (name, plain(record[key]))
        for name, key in (
            ("Seed", "seed"), ("Outer folds", "folds"), ("Repeats", "repeats"),
            ("Inner folds", "inner"), ("Scheme", "scheme"),
            ("Scaling", "scale"), ("Prevalence", "prevalence"),
        )
        if record.get(key) is not None
    ]  # fmt: skip
    metric = str(record.get("select_by", ""))
    if metric in METRICS:
        made.append(("Settings chosen by", METRICS[metric].heading))
    chosen = run.table("settings")
    if "setting" in chosen:
        for (model, setting), part in chosen.groupby(["model", "setting"], sort=False):
            values = part["value"].map(plain).value_counts()
            texts = distinct(values.index)
            counts = [f"{v} ({n} of {len(part)} folds)" for v, n in zip(texts, values, strict=True)]
            made.append((short(f"{model}: {setting}", 120), ", ".join(counts)))
    return made


def about_run(run: Results) -> dict[str, Any]:
    """Return classes, settings, versions, commands and notes of a comparison, for its page."""
    record = run.record
    notes = [
        f"{short(model)}: {short(text, 400)}"
        for model, texts in record.get("notes", {}).items()
        for text in texts
    ]
    return {
        "classes": run.classes,
        "settings": settings_of_run(run),
        "versions": {str(k): str(v) for k, v in (record.get("versions") or versions()).items()},
        "repeat": repeat_of_run(run),
        "notes": [*notes, *(short(text, 400) for text in record.get("notes_on_data", []))],
    }


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


def repeat_of_run(run: Results) -> list[str]:
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


@dataclass(frozen=True)
class Item:
    """An item of the checklist, and the answer, empty where the study does not know it."""

    number: str
    section: str
    name: str
    answer: str = ""


_ITEMS = [
    ("1", "Title", "Says that a prediction model is developed or evaluated, for whom and what"),
    ("2", "Abstract", "Follows TRIPOD+AI for Abstracts"),
    ("3a", "Introduction", "Healthcare context and why the model is needed"),
    ("3b", "Introduction", "Target population and intended use in the care pathway"),
    ("3c", "Introduction", "Known health inequalities between groups"),
    ("4", "Introduction", "Objectives: development, evaluation, or both"),
    ("5a", "Methods", "Sources of data, for development and evaluation"),
    ("5b", "Methods", "Dates of the data"),
    ("6a", "Methods", "Study setting and number of centres"),
    ("6b", "Methods", "Eligibility criteria"),
    ("6c", "Methods", "Treatments received, and how they were handled"),
    ("7", "Methods", "Data preparation and quality checks, alike across groups"),
    ("8a", "Methods", "Outcome, its time horizon, and how it was assessed"),
    ("8b", "Methods", "Qualifications of those who assessed a subjective outcome"),
    ("8c", "Methods", "Blinding of the assessment of the outcome"),
    ("9a", "Methods", "Choice of the initial predictors"),
    ("9b", "Methods", "Predictors, and how and when they were measured"),
    ("9c", "Methods", "Qualifications of those who assessed subjective predictors"),
    ("10", "Methods", "How the sample size was arrived at"),
    ("11", "Methods", "How missing data were handled"),
    ("12a", "Methods", "How data were used, and whether they were split"),
    ("12b", "Methods", "How predictors were handled in the analyses"),
    ("12c", "Methods", "Type of model, its building, tuning and internal validation"),
    ("12d", "Methods", "Heterogeneity between clusters such as hospitals"),
    ("12e", "Methods", "Measures and plots of performance, and why"),
    ("12f", "Methods", "Updating of the model after its evaluation"),
    ("12g", "Methods", "How predictions were calculated, for an evaluation"),
    ("13", "Methods", "Class imbalance: whether and how it was handled"),
    ("14", "Methods", "Fairness: approaches and their reason"),
    ("15", "Methods", "Output of the model, and thresholds"),
    ("16", "Methods", "Differences between development and evaluation data"),
    ("17", "Methods", "Ethical approval and consent"),
    ("18a", "Open science", "Funding"),
    ("18b", "Open science", "Conflicts of interest"),
    ("18c", "Open science", "Protocol"),
    ("18d", "Open science", "Registration"),
    ("18e", "Open science", "Availability of the data"),
    ("18f", "Open science", "Availability of the code"),
    ("19", "Involvement", "Patient and public involvement"),
    ("20a", "Results", "Flow of participants, with and without the outcome"),
    ("20b", "Results", "Characteristics of participants, and missing data"),
    ("20c", "Results", "Comparison with the development data, for an evaluation"),
    ("21", "Results", "Participants and events in each analysis"),
    ("22", "Results", "The full model, so that predictions can be made"),
    ("23a", "Results", "Performance with intervals, also in key subgroups"),
    ("23b", "Results", "Heterogeneity of performance between clusters"),
    ("24", "Results", "Results of updating"),
    ("25", "Discussion", "Interpretation, with fairness and earlier studies"),
    ("26", "Discussion", "Limitations"),
    ("27a", "Discussion", "Handling of poor or missing input when the model is used"),
    ("27b", "Discussion", "What users must do, and the expertise they need"),
    ("27c", "Discussion", "Next steps for research"),
]  # fmt: skip


def tripod_items(run: Results | None, main: str | None, model: FittedModel | None) -> list[Item]:
    """Return every item, answered where the study knows the answer."""
    known = _of_run(run, main) if run is not None else {}
    known = {**(_of_model(model) if model is not None else {}), **known}
    return [Item(number, section, name, known.get(number, "")) for number, section, name in _ITEMS]


def _of_run(run: Results, main: str | None) -> dict[str, str]:
    record = run.record
    people = count(record.get("people", 0), "person", "people")
    views = [f"{short(v['name'])} ({v['features']:,})" for v in record.get("views", [])]
    known = {
        "4": "Development with internal validation by nested cross-validation.",
        "7": "Estimated on the training people of each fold; see the methods paragraph. "
        f"Findings of the check of the data (B11): {len(record.get('findings', []))}; notes on the "
        f"samples (B20): {len(record.get('notes_on_data', []))}.",
        "9b": f"Candidate predictors, by view: {listed(views, 20)}. How and when they were "
        "measured: to be filled in.",
        "11": "Missing values are replaced by the mean of the training people. "
        f"{missing_views(record)}",
        "12a": f"All people were used for both, by nested cross-validation with "
        f"{record.get('folds', '?')} outer folds.",
        "12c": f"{listed(distinct(record.get('models', [])), 20)}; see methods and settings.",
        "12e": "Discrimination, calibration and decision curves, with bootstrap intervals.",
        "15": _output(run),
        "18f": f"baldur {record.get('versions', {}).get('baldur', '')}, BSD 3-Clause.",
        "20b": "See ‘Participants’ for characteristics by outcome and missing views.",
        "21": _events(run, people),
        "23a": "See ‘Models’ and ‘Clinical use’.",
        "27a": "Missing inputs and whole views are allowed; values outside the training range are "
        "flagged by the calculator.",
    }
    if record.get("outcome"):
        known["8a"] = f"Column {short(record['outcome'])}. Definition and horizon: to be filled in."
    if record.get("sites"):
        known["6a"] = f"{count(record['sites'], 'site')}. Setting: to be filled in."
        known["23b"] = "Figures per site are in intervals.csv."
    if len(run.table("subgroups")):
        known["14"] = "Figures in subgroups, see ‘Clinical use’."
    sizes = run.table("sample_size")
    if main is not None and "criterion" in sizes:
        rows = run.of_model("sample_size", main)
        rows = rows[rows["candidates"] != "all"] if "candidates" in rows else rows
        need = rows["people"].astype(float).max() if len(rows) else np.nan
        if np.isfinite(need):
            known["10"] = (
                f"{people} were available. Riley's criteria for a regression on as many predictors "
                f"as were selected require {need:,.0f}; see sample_size.csv."
            )
    if run.classes:
        known["13"] = "No resampling; probabilities refer to the class shares of the study."
        if record.get("prevalence"):
            known["13"] += f" Clinical use is given for a prevalence of {record['prevalence']}."
    return known


def _output(run: Results) -> str:
    if not run.classes:
        return "A number with its interval."
    cuts = run.table("thresholds")
    at = ""
    if "rule" in cuts and len(cuts):
        fixed = cuts["rule"].isin(["stated", "prevalence"])
        named = [number(t, 2) for t in sorted(set(cuts.loc[fixed, "threshold"]))]
        named += [f"chosen for {rule}" for rule in dict.fromkeys(cuts.loc[~fixed, "rule"])]
        at = f" Thresholds: {listed(named)}."
    return f"Probability of each class, with an interval.{at}"


def _events(run: Results, people: str) -> str:
    table = run.people
    if not run.classes or "label" not in table:
        return f"{people}."
    counts = table["label"].astype(str).value_counts()
    return (
        f"{people}: {listed([f'{short(c)} {int(counts.get(c, 0)):,}' for c in run.classes], 20)}."
    )


def _of_model(model: FittedModel) -> dict[str, str]:
    views = [f"{short(v)} ({n:,})" for v, n in model.n_features.items()]
    known = {
        "9b": f"Candidate predictors, by view: {listed(views, 20)}. How and when they were "
        "measured: to be filled in.",
        "12c": f"{short(model.name)}; see the settings.",
        "15": "Probability of each class, with an interval."
        if model.classes
        else "A number with its interval.",
    }
    if model.inner is not None:
        known["22"] = "The calculator on this page, and the weights under ‘Features’."
        known["27a"] = (
            "Missing inputs and whole views are allowed; values outside the training range are "
            "flagged by the calculator."
        )
    if model.details.get("outcome"):
        known["8a"] = f"Column {short(model.details['outcome'])}. Definition: to be filled in."
    return known
