"""The study file's keys: what each may hold, what it stands for, and errors that name the fix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from baldur.evaluation.metrics import METRICS
from baldur.evaluation.splits import SCHEMES
from baldur.exceptions import StudyError
from baldur.preparation import SCALES
from baldur.preparation.sites import ESTIMATES, NEW_SITES
from baldur.safety.escape import one_line

__all__ = ["Key", "SCHEMA", "check_keys", "problem", "schema_text"]

_REQUIRED = object()


@dataclass(frozen=True)
class Key:
    """One key: its kind, default and meaning.

    Attributes
    ----------
    kind : {"text", "texts", "whole", "choice", "label", "mark", "share", "shares"}
        "label" is text, a number or true/false; "mark" is text that may be blank; a "share" lies
        between 0 and 1.
    meaning : str
    default : object
        `Key.required` where there is none.
    least : int
        Smallest whole number.
    choices : tuple of str
        For "choice", and for the members of "texts".
    """

    kind: str
    meaning: str
    default: Any = _REQUIRED
    least: int = 0
    choices: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """Whether the file must have it."""
        return self.default is _REQUIRED


SCHEMA: dict[str, dict[str, Key]] = {
    "": {
        "title": Key("text", "what the study is called", ""),
        "seed": Key("whole", "number that makes the study repeatable", 0),
        "output": Key("text", "folder for the results, relative to this file", "results"),
        "align": Key(
            "choice",
            "samples in every view, or in at least one (the others are absent)",
            "intersection",
            choices=("intersection", "union"),
        ),
    },
    "samples": {
        "file": Key("text", "table with one row per sample (.csv, .tsv, .xlsx or .parquet)"),
        "id": Key("text", "column with the sample ids"),
        "group": Key("text", "column of families or repeated visits, never split", None),
        "site": Key("text", "column of sites, for scheme 'leave-one-site-out'", None),
        "split": Key("text", "column of 'train' and 'test', for scheme 'fixed'", None),
        "separator": Key("mark", "between the fields; default by the file's ending", None),
        "decimal": Key("text", "decimal mark", None),
        "encoding": Key("text", "encoding of the text; default utf-8", None),
        "sheet": Key("label", "sheet of a workbook; default the first", None),
        "missing": Key("texts", "cells that mean 'missing'; replaces the default list", None),
    },
    "outcome": {
        "column": Key("text", "column of the samples table to predict"),
        "task": Key("choice", "what kind of outcome", "classification",
                    choices=("classification", "regression")),
        "positive": Key("label", "positive class; default the last in sorted order", None),
    },
    "covariates": {
        "regress_out": Key("texts", "columns whose effect is taken out of every view", ()),
        "include": Key("texts", "columns that become a view of their own", ()),
        "categorical": Key("texts", "those of them that are categories written as numbers", ()),
    },
    "preparation": {
        "scale": Key("choice", "how every model scales columns", "clipped", choices=SCALES),
    },
    "harmonise": {
        "by": Key("text", "column of sites or scanners to align; default samples.site", None),
        "keep": Key("texts", "columns whose effect is kept, never the outcome", ()),
        "views": Key("texts", "views to harmonise; default all but genotypes", None),
        "new_sites": Key("choice", "sites that training did not have: as they are, or by their own",
                         "pooled", choices=NEW_SITES),
        "estimates": Key("choice", "a site's location and scale, shrunk or as estimated", "shrunk",
                         choices=ESTIMATES),
    },
    "folds": {
        "scheme": Key("choice", "outer folds; default by the columns given", None, choices=SCHEMES),
        "outer": Key("whole", "number of outer folds", 5, least=2),
        "inner": Key("whole", "number of inner folds", 5, least=2),
        "repeats": Key("whole", "how often the outer folds are drawn anew", 1, least=1),
        "select_by": Key("choice", "metric that chooses settings; default auc or r2", None,
                         choices=tuple(METRICS)),
    },
    "report": {
        "metrics": Key("texts", "columns of the table; default all", None, choices=tuple(METRICS)),
        "permutations": Key("whole", "runs with permuted labels, for a permutation test", 0),
        "subgroups": Key("texts", "columns of the samples table to report by", ()),
        "thresholds": Key("shares", "probabilities a test is judged at; default 0.5", None),
        "prevalence": Key("share", "share of cases in the target population; default the study's",
                          None),
        "learning_curve": Key("shares", "shares of the training people to train on as well", None),
    },
    "model": {
        "name": Key("text", "a known model, or a name of your own with an estimator"),
        "estimator": Key("text", "a scikit-learn class, such as sklearn.svm.SVC", None),
    },
}  # fmt: skip
"""Section ("" for the top of the file) to key to `Key`; "model" is an entry of [[models]]."""

SECTIONS = (
    "samples", "outcome", "covariates", "preparation", "harmonise", "views", "models", "folds",
    "report",
)  # fmt: skip


def problem(file: str, key: str, what: str, fix: str) -> StudyError:
    """Return the error in its one form: file, key, what is wrong, what to do.

    Parameters
    ----------
    file : str
        Name of the study file.
    key : str
        Where in it.
    what : str
        What is wrong.
    fix : str
        What to do.

    Returns
    -------
    StudyError
    """
    line = one_line(f"{file}: {key}: {what}; {fix}")
    return StudyError(line if line.endswith((".", "?")) else line + ".")


def nearest(word: str, known: Any) -> str:
    """Say which known word was probably meant, or list them all."""
    words = [str(k) for k in known]
    lower = {w.lower(): w for w in words}
    found = get_close_matches(str(word).lower(), list(lower), 1)
    if found:
        return f"did you mean {lower[found[0]]!r}?"
    shown = ", ".join(words[:20]) + (", ..." if len(words) > 20 else "")
    return f"known are {shown}"


def check_keys(file: str, section: str, given: Any, where: str = "") -> dict[str, Any]:
    """Check one section against the schema and fill in the defaults.

    Parameters
    ----------
    file : str
        Name of the study file.
    section : str
        A key of `SCHEMA`.
    given : dict
        What the file has.
    where : str, optional
        How to name the section in messages.

    Returns
    -------
    dict
    """
    where = where or section
    if not isinstance(given, Mapping):
        raise problem(
            file, where, f"must be a section, not {_kind(given)}", f"write [{where}] and keys below"
        )
    keys = SCHEMA[section]
    for key in given:
        if key not in keys:
            name = f"{where}.{key}" if where else str(key)
            known = [*keys, *(() if section else SECTIONS)]
            raise problem(file, name, "unknown key", nearest(key, known))
    found = {}
    for key, spec in keys.items():
        name = f"{where}.{key}" if where else key
        if key not in given:
            if spec.required:
                raise problem(file, name, "missing", f"give the {spec.meaning}")
            found[key] = list(spec.default) if spec.default == () else spec.default
            continue
        found[key] = _value(file, name, given[key], spec)
    return found


def _value(file: str, name: str, value: Any, spec: Key) -> Any:
    if spec.kind == "whole":
        if isinstance(value, bool) or not isinstance(value, int) or value < spec.least:
            raise problem(
                file, name, f"must be a whole number of at least {spec.least}, not {value!r}",
                f"it is the {spec.meaning}",
            )  # fmt: skip
        return value
    if spec.kind == "share":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
            raise problem(file, name, f"must be a number between 0 and 1, not {value!r}",
                          f"it is the {spec.meaning}")  # fmt: skip
        return float(value)
    if spec.kind == "shares":
        if not isinstance(value, list) or not value:
            raise problem(file, name, f"must be a list of numbers, not {_kind(value)}",
                          "write for example [0.2, 0.5]")  # fmt: skip
        one = Key("share", spec.meaning)
        return sorted({_value(file, name, v, one) for v in value})
    if spec.kind == "texts":
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise problem(file, name, f"must be a list of names, not {_kind(value)}",
                          'write for example ["age", "sex"]')  # fmt: skip
        for one in value:
            if spec.choices and one not in spec.choices:
                raise problem(file, name, f"{one!r} is not known", nearest(one, spec.choices))
        if len(set(value)) != len(value):
            raise problem(file, name, "names something twice", "list each once")
        return list(value)
    # A class may be written as a number or a truth value, a sheet be counted.
    if spec.kind == "label" and isinstance(value, (bool, int, float)):
        return value
    if spec.kind == "mark" and isinstance(value, str) and value:
        return value
    if not isinstance(value, str) or not value.strip():
        raise problem(file, name, f"must be text, not {_kind(value)}", f"it is the {spec.meaning}")
    if spec.kind == "choice" and value not in spec.choices:
        raise problem(file, name, f"{value!r} is not known", nearest(value, spec.choices))
    return value


def _kind(value: Any) -> str:
    if value == "":
        return "empty"
    names = {dict: "a section", list: "a list", bool: "true/false", int: "a number",
             float: "a number", str: "text"}  # fmt: skip
    return names.get(type(value), type(value).__name__)


def schema_text() -> str:
    """Return all keys with their meaning and default, for reading.

    Returns
    -------
    str
    """
    lines = []
    for section, keys in SCHEMA.items():
        title = {"": "top of the file", "model": "[[models]]"}.get(section, f"[{section}]")
        lines.append(title)
        for key, spec in keys.items():
            default = "required" if spec.required else f"default {spec.default!r}"
            lines.append(f"  {key:<13} {spec.meaning} ({default})")
    return "\n".join(lines)
