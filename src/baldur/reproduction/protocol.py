"""The protocol of the paper's two studies: views, folds, models, and the settings to search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from baldur.baselines import BASELINES
from baldur.core.atomic_io import make_folder, write_atomically
from baldur.exceptions import InputError
from baldur.reproduction.printed import METRICS
from baldur.study import StudyConfig, load_study, simulate_study
from baldur.study.toml_file import parse_study

PAPER = "BALDUR (mean-field)"
"""Our row of the paper's BALDUR."""
DEFAULT = "BALDUR"
"""Our row of the default estimator, which the paper does not have."""
START_FACTORS = 4
"""Factors at the start of the fit that counts the live ones, as in the authors' script. The row of
the paper's BALDUR starts with one per outcome, which could not show that one is enough."""


QUICK: Mapping[str, Mapping[str, Any]] = {
    "CPM-Nets": {"n_epochs": 20},
    "PB-MVBoost": {"n_rounds": 10},
    "RF": {"n_estimators": 100},
}  # fmt: skip
"""Settings of a quick run where the default takes minutes; PB-MVBoost has the rounds of `GRIDS`."""
QUICK_FOLDS = (5, 3)
"""Outer and inner folds of a quick run; inner ones only calibrate the scores of some models."""


@dataclass(frozen=True)
class Protocol:
    """One study of the paper."""

    name: str
    cohort: str
    disease: str
    positive: str  # positive, negative: Classes in the outcome column of a user's files
    negative: str
    counts: tuple[int, int]  # (int, int)
    views: Mapping[str, int]  # Names and widths of the views in the paper
    folds: int  # Outer folds, and inner folds of each
    scale: float
    quick_scale: float

    def sections(self, quick: bool) -> dict[str, Any]:
        """Return the sections of the study file that follow from the protocol."""
        outer, inner = QUICK_FOLDS if quick else (self.folds, self.folds)
        return {
            "folds": {"scheme": "stratified", "outer": outer, "inner": inner},
            "report": {"metrics": [*METRICS, "log_loss", "brier"]},
            "models": [_entry(name, quick) for name in self.rows],
        }

    @property
    def rows(self) -> list[str]:
        """Models of the study: the paper's eleven baselines, its BALDUR, and our default."""
        return [*(name for name, entry in BASELINES.items() if entry.in_paper), PAPER, DEFAULT]


GRIDS: Mapping[str, Mapping[str, list[Any]]] = {
    "LSVM-l1": {"c_ratio": [1.5, 3.0, 10.0, 30.0]},
    "RF": {"max_features": ["sqrt"], "min_samples_leaf": [1, 5]},
    "PCA-MCCD": {"g1": [1e-2, 1.0, 1e2], "g2": [0.0, 1.0], "n_components": [0.95]},
    "K-MCCD": {"g1": [1e-2, 1.0], "g2": [0.0, 1.0]},
    "PCA-AWDR": {"g": [1e-2, 1.0, 1e2], "n_neighbors": [9], "n_components": [10, 0.95]},
    "K-AWDR": {"g": [1e-2, 1.0, 1e2], "n_neighbors": [3, 9]},
    "PB-MVBoost": {"n_rounds": [10], "max_depth": [1, 2]},
    "MV-PLS": {"n_components": [1, 2, 3, 5, 8], "block_scale": [True]},
    "Lasso-MkSVM": {"fraction": [0.1, 0.2, 0.4], "C": [1.0, 10.0]},
}  # fmt: skip
"""Settings that are searched on inner folds.

The paper says that settings were "validated within standard ranges" and lists none. These are at
most six of each model's own grid, so that 10 times 10 folds of 11 baselines end within hours.
PB-MVBoost has the rounds and the two depths of its authors' example and default."""

FIXED: Mapping[str, Mapping[str, Any]] = {
    "LSVM-l1": {"class_weight": "none"},
    "RF": {"n_estimators": 300},
    "SGP+ARD": {"n_inducing": 50, "learning_rate": 0.05},
    "CPM-Nets": {"n_latent": 32, "lam": 1.0},
}  # fmt: skip
"""Settings that are not searched: one fit of SGP+ARD or CPM-Nets takes as long as ten or more of
the others."""


def _entry(name: str, quick: bool) -> dict[str, Any]:
    """Return the entry of a model in the study file: the settings to search, and the fixed ones."""
    entry: dict[str, Any] = {"name": name}
    if name in BASELINES:
        grid = {} if quick else GRIDS.get(name, {})
        entry["grid"] = {key: list(values) for key, values in grid.items()}
        settings = {**FIXED.get(name, {}), **(QUICK.get(name, {}) if quick else {})}
        entry |= {"settings": settings} if settings else {}
    return entry


PROTOCOLS: Mapping[str, Protocol] = {
    "biofind": Protocol(
        name="biofind", cohort="BioFIND", disease="Parkinson's disease against healthy controls",
        positive="PD", negative="control", counts=(119, 96),
        views={
            "neuropsychological": 18, "sleep": 19, "socio-economic": 2, "demographical": 8,
            "genetic": 841_685,
        },
        folds=5, scale=1.0, quick_scale=0.005,
    ),
    "adni": Protocol(
        name="adni", cohort="ADNI", disease="late against early mild cognitive impairment",
        positive="LMCI", negative="EMCI", counts=(661, 402),
        views={
            "t1_intensity": 37_643, "grey_matter": 37_643, "grey_matter_volume": 136,
            "white_matter_volume": 136, "csf_volume": 136,
        },
        folds=10, scale=0.2, quick_scale=0.01,
    ),
}  # fmt: skip
"""Name of a study to its protocol."""


