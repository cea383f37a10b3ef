"""read_view: the view that one section of a study file describes, and the steps to fit for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from baldur.core.escape import one_line
from baldur.core.limited_process import is_below
from baldur.core.limits import MAX_BYTES
from baldur.exceptions import BaldurError, InputError
from baldur.io.files import as_path
from baldur.io.mudata import read_mudata
from baldur.io.nifti import read_nifti
from baldur.io.plink import plink_files, read_plink
from baldur.io.schema import SectionError
from baldur.io.table_views import read_table
from baldur.io.view_sections import OPTIONS_WITH_PATHS, TableView, ViewSection, view_section
from baldur.preparation import CategoryEncoder, VariantFilter, VoxelMask
from baldur.views.container import MultiView

READERS: Mapping[str, Callable[..., MultiView]] = {
    "table": read_table,
    "plink": read_plink,
    "nifti": read_nifti,
    "mudata": read_mudata,
}
"""Kind of a view in a study file to its reader."""


def read_view(
    spec: Mapping[str, Any] | ViewSection,
    base_dir: str | os.PathLike[str],
    *,
    roots: Sequence[str | os.PathLike[str]] = (),
    needed: Sequence[str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> MultiView:
    """Read the view one section of a study file describes.

    Files are named relative to the folder of the study file and have to lie inside it (or inside
    one of `roots`) once symbolic links are followed: a study file from someone else cannot reach
    other files of the machine. Absolute paths are accepted under the same rule. Addresses, home
    folders (``~``) and variables (``$HOME``) are not expanded.

    Parameters
    ----------
    spec : dict or typed section
        ``file`` (for images also a pattern or a list), ``name``, ``kind`` ("table", "plink",
        "nifti" or "mudata"; default by the ending of the file), and the options of the reader of
        that kind, see `baldur.io.view_sections`. Options that are learned from training rows
        belong to `view_steps`; nothing is learned here.
    base_dir : str or path-like
        Folder of the study file.
    roots : sequence of str or path-like
        Further folders that files may lie in, named by whoever runs the study.
    needed : sequence of str, optional
        For a table, the columns that have to become numbers; see `read_table`.
    max_bytes : int, default=4 GB
        Memory that reading one file may take; a study file cannot say so itself.

    Returns
    -------
    MultiView

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from baldur.io import read_view
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = (pathlib.Path(folder.name) / "clinic.csv").write_text("id,age" + chr(10) + "a,61")
    >>> read_view({"file": "clinic.csv", "name": "clinic"}, folder.name).feature_names["clinic"]
    array(['age'], dtype='<U3')
    >>> read_view({"file": "clinic.csv", "max_level": 3}, folder.name)
    Traceback (most recent call last):
    ...
    baldur.exceptions.InputError: max_level: unknown key; did you mean 'max_levels'?
    >>> read_view({"file": "../secret.csv"}, folder.name)
    Traceback (most recent call last):
    ...
    baldur.exceptions.InputError: ../secret.csv: files of a study have to lie in its folder...
    >>> folder.cleanup()
    """
    section = _checked(spec)
    kind, file = section.kind, section.file
    allowed = [Path(one).resolve() for one in (base_dir, *roots)]
    options = section.options(learned=False)
    if kind == "table" and needed is not None:
        options["needed"] = needed
    for key in OPTIONS_WITH_PATHS:
        if isinstance(options.get(key), str):
            options[key] = _inside(options[key], Path(base_dir), allowed)
    if isinstance(file, list):
        found: Any = [_inside(one, Path(base_dir), allowed) for one in file]
    elif kind == "nifti" and any(mark in str(file) for mark in "*?["):
        found = _pattern(file, Path(base_dir), allowed)
    elif kind == "nifti":
        found = [_inside(file, Path(base_dir), allowed)]
    else:
        found = _inside(file, Path(base_dir), allowed)
    if kind == "plink":
        # Three files are read, and each may be a link of its own.
        for part in plink_files(found):
            _inside(part.absolute(), Path(base_dir), allowed)
    try:
        return READERS[kind](found, max_bytes=max_bytes, **options)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, BaldurError):
            raise
        # A value that has the right type and that a library of the reader cannot work with.
        raise InputError(
            f"{as_path(found[0] if isinstance(found, list) else found).name}: the options of this "
            f"view cannot be used ({one_line(str(error))[:200]}). Correct them."
        ) from error


def view_steps(spec: Mapping[str, Any] | ViewSection) -> list[Any]:
    """Return the steps to fit on training rows for the view that one section describes.

    Examples
    --------
    >>> from baldur.io.readers import view_steps
    >>> view_steps({"file": "study.bed", "name": "snps", "min_maf": 0.01})
    [VariantFilter(min_maf=0.01, views='snps')]
    """
    section = _checked(spec)
    given = section.options(learned=True)
    if isinstance(section, TableView):
        if given.get("drop") == "none":
            given["drop"] = None
        return [CategoryEncoder(section.name, **given)]
    if section.kind == "plink" and given:
        return [VariantFilter(section.name, **given)]
    if section.kind == "nifti":
        if section.mask is None and section.atlas is None:
            return [VoxelMask(section.name, **given)]
        if given:
            raise InputError(
                f"{', '.join(given)}: these options learn a mask, but the view has one already "
                "(mask or atlas). Leave them out."
            )
    return []


def _checked(spec: Any) -> Any:
    """Return the typed section of a view, or refuse what is wrong in one line."""
    try:
        return view_section(spec)
    except SectionError as error:
        key, what, fix = error.problem
        line = f"{key or 'view'}: {what}; {fix}"
        raise InputError(line if line.endswith("?") else f"{line}.") from None


def _inside(file: Any, base: Path, allowed: list[Path]) -> Path:
    """Return the path of a file of the study, or refuse one that leads out of its folders."""
    path = as_path(file)
    if not is_below(base / path, allowed):
        raise InputError(
            f"{path}: files of a study have to lie in its folder {allowed[0]}, symbolic links "
            "followed. Move the file there, or name its folder among the data folders (roots) when "
            "running the study."
        )
    return base / path


def _pattern(file: Any, base: Path, allowed: list[Path]) -> list[Path]:
    """Return the files a pattern stands for, each of them inside the allowed folders."""
    path = as_path(file)
    parts = path.parts
    fixed = next(i for i, part in enumerate(parts) if any(mark in part for mark in "*?["))
    if ".." in parts[fixed:]:
        raise InputError(f"{path}: a pattern must not contain '..' after its first wildcard.")
    folder = _inside(Path(*parts[:fixed]) if fixed else Path(), base, allowed)
    found = _expanded(folder, parts[fixed:])
    if not found:
        raise InputError(f"{path}: no file in {folder} fits this pattern.")
    return [_inside(one.absolute(), base, allowed) for one in found]


def _expanded(folder: Path, parts: tuple[str, ...]) -> list[Path]:
    """Return the files that a pattern stands for.

    Each folder is looked into once for each part, however many links lead to it: with links in a
    circle there is no end to the paths.
    """
    here = {folder.resolve(): folder}
    for part in parts[:-1]:
        below = [one for each in here.values() for one in sorted(each.glob(part)) if one.is_dir()]
        here = {}
        for one in below:
            here.setdefault(one.resolve(), one)
    return sorted({one for each in here.values() for one in each.glob(parts[-1]) if one.is_file()})
