"""MultiView: named views over the same samples, sliced by row without copying."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.views.sources import ArraySource, SubsetSource, as_source
from baldur.views.table_encoding import encode_view, is_numeric
from baldur.views.validate import (
    check_columns,
    check_feature_info,
    check_feature_names,
    check_present,
    check_row_counts,
    check_sample_ids,
    check_samples,
    check_view_names,
    check_width,
    repeated,
)
from baldur.views.view import View, as_rows, split_columns

_FRAME_LIMIT_CELLS = 50_000_000

ViewsLike: TypeAlias = Mapping[str, Any] | Sequence[tuple[str, Any]]


class _PerView(Mapping[str, Any]):
    """Read-only dictionary of one attribute of every view, looked up on access."""

    def __init__(self, views: dict[str, View], attribute: str) -> None:
        self._views = views
        self._attribute = attribute

    def __getitem__(self, name: str) -> Any:
        return getattr(replace(self._views[name]), self._attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __repr__(self) -> str:
        return f"<{self._attribute} of {list(self)}>"


class MultiView:
    """Named views over the same samples.

    Parameters
    ----------
    views : dict of str to matrix, or sequence of (name, matrix) pairs
        Each matrix has one row per sample: a NumPy array (float, integer or bool), a memory
        map, a SciPy sparse matrix, a DataFrame, or any object with `shape`, `dtype` and
        `read(rows, cols)` (a lazily read matrix). Nothing is copied. NaN in floats and -127 in int8
        mean a missing cell. Truth values in a DataFrame become 0 and 1, and text and categories
        one column of 0 and 1 per level, named ``column=level``, as `baldur.io.read_table` does;
        estimators keep the levels of their training rows, see `CategoryEncoder`.
    sample_ids : array-like of str or int, optional
        Unique name of each sample. Default: the index shared by the DataFrames among the
        views, otherwise 0, 1, 2, ...
    feature_names : dict of str to array-like of str, optional
        Names per view. Default: a DataFrame's columns, otherwise "<view>_<j>".
    feature_info : dict of str to DataFrame, optional
        One row per feature and view (chromosome, voxel coordinates, ...).
    present : dict of str to array-like of bool, optional
        False where the whole view of a sample is missing. A row whose cells are all missing (float
        or int8 views) counts as absent without being declared.
    samples : DataFrame, optional
        One row per sample with what is known about it beside the views: covariates to regress
        out, the site of measurement. Columns may be of any type. They are not features; a
        `Preparation` names those that it uses.

    Notes
    -----
    `mv[rows]` accepts integer arrays, boolean masks and slices and returns a `MultiView` that
    shares the matrices and holds the row numbers; one integer gives a container of one row.
    Cross-validation therefore copies nothing wide, and joblib can share the matrices between
    processes as memory maps.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur import MultiView
    >>> mv = MultiView({"sleep": np.eye(4), "snps": np.zeros((4, 9), dtype=np.int8)})
    >>> mv
    MultiView: 4 samples, 13 features in 2 views
      sleep  4  float64
      snps   9  int8
    >>> mv[[2, 0]].sample_ids
    array([2, 0])
    """

    ndim = 2
    # Iterating would go sample by sample, which no wide view survives.
    __iter__ = None

    def __init__(
        self,
        views: ViewsLike,
        *,
        sample_ids: Any = None,
        feature_names: Mapping[str, Any] | None = None,
        feature_info: Mapping[str, pd.DataFrame] | None = None,
        present: Mapping[str, Any] | None = None,
        samples: pd.DataFrame | None = None,
    ) -> None:
        pairs = check_view_names(views)
        names = [name for name, _ in pairs]
        unchecked = [_unchecked_view(name, matrix) for name, matrix in pairs]
        for view in unchecked:
            check_width(view.name, view.shape)
        n = check_row_counts({view.name: view.shape[0] for view in unchecked})
        features = _checked_keys(feature_names, names, "feature_names")
        info = _checked_keys(feature_info, names, "feature_info")
        declared = _checked_keys(present, names, "present")
        self._views = {
            view.name: View(
                view.name,
                view.source,
                check_feature_names(view.name, features.get(view.name, view.names), view.shape[1]),
                check_feature_info(
                    view.name, info.get(view.name, view.feature_info), view.shape[1]
                ),
                check_present(view.name, declared.get(view.name, view.declared_present), n),
            )
            for view in unchecked
        }
        frames = {name: matrix for name, matrix in pairs if isinstance(matrix, pd.DataFrame)}
        self.sample_ids = check_sample_ids(sample_ids, n, frames)
        self._samples = check_samples(samples, self.sample_ids)

    # -- what it holds ---------------------------------------------------------------------

    @property
    def view_names(self) -> list[str]:
        """Names of the views, in order."""
        return list(self._views)

    @property
    def n_features(self) -> dict[str, int]:
        """Number of features per view."""
        return {name: view.shape[1] for name, view in self._views.items()}

    @property
    def feature_names(self) -> Mapping[str, np.ndarray]:
        """Names of the features per view; default names are made on access."""
        return _PerView(self._views, "feature_names")

    @property
    def feature_groups(self) -> dict[str, np.ndarray]:
        """For views with categories, a number per feature that columns of a category share."""
        groups = {name: view.feature_groups for name, view in self._views.items()}
        return {name: numbers for name, numbers in groups.items() if numbers is not None}

    @property
    def feature_info(self) -> dict[str, pd.DataFrame]:
        """Tables about the features, for the views that have one."""
        tables = {name: view.feature_info for name, view in self._views.items()}
        return {name: info for name, info in tables.items() if info is not None}

    @property
    def present(self) -> Mapping[str, np.ndarray]:
        """For each view, False for samples with a missing view (looked up on access)."""
        return _PerView(self._views, "present")

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, and features over all views."""
        return len(self.sample_ids), sum(self.n_features.values())

    @property
    def dtype(self) -> np.dtype:
        """Smallest dtype that holds every view."""
        return np.result_type(*(view.dtype for view in self._views.values()))

    @property
    def samples(self) -> pd.DataFrame | None:
        """What is known about the samples beside the views, one row per sample, or None."""
        return self._samples

    def __len__(self) -> int:
        return len(self.sample_ids)

    def view(self, name: str) -> View:
        """Return one view by its name."""
        if name not in self._views:
            raise InputError(f"There is no view {name!r}; the views are {self.view_names}.")
        # A copy, since it remembers which samples are present, and cells may be changed in place.
        return replace(self._views[name])

    def replace_views(self, views: Iterable[View]) -> MultiView:
        """Return the same samples with other views by the names of some, or with more views."""
        return self._with(_views=self._views | {view.name: view for view in views})

    def with_samples(self, samples: pd.DataFrame | None) -> MultiView:
        """Return the same views with another table about the samples.

        Parameters
        ----------
        samples : DataFrame or None
            One row per sample, in the order of the samples.

        Returns
        -------
        MultiView
        """
        return self._with(_samples=check_samples(samples, self.sample_ids))

    # -- cutting ---------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> MultiView:
        rows = as_rows(key, len(self))
        views = {name: view.take_rows(rows) for name, view in self._views.items()}
        samples = None if self._samples is None else self._samples.iloc[rows].reset_index(drop=True)
        return self._with(_views=views, sample_ids=self.sample_ids[rows], _samples=samples)

    def select(self, names: str | Sequence[str]) -> MultiView:
        """Return a container with only the named views, in the order given."""
        wanted = [names] if isinstance(names, str) else list(names)
        unknown = [name for name in wanted if name not in self._views]
        if unknown or not wanted or len(set(wanted)) != len(wanted):
            raise InputError(
                f"select expects one or more different names out of {self.view_names}, "
                f"but got {wanted}."
            )
        return self._with(_views={name: self._views[name] for name in wanted})

    def _with(self, **attributes: Any) -> MultiView:
        """Return the same container with some other attributes."""
        changed = copy.copy(self)
        vars(changed).update(attributes)
        return changed

    # -- in and out ------------------------------------------------------------------------

    @classmethod
    def from_views(
        cls, views: Sequence[View], sample_ids: Any = None, samples: pd.DataFrame | None = None
    ) -> MultiView:
        """Build a container of views of the same samples.

        Parameters
        ----------
        views : sequence of View
            Views with different names and the same number of samples.
        sample_ids : array of str or int, optional
            Unique name of each sample; 0, 1, 2, ... by default.
        samples : DataFrame, optional
            One row per sample, in the order of the samples.

        Returns
        -------
        MultiView
        """
        pairs = [(view.name, view) for view in views]
        return cls(pairs, sample_ids=sample_ids, samples=samples)

    @classmethod
    def from_dict(cls, views: ViewsLike, **keywords: Any) -> MultiView:
        """Build a container from a dictionary of matrices.

        Parameters
        ----------
        views : dict of str to matrix
            As in the constructor; nested lists are accepted too.
        **keywords
            `sample_ids`, `feature_names`, `feature_info`, `present`, `samples`.

        Returns
        -------
        MultiView
        """
        return cls(views, **keywords)

    @classmethod
    def from_columns(
        cls, X: Any, views: Mapping[str, Any] | None = None, **keywords: Any
    ) -> MultiView:
        """Cut the columns of one matrix into views.

        Parameters
        ----------
        X : array, memory map, sparse matrix or DataFrame of shape (n_samples, n_columns)
            A DataFrame with two column levels, as `to_frame` makes, needs no `views`.
        views : dict of str to columns, optional
            Columns as names, a name with ``*`` for any text ("gene_*"), a compiled regular
            expression that is searched in names, a function of the DataFrame such as
            `sklearn.compose.make_column_selector`, indices, a slice or a boolean mask. Columns of a
            DataFrame that no view names become `samples`, others are left out. None: one view
            called "X".
        **keywords
            `sample_ids`, `feature_names`, `feature_info`, `present`, `samples`.

        Returns
        -------
        MultiView
        """
        matrices, rest = split_columns(X, views)
        if rest is not None and keywords.get("samples") is None:
            keywords["samples"] = rest
        if isinstance(X, pd.DataFrame) and "sample_ids" not in keywords:
            counts = isinstance(X.index, pd.RangeIndex) and X.index.equals(pd.RangeIndex(len(X)))
            keywords["sample_ids"] = None if counts else X.index
        return cls(matrices, **keywords)

    @classmethod
    def from_mudata(cls, mdata: Any) -> MultiView:
        """Build a container from a MuData object: one view per modality.

        Samples are the observations of the whole object; where a modality lacks one, the view
        is absent for it. `var` tables become `feature_info`.
        """
        if not (hasattr(mdata, "mod") and hasattr(mdata, "obs_names")):
            raise InputError(
                "from_mudata expects a MuData object (with .mod and .obs_names), but got "
                f"{type(mdata).__name__}. For a dictionary of matrices use MultiView.from_dict."
            )
        ids = pd.Index(mdata.obs_names)
        views = []
        for name, part in mdata.mod.items():
            obs = pd.Index(part.obs_names)
            if part.X is None:
                raise InputError(
                    f"View {name!r}: expected a matrix in .X, but the modality has none. "
                    "Fill .X or drop the modality before calling from_mudata."
                )
            if twice := repeated(obs):
                raise InputError(
                    f"View {name!r}: expected unique observation names, but {twice[:5]} occur "
                    "more than once. Call .obs_names_make_unique() or drop the repeats."
                )
            names = np.asarray(part.var_names, dtype=str)
            info = part.var if part.var.shape[1] else None
            view = View(name, as_source(part.X, name), names, info)
            views.append(view.take_rows(obs.get_indexer(ids)))
        return cls.from_views(views, ids)

    def to_frame(self) -> pd.DataFrame:
        """Return all cells as one DataFrame with columns (view, feature) and NaN for missing.

        `MultiView.from_columns(mv.to_frame())` gives the views back.
        """
        n, d = self.shape
        if n * d > _FRAME_LIMIT_CELLS:
            raise InputError(
                f"to_frame would make a table of {n:,} x {d:,} cells, above the limit of "
                f"{_FRAME_LIMIT_CELLS:,}. Use select([...]) to keep the narrow views, or "
                "view(name).iter_blocks() to read a wide one piece by piece."
            )
        parts = {
            name: pd.DataFrame(view.read(), index=self.sample_ids, columns=view.feature_names)
            for name, view in self._views.items()
        }
        return pd.concat(parts, axis=1, names=["view", "feature"])

    def __array__(self, *args: Any, **keywords: Any) -> np.ndarray:
        raise InputError(
            "A MultiView does not turn into one array by itself, since a wide view may not fit. "
            "Use mv.view(name).read() for one view or mv.to_frame() for all, or an estimator "
            "that accepts a MultiView."
        )

    def __repr__(self) -> str:
        n, d = self.shape
        n_views = len(self._views)
        lines = [
            f"MultiView: {n:,} sample{'s' * (n != 1)}, {d:,} feature{'s' * (d != 1)} in "
            f"{n_views} view{'s' * (n_views != 1)}"
        ]
        name_width = max(len(name) for name in self._views)
        digits = max(len(f"{k:,}") for k in self.n_features.values())
        for name, view in self._views.items():
            source = view.source.base if isinstance(view.source, SubsetSource) else view.source
            kind = type(source).__name__.removesuffix("Source").lower()
            mapped = "" if source.in_memory else ", memory-mapped"
            storage = mapped if kind == "array" else f", {kind}"
            declared = view.declared_present
            if declared is not None and not declared.all():
                storage += f", absent for {int((~declared).sum()):,}"
            lines.append(
                f"  {name:<{name_width}}  {view.shape[1]:>{digits},}  {view.dtype}{storage}"
            )
        if self._samples is not None and self._samples.shape[1]:
            lines.append(f"  about the samples: {', '.join(map(str, self._samples.columns[:8]))}")
        return "\n".join(lines)


