"""StudyConfig: everything a study file says, typed, with all defaults.

The keys of views are in `baldur.io.view_sections`. `load_study` makes a `StudyConfig` from a file;
all other functions take it as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from baldur.core.escape import one_line
from baldur.core.model_catalog import CLASSIFICATION_MODELS, REGRESSION_MODELS
from baldur.core.schema import (
    Names,
    Section,
    SectionError,
    Text,
    different,
    nearest,
    one_of,
    schema_of,
)
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.models import name_with_views
from baldur.evaluation.splits import SCHEMES
from baldur.exceptions import BaldurError, MissingExtraError, StudyError
from baldur.io.view_sections import OPTIONS_WITH_PATHS, ViewSection
from baldur.preparation.column_statistics import SCALES
from baldur.preparation.sites import ESTIMATES, NEW_SITES

_MOST_FOLDS = 10_000  # far above any design; a list of a billion folds would fill the memory
_MOST_REPEATS = 1_000  # the same, for repeated folds
_MOST_PERMUTATIONS = 100_000  # p values below 1e-5 are of no use


def _ascending(values: list[float]) -> list[float]:
    return sorted(set(values))


Share: TypeAlias = Annotated[float, Field(gt=0, lt=1)]
Rate: TypeAlias = Annotated[float, Field(gt=0, le=1)]
Shares: TypeAlias = Annotated[list[Share], Field(min_length=1), AfterValidator(_ascending)]
Rates: TypeAlias = Annotated[list[Rate], Field(min_length=1), AfterValidator(_ascending)]
Metric: TypeAlias = Annotated[str, one_of(METRICS)]


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
    task: Literal["classification", "regression"] = "classification"
    """kind of the outcome"""
    positive: Text | bool | int | float | None = None
    """positive class; default the last in sorted order, and what means yes in several columns"""

    @model_validator(mode="after")
    def _one_or_several(self) -> OutcomeSection:
        """Refuse both of column and columns, or neither."""
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
    def key(self) -> str:
        """The key of the study file that names the outcome, for messages."""
        return "outcome.columns" if self.columns else "outcome.column"

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

    scale: Annotated[str, one_of(SCALES)] = "clipped"
    """way in which every model scales columns"""


class HarmoniseSection(Section):
    """Options of the alignment of sites (harmonisation)."""

    by: Text | None = None
    """column of sites or scanners to align; default samples.site"""
    keep: Names = Field(default_factory=list)
    """columns whose effect is preserved, never the outcome"""
    views: Names | None = None
    """views to harmonise; default all but genotypes and included covariates"""
    new_sites: Annotated[str, one_of(NEW_SITES)] = "pooled"
    """treatment of sites that did not occur in training"""
    estimates: Annotated[str, one_of(ESTIMATES)] = "shrunk"
    """estimates of the location and scale of a site"""


class FoldsSection(Section):
    """The folds of the nested cross-validation."""

    scheme: Annotated[str, one_of(SCHEMES)] | None = None
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

    metrics: Annotated[list[Metric], Field(min_length=1), AfterValidator(different)] | None = None
    """columns of the table; default all metrics of the task"""
    permutations: Annotated[int, Field(ge=0, le=_MOST_PERMUTATIONS)] = 0
    """number of runs with permuted labels, for a permutation test"""
    subgroups: Names = Field(default_factory=list)
    """columns of the samples table that divide the samples into subgroups"""
    thresholds: Shares | None = None
    """probabilities from which a sample tests positive; default 0.5 and the prevalence"""
    sensitivities: Rates | None = None
    """sensitivities for which a threshold is chosen, each on other folds"""
    specificities: Rates | None = None
    """specificities for which a threshold is chosen, each on other folds"""
    prevalence: Share | None = None
    """share of cases in the target population; default that of the study"""
    learning_curve: Shares | None = None
    """shares of the training samples to train on as well"""
    baseline_views: Annotated[Names, Field(min_length=1)] | None = None
    """views that one has anyway, to report what each other view adds to them"""

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
        """Refuse a grid with something else than lists of values."""
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


COVARIATES = "covariates"
"""Name of the view made of included covariates."""

LARGEST_SEED = 2**32 - 1
"""The largest seed of the RandomState of numpy, which scikit-learn uses."""

_LONGEST_PART = 600  # characters of a part of a message; paths and names are shorter
_ENDS = 250  # of these, at each end of a longer part

ADVICE = {
    "samples": "add [samples] with file and id",
    "outcome": "add [outcome] with column",
    "views": "add [views.NAME] with file for each view",
    "models": 'add for example models = ["BALDUR", "LSVM-l1"]',
}
"""What to do where a section is missing."""


def problem(file: str, key: str, what: str, fix: str = "") -> StudyError:
    """Return an error about a study file: the file, the key, what is wrong and what to do."""
    key, what, fix = map(_shortened, (key, what, fix))
    line = one_line(f"{file}: {key}: {what}" + (f"; {fix}" if fix else ""))
    return StudyError(line if line.endswith((".", "?")) else line + ".")


def _shortened(text: str) -> str:
    """Return a part of a message without its middle, where a file has a name of a megabyte."""
    return text if len(text) <= _LONGEST_PART else f"{text[:_ENDS]} ... {text[-_ENDS:]}"


def _no_outcome() -> OutcomeSection:
    # A file that describes new samples for a fitted model needs no outcome.
    return OutcomeSection.model_construct(column="", columns=[])


class StudyConfig(Section):
    """A study as its file describes it, with defaults filled in.

    Attributes
    ----------
    title, output, align : str
        Name of the study, folder of its results, and which samples are used.
    seed : int
        Seed of folds and models.
    samples, outcome, covariates, preparation, folds, report : Section
        The sections of the file. ``outcome.column`` is "" where the file has no outcome, or
        several, which are ``outcome.columns``.
    harmonise : HarmoniseSection or None
        With `by` filled in; None where the file does not align sites.
    views : dict of str to ViewSection
        The section of each view, typed by the kind of its file.
    models : list of ModelEntry
        The models to compare.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import load_study, simulate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> config = load_study(simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"]))
    >>> list(config.views)
    ['neuropsychological', 'sleep', 'socio-economic', 'demographical', 'genetic']
    >>> config.align, config.seed, [model.name for model in config.models]
    ('intersection', 0, ['Dummy'])
    >>> folder.cleanup()
    """

    title: str = ""
    """title of the study"""
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)] = 0
    """seed that makes the study repeatable"""
    output: Text = "results"
    """folder for the results, relative to this file"""
    align: Literal["intersection", "union"] = "intersection"
    """samples that are used: those in every view, or those in at least one"""
    samples: SamplesSection
    """section [samples] with file and id"""
    outcome: OutcomeSection = Field(default_factory=_no_outcome)
    """section [outcome] with column"""
    covariates: CovariatesSection = CovariatesSection()
    """section [covariates]"""
    preparation: PreparationSection = PreparationSection()
    """section [preparation]"""
    harmonise: HarmoniseSection | None = None
    """section [harmonise]"""
    views: Annotated[dict[str, ViewSection], Field(min_length=1)]
    """sections [views.NAME] with file, one for each view"""
    folds: FoldsSection = FoldsSection()
    """section [folds]"""
    report: ReportSection = ReportSection()
    """section [report]"""
    models: list[ModelEntry] = Field(default_factory=list)
    """models to compare: names, or sections [[models]]"""

    _file: Path = PrivateAttr(default=Path("study.toml"))
    _roots: tuple[Path, ...] = PrivateAttr(default=())

    # -- where it lies -----------------------------------------------------------------------------

    def at(self, file: Path, roots: tuple[Path, ...] = ()) -> StudyConfig:
        """Return a copy of the configuration with the path of its study file.

        Parameters
        ----------
        file : Path
            The study file.
        roots : tuple of Path
            Folders besides its own that its data files may lie in.

        Returns
        -------
        StudyConfig
        """
        config = self.model_copy()
        config._file, config._roots = file, roots
        return config

    @property
    def file(self) -> Path:
        """The study file; relative paths are relative to its folder."""
        return self._file

    @property
    def folder(self) -> Path:
        """The folder of the study file."""
        return self._file.parent

    @property
    def roots(self) -> tuple[Path, ...]:
        """Folders besides its own that its data files may lie in."""
        return self._roots

    @property
    def classification(self) -> bool:
        """Whether classes are predicted, and not numbers."""
        return self.outcome.task == "classification"

    def problem(self, key: str, what: str, fix: str = "") -> StudyError:
        """Return an error about this file: key, what is wrong, what to do."""
        return problem(self.file.name, key, what, fix)

    @contextmanager
    def errors_at(self, key: str, fix: str = "", *, without_extra: str = "") -> Iterator[None]:
        """Turn the errors of other functions into errors about a key of this file.

        Parameters
        ----------
        key : str
            Where in the file.
        fix : str
            What to do, where the error itself does not say it.
        without_extra : str
            What to do instead where a library is not installed.
        """
        try:
            yield
        except StudyError:
            raise
        except BaldurError as error:
            instead = without_extra if isinstance(error, MissingExtraError) else ""
            raise self.problem(key, str(error).rstrip("."), instead or fix) from error

    def as_toml(self) -> dict[str, Any]:
        """Return the configuration as TOML, with all defaults and absolute paths to data."""
        toml = self.model_dump(exclude_none=True)
        folder = self.folder.resolve()
        # Relative, so that the copy in the folder of results does not point to itself.
        output = (self.folder / self.output).resolve()
        toml["output"] = os.path.relpath(output, folder)
        toml["samples"]["file"] = str((folder / self.samples.file).resolve())
        toml["views"] = {
            name: _absolute(view.model_dump(exclude_unset=True), folder)
            for name, view in self.views.items()
        }
        toml["outcome"] = {key: value for key, value in toml["outcome"].items() if value != []}
        if self.outcome.columns:
            del toml["outcome"]["column"]
        elif not self.outcome.column:
            del toml["outcome"]
        return toml

    # -- what has to fit together ------------------------------------------------------------------

    @field_validator("views", mode="before")
    @classmethod
    def _some_views(cls, views: Any) -> Any:
        if not isinstance(views, dict) or not views:
            raise SectionError("has no view", ADVICE["views"])
        return views

    @field_validator("models", mode="before")
    @classmethod
    def _named(cls, models: Any) -> Any:
        if not isinstance(models, list) or not models:
            raise SectionError("must be a list with at least one model", ADVICE["models"])
        return [{"name": model} if isinstance(model, str) else model for model in models]

    @field_validator("models")
    @classmethod
    def _known(cls, models: list[ModelEntry], info: ValidationInfo) -> list[ModelEntry]:
        """Refuse a model twice, and one that does not exist for the task."""
        outcome = info.data.get("outcome")
        task = "classification" if outcome is None else outcome.task
        known = CLASSIFICATION_MODELS if task == "classification" else REGRESSION_MODELS
        names: set[str] = set()
        for i, model in enumerate(models, 1):
            if model.label in names:
                what = f"{model.label!r} occurs twice"
                raise SectionError(what, "give another name, or other views", f"[{i}].name")
            if model.estimator is None and model.name not in known:
                what = f"there is no model {model.name!r} for {task}"
                raise SectionError(what, nearest(model.name, known), f"[{i}].name")
            names.add(model.label)
        return models

    @field_validator("harmonise")
    @classmethod
    def _by_site(
        cls, section: HarmoniseSection | None, info: ValidationInfo
    ) -> HarmoniseSection | None:
        """Fill in the column of sites; refuse to align by, or to keep, the outcome."""
        samples, outcome = info.data.get("samples"), info.data.get("outcome")
        if section is None or samples is None or outcome is None:
            return section
        by = section.by or samples.site
        if by is None:
            fix = "name it here or as samples.site"
            raise SectionError("there is no column of sites", fix, "by")
        for name in outcome.names:
            if name in (by, *section.keep):
                what = f"{name!r} is the outcome, which is not known for new samples"
                raise SectionError(what, "name another column", "by" if name == by else "keep")
        if by in section.keep:
            raise SectionError(f"{by!r} is the column of sites itself", "remove it here", "keep")
        return section.model_copy(update={"by": by})

    @model_validator(mode="after")
    def _together(self) -> StudyConfig:
        """Refuse sections that do not agree with each other."""
        self._check_scheme()
        self._check_covariates()
        if self.outcome.columns and self.report.learning_curve:
            what = "a learning curve is drawn for one outcome"
            raise SectionError(
                what, "remove it, or name one outcome.column", "report.learning_curve"
            )
        legal = [m for m, d in METRICS.items() if d.classification == self.classification]
        chosen = [("folds.select_by", self.folds.select_by)]
        chosen += [("report.metrics", metric) for metric in self.report.metrics or ()]
        for key, metric in chosen:
            if metric is not None and metric not in legal:
                what = f"{metric!r} is not a metric of {self.outcome.task}"
                raise SectionError(what, nearest("", legal), key)
        return self

    def _check_scheme(self) -> None:
        """Refuse a scheme of folds without the column of samples that it needs."""
        scheme = self.folds.scheme
        wants = {"grouped": "group", "leave-one-site-out": "site", "fixed": "split"}
        column = wants.get(scheme or "")
        if column is not None and getattr(self.samples, column) is None:
            raise SectionError(
                f"{scheme!r} needs samples.{column}",
                f"name the column there, or choose another scheme out of {', '.join(SCHEMES)}",
                "folds.scheme",
            )
        if scheme == "stratified" and self.samples.group is not None:
            raise SectionError(
                "'stratified' would split the groups of samples.group between training and test",
                "write 'grouped', or remove samples.group",
                "folds.scheme",
            )

    def _check_covariates(self) -> None:
        """Refuse covariates that are the outcome, or used in two ways."""
        include, regress_out = self.covariates.include, self.covariates.regress_out
        if COVARIATES in self.views and include:
            what = "the name is taken by covariates.include"
            raise SectionError(what, "rename the view", "views.covariates")
        both = sorted(set(include) & set(regress_out))
        if both:
            what = f"{both[0]!r} is regressed out as well"
            raise SectionError(what, "name it in one of the two", "covariates.include")
        for name in self.outcome.names:
            if name in (*include, *regress_out):
                raise SectionError(f"{name!r} is the outcome", "remove it here", "covariates")


def _absolute(options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make the paths among the options of a view absolute; `file` may be a list of them."""
    for key in ("file", *OPTIONS_WITH_PATHS):
        if isinstance(options.get(key), str):
            options[key] = str(folder / options[key])
        elif key == "file":
            options[key] = [str(folder / path) for path in options[key]]
    return options


def study_schema() -> dict[str, Any]:
    """Return the JSON schema of study files, for editors."""
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema_of(StudyConfig)}
