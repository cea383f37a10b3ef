"""The prepared real cohorts in the folder ``BALDUR_SHARED_DATA``."""

import json

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from baldur.views import MultiView


def load_shared(folder, *, labels_only=False):
    """Return data, target, sample names, groups and split of one cohort; None where it has none."""
    labels = pd.read_csv(folder / "labels.csv", dtype=str, keep_default_na=False)
    found = Bunch(data=None, target=labels["label"].to_numpy(str))
    found.sample_ids = labels["sample"].to_numpy(str)
    found.groups = labels["group"].to_numpy(str) if "group" in labels else None
    found.split = labels["split"].to_numpy(str) if "split" in labels else None
    if not labels_only:
        views, names = {}, {}
        for view, entry in json.loads((folder / "meta.json").read_text())["views"].items():
            with np.load(folder / entry["file"]) as archive:
                views[view], names[view] = archive["X"], archive["features"].astype(str).tolist()
        found.data = MultiView(views, sample_ids=found.sample_ids, feature_names=names)
    return found
