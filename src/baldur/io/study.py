"""read_view: one section of a study file to a view, and what has to be learned for it."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from baldur.exceptions import BaldurError, InputError
from baldur.io.formats.files import as_path, suffix_of
from baldur.io.mudata import read_mudata
from baldur.io.nifti import read_nifti
from baldur.io.plink import plink_files, read_plink
from baldur.io.tables import read_table
from baldur.preparation import CategoryEncoder, VariantFilter, VoxelMask
from baldur.safety.budget import MAX_BYTES
from baldur.safety.confine import is_below
from baldur.safety.escape import one_line
from baldur.views.container import MultiView

__all__ = ["KINDS", "read_view", "view_steps"]

KINDS: Mapping[str, Callable[..., MultiView]] = {
    "table": read_table,
    "plink": read_plink,
    "nifti": read_nifti,
    "mudata": read_mudata,
}
"""Kind of a view in a study file to its reader."""

_BY_ENDING = {
    ".bed": "plink",
    ".pgen": "plink",
    ".nii": "nifti",
    ".nii.gz": "nifti",
    ".h5mu": "mudata",
    ".h5ad": "mudata",
}
# Options that name further files.
_PATHS = ("mask", "atlas", "atlas_labels", "sample_ids", "cache_dir")
# Options that are learned from training rows in a study, and so belong to a step.
_LEARNED: dict[str, tuple[str, ...]] = {
    "table": ("drop", "unknown"),
    "plink": ("min_maf", "max_missing", "drop_monomorphic"),
    "nifti": ("threshold", "coverage"),
    "mudata": (),
}
# Those a study cannot give: they would look at people outside the training rows, or lift the
# limits that protect whoever runs a study of somebody else.
_NOT_IN_STUDY = ("filter_ids", "max_bytes", "trusted")


def read_view(
    spec: Mapping[str, Any],
    base_dir: str | os.PathLike[str],
    *,
    roots: Sequence[str | os.PathLike[str]] = (),
    max_bytes: int = MAX_BYTES,
) -> MultiView:
    """Read the view one section of a study file describes.

    Files are named relative to the folder of the study file and have to lie inside it (or inside
    one of `roots`) once symbolic links are followed: a study file from someone else cannot reach
    other files of the machine. Absolute paths are accepted under the same rule. Addresses, home
    folders (``~``) and variables (``$HOME``) are not expanded.

    Parameters
    ----------
    spec : dict
        ``file`` (for images a pattern or a list, too), ``name``, ``kind`` ("table", "plink",
        "nifti" or "mudata"; by the file's ending where it is left out), and the keyword arguments
        of that kind's reader. Options that are learned from training rows are those of
        `view_steps`, and nothing is learned here.
    base_dir : str or path-like
        Folder of the study file.
    roots : sequence of str or path-like
        Further folders that files may lie in, named by whoever runs the study.
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
    baldur.exceptions.InputError: Unknown option 'max_level' of a view of kind 'table'...
    >>> read_view({"file": "../secret.csv"}, folder.name)
    Traceback (most recent call last):
    ...
    baldur.exceptions.InputError: ../secret.csv: files of a study have to lie in its folder...
    >>> folder.cleanup()
    """
    kind, options = _checked(spec)
    allowed = [Path(one).resolve() for one in (base_dir, *roots)]
    file = options.pop("file")
    for learned in _LEARNED[kind]:
        options.pop(learned, None)
    for key in _PATHS:
        if isinstance(options.get(key), (str, os.PathLike)):
            options[key] = _inside(options[key], Path(base_dir), allowed)
    if isinstance(file, (list, tuple)):
        if kind != "nifti":
            raise InputError(f"A view of kind {kind!r} is one file, but {len(file)} are listed.")
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
        return KINDS[kind](found, max_bytes=max_bytes, **options)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, BaldurError):
            raise
        # An option of a kind that its reader never meets, since Python checks no types.
        raise InputError(
            f"{as_path(found[0] if isinstance(found, list) else found).name}: the options of this "
            f"view cannot be used ({one_line(str(error))[:200]}). Check their types."
        ) from error


def view_steps(spec: Mapping[str, Any]) -> list[Any]:
    """Return the steps to fit on training rows for the view one section describes.

    Parameters
    ----------
    spec : dict
        As for `read_view`. For tables ``drop`` and ``unknown`` go to `CategoryEncoder`; for
        genotypes ``min_maf``, ``max_missing`` and ``drop_monomorphic`` to `VariantFilter`; for
        images without a mask or an atlas, ``threshold`` and ``coverage`` to `VoxelMask`.

    Returns
    -------
    list of transformers
        Unfitted, each from MultiView to MultiView; empty where nothing is to be learned.

    Examples
    --------
    >>> from baldur.io import view_steps
    >>> view_steps({"file": "study.bed", "name": "snps", "min_maf": 0.01})
    [VariantFilter(min_maf=0.01, views='snps')]
    """
    kind, options = _checked(spec)
    given = {key: options[key] for key in _LEARNED[kind] if key in options}
    views = options.get("name")
    if kind == "table":
        return [CategoryEncoder(views, **given)]
    if kind == "plink" and given:
        return [VariantFilter(views, **given)]
    if kind == "nifti":
        if options.get("mask") is None and options.get("atlas") is None:
            return [VoxelMask(views, **given)]
        if given:
            raise InputError(
                f"{', '.join(given)}: these options learn a mask, but the view has one already "
                "(mask or atlas). Leave them out."
            )
    return []


def _checked(spec: Any) -> tuple[str, dict[str, Any]]:
    """Return kind and options after checking that the reader knows them all."""
    if not isinstance(spec, Mapping):
        raise InputError(f"A view must be a section of keys, but got {type(spec).__name__}.")
    options = {str(key): value for key, value in spec.items()}
    file = options.get("file")
    listed = file if isinstance(file, (list, tuple)) else [file]
    if not listed or not all(isinstance(one, (str, os.PathLike)) for one in listed):
        raise InputError(
            f"A view needs the key 'file' with the name of a file, but it is {file!r}."
        )
    kind = options.pop("kind", None)
    if kind is None:
        kind = _BY_ENDING.get(suffix_of(as_path(listed[0])), "table")
    if kind not in KINDS:
        raise InputError(f"kind must be one of {list(KINDS)}, but got {kind!r}.")
    parameters = list(inspect.signature(KINDS[kind]).parameters)[1:]
    known = [one for one in (*parameters, *_LEARNED[kind]) if one not in _NOT_IN_STUDY]
    for key in options:
        if key != "file" and key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It knows {', '.join(known)}."
            raise InputError(f"Unknown option {key!r} of a view of kind {kind!r}.{hint}")
    return kind, options


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
        raise InputError(f"{path}: a pattern cannot go up again with '..'.")
    folder = _inside(Path(*parts[:fixed]) if fixed else Path(), base, allowed)
    found = sorted(one for one in folder.glob(str(Path(*parts[fixed:]))) if one.is_file())
    if not found:
        raise InputError(f"{path}: no file in {folder} fits this pattern.")
    return [_inside(one.absolute(), base, allowed) for one in found]
