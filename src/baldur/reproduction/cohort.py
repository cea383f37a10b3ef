"""The study file of a reproduction: with simulated data beside it, or with a user's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from baldur.atomic_io import make_folder, write_atomically
from baldur.exceptions import InputError
from baldur.reproduction.protocol import Protocol
from baldur.study import StudyConfig, load_study, simulate_study
from baldur.study.toml_file import parse_study, toml_text

__all__ = ["MAP", "own_study", "simulated_study"]

MAP = "columns.toml"
"""File of a user's folder that says where samples, outcome and views are."""

STUDY = "study.toml"

_TABLES = (".bed", ".pgen", ".csv", ".tsv", ".parquet", ".xlsx", ".npz")
"""Endings of the file of a view, in the order in which they are looked for."""
_IMAGES = (".nii.gz", ".nii")


def simulated_study(
    protocol: Protocol, folder: Path, scale: float, seed: int, quick: bool
) -> StudyConfig:
    """Simulate the cohort of a study and write its study file, unless both are there.

    Parameters
    ----------
    protocol : Protocol
        The study.
    folder : Path
        Where to.
    scale : float
        Share of the wide views to simulate.
    seed : int
        Of the simulation, the folds and the models.
    quick : bool
        As in `Protocol.sections`.

    Returns
    -------
    StudyConfig
    """
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
    """Write a study file for a user's own files.

    Parameters
    ----------
    protocol : Protocol
        The study.
    folder : Path
        Where to.
    data : Path
        Folder with the files: with ``columns.toml``, whose sections samples, outcome and views are
        those of a study file, or with the file names of ``docs/howto/reproduction.md``.
    seed : int
        Of the folds and the models.
    quick : bool
        As in `Protocol.sections`.

    Returns
    -------
    StudyConfig
    """
    data = data.resolve()
    if not data.is_dir():
        raise InputError(f"{data} is not a folder; --data needs the folder of the files.")
    file = folder / STUDY
    if not file.exists():
        given = _columns(protocol, data)
        study = {
            "title": _title(protocol),
            "seed": seed,
            "output": "results",
            **given,
            **protocol.sections(quick),
        }
        make_folder(folder)
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
    if set(given["views"]) != set(protocol.views):
        raise InputError(
            f"{file}: the views must be {', '.join(protocol.views)}, but got "
            f"{', '.join(given['views'])}. Rename them, or leave the file out."
        )
    given["samples"]["file"] = str(data / given["samples"]["file"])
    for section in given["views"].values():
        for key in ("file", "mask", "atlas", "atlas_labels", "sample_ids"):
            if isinstance(section.get(key), str):
                section[key] = str(data / section[key])
            elif key == "file":
                section[key] = [str(data / one) for one in section[key]]
    # In the order of the paper.
    given["views"] = {name: given["views"][name] for name in protocol.views}
    return given


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
        f"{data} has no file {name}{endings[0]} (nor {', '.join(endings[1:])}). Name the files as "
        f"docs/howto/reproduction.md says, or write {MAP}, which says where they are."
    )
