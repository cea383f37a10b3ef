"""Write the model folders of the present schema that every later version must load.

``python tests/saving/make_archives.py`` replaces ``tests/saving/archives``. Do this only before a
release: afterwards the folders stay as they are, and a new schema adds folders of its own.
"""

import json
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

import baldur
from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.datasets import make_multiview
from baldur.paper import PaperClassifier

ARCHIVES = Path(__file__).parent / "archives"
LEFT_OUT = (".lock", "card.R", "score.py", "score.R", "score.js")
"""Programs are not for the tests to collect."""


def rows_as_json(rows):
    """Return rows of a container as values that JSON has; missing cells are null."""
    views = {}
    for name in rows.view_names:
        view = rows.view(name)
        cells = view.read()
        info = view.feature_info
        views[name] = {
            "dtype": str(cells.dtype),
            "cells": [[None if np.isnan(x) else float(x) for x in row] for row in cells],
            "names": None if view.names is None else [str(n) for n in view.names],
            "info": None if info is None else json.loads(info.to_json(orient="split")),
            "attrs": {} if info is None else dict(info.attrs),
        }
    samples = rows.samples
    table = None if samples is None else json.loads(samples.to_json(orient="split"))
    return {"views": views, "samples": table}


def rows_from_json(stored):
    """Return the container that `rows_as_json` was given."""
    cells, names, infos = {}, {}, {}
    for name, view in stored["views"].items():
        cells[name] = np.array(
            [[np.nan if x is None else x for x in row] for row in view["cells"]]
        ).astype(view["dtype"])
        if view["names"] is not None:
            names[name] = view["names"]
        if view["info"] is not None:
            table = view["info"]
            infos[name] = pd.DataFrame(table["data"], columns=table["columns"])
            infos[name].attrs.update(view["attrs"])
    extra = {}
    if stored["samples"] is not None:
        table = stored["samples"]
        extra["samples"] = pd.DataFrame(table["data"], columns=table["columns"])
    return MultiView(cells, feature_names=names, feature_info=infos, **extra)


def answers(model, rows):
    """Return predictions as nested lists."""
    if hasattr(model, "predict_proba"):
        return {"predict_proba": model.predict_proba(rows).tolist()}
    return {"predict": np.asarray(model.predict(rows), dtype=float).tolist()}


def problem(n, sizes, informative, n_classes, seed=0):
    """Rows with a missing cell, a missing view and a cell beyond the clip."""
    made = make_multiview(
        n, sizes, informative=informative, n_classes=n_classes, noise=0.5, random_state=seed
    )
    cells = {v: made.data.view(v).read().astype(float) for v in made.data.view_names}
    first, *_, last = cells
    cells[first][[0, n - 2], 0] = np.nan
    cells[last][[1, n - 1]] = np.nan
    cells[first][n - 3] *= 30
    return MultiView(cells), np.asarray(made.target)


def models():
    """Yield the name, the fitted model and new rows of every archive."""
    few = {"a": 3, "b": 4}
    X, y = problem(66, few, {"a": 2, "b": 1}, 2)
    yield "binary", BaldurClassifier().fit(X[:60], y[:60]), X[60:]
    yield "rank", BaldurClassifier(preparation="rank").fit(X[:60], y[:60]), X[60:]
    mean_field = PaperClassifier(bound="jaakkola", sparsity=0.5, max_iter=30)
    yield "mean_field", mean_field.fit(X[:60], y[:60]), X[60:]
    X, y = problem(66, few, {"a": 2, "b": 1}, 3)
    yield "three_classes", BaldurClassifier().fit(X[:60], y[:60]), X[60:]
    X, y = problem(66, few, {"a": 2, "b": 1}, None)
    yield "regression", BaldurRegressor().fit(X[:60], y[:60]), X[60:]
    X, y = problem(36, {"a": 3, "b": 60}, {"a": 2, "b": 30}, 2)
    wide = BaldurClassifier(members=("pooled", "per_view"), margin=0.0).fit(X[:30], y[:30])
    assert wide.predictor.holds_training_rows
    yield "training_rows", wide, X[30:]
    from saving.models import prepared

    model, rows = prepared()
    yield "prepared", model, rows[:6]


def write():
    """Replace the archive."""
    shutil.rmtree(ARCHIVES, ignore_errors=True)
    ARCHIVES.mkdir()
    expected = {}
    for name, model, rows in models():
        folder = baldur.save(model, ARCHIVES / name)
        schema = json.loads((folder / "manifest.json").read_text())["schema"]
        folder = folder.rename(ARCHIVES / f"schema{schema}_{name}")
        for file in LEFT_OUT:
            (folder / file).unlink(missing_ok=True)
        stored = rows_as_json(rows)
        # What is stored are predictions for the rows as they come back.
        expected[folder.name] = {"rows": stored, **answers(model, rows_from_json(stored))}
    (ARCHIVES / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write()
