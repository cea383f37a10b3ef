"""The sections of a study file apart from views: their keys, types and defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from baldur.evaluation.metrics import METRICS
from baldur.evaluation.models import name_with_views
from baldur.evaluation.splits import SCHEMES
from baldur.io.schema import Names, OneOf, Section, SectionError, Text
from baldur.preparation.column_statistics import SCALES
from baldur.preparation.steps.sites import ESTIMATES, NEW_SITES

_MOST_FOLDS = 10_000  # far above any design; a list of a billion folds would fill the memory
_MOST_REPEATS = 1_000  # the same, for repeated folds
_MOST_PERMUTATIONS = 100_000  # p values below 1e-5 are of no use

Share: TypeAlias = Annotated[float, Field(gt=0, lt=1)]
Rate: TypeAlias = Annotated[float, Field(gt=0, le=1)]
Metric: TypeAlias = Annotated[str, OneOf(tuple(METRICS))]


class SamplesSection(Section):
    """The table with one row per sample."""

    file: Text
    """table with one row per sample (.csv, .tsv, .xlsx or .parquet)"""
    id: Text
    """column with the sample ids"""
    group: Text | None = None
    """column of families or repeated visits, which are never split between folds"""
    site: Text | None = None
    """column of sites, which scheme "leave-one-site-out" leaves out one by one"""
    split: Text | None = None
    """column of "train" and "test", which scheme "fixed" uses"""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """character between the fields; default by the ending of the file"""
    decimal: Text | None = None
    """decimal mark; default a point"""
    encoding: Text | None = None
    """encoding of the text; default utf-8"""
    sheet: Text | int | None = None
    """sheet of a workbook, by name or number; default the first"""
    missing: list[str] | None = None
    """cells that mean "missing" besides empty cells, "NA" and the like"""

    def reader_options(self) -> dict[str, Any]:
        """Return the options of the reader of the table that were given."""
        names = {"separator", "decimal", "encoding", "sheet", "missing"}
        return self.model_dump(include=names, exclude_none=True)


class OutcomeSection(Section):
    """The outcome: its column, task and positive class; or several yes/no columns."""

    column: Text = ""
    """column of the samples table to predict"""
    columns: Names = Field(default_factory=list)
    """several yes/no columns of the samples table to predict together"""
    task: Annotated[str, OneOf(("classification", "regression"))] = "classification"
    """kind of the outcome"""
    positive: Text | bool | int | float | None = None
    """positive class; default the last in sorted order, and what means yes in several columns"""

    @model_validator(mode="after")
    def _one_or_several(self) -> OutcomeSection:
        if self.column and self.columns:
            what = "there are both column and columns"
            raise SectionError(what, "name one outcome as column, or several as columns", "columns")
        if not self.column and not self.columns:
            raise SectionError("missing", "give column of the samples table to predict", "column")
        if len(self.columns) == 1:
            fix = f"write column = {self.columns[0]!r}"
            raise SectionError("there is one column only", fix, "columns")
        if self.columns and self.task == "regression":
            what = "several numeric outcomes cannot be evaluated together"
            raise SectionError(what, "name one of them as column in a study of its own", "columns")
        return self

    @property
    def names(self) -> list[str]:
        """The columns of the outcome, one or several."""
        return list(self.columns) if self.columns else [self.column]

    @property
    def text(self) -> str:
        """The columns of the outcome, for a sentence."""
        return " and ".join(map(repr, self.names))


class CovariatesSection(Section):
    """Columns of the samples table that are not the outcome."""

    regress_out: Names = Field(default_factory=list)
    """columns whose effect is taken out of every view"""
    include: Names = Field(default_factory=list)
    """columns that become a view of their own"""
    categorical: Names = Field(default_factory=list)
    """covariates that are categories although they are written as numbers"""


class PreparationSection(Section):
    """How every model prepares its columns."""

    scale: Annotated[str, OneOf(tuple(SCALES))] = "clipped"
    """way in which every model scales columns"""


class HarmoniseSection(Section):
    """Options of the alignment of sites (harmonisation)."""

    by: Text | None = None
    """column of sites or scanners to align; default samples.site"""
    keep: Names = Field(default_factory=list)
    """columns whose effect is preserved, never the outcome"""
    views: Names | None = None
    """views to harmonise; default all but genotypes and included covariates"""
    new_sites: Annotated[str, OneOf(tuple(NEW_SITES))] = "pooled"
    """treatment of sites that did not occur in training"""
    estimates: Annotated[str, OneOf(tuple(ESTIMATES))] = "shrunk"
    """estimates of the location and scale of a site"""


class FoldsSection(Section):
    """The folds of the nested cross-validation."""

    scheme: Annotated[str, OneOf(tuple(SCHEMES))] | None = None
    """scheme of the outer folds; default by the columns of [samples] that are given"""
    outer: Annotated[int, Field(ge=2, le=_MOST_FOLDS)] = 5
    """number of outer folds"""
    inner: Annotated[int, Field(ge=2, le=_MOST_FOLDS)] = 5
    """number of inner folds"""
    repeats: Annotated[int, Field(ge=1, le=_MOST_REPEATS)] = 1
    """number of times that the outer folds are drawn anew"""
    select_by: Metric | None = None
    """metric that selects settings on the inner folds; default auc or r2"""


class ReportSection(Section):
    """Metrics, tables and figures that are reported."""

    metrics: Annotated[list[Metric], Field(min_length=1)] | None = None
    """columns of the table; default all metrics of the task"""
    permutations: Annotated[int, Field(ge=0, le=_MOST_PERMUTATIONS)] = 0
    """number of runs with permuted labels, for a permutation test"""
    subgroups: Names = Field(default_factory=list)
    """columns of the samples table that divide the samples into subgroups"""
    thresholds: Annotated[list[Share], Field(min_length=1)] | None = None
    """probabilities from which a sample tests positive; default 0.5 and the prevalence"""
    sensitivities: Annotated[list[Rate], Field(min_length=1)] | None = None
    """sensitivities for which a threshold is chosen, each on other folds"""
    specificities: Annotated[list[Rate], Field(min_length=1)] | None = None
    """specificities for which a threshold is chosen, each on other folds"""
    prevalence: Share | None = None
    """share of cases in the target population; default that of the study"""
    learning_curve: Annotated[list[Share], Field(min_length=1)] | None = None
    """shares of the training samples to train on as well"""
    baseline_views: Annotated[Names, Field(min_length=1)] | None = None
    """views that one has anyway, to report what each other view adds to them"""

    @field_validator("metrics", "thresholds", "sensitivities", "specificities", "learning_curve")
    @classmethod
    def _sorted(cls, values: list[Any] | None) -> list[Any] | None:
        if values is None or isinstance(values[0], str):
            if values is not None and len(set(values)) < len(values):
                raise SectionError("lists a name more than once", "list each once")
            return values
        return sorted(set(values))

    def clinical_options(self) -> dict[str, Any]:
        """Return prevalence and thresholds or what these are chosen for, those that were given."""
        names = {"prevalence", "thresholds", "sensitivities", "specificities"}
        return self.model_dump(include=names, exclude_none=True)


class ModelEntry(Section):
    """One model of the comparison, as data; its estimator is made when the comparison is opened."""

    name: Text
    """name of a known model, or any name together with an estimator"""
    estimator: Text | None = None
    """public class of scikit-learn, such as sklearn.svm.SVC"""
    grid: dict[str, list[Any]] | Literal["full"] | None = None
    """settings to try on the inner folds; default those of the model"""
    settings: dict[str, Any] = Field(default_factory=dict)
    """parameters to set once"""
    views: Annotated[Names, Field(min_length=1)] | None = None
    """views that the model gets; default all"""

    @property
    def label(self) -> str:
        """Name of its row: that of the model, with its views where it does not get all."""
        return self.name if self.views is None else name_with_views(self.name, self.views)

    @field_validator("grid", mode="before")
    @classmethod
    def _lists(cls, grid: Any) -> Any:
        if not isinstance(grid, dict):
            if grid == "full" or grid is None:
                return grid
            raise SectionError("must be a table", "write grid = { C = [0.1, 1.0] }")
        for key, values in grid.items():
            if not isinstance(values, list) or not values:
                fix = f"write {key} = [{_written(values)}], or move it to settings"
                raise SectionError("must be a list of values to try", fix, key)
        return grid

    @field_validator("settings", mode="before")
    @classmethod
    def _table(cls, settings: Any) -> Any:
        if not isinstance(settings, dict):
            raise SectionError("must be a table", "write settings = { C = 0.1 }")
        return settings


def _written(value: Any) -> str:
    return repr(value)[:80] if not isinstance(value, list) else "1.0"
