"""SiteHarmoniser: align location and scale of features between sites, learned on training rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.dataframe_state import Table
from baldur.core.parameters import Constraint, check, one_of
from baldur.core.state import (
    ByName,
    Choice,
    Integer,
    Names,
    Number,
    Numbers,
    Object,
    OrNone,
    Sizes,
    Text,
    need,
    stored,
)
from baldur.exceptions import InputError
from baldur.preparation.covariates import Covariates, level_texts, sample_column
from baldur.preparation.site_effects import (
    COLUMNS,
    HarmonisedSource,
    Pooled,
    SiteMoments,
    join,
    learn_block,
    new_site_block,
    shrink,
    some_columns,
    summarise,
)
from baldur.preparation.steps import Step, chosen_views, names_in
from baldur.views import MultiView, View
from baldur.views.sources import DEFAULT_BLOCK_BYTES, ArraySource, Source, column_blocks

NEW_SITES = ("pooled", "own")
ESTIMATES = ("shrunk", "plain")

_CONSTRAINTS = {
    "new_sites": one_of(*NEW_SITES),
    "estimates": one_of(*ESTIMATES),
    "clip": Constraint(lambda v: v is None or bool(v > 0), "a positive number or None"),
    "min_rows": Constraint(
        lambda v: isinstance(v, (int, np.integer)) and int(v) >= 2, "a whole number of at least 2"
    ),
}

# Results up to this size are stored as an array; wider views are harmonised as they are read.
_KEEP_BYTES = 1 << 28


@dataclass(eq=False, repr=False)
class SiteHarmoniser(Step):
    """Align location and scale of every feature between sites, as ComBat does.

    Level, spread and covariate effects are pooled over the training rows; each site's departures
    from them are estimated per feature and shrunk towards what the site's features have in common
    (`baldur.preparation.site_effects`). The outcome is never used.

    Parameters
    ----------
    by : str, default="site"
        Column of `MultiView.samples` with the site of each row. A row without one is treated as of
        an unseen site.
    views : list of str, optional
        Views to harmonise; default all but genotypes (int8). In any view, columns with at most two
        different values are not changed. Neither are cells at the smallest or largest value, if a
        tenth of the column share it (zero counts, limits of detection).
    keep : sequence of str
        Columns of `MultiView.samples`, numbers or categories, whose effect on the features is
        preserved. A missing cell takes its training mean. The outcome must not be among them,
        because it is not known for new samples.
    new_sites : {"pooled", "own"}, default="pooled"
        Rows of a site that training did not have are standardised with the pooled parameters,
        which leaves their values as they are; or location and scale of the new site are estimated
        from the predictors of all samples that are given to `transform` together.
    estimates : {"shrunk", "plain"}, default="shrunk"
        A site's location and scale are shrunk towards what its features have in common, which is
        closer to the truth per feature when sites are small, or plain means and variances are used,
        without `clip`. Shrinking leaves a trace of the site in each feature that a classifier over
        hundreds of them can add up; plain estimates leave none in the means of the training rows.
    clip : float or None, default=3.0
        While location and scale are learned, cells further from their site's median than this many
        robust standard deviations are pulled in to that distance, so that a few extreme people do
        not decide how all others of their site are moved. None: plain moments, as in ComBat.
    min_rows : int, default=5
        Fewest rows to learn a site from, and fewest known cells to learn it for a feature. Below,
        it is treated as unseen under "pooled".
    max_bytes : int, default=64 MB
        Largest block read from a wide view at once.

    Attributes
    ----------
    sites_ : list of str
        Sites learned.
    small_sites_ : list of str
        Sites of the training rows with fewer than `min_rows` rows.
    pooled_ : dict of str to Pooled
        Level, spread and covariate effects per view.
    shift_, factor_ : dict of str to ndarray of shape (n_sites, n_features)
        Subtracted from the departures from the pooled level, in input units, and multiplied.
    report_ : DataFrame
        Per view what changed on the training rows: features, of these harmonised, sites, the mean
        share of variance that lies between sites before and after (once the covariates of `keep`
        are taken out), the share expected by chance, the same for the feature with the largest
        share before, and the median ratio of the largest to the smallest spread of a site.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from baldur import MultiView
    >>> from baldur.preparation import SiteHarmoniser
    >>> rng = np.random.default_rng(0)
    >>> site = np.repeat(["oslo", "rome"], 30)
    >>> x = rng.normal(size=(60, 20)) + 2.0 * (site == "rome")[:, None]
    >>> mv = MultiView({"blood": x}, samples=pd.DataFrame({"site": site}))
    >>> step = SiteHarmoniser("site").fit(mv)
    >>> step.report_[["before", "after"]].round(1).to_numpy().tolist()
    [[0.5, 0.0]]
    >>> step.transform(mv).view("blood").shape
    (60, 20)
    """

    kind = "site harmoniser"
    changes_cells = True

    by: str = stored(Text(), default="site")
    views: Sequence[str] | None = stored(OrNone(Names()), default=None)
    _: KW_ONLY
    keep: Sequence[str] = stored(Names(), default=())
    new_sites: str = stored(Choice(NEW_SITES), default="pooled")
    estimates: str = stored(Choice(ESTIMATES), default="shrunk")
    clip: float | None = stored(OrNone(Number(above=0.0)), default=3.0)
    min_rows: int = stored(Integer(2), default=5)
    max_bytes: int = stored(Integer(1), default=DEFAULT_BLOCK_BYTES)
    sites_: list[str] = stored(Names(), init=False)
    small_sites_: list[str] = stored(Names(), init=False)
    covariates_: Covariates = stored(Object(Covariates), init=False)
    report_: pd.DataFrame = stored(Table(dict.fromkeys(COLUMNS)), init=False)
    view_names_: list[str] = stored(Names(), init=False)
    pooled_: dict[str, Pooled] = stored(ByName(Object(Pooled)), init=False)
    shift_: dict[str, np.ndarray] = stored(ByName(Numbers("S d", largest=np.inf)), init=False)
    factor_: dict[str, np.ndarray] = stored(
        ByName(Numbers("S d", largest=np.inf, above=0.0)), init=False
    )

    @property
    def sample_columns(self) -> list[str]:
        """The column of the sites, and those of the covariates to preserve."""
        return [self.by, *names_in(self.keep)]

    def _fit(self, X: MultiView) -> None:
        """Learn the sites with enough rows, and their effects on every view."""
        labels = self._labels(X)
        self.covariates_ = Covariates.fit(X, self.sample_columns[1:], "SiteHarmoniser(keep=...)")
        self.view_names_ = self._views_of(X)
        sites, counts = np.unique(labels[labels != ""], return_counts=True)
        self.sites_ = sites[counts >= self.min_rows].tolist()
        self.small_sites_ = sites[counts < self.min_rows].tolist()
        site = self._site_numbers(labels)
        rows = np.flatnonzero(site < len(self.sites_))
        if not len(rows):
            raise InputError(
                f"SiteHarmoniser: expected a site with at least {self.min_rows} training rows, "
                f"but the largest of {len(sites)} has {counts.max(initial=0)}. Join sites, or "
                "lower min_rows."
            )
        member = np.zeros((len(rows), len(self.sites_)))
        member[np.arange(len(rows)), site[rows]] = 1.0
        kept = self._kept_covariates(X)[rows]
        _warn_if_inseparable(member, kept)
        self.pooled_, self.shift_, self.factor_ = {}, {}, {}
        train = X[rows]
        report = [self._fit_view(train.view(name), member, kept) for name in self.view_names_]
        self.report_ = pd.DataFrame(report, columns=COLUMNS)

    def _fit_view(self, view: View, member: np.ndarray, kept: np.ndarray) -> tuple[Any, ...]:
        """Learn the sites' effects on a view, and return its row of the report.

        Shapes: member (n_samples, n_sites) of 0 and 1, kept (n_samples, q) of the covariates whose
        effect is preserved.
        """
        learned = [
            learn_block(cells, member, kept, self._clip, self.min_rows)
            for _, cells in self._blocks(view)
        ]
        pooled = join(p for p, _ in learned)
        moments = join(m for _, m in learned)
        # One site has nothing to be aligned with.
        left_alone = pooled.left_alone | (len(member.T) < 2)
        shift, factor, after = self._effects(moments, pooled.spread, left_alone)
        self.pooled_[view.name] = pooled
        self.shift_[view.name], self.factor_[view.name] = shift, factor
        return summarise(view, moments, after, ~left_alone)

    def _transform(self, X: MultiView) -> MultiView:
        """Return the views harmonised, held in memory where they are small."""
        labels = self._labels(X)
        kept = self._kept_covariates(X)
        site = self._site_numbers(labels)
        new_sites: list[np.ndarray] = []
        if self.new_sites == "own":
            seen = {*self.sites_, *self.small_sites_}
            others = [v for v in np.unique(labels[labels != ""]).tolist() if v not in seen]
            rows = [np.flatnonzero(labels == v) for v in others]
            new_sites = [at for at in rows if len(at) >= self.min_rows]
        harmonised = []
        for name in X.view_names:
            if name not in self.view_names_:
                continue
            view = X.view(name)
            source: Source = self._harmonised(X, name, kept, site, new_sites)
            if view.shape[0] * view.shape[1] * source.dtype.itemsize <= _KEEP_BYTES:
                source = ArraySource(source.read(None, slice(None)))
            harmonised.append(replace(view, source=source))
        return X.replace_views(harmonised)

    def _harmonised(
        self, X: MultiView, name: str, kept: np.ndarray, site: np.ndarray, new: list[np.ndarray]
    ) -> HarmonisedSource:
        """Return one view; `new` lists the samples of each site that is estimated from them.

        Shapes: kept (n_samples, q), site (n_samples,) with the number of each sample's site.
        """
        view, pooled = X.view(name), self.pooled_[name]
        if view.shape[1] != len(pooled.level):
            raise InputError(
                f"View {name!r}: expected {len(pooled.level)} features, as in fit, but got "
                f"{view.shape[1]}. Select the columns used in fit."
            )
        # One row for each site of training, for each new site, and for all others.
        shift, factor = [self.shift_[name]], [self.factor_[name]]
        site = site.copy()
        site[site == len(self.sites_)] = len(self.sites_) + len(new)
        for i, at in enumerate(new):
            site[at] = len(self.sites_) + i
            moments = join(
                new_site_block(cells, some_columns(pooled, cols), kept[at], self._clip)
                for cols, cells in self._blocks(X[at].view(name))
            )
            site_shift, site_factor, _ = self._effects(moments, pooled.spread, pooled.left_alone)
            shift.append(site_shift)
            factor.append(site_factor)
        shift.append(np.zeros((1, view.shape[1])))
        factor.append(np.ones((1, view.shape[1])))
        return HarmonisedSource(
            view, pooled, kept, site, np.concatenate(shift), np.concatenate(factor)
        )

    def _effects(
        self, moments: SiteMoments, spread: np.ndarray, left_alone: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, SiteMoments]:
        """Return shift and factor of every site, and the moments once they are applied.

        Shapes: spread and left_alone (n_features,); returns shift, factor (n_sites, n_features).
        """
        usable = (spread > 0) & ~left_alone
        location, squared_scale = shrink(moments, usable, self.estimates == "plain")
        location[:, left_alone] = 0.0
        squared_scale[:, left_alone] = 1.0
        after = SiteMoments(
            moments.count,
            np.where(moments.count > 0, (moments.mean - location) / np.sqrt(squared_scale), 0.0),
            moments.variance / squared_scale,
        )
        return location * np.where(spread > 0, spread, 1.0), 1.0 / np.sqrt(squared_scale), after

    @property
    def _clip(self) -> float | None:
        return None if self.estimates == "plain" else self.clip

    def _blocks(self, view: View) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield columns and their cells as float64, NaN where missing; refuse infinite cells."""
        for cols in column_blocks(*view.shape, 8, self.max_bytes):
            cells = view.read(cols)
            if np.isinf(cells).any():
                raise InputError(
                    f"View {view.name!r}: expected finite cells or NaN for missing ones, but it "
                    "contains infinities. Replace them by NaN."
                )
            yield cols, cells.astype(np.float64)

    # -- sites and covariates of the rows ----------------------------------------------------

    def check_samples(self, X: MultiView) -> None:
        """Refuse rows without a column of sites or with covariates that cannot be read."""
        self._labels(X)
        self._kept_covariates(X)

    def _labels(self, X: MultiView) -> np.ndarray:
        """Return the site of every row as text; empty where it is missing."""
        texts = level_texts(sample_column(X, self.by, "SiteHarmoniser"))
        return np.array([text or "" for text in texts], dtype=object).astype(str)

    def _kept_covariates(self, X: MultiView) -> np.ndarray:
        return self.covariates_.design(X, "SiteHarmoniser(keep=...)")[:, 1:]

    def _site_numbers(self, labels: np.ndarray) -> np.ndarray:
        """Return the index of each row's site in `sites_`, or their number for an unknown site."""
        order = {site: i for i, site in enumerate(self.sites_)}
        return np.array([order.get(v, len(order)) for v in labels.tolist()], dtype=np.intp)

    def _views_of(self, X: MultiView) -> list[str]:
        """Return the views to harmonise."""
        if self.views is None:
            return [v for v in X.view_names if X.view(v).dtype != np.int8]
        views = chosen_views(X, self.views, "SiteHarmoniser")
        genotypes = [v for v in views if X.view(v).dtype == np.int8]
        if genotypes:
            raise InputError(
                f"View {genotypes[0]!r}: holds genotypes (int8), which have no location and scale "
                "to align. Leave it out of the views to harmonise; ancestry is better regressed "
                "out with principal components as covariates."
            )
        return views

    def _check_options(self) -> None:
        for option, constraint in _CONSTRAINTS.items():
            check(f"SiteHarmoniser: {option}", getattr(self, option), constraint)

    @property
    def input_widths(self) -> dict[str, int]:
        """Number of columns that each harmonised view had in `fit`."""
        return {name: len(pooled.level) for name, pooled in self.pooled_.items()}

    def state_values(self) -> dict[str, Any]:
        """Return what is stored in another form: the covariates as a list."""
        return {"keep": self.sample_columns[1:]}

    def check_state(self, sizes: Sizes) -> None:
        """Refuse stored parts that are not of the same sites, covariates, views and features."""
        need(self.sites_, "expected at least one site", "sites_")
        same = self.covariates_.names == list(self.keep)
        need(same, "expected the covariates of keep", "covariates_")
        for name in ("pooled_", "shift_", "factor_"):
            same = list(getattr(self, name)) == self.view_names_
            need(same, "expected one entry for each view", name)
        for name, pooled in self.pooled_.items():
            q, d = len(self.covariates_.mean), len(pooled.level)
            need(pooled.coef.shape == (q, d), f"expected {q} rows", "pooled_", name, "coef")
            for effects in ("shift_", "factor_"):
                fits = getattr(self, effects)[name].shape == (len(self.sites_), d)
                need(fits, "expected one row per site", effects, name)


def _warn_if_inseparable(member: np.ndarray, kept: np.ndarray) -> None:
    """Warn if the columns of sites and of covariates to preserve are linearly dependent."""
    varying = kept[:, kept.std(axis=0) > 0]
    design = np.hstack([member, varying])
    if np.linalg.matrix_rank(design) < min(design.shape):
        warnings.warn(
            "A covariate of keep cannot be separated from the sites in these samples, because it "
            "hardly varies inside them; what it explains is divided between both.",
            UserWarning,
            stacklevel=3,
        )
