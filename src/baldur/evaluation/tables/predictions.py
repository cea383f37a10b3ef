"""predictions_frame: the held-out predictions of every model as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.held_out import PLATT
from baldur.evaluation.engine.job_results import OuterFit
from baldur.views import MultiView


def predictions_frame(
    fits: Mapping[str, Sequence[OuterFit]],
    data: MultiView,
    truth: np.ndarray,
    classes: Sequence[Any],
    groups: np.ndarray | None = None,
    sites: np.ndarray | None = None,
) -> pd.DataFrame:
    """Return one row for each model, repeat and sample.

    Shapes: truth (n_samples,), groups, sites (n_samples,).
    """
    parts = []
    names = [str(c) for c in classes]
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
            if not names:
                columns.update(label=truth[f.test], predicted=f.label)
                parts.append(pd.DataFrame(columns))
                continue
            columns["label"] = np.array(names)[truth[f.test]]
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
