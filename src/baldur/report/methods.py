"""How a study was done: methods paragraph, settings, commands, and the TRIPOD+AI items.

The texts are in ``templates/methods.txt.j2`` and ``templates/tripod.txt.j2``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.evaluation.metrics import METRICS
from baldur.evaluation.results import Results, versions
from baldur.report.fitted import FittedModel
from baldur.report.formatting import distinct, listed, number, plain, short
from baldur.report.render import template
from baldur.views.validate import counted

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


def methods_of_run(run: Results, main: str | None, about: str = "run") -> str:
    """Return a methods paragraph about a comparison or a "validation", from its record."""
    record, table = run.record, run.table("table")
    # Models that cannot fit several outcomes together.
    apart = [
        short(row["model"])
        for row in table.to_dict("records")
        if "one outcome at a time" in str(row.get("note", ""))
    ]
    scheme = "grouped" if record.get("groups") else "stratified" if run.classes else ""
    metric = str(record.get("select_by", ""))
    return _sentences(
        **_facts_of_run(run, main),
        about=about,
        name=short(main or ""),
        outcomes=[short(name) for name in run.outcomes],
        apart=apart,
        joint=[short(m) for m in record.get("models", []) if short(m) not in apart],
        scheme=_SCHEMES.get(str(record.get("scheme") or scheme), ""),
        select_by=METRICS[metric].heading if metric in METRICS else "the chosen metric",
        scale=_SCALES.get(str(record.get("scale") or "")),
        whole=[m for m in record.get("models", []) if m not in record.get("view_sets", {})],
        added=any(len(results.table("added_value")) for results in (run, *run.outcomes.values())),
        baldur=main is not None and main.startswith("BALDUR"),
    )


def _sentences(**facts: Any) -> str:
    """Return the methods paragraph that the template makes of facts."""
    lines = template("methods.txt.j2").render(facts).splitlines()
    return " ".join(line for line in lines if line)


def tripod_items(
    run: Results | None, main: str | None, model: FittedModel | None
) -> list[dict[str, str]]:
    """Return every item of TRIPOD+AI, answered where the study or else the model knows it."""
    facts: dict[str, Any] = {"record": {}} | ({} if model is None else _facts_of_model(model))
    if run is not None:
        of_run = _facts_of_run(run, main)
        facts |= of_run | {"outcome": of_run["outcome"] or facts.get("outcome", "")}
    names = ("number", "section", "name", "answer")
    lines = template("tripod.txt.j2").render(facts).splitlines()
    return [
        dict(zip(names, map(str.strip, line.split("|", 3)), strict=True)) for line in lines if line
    ]


def _facts_of_model(model: FittedModel) -> dict[str, Any]:
    """Return what the methods paragraph and the checklist say about a fitted model."""
    prepared = getattr(model.inner, "preparation_", None)
    people = model.details.get("samples") or getattr(prepared, "n_samples_", None)
    return {
        "name": short(model.name),
        "people": counted(people, "person", "people") if people else "the training people",
        "n_views": counted(len(model.n_features), "data view"),
        "views": listed([f"{short(v)} ({n:,})" for v, n in model.n_features.items()], 20),
        "outcome": short(model.details.get("outcome") or ""),
        "classes": model.classes,
        "calculator": model.inner is not None,
    }


def _facts_of_run(run: Results, main: str | None) -> dict[str, Any]:
    """Return what the methods paragraph and the checklist say about a comparison."""
    record, classes, labels = run.record, run.classes, run.people.get("label")
    views = record.get("views", [])
    facts: dict[str, Any] = {
        "run": True,
        "record": record,
        "versions": record.get("versions", {}),
        "people": counted(record.get("people", 0), "person", "people"),
        "n_views": counted(len(views), "data view"),
        "views": listed([f"{short(v['name'])} ({v['features']:,})" for v in views], 20),
        "outcome": short(record.get("outcome") or ""),
        "outcome_of_run": bool(record.get("outcome")),
        "classes": classes,
        "missing_views": _missing_views(record),
        "sites": counted(record.get("sites") or 0, "site"),
        "subgroups": len(run.table("subgroups")) > 0,
        "needed": _people_needed(run, main),
        "thresholds": _thresholds(run),
    }
    if classes and labels is not None:
        counts = labels.astype(str).value_counts()
        by_class = [(short(c), f"{int(counts.get(c, 0)):,}") for c in classes]
        facts["by_class"] = [f"{name} ({n})" for name, n in by_class]
        facts["events"] = [f"{name} {n}" for name, n in by_class]
    return facts


def _missing_views(record: dict[str, Any]) -> str:
    """Return a sentence on samples with a missing view: included, left out, both or neither."""
    people, n_out = int(record.get("people", 0)), int(record.get("left_out", 0))
    included = any(view["people"] < people for view in record.get("views", []))
    if not n_out:
        what = "Samples with a missing view were included"
        return f"{what}." if included else "No sample had a missing view."
    verb = "was" if n_out == 1 else "were"
    left_out = f"{counted(n_out, 'sample')} with a missing view {verb} left out"
    others = "; the others with a missing view were included" if included else ""
    return f"{left_out}{others}."


def _people_needed(run: Results, main: str | None) -> str:
    """Return how many people Riley's criteria require for as many predictors as were selected."""
    rows = run.table("sample_size") if main is None else run.of_model("sample_size", main)
    if main is None or "criterion" not in rows:
        return ""
    rows = rows[rows["candidates"] != "all"] if "candidates" in rows else rows
    need = rows["people"].astype(float).max() if len(rows) else np.nan
    return f"{need:,.0f}" if np.isfinite(need) else ""


