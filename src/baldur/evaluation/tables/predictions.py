"""The table of held-out predictions, one row per model, repeat and sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.held_out import PLATT
from baldur.evaluation.engine.job_results import OuterFit
from baldur.views import MultiView

__all__ = ["predictions_frame"]


def predictions_frame(
    fits: Mapping[str, Sequence[OuterFit]],
    data: MultiView,
    truth: np.ndarray,
    names: Sequence[str],
    groups: np.ndarray | None,
    sites: np.ndarray | None,
) -> pd.DataFrame:
    """Return the predictions of some models; for the columns see `NestedResult`.

    Parameters
    ----------
    fits : dict of str to list of OuterFit
        By the name of the model.
    data : MultiView
    truth : ndarray
        Class codes or numbers of all samples.
    names : list of str
        Names of the classes; empty in regression.
    groups, sites : ndarray or None
        Of all samples.

    Returns
    -------
    DataFrame
    """
    parts = []
    scaled = any(f.scaled for own in fits.values() for f in own)
    for model, own in fits.items():
        for f in own:
            columns: dict[str, Any] = {
                "model": model,
                "repeat": f.repeat + 1,
                "fold": f.fold + 1,
                "sample": data.sample_ids[f.test].astype(str),
            }
            for name, values in (("group", groups), ("site", sites)):
                if values is not None:
                    columns[name] = values[f.test]
            outcome = truth[f.test]
            if not names:
                columns.update(label=outcome, predicted=f.label)
                parts.append(pd.DataFrame(columns))
                continue
            columns["label"] = np.array(names)[outcome]
            columns["predicted"] = np.array(names)[f.label.astype(int)]
            for c, name in enumerate(names):
                columns[f"p_{name}"] = np.nan if f.proba is None else f.proba[:, c]
            if scaled:
                columns["probability"] = PLATT if f.scaled else "model"
            if f.margin is not None and f.margin.ndim == 1:
                columns["score"] = f.margin
            elif f.margin is not None:
                columns.update({f"score_{n}": f.margin[:, c] for c, n in enumerate(names)})
            parts.append(pd.DataFrame(columns))
    if not parts:
        fixed = ["model", "repeat", "fold", "sample", "label", "predicted"]
        return pd.DataFrame(columns=[*fixed, *(f"p_{name}" for name in names)])
    return pd.concat(parts, ignore_index=True)
