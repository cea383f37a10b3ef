"""The study file of a reproduction: with simulated data beside it, or with a user's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from baldur.atomic_io import make_folder, write_atomically
from baldur.exceptions import InputError
from baldur.reproduction.protocol import Protocol
from baldur.study import StudyConfig, load_study, simulate_study
from baldur.study.toml_file import parse_study, toml_text

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


def own_study(protocol: Protocol, folder: Path, data: Path, seed: int, quick: bool) -> StudyConfig:
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
    write_atomically(file, toml_text(study).encode())
    return load_study(file, roots=[data])


def _title(protocol: Protocol) -> str:
    return f"Reproduction of the paper's study of {protocol.cohort}"


def _columns(protocol: Protocol, data: Path) -> dict[str, Any]:
    """Return the sections samples, outcome and views, with absolute paths."""
    file = data / MAP
    if not file.exists():
        return {
            "samples": {
                "file": str(_found(data, "samples", (".csv", ".tsv", ".xlsx"))),
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
    if isinstance(given, list) and given and all(isinstance(one, str) for one in given):
        return [str(data / one) for one in given]
    said = "nothing" if given is None else repr(given)
    raise InputError(f'{file}: {section} needs the name of its file, file = "...", but has {said}.')


def _view(data: Path, name: str) -> dict[str, Any]:
    """Return the section of a view: a folder of images, genotypes, or a table."""
    for ending in _IMAGES:
        if any((data / name).glob(f"*{ending}")):
            made = {"file": str(data / name / f"*{ending}"), "kind": "nifti"}
            masks = [data / f"{name}_mask{one}" for one in _IMAGES]
            mask = next((one for one in masks if one.is_file()), None)
            return made | {"id_pattern": f"{{id}}{ending}"} | ({"mask": str(mask)} if mask else {})
    return {"file": str(_found(data, name, _TABLES))}


def _found(data: Path, name: str, endings: tuple[str, ...]) -> Path:
    for ending in endings:
        if (data / f"{name}{ending}").is_file():
            return data / f"{name}{ending}"
    raise InputError(
        f"{data} has no file {name} with one of the endings {', '.join(endings)}. Name the files "
        f"as docs/howto/reproduction.md says, or write {MAP}, which says where they are."
    )
