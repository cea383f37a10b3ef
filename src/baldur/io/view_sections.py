"""The section of a study file that describes one view, typed for each kind of file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError

from baldur.io.files import as_path, suffix_of
from baldur.io.schema import Names, OneOf, Section, SectionError, Text, problem_of, schema_of

_BY_ENDING = {
    ".bed": "plink",
    ".pgen": "plink",
    ".nii": "nifti",
    ".nii.gz": "nifti",
    ".h5mu": "mudata",
    ".h5ad": "mudata",
}


OPTIONS_WITH_PATHS = ("mask", "atlas", "atlas_labels", "sample_ids", "cache_dir")
"""Options of a view that name further files, where they are text."""

_Fraction: TypeAlias = Annotated[float, Field(ge=0, le=1)]
_IdsOrFile: TypeAlias = Text | list[str | int]


class _View(Section):
    learned_options: ClassVar[tuple[str, ...]] = ()
    """options of what is learned from training rows, a step of the preparation"""

    name: Text | None = None
    """name of the view; default the name of the section"""

    def options(self, *, learned: bool) -> dict[str, Any]:
        """Return the options that were given, apart from `file` and `kind`."""
        given = self.model_dump(exclude_unset=True, exclude={"file", "kind"})
        return {key: given[key] for key in given if (key in self.learned_options) == learned}


class TableView(_View):
    """A view from a table: .csv, .tsv, .txt, .parquet, .xlsx, .npz or .npy."""

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
    drop: Annotated[str, OneOf(("first", "if_binary", "none"))] | None = None
    """categories whose reference level gets no column; default "first", which means all"""
    unknown: Annotated[str, OneOf(("ignore", "error"))] | None = None
    """samples with a level that did not occur in training; default "ignore", which means missing"""


class PlinkView(_View):
    """A view from genotypes: .bed (PLINK 1) or .pgen (PLINK 2)."""

    learned_options = ("min_maf", "max_missing", "drop_monomorphic")

    kind: Literal["plink"] = "plink"
    """kind of the file"""
    file: Text
    """file of this view"""
    ids: Annotated[str, OneOf(("sample", "family_sample"))] | None = None
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


class NiftiView(_View):
    """A view from images: .nii or .nii.gz, one per sample."""

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
    resample: Annotated[str, OneOf(("continuous", "linear", "nearest"))] | None = None
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


class MudataView(_View):
    """One or several views from a .h5mu or .h5ad file."""

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
    return _BY_ENDING.get(suffix_of(as_path(first)), "table") if isinstance(first, str) else "table"


ViewSection: TypeAlias = Annotated[
    Annotated[TableView, Tag("table")]
    | Annotated[PlinkView, Tag("plink")]
    | Annotated[NiftiView, Tag("nifti")]
    | Annotated[MudataView, Tag("mudata")],
    Discriminator(_kind),
]
"""Section of one view; its keys depend on the kind."""


def view_section(given: Any) -> Any:
    """Return the typed section of a view."""
    if isinstance(given, _View):
        return given
    try:
        return TypeAdapter(ViewSection).validate_python(given)
    except ValidationError as error:
        found = problem_of(error, schema_of(ViewSection), given)
        raise SectionError(found.what, found.fix, found.key) from None
