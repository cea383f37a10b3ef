"""find_problems: every check, in one pass over the cells of each view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from baldur.study.checks.cells import (
    NEIGHBOURS,
    SENTINELS,
    beyond_chance,
    comma_decimals,
    dated,
    dates,
    missing_option,
    sentinel_cells,
    sentinels,
)
from baldur.study.checks.copies import (
    copies,
    copying_classes,
    copying_numbers,
    missing_copies,
)
from baldur.study.checks.finding import Finding
from baldur.study.checks.labels import lost_ids, variants
from baldur.study.checks.repeats import RowHashes, repeats
from baldur.study.checks.sites import constant_columns, constant_in_site, site_predicts
from baldur.study.config import COVARIATES, StudyConfig
from baldur.study.data import StudyData
from baldur.study.outcomes import labels_by_outcome
from baldur.views import View
from baldur.views.validate import counted

# Dates are large numbers: smaller columns need no closer look.
_LEAST_DATE = 20_000.0


def find_problems(
    config: StudyConfig, found: StudyData, folds: Sequence[Any], scheme: str
) -> list[Finding]:
    """Run all checks on the data of a study, and return the findings."""
    made = lost_ids(found.data.sample_ids)
    made += _about_samples(config, found, scheme)
    equal = {}
    for name in found.data.view_names:
        view = found.data.view(name)
        key = "covariates.include" if name == COVARIATES else f"views.{name}"
        made += _categories(key, view)
        lines, equal[key] = _look_at(key, view, config, found)
        made += lines
    for name in config.covariates.regress_out:
        if found.data.samples is not None:
            made += _about_covariate(found.data.samples[name], config.samples.missing)
    return made + repeats(equal, found.data.sample_ids, folds)


def _about_samples(config: StudyConfig, found: StudyData, scheme: str) -> list[Finding]:
    made = []
    every = labels_by_outcome(config, found.y)
    if isinstance(found.y, np.ndarray):
        made += _about_labels(config, found.y)
    if found.sites is not None and config.samples.site is not None:
        made += variants("samples.site", config.samples.site, np.unique(found.sites).tolist())
        for outcome, y in every.items():
            made += site_predicts(found.sites, y, outcome, config.classification, scheme)
    return made


def _about_labels(config: StudyConfig, y: np.ndarray) -> list[Finding]:
    """Check the values of a single outcome; those of several are yes and no."""
    outcome = config.outcome.column
    if not config.classification:
        return _numbers("outcome.column", y[:, None], [outcome], config.samples.missing)
    labels = np.unique(y).tolist()
    codes = [label for label in labels if label in {f"{s:.0f}" for s in SENTINELS}]
    return variants("outcome.column", outcome, labels) + [
        Finding(
            "outcome.column",
            f"{label!r} is a class of {counted(int(np.sum(y == label)), 'sample')}",
            f"write {missing_option('outcome', codes, config.samples.missing)} if it stands "
            "for a missing value",
        )
        for label in codes
    ]


def _about_covariate(column: pd.Series, given: Sequence[str] | None) -> list[Finding]:
    key, name = "covariates.regress_out", str(column.name)
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return _numbers(key, column.to_numpy(dtype=float)[:, None], [name], given)
    levels = sorted(str(v) for v in column.cat.categories)
    return variants(key, name, levels) + comma_decimals(key, name, levels)


def _categories(key: str, view: View) -> list[Finding]:
    info = view.feature_info
    if info is None or "level" not in info or "column" not in info:
        return []
    made = []
    coded = info[info["level"].notna()]
    for column, levels in coded.groupby("column", sort=False)["level"]:
        made += variants(key, str(column), levels) + comma_decimals(
            key, str(column), levels.tolist()
        )
    return made


def _numbers(
    key: str, cells: np.ndarray, names: Sequence[str], given: Sequence[str] | None
) -> list[Finding]:
    """Check a few columns of numbers for sentinels and dates."""
    held = {n: s for j, n in enumerate(names) if (s := sentinel_cells(cells[:, j]))}
    late = [n for j, n in enumerate(names) if dated(cells[:, j], n)]
    return sentinels(key, held, given) + dates(key, late)


def _look_at(
    key: str, view: View, config: StudyConfig, found: StudyData
) -> tuple[list[Finding], list[tuple[int, int]]]:
    """Read a view once, block by block, and run the checks of columns and rows."""
    width = view.shape[1]
    hashes = RowHashes(view.present)
    held: dict[str, dict[float, int]] = {}
    late: list[str] = []
    every = labels_by_outcome(config, found.y)
    same: dict[str, list[str]] = {outcome: [] for outcome in every}
    gone: dict[str, list[str]] = {outcome: [] for outcome in every}
    fixed: dict[str, str] = {}
    if config.classification:
        every = {name: np.unique(y, return_inverse=True)[1] for name, y in every.items()}
    # Codes of genotypes are neither dates nor sentinels.
    numbers = view.dtype != np.int8
    for cols, block in view.iter_blocks():
        hashes.add(block)
        if numbers:
            for j in np.flatnonzero(np.isin(block, SENTINELS).any(axis=0)).tolist():
                if hit := sentinel_cells(block[:, j]):
                    held[_name(view, cols, j)] = hit
            with np.errstate(invalid="ignore"):
                large = (block >= _LEAST_DATE).any(axis=0)
            for j in np.flatnonzero(large).tolist():
                name = _name(view, cols, j)
                late += [name] if dated(block[:, j].astype(np.float64), name) else []
        for outcome, y in every.items():
            copying = (
                copying_classes(block, y, width)
                if config.classification
                else copying_numbers(block, y)
            )
            same[outcome] += [_name(view, cols, j) for j in np.flatnonzero(copying).tolist()]
            if config.classification and numbers:
                told = _missing_tells(block[view.present], y[view.present], width)
                gone[outcome] += [_name(view, cols, j) for j in told]
        if found.sites is not None:
            for j, site in constant_columns(block, found.sites, width):
                fixed.setdefault(_name(view, cols, j), site)
    section = config.samples if view.name == COVARIATES else config.views.get(view.name)
    if held:
        held = beyond_chance(held, _beside_sentinels(view))
    made = sentinels(key, held, getattr(section, "missing", None)) + dates(key, late)
    for outcome in every:
        made += copies(key, outcome, same[outcome]) + missing_copies(key, outcome, gone[outcome])
    made += constant_in_site(key, fixed)
    return made, hashes.pairs()


def _missing_tells(block: np.ndarray, codes: np.ndarray, width: int) -> list[int]:
    """Return the columns whose missing cells tell the class, among samples that have the view."""
    missing = np.isnan(block)
    some = np.flatnonzero(missing.any(axis=0))
    if not len(some) or len(np.unique(codes)) < 2:
        return []
    told = copying_classes(missing[:, some].astype(float), codes, width)
    return some[told].tolist()


def _beside_sentinels(view: View) -> dict[float, int]:
    """Return in how many columns each number beside a sentinel stands apart as sentinels do."""
    near: Counter[float] = Counter()
    for _, block in view.iter_blocks():
        for j in np.flatnonzero(np.isin(block, NEIGHBOURS).any(axis=0)).tolist():
            near.update(sentinel_cells(block[:, j], NEIGHBOURS).keys())
    return near


def _name(view: View, cols: slice, j: int) -> str:
    return str(view.names_of(np.array([cols.start + j]))[0])