def protocol_of(name: str) -> Protocol:
    """Return the protocol of a study."""
    if name not in PROTOCOLS:
        raise InputError(f"The paper's studies are {' and '.join(PROTOCOLS)}, but got {name!r}.")
    return PROTOCOLS[name]


MAP = "columns.toml"
"""File of a user's folder that says where samples, outcome and views are."""

STUDY = "study.toml"
"""The study file, beside the results."""

_TABLES = (".bed", ".pgen", ".csv", ".tsv", ".parquet", ".xlsx", ".npz")
"""Endings of the file of a view, in the order in which they are looked for."""
_IMAGES = (".nii.gz", ".nii")


def simulated_study(
    protocol: Protocol, folder: Path, scale: float, seed: int, quick: bool
) -> StudyConfig:
    """Simulate the cohort of a study and write its study file, unless both are there."""
    file = folder / STUDY
    if not file.exists():
        given = protocol.sections(quick)
        simulate_study(
            protocol.name,
            folder,
            scale=scale,
            seed=seed,
            models=given["models"],
            folds=given["folds"],
            in_memory=True,
            more={"title": _title(protocol), "report": given["report"]},
        )
    return load_study(file)


def study_of_files(
    protocol: Protocol, folder: Path, data: Path, seed: int, quick: bool
) -> StudyConfig:
    """Write a study file for a user's own files."""
    data = data.resolve()
    if not data.is_dir():
        raise InputError(f"{data} is not a folder; --data needs the folder of the files.")
    study = {
        "title": _title(protocol),
        "seed": seed,
        "output": "results",
        **_columns(protocol, data),
        **protocol.sections(quick),
    }
    # Written every time, because a user may have corrected the map of columns since.
    file = make_folder(folder) / STUDY
    write_atomically(file, tomli_w.dumps(study).encode())
    return load_study(file, roots=[data])


def _title(protocol: Protocol) -> str:
    return f"Reproduction of the paper's study of {protocol.cohort}"


def _columns(protocol: Protocol, data: Path) -> dict[str, Any]:
    """Return the sections samples, outcome and views of the study file, with absolute paths.

    They are those of the user's map of columns, or else follow from the names of files.
    """
    file = data / MAP
    if not file.exists():
        return {
            "samples": {
                "file": str(_find_file(data, "samples", (".csv", ".tsv", ".xlsx"))),
                "id": "sample",
            },
            "outcome": {"column": "diagnosis", "positive": protocol.positive},
            "views": {name: _view(data, name) for name in protocol.views},
        }
    given = parse_study(file)
    expected = ("samples", "outcome", "views")
    if set(given) != set(expected):
        raise InputError(
            f"{file} must have the sections {', '.join(expected)}, but it has "
            f"{', '.join(given) or 'none'}; folds and models are those of the paper."
        )
    for name in expected:
        _check_section(file, name, given[name])
    if not {"column", "positive"} <= set(given["outcome"]):
        raise InputError(
            f"{file}: outcome must have column, and positive, the class like {protocol.positive}. "
            "The paper compares two classes; leave samples of other classes out."
        )
    if set(given["views"]) != set(protocol.views):
        raise InputError(
            f"{file}: the views must be {', '.join(protocol.views)}, but got "
            f"{', '.join(given['views']) or 'none'}. Rename them, or leave the file out."
        )
    for name, section in (
        ("samples", given["samples"]),
        *((f"views.{view}", given["views"][view]) for view in protocol.views),
    ):
        _check_section(file, name, section)
        section["file"] = _below(data, file, name, section.get("file"))
    for section in given["views"].values():
        for key in ("mask", "atlas", "atlas_labels", "sample_ids"):
            if isinstance(section.get(key), str):
                section[key] = str(data / section[key])
    # In the order of the paper.
    given["views"] = {name: given["views"][name] for name in protocol.views}
    return given


def _check_section(file: Path, name: str, section: Any) -> None:
    if not isinstance(section, dict):
        raise InputError(f"{file}: {name} must be a section, [{name}], but got {section!r}.")


def _below(data: Path, file: Path, section: str, given: Any) -> str | list[str]:
    """Return the path of a file, or of several, in the folder of the data."""
    if isinstance(given, str):
        return str(data / given)
    if isinstance(given, list) and given and all(isinstance(path, str) for path in given):
        return [str(data / path) for path in given]
    value = "nothing" if given is None else repr(given)
    raise InputError(
        f'{file}: {section} needs the name of its file, file = "...", but has {value}.'
    )


def _view(data: Path, name: str) -> dict[str, Any]:
    """Return the section of the study file for a view, from the files that `data` has of it.

    A view is a folder of images, with an optional mask beside it, or one file: genotypes or a
    table, recognised by its ending.
    """
    for ending in _IMAGES:
        if any((data / name).glob(f"*{ending}")):
            section = {"file": str(data / name / f"*{ending}"), "kind": "nifti"}
            masks = [data / f"{name}_mask{ending}" for ending in _IMAGES]
            mask = next((file for file in masks if file.is_file()), None)
            section["id_pattern"] = "{id}" + ending  # The file name without its ending is the id.
            return section | ({"mask": str(mask)} if mask else {})
    return {"file": str(_find_file(data, name, _TABLES))}


def _find_file(data: Path, name: str, endings: tuple[str, ...]) -> Path:
    """Return the file of this name with the first of the endings that there is."""
    for ending in endings:
        if (data / f"{name}{ending}").is_file():
            return data / f"{name}{ending}"
    raise InputError(
        f"{data} has no file {name} with one of the endings {', '.join(endings)}. Name the files "
        f"as docs/howto/reproduction.md says, or write {MAP}, which says where they are."
    )
