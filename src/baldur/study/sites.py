"""The sites of a study to be aligned, as its file names them, and the samples of new rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from baldur.preparation import Preparation, SiteHarmoniser
from baldur.study.config import COVARIATES, StudyConfig
from baldur.io.schema import nearest
from baldur.views import MultiView

__all__ = ["new_samples", "site_step"]


def site_step(config: StudyConfig, data: MultiView) -> SiteHarmoniser | None:
    """Return the step that aligns sites, or None where the study does not align any.

    Parameters
    ----------
    config : StudyConfig
    data : MultiView
        Views, included covariates among them; these belong to the people and are left alone.

    Returns
    -------
    SiteHarmoniser or None
        Unfitted.
    """
    section = config.harmonise
    if section is None:
        return None
    usual = [v for v in data.view_names if v != COVARIATES and data.view(v).dtype != np.int8]
    wanted = usual if section["views"] is None else section["views"]
    for view in wanted:
        if view not in usual:
            what = "is no view" if view not in data.view_names else "has no location and scale"
            raise config.problem(
                "harmonise.views", f"{view!r} {what} that can be harmonised", nearest(view, usual)
            )
    if not wanted:
        raise config.problem(
            "harmonise", "there is no view to harmonise (genotypes are left alone)",
            "remove the section",
        )  # fmt: skip
    return SiteHarmoniser(
        section["by"],
        list(wanted),
        keep=list(section["keep"]),
        new_sites=section["new_sites"],
        estimates=section["estimates"],
    )


def new_samples(
    preparation: Preparation, config: StudyConfig, table: pd.DataFrame, notes: list[str]
) -> pd.DataFrame | None:
    """Return what a fitted preparation reads about new samples.

    Parameters
    ----------
    preparation : Preparation
        Fitted.
    config : StudyConfig
        That describes the new rows.
    table : DataFrame of str
        Their samples table.
    notes : list of str
        Gets a line about sites that the model has not seen.

    Returns
    -------
    DataFrame or None
        None where it reads nothing.
    """
    if not preparation.sample_columns:
        return None
    sites = {s.by: s for s in preparation.steps_ if isinstance(s, SiteHarmoniser)}
    made = {}
    for name in preparation.sample_columns:
        if name in table.columns:
            made[name] = table[name].astype(object).where(table[name] != "", None)
        elif name in sites:
            made[name] = pd.Series([None] * len(table), index=table.index, dtype=object)
            notes.append(f"there is no column {name!r}; every sample is of a site new to the model")
        else:
            raise config.problem(
                "samples.file", f"has no column {name!r}, a covariate of the model",
                "add it; single cells may be empty",
            )  # fmt: skip
    for name, step in sites.items():
        known = {*step.sites_, *step.small_sites_}
        new = sorted({str(v) for v in made[name] if v is not None} - known)
        if new:
            notes.append(f"{len(new)} sites are new to the model ({', '.join(new[:5])})")
    return pd.DataFrame(made).reset_index(drop=True)
