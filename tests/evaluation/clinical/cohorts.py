"""Simulated cohorts with a fixed model, whose true figures are known."""

import numpy as np
import pandas as pd
from scipy.special import expit


def cohort(n=300, seed=0, mean=-0.5, spread=1.2, slope=1.3, shift=0.3):
    """Log odds of the truth, events, and the predictions of a model that exaggerates."""
    rng = np.random.default_rng(seed)
    odds = mean + spread * rng.normal(size=n)
    events = rng.uniform(size=n) < expit(odds)
    return events, expit(slope * odds + shift)


def table(events, *models, **columns):
    """A predictions table of one or more models over the same people."""
    parts = []
    for i, p in enumerate(models):
        parts.append(
            pd.DataFrame(
                {"model": f"m{i}", "repeat": 1, "fold": 1,
                 "sample": [f"s{j}" for j in range(len(p))],
                 "label": np.where(events, "case", "control"), "p_control": 1 - p, "p_case": p,
                 **columns}
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True)