def _thresholds(run: Results) -> str:
    """Return in words the thresholds that were stated, and what others were chosen for."""
    table = run.table("thresholds")
    if "rule" not in table or not len(table):
        return ""
    fixed = table["rule"].isin(["stated", "prevalence"])
    values = [number(t, 2) for t in sorted(set(table.loc[fixed, "threshold"]))]
    chosen = [f"chosen for {rule}" for rule in dict.fromkeys(table.loc[~fixed, "rule"])]
    return listed([*values, *chosen])


def lead_of_run(run: Results, outcomes: str = "") -> str:
    """Return the first line of a page: people, views and features, models."""
    record = run.record
    views = record.get("views", [])
    view_sets = record.get("view_sets", {})  # rows of models that get some of the views
    features = counted(sum(view["features"] for view in views), "feature")
    parts = [
        counted(record.get("people", 0), "person", "people"),
        f"{counted(len(views), 'data view')} with {features}",
        *([outcomes] if outcomes else []),
        counted(len(record.get("models", [])) - len(view_sets), "model"),
    ]
    sets = f" and {counted(len(view_sets), 'view set')}" if view_sets else ""
    return f"{', '.join(parts)}{sets} compared by cross-validation."


def settings_of_run(run: Results) -> list[tuple[str, str]]:
    """Return settings with their names: of the comparison, and those chosen in its folds."""
    record = run.record
    settings = [
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
        settings.append(("Settings chosen by", METRICS[metric].heading))
    chosen = run.table("settings")
    if "setting" in chosen:
        for (model, setting), folds in chosen.groupby(["model", "setting"], sort=False):
            n_folds = folds["value"].map(plain).value_counts()  # by value
            values = [
                f"{value} ({n} of {len(folds)} folds)"
                for value, n in zip(distinct(n_folds.index), n_folds, strict=True)
            ]
            settings.append((short(f"{model}: {setting}", 120), ", ".join(values)))
    return settings


def about_run(run: Results, main: str | None) -> dict[str, Any]:
    """Return classes, methods, settings, versions, commands and notes of a comparison's page."""
    record = run.record
    notes = [
        f"{short(model)}: {short(text, 400)}"
        for model, texts in record.get("notes", {}).items()
        for text in texts
    ]
    return {
        "classes": run.classes,
        "methods": methods_of_run(run, main),
        "settings": settings_of_run(run),
        "versions": {str(k): str(v) for k, v in (record.get("versions") or versions()).items()},
        "repeat": repeat_of_run(run),
        "notes": [*notes, *(short(text, 400) for text in record.get("notes_on_data", []))],
    }


def about_model(model: FittedModel) -> dict[str, Any]:
    """Return classes, methods, settings, versions and commands of a fitted model's page."""
    inner = model.inner if model.inner is not None else model.estimator
    settings = {k: plain(v) for k, v in (model.details.get("setting") or {}).items()}
    if hasattr(inner, "get_params"):
        parameters = sorted(inner.get_params(deep=False).items())
        settings |= {k: short(plain(v), 200) for k, v in parameters}
    return {
        "classes": model.classes,
        "methods": _sentences(**_facts_of_model(model), about="model"),
        "settings": list(settings.items()),
        "versions": versions(),
        "repeat": repeat_of_model(model),
    }


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
