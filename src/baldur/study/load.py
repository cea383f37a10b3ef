"""load_study: a study file to a checked `Study`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baldur.evaluation.metrics import METRICS
from baldur.evaluation.models import Model
from baldur.evaluation.splits import SCHEMES
from baldur.exceptions import StudyError
from baldur.study.models import read_models
from baldur.study.parse import parse_study
from baldur.study.schema import SCHEMA, SECTIONS, check_keys, nearest, problem

__all__ = ["Study", "load_study"]

COVARIATES = "covariates"
"""Name of the view made of included covariates."""

KINDS = ("table", "plink", "nifti", "mudata")
"""Kinds of files a view may come from."""


@dataclass
class Study:
    """A study as described by its file, with defaults filled in.

    Attributes
    ----------
    file : Path
        The study file; relative paths are relative to its folder.
    top, samples, outcome, covariates, preparation, folds, report : dict
        The sections.
    views : dict of str to dict
        Name to what the reader of its kind wants to know.
    harmonise : dict or None
        The section, with `by` filled in; None where the file has none.
    models : list of Model
    model_entries : list of dict
        The models as the file has them.
    roots : list of Path
        Folders besides its own that files of the study may lie in.
    """

    file: Path
    top: dict[str, Any]
    samples: dict[str, Any]
    outcome: dict[str, Any]
    covariates: dict[str, Any]
    preparation: dict[str, Any]
    views: dict[str, dict[str, Any]]
    folds: dict[str, Any]
    report: dict[str, Any]
    harmonise: dict[str, Any] | None = None
    models: list[Model] = field(default_factory=list)
    model_entries: list[dict[str, Any]] = field(default_factory=list)
    roots: list[Path] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Folder of the file."""
        return self.file.parent

    @property
    def output(self) -> Path:
        """Where the file wants the results; `study.output.results_folder` says whether it may."""
        return (self.folder / self.top["output"]).resolve()

    @property
    def classification(self) -> bool:
        """Whether classes are predicted."""
        return bool(self.outcome["task"] == "classification")

    def problem(self, key: str, what: str, fix: str) -> StudyError:
        """Return an error about this file."""
        return problem(self.file.name, key, what, fix)

    def as_toml(self) -> dict[str, Any]:
        """Return everything as resolved, with absolute paths to data, ready to be written."""
        samples = {**self.samples, "file": str((self.folder / self.samples["file"]).resolve())}
        found: dict[str, Any] = {
            # Relative, so that the copy in the folder of results does not point to itself.
            **self.top,
            "output": os.path.relpath(self.output, self.folder.resolve()),
            "samples": samples,
            "outcome": self.outcome,
            "covariates": self.covariates,
            "preparation": self.preparation,
            **({} if self.harmonise is None else {"harmonise": self.harmonise}),
            "folds": self.folds,
            "report": self.report,
            "views": {name: self._absolute(spec) for name, spec in self.views.items()},
            "models": self.model_entries,
        }
        return found

    def _absolute(self, spec: dict[str, Any]) -> dict[str, Any]:
        out = dict(spec)
        folder = self.folder.resolve()
        for key in ("file", "mask", "atlas", "atlas_labels", "sample_ids", "cache_dir"):
            if isinstance(out.get(key), str):
                out[key] = str(folder / out[key])
            elif key == "file" and isinstance(out.get(key), list):
                out[key] = [str(folder / one) for one in out[key]]
        return out


def load_study(
    path: str | Path, *, predicting: bool = False, roots: Sequence[str | Path] = ()
) -> Study:
    """Read and check a study file.

    Parameters
    ----------
    path : str or Path
        A TOML file.
    predicting : bool, default=False
        Samples and views are enough: the file describes new samples for a fitted model.
    roots : list of str or Path, optional
        Folders besides its own that files of the study may lie in. A study file cannot reach
        others, so one from someone else can be run without reading it first.

    Returns
    -------
    Study

    Raises
    ------
    StudyError
        One line that names the key and the fix.
    """
    file = Path(path)
    name = file.name
    raw = parse_study(file)
    for key in raw:
        if key not in SECTIONS and key not in SCHEMA[""]:
            raise problem(name, key, "unknown key", nearest(key, [*SECTIONS, *SCHEMA[""]]))
    top = check_keys(name, "", {k: v for k, v in raw.items() if k in SCHEMA[""]})
    needed = ["samples", "views"] + ([] if predicting else ["outcome", "models"])
    for section in needed:
        if section not in raw:
            raise problem(name, section, "missing", _how(section))
    samples = check_keys(name, "samples", raw["samples"])
    outcome_given = raw.get("outcome", {"column": ""} if predicting else {})
    if predicting and "outcome" not in raw:
        outcome = {"column": None, "task": "classification", "positive": None}
    else:
        outcome = check_keys(name, "outcome", outcome_given)
    study = Study(
        file=file,
        top=top,
        samples=samples,
        outcome=outcome,
        covariates=check_keys(name, "covariates", raw.get("covariates", {})),
        preparation=check_keys(name, "preparation", raw.get("preparation", {})),
        views=_views(name, raw["views"]),
        folds=check_keys(name, "folds", raw.get("folds", {})),
        report=check_keys(name, "report", raw.get("report", {})),
        roots=[Path(r) for r in roots],
    )
    if "harmonise" in raw and not predicting:
        # New rows are harmonised as the model learned it, whatever their own file says.
        study.harmonise = _harmonise(study, check_keys(name, "harmonise", raw["harmonise"]))
    _check_together(study, predicting)
    if not predicting:
        study.models, study.model_entries = read_models(
            name, raw["models"], study.classification, study.preparation["scale"]
        )
    return study


