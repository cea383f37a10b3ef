"""The sites of a study to be aligned, as its file names them, and those of new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluate.harmonise import Harmonise, site_columns
from baldur.exceptions import BaldurError
from baldur.prepare.harmonise import SITES
from baldur.study.covariates import CovariateCoding
from baldur.study.load import COVARIATES, Study
from baldur.study.schema import nearest
from baldur.views import MultiView
from baldur.views.rebuild import set_view

__all__ = ["add_sites", "read_sites"]


def read_sites(
    study: Study, data: MultiView, table: pd.DataFrame
) -> tuple[Harmonise, dict[str, Any]] | None:
    """Return the sites to align and what a fitted model must remember of them.

    Parameters
    ----------
    study : Study
    data : MultiView
        Views, included covariates among them; these belong to the people and are left alone.
    table : DataFrame of str
        The samples table, in the order of `data`.

    Returns
    -------
    Harmonise and dict, or None
        None where the study does not harmonise.
    """
    section = study.harmonise
    if section is None:
        return None
    usual = [v for v in data.view_names if v != COVARIATES and data.view(v).dtype != np.int8]
    wanted = usual if section["views"] is None else section["views"]
    for view in wanted:
        if view not in usual:
            what = "is no view" if view not in data.view_names else "has no location and scale"
            raise study.problem(
                "harmonise.views", f"{view!r} {what} that can be harmonised", nearest(view, usual)
            )
    if not wanted:
        raise study.problem(
            "harmonise", "there is no view to harmonise (genotypes are left alone)",
            "remove the section",
        )  # fmt: skip
    labels = _labels(table, section["by"])
    learned: dict[str, Any] = {
        "by": section["by"], "names": sorted({v for v in labels if v is not None}), "keep": None,
    }  # fmt: skip
    kept = None
    if section["keep"]:
        names = section["keep"]
        forced = [c for c in study.covariates["categorical"] if c in names]
        try:
            coding = CovariateCoding.learn(table[names], forced)
            kept = _numbers(coding, table, study)
        except BaldurError as error:
            raise study.problem(
                "harmonise.keep", str(error).rstrip("."), "correct the column or leave it out"
            ) from None
        # Beside the sites, whose columns add up to 1, one level of a category says nothing new.
        firsts = kept.columns.isin(_first_levels(coding, table))
        kept = kept.loc[:, ~firsts]
        learned["keep"] = {**coding.to_json(), "columns": kept.columns.tolist()}
    cells = None if kept is None else kept.to_numpy(dtype=float)
    return Harmonise(labels, cells, wanted, section["new_sites"], section["estimates"]), learned


def add_sites(
    learned: dict[str, Any], study: Study, data: MultiView, table: pd.DataFrame, notes: list[str]
) -> MultiView:
    """Return new rows with their sites, numbered as the model learned them.

    Parameters
    ----------
    learned : dict
        As `read_sites` returned it.
    study : Study
        That describes the new rows.
    data : MultiView
        The new rows.
    table : DataFrame of str
        Their samples table.
    notes : list of str
        Is told about sites the model has not seen.

    Returns
    -------
    MultiView
    """
    by, names = learned["by"], learned["names"]
    labels: list[str | None] = [None] * len(table)
    if by in table.columns:
        labels = _labels(table, by)
        new = sorted({v for v in labels if v is not None} - set(names))
        if new:
            notes.append(f"{len(new)} sites are new to the model ({', '.join(new[:5])})")
    else:
        notes.append(f"there is no column {by!r}; every sample is of a site new to the model")
    cells = None
    if learned["keep"] is not None:
        coding = CovariateCoding.from_json(learned["keep"])
        lacking = [c for c in coding.categories if c not in table.columns]
        if lacking:
            raise study.problem(
                "samples.file", f"has no column {lacking[0]!r}, a covariate of the model",
                "add it; single cells may be empty",
            )  # fmt: skip
        try:
            found = _numbers(coding, table, study)
        except BaldurError as error:
            raise study.problem("samples.file", str(error), "correct the cell") from None
        # A level that nobody has here is a column of zeros.
        wanted = learned["keep"]["columns"]
        cells = found.reindex(columns=wanted, fill_value=0.0).to_numpy(dtype=float)
    return set_view(data, SITES, site_columns(labels, names, cells))


def _labels(table: pd.DataFrame, column: str) -> list[str | None]:
    return [v or None for v in table[column]]


def _numbers(coding: CovariateCoding, table: pd.DataFrame, study: Study) -> pd.DataFrame:
    view = coding.view(table, SITES, study.samples["file"]).view(SITES)
    return pd.DataFrame(view.read(), columns=view.feature_names)


def _first_levels(coding: CovariateCoding, table: pd.DataFrame) -> list[str]:
    """Names of the columns of each category's first level."""
    view = coding.view(table, SITES, "").view(SITES)
    info = view.feature_info
    if info is None:
        return []
    levels = info["level"].notna().to_numpy()
    first = levels & ~info["column"].where(levels).duplicated().to_numpy()
    return view.feature_names[first].tolist()
