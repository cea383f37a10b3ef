"""Views of a study file: the section of each kind of file, its reader and its steps to fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError

from baldur.core.escape import one_line
from baldur.core.limits import MAX_BYTES
from baldur.core.paths import is_below
from baldur.core.schema import Names, Section, Text, problem_of, schema_of
from baldur.exceptions import BaldurError, InputError
from baldur.io.files import as_path, file_ending
from baldur.io.mudata import read_mudata
from baldur.io.nifti import read_nifti
from baldur.io.plink import plink_files, read_plink
from baldur.io.tables import read_table
from baldur.preparation import CategoryEncoder, VariantFilter, VoxelMask
from baldur.views.container import MultiView

OPTIONS_WITH_PATHS = ("mask", "atlas", "atlas_labels", "sample_ids", "cache_dir")
"""Options of a view that name further files, where they are text."""

_Fraction: TypeAlias = Annotated[float, Field(ge=0, le=1)]
_IdsOrFile: TypeAlias = Text | list[str | int]


class _View(Section):
    reader: ClassVar[Callable[..., MultiView]]
    """reader of this kind of files"""
    endings: ClassVar[tuple[str, ...]] = ()
    """endings of files of this kind"""
    learned_options: ClassVar[tuple[str, ...]] = ()
    """options of what is learned from training rows, a step of the preparation"""

    name: Text | None = None
    """name of the view; default the name of the section"""

    def options(self, *, learned: bool) -> dict[str, Any]:
        """Return the options that were given: those of the steps to fit, or those of the reader."""
        given = self.model_dump(exclude_unset=True, exclude={"file", "kind"})
        return {key: given[key] for key in given if (key in self.learned_options) == learned}

    def steps(self) -> list[Any]:
        """Return the steps to fit on training rows."""
        return []


class TableView(_View):
    """A view from a table: .csv, .tsv, .txt, .parquet, .xlsx, .npz or .npy."""

    reader = staticmethod(read_table)
    learned_options = ("drop", "unknown")

    kind: Literal["table"] = "table"
    """kind of the file"""
    file: Text
    """file of this view"""
    id_column: str | int | None = None
    """column with the sample ids, by name or number; default the first"""
    sample_ids: _IdsOrFile | None = None
    """sample ids, or a table that lists them, for files without a column of ids"""
    columns: Names | None = None
    """columns to read; default all"""
    exclude: Names | None = None
    """columns to leave out"""
    categorical: Names | None = None
    """columns that are categories although they are written as numbers"""
    missing: list[str] | None = None
    """cells that mean "missing" besides empty cells, "NA" and the like"""
    max_levels: Annotated[int, Field(ge=1)] | None = None
    """largest number of levels of a category; default 50"""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """character between the fields; default by the ending of the file"""
    decimal: Text | None = None
    """decimal mark; default a point"""
    encoding: Text | None = None
    """encoding of the text; default utf-8"""
    sheet: Text | int | None = None
    """sheet of a workbook, by name or number; default the first"""
    array: Text | None = None
    """array of an .npz file that is the matrix; default X"""
    transpose: bool | None = None
    """whether the table has a row per feature and a column per sample; default false"""
    drop: Literal["first", "if_binary", "none"] | None = None
    """categories whose reference level gets no column; default "first", which means all"""
    unknown: Literal["ignore", "error"] | None = None
    """samples with a level that did not occur in training; default "ignore", which means missing"""

    def steps(self) -> list[Any]:
        """Return the encoder of categories."""
        given = self.options(learned=True)
        if given.get("drop") == "none":
            given["drop"] = None
        return [CategoryEncoder(self.name, **given)]


class PlinkView(_View):
    """A view from genotypes: .bed (PLINK 1) or .pgen (PLINK 2)."""

    reader = staticmethod(read_plink)
    endings = (".bed", ".pgen")
    learned_options = ("min_maf", "max_missing", "drop_monomorphic")

    kind: Literal["plink"] = "plink"
    """kind of the file"""
    file: Text
    """file of this view"""
    ids: Literal["sample", "family_sample"] | None = None
    """parts of the sample ids: "sample" (default) or "family_sample", family and sample"""
    chromosomes: list[str | int] | None = None
    """chromosomes to read; default all"""
    variants: Names | None = None
    """variants to read; default all"""
    min_maf: Annotated[float, Field(ge=0, le=0.5)] | None = None
    """smallest minor allele frequency among training rows"""
    max_missing: _Fraction | None = None
    """largest share of missing calls among training rows"""
    drop_monomorphic: bool | None = None
    """whether variants with one value among training rows are left out"""
    in_memory: bool | None = None
    """whether all genotypes are read into memory at once"""

    def steps(self) -> list[Any]:
        """Return the filter of variants, where one is asked for."""
        given = self.options(learned=True)
        return [VariantFilter(self.name, **given)] if given else []


class NiftiView(_View):
    """A view from images: .nii or .nii.gz, one per sample."""

    reader = staticmethod(read_nifti)
    endings = (".nii", ".nii.gz")
    learned_options = ("threshold", "coverage")

    kind: Literal["nifti"] = "nifti"
    """kind of the file"""
    file: Text | Annotated[list[Text], Field(min_length=1)]
    """a pattern such as "maps/*.nii.gz", or a list of files"""
    mask: Text | None = None
    """image whose non-zero voxels are read"""
    atlas: Text | None = None
    """image of integer labels; the features are then means over regions"""
    atlas_labels: Text | dict[str, str] | None = None
    """names of the regions: a table with the columns index and name, or a section"""
    sample_ids: _IdsOrFile | None = None
    """sample ids in the order of the images, or a table that lists them"""
    id_pattern: Text | None = None
    """place of the id in the name of a file, such as "smwc1{id}_T1*.nii", by default sub-..."""
    resample: Literal["continuous", "linear", "nearest"] | None = None
    """interpolation of images on another grid; default to refuse them"""
    voxel_size: Annotated[float, Field(gt=0)] | None = None
    """size of cubic voxels in millimetres"""
    smoothing_fwhm: Annotated[float, Field(ge=0)] | None = None
    """width of a smoothing kernel in millimetres"""
    cache_dir: Text | None = None
    """folder for prepared images"""
    threshold: Annotated[float, Field(ge=0, lt=1)] | None = None
    """share of the bright level below which a voxel is background; default 0.1"""
    coverage: _Fraction | None = None
    """share of training images that must cover a voxel; default 0.5"""

    def steps(self) -> list[Any]:
        """Return the mask of voxels, where none is given."""
        given = self.options(learned=True)
        if self.mask is None and self.atlas is None:
            return [VoxelMask(self.name, **given)]
        if given:
            raise InputError(
                f"{', '.join(given)}: these options learn a mask, but the view has one already "
                "(mask or atlas). Leave them out."
            )
        return []


class MudataView(_View):
    """One or several views from a .h5mu or .h5ad file."""

    reader = staticmethod(read_mudata)
    endings = (".h5mu", ".h5ad")

    kind: Literal["mudata"] = "mudata"
    """kind of the file"""
    file: Text
    """file of this view"""
    modalities: Text | Names | None = None
    """modalities to read; default all"""
    layers: Text | dict[str, str] | None = None
    """layer to read instead of X, the same for all or one for each modality"""
    backed: bool | None = None
    """whether the matrix stays on disk; default where it is large"""


def _kind(section: Any) -> Any:
    """Return the kind of a view: as given, else by the ending of its file."""
    if not isinstance(section, Mapping):
        return getattr(section, "kind", None)
    if section.get("kind") is not None:
        return section["kind"]
    file = section.get("file")
    first = file[0] if isinstance(file, list) and file else file
    ending = file_ending(as_path(first)) if isinstance(first, str) else ""
    kinds = (view for view in (PlinkView, NiftiView, MudataView) if ending in view.endings)
    return next(kinds, TableView).model_fields["kind"].default


ViewSection: TypeAlias = Annotated[
    Annotated[TableView, Tag("table")]
    | Annotated[PlinkView, Tag("plink")]
    | Annotated[NiftiView, Tag("nifti")]
    | Annotated[MudataView, Tag("mudata")],
    Discriminator(_kind),
]
"""Section of one view; its keys depend on the kind."""


def view_section(given: Any) -> Any:
    """Return the typed section of a view, or refuse what is wrong in one line."""
    if isinstance(given, _View):
        return given
    try:
        return TypeAdapter(ViewSection).validate_python(given)
    except ValidationError as error:
        key, what, fix = problem_of(error, schema_of(ViewSection), given)
        line = f"{key or 'view'}: {what}; {fix}"
        raise InputError(line if line.endswith("?") else f"{line}.") from None


def read_view(
    spec: Mapping[str, Any] | ViewSection,
    base_dir: str | os.PathLike[str],
    *,
    roots: Sequence[str | os.PathLike[str]] = (),
    needed: Sequence[str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> MultiView:
    """Read the view one section of a study file describes.

    Files are named relative to `base_dir`, the folder of the study file, and have to lie inside it
    (or inside one of `roots`) once symbolic links are followed: a study file from someone else
    cannot reach other files of the machine. Absolute paths are accepted under the same rule.
    Addresses, home folders (``~``) and variables (``$HOME``) are not expanded.

    The section has ``file`` (for images also a pattern or a list), ``name``, ``kind`` ("table",
    "plink", "nifti" or "mudata"; by default from the ending of the file), and the options of the
    reader of that kind. Options that are learned from training rows belong to `view_steps`. Of a
    table, the columns `needed` have to become numbers.
    """
    section = view_section(spec)
    kind, file = section.kind, section.file
    base, allowed = Path(base_dir), [Path(root).resolve() for root in (base_dir, *roots)]
    options = section.options(learned=False)
    if kind == "table" and needed is not None:
        options["needed"] = needed
    for key in OPTIONS_WITH_PATHS:
        if isinstance(options.get(key), str):
            options[key] = _inside(options[key], base, allowed)
    if kind == "nifti" and isinstance(file, str) and any(mark in file for mark in "*?["):
        paths = _pattern(file, base, allowed)
    else:
        listed = file if isinstance(file, list) else [file]
        paths = [_inside(part, base, allowed) for part in listed]
    if kind == "plink":
        # Three files are read, and each may be a link of its own.
        for part in plink_files(paths[0]):
            _inside(part.absolute(), base, allowed)
    try:
        files = paths if kind == "nifti" else paths[0]
        return section.reader(files, max_bytes=max_bytes, **options)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, BaldurError):
            raise
        # A value that has the right type and that a library of the reader cannot work with.
        raise InputError(
            f"{paths[0].name}: the options of this view cannot be used "
            f"({one_line(str(error))[:200]}). Correct them."
        ) from error


def view_steps(spec: Mapping[str, Any] | ViewSection) -> list[Any]:
    """Return the steps to fit on training rows for the view that one section describes.

    Examples
    --------
    >>> from baldur.io.view_sections import view_steps
    >>> view_steps({"file": "study.bed", "name": "snps", "min_maf": 0.01})
    [VariantFilter(min_maf=0.01, views='snps')]
    """
    return view_section(spec).steps()


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
    files = _expanded(folder, parts[fixed:])
    if not files:
        raise InputError(f"{path}: no file in {folder} fits this pattern.")
    return [_inside(file.absolute(), base, allowed) for file in files]


def _expanded(folder: Path, parts: tuple[str, ...]) -> list[Path]:
    """Return the files that a pattern stands for.

    Each folder is looked into once for each part, however many links lead to it: with links in a
    circle there is no end to the paths.
    """
    folders = [folder]
    for part in parts[:-1]:
        below: dict[Path, Path] = {}
        for path in (path for parent in folders for path in sorted(parent.glob(part))):
            if path.is_dir():
                below.setdefault(path.resolve(), path)
        folders = list(below.values())
    return sorted({file for parent in folders for file in parent.glob(parts[-1]) if file.is_file()})