def _how(section: str) -> str:
    return {
        "samples": "add [samples] with file and id",
        "outcome": "add [outcome] with column",
        "views": "add [views.NAME] with file for each view",
        "models": 'add for example models = ["BALDUR", "LSVM-l1"]',
    }[section]


def _views(name: str, given: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(given, dict) or not given:
        raise problem(name, "views", "has no view", _how("views"))
    found = {}
    for view, spec in given.items():
        where = f"views.{view}"
        if not isinstance(spec, dict):
            raise problem(name, where, "must be a section", f"write [{where}] and file below it")
        if "file" not in spec:
            raise problem(name, f"{where}.file", "missing", "give the file of this view")
        kind = spec.get("kind")
        if kind is not None and kind not in KINDS:
            raise problem(name, f"{where}.kind", f"{kind!r} is not known", nearest(kind, KINDS))
        found[view] = dict(spec)
    return found


def _harmonise(study: Study, given: dict[str, Any]) -> dict[str, Any]:
    by = given["by"] or study.samples["site"]
    if by is None:
        raise study.problem(
            "harmonise.by", "there is no column of sites", "name it here or as samples.site"
        )
    outcome = study.outcome["column"]
    if outcome in (by, *given["keep"]):
        raise study.problem(
            "harmonise.by" if outcome == by else "harmonise.keep",
            f"{outcome!r} is the outcome, which is not known for new samples",
            "name another column",
        )
    if by in given["keep"]:
        raise study.problem(
            "harmonise.keep", f"{by!r} is the column of sites itself", "leave it out here"
        )
    return {**given, "by": by}


def _check_together(study: Study, predicting: bool) -> None:
    samples, folds = study.samples, study.folds
    wants = {"grouped": "group", "leave-one-site-out": "site", "fixed": "split"}
    column = wants.get(folds["scheme"] or "")
    if column is not None and samples[column] is None and not predicting:
        raise study.problem(
            "folds.scheme",
            f"{folds['scheme']!r} needs samples.{column}",
            f"name the column there, or choose another scheme out of {', '.join(SCHEMES)}",
        )
    if folds["scheme"] == "stratified" and samples["group"] is not None:
        raise study.problem(
            "folds.scheme",
            "'stratified' would split the groups of samples.group between training and test",
            "write 'grouped', or leave samples.group out",
        )
    if COVARIATES in study.views and study.covariates["include"]:
        raise study.problem(
            "views.covariates", "the name is taken by covariates.include", "rename the view"
        )
    both = set(study.covariates["include"]) & set(study.covariates["regress_out"])
    if both:
        raise study.problem(
            "covariates.include",
            f"{sorted(both)[0]!r} is regressed out as well",
            "name it in one of the two",
        )
    used = {*study.covariates["include"], *study.covariates["regress_out"]}
    if study.outcome["column"] is not None and study.outcome["column"] in used:
        raise study.problem(
            "covariates", f"{study.outcome['column']!r} is the outcome", "remove it here"
        )
    for key, names in (
        ("folds.select_by", [folds["select_by"]]),
        ("report.metrics", study.report["metrics"]),
    ):
        for metric in names or []:
            if metric is not None and METRICS[metric].classification != study.classification:
                raise study.problem(
                    key,
                    f"{metric!r} is no metric of {study.outcome['task']}",
                    nearest(
                        "",
                        [m for m, d in METRICS.items() if d.classification == study.classification],
                    ),
                )