def _unchecked_view(name: str, matrix: Any) -> View:
    """Return a matrix or DataFrame as a view, whose names and width are not checked yet."""
    if isinstance(matrix, View):
        return matrix
    if not isinstance(matrix, pd.DataFrame):
        return View(name, as_source(matrix, name))
    check_columns(matrix, f"View {name!r}")
    if is_numeric(matrix):
        return View(name, as_source(matrix, name), np.asarray(matrix.columns))
    return encode_view(matrix, name)


def _checked_keys(given: Mapping[str, Any] | None, names: list[str], what: str) -> dict[str, Any]:
    """Return an argument by view as a dictionary, empty for None; refuse keys that are no views."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(
            f"{what} must be a dictionary from view name to value, but got "
            f"{type(given).__name__}. The views are {names}."
        )
    unknown = [key for key in given if key not in names]
    if unknown:
        raise InputError(f"{what} names views that do not exist: {unknown}. The views are {names}.")
    return dict(given)


def select_columns(mv: MultiView, columns: Mapping[str, np.ndarray]) -> MultiView:
    """Return `mv` with only the numbered columns of some views; other views stay whole."""
    return mv.replace_views(
        mv.view(name).take_columns(index)
        for name, index in columns.items()
        if not np.array_equal(index, np.arange(mv.n_features[name]))
    )


def set_view(
    mv: MultiView,
    name: str,
    cells: np.ndarray,
    names: np.ndarray | None = None,
    info: pd.DataFrame | None = None,
) -> MultiView:
    """Return `mv` with one more view, or with other columns for one it has.

    Shapes: cells (n_samples, n_features).
    """
    present = mv.view(name).declared_present if name in mv.view_names else None
    return mv.replace_views([View(name, ArraySource(cells), names, info, present)])
