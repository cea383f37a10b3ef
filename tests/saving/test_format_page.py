"""The page about the format lists every kind and every field, and no other."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from baldur.core.dataframe_state import dataframe_state
from baldur.core.state import write_state
from baldur.preparation import Preparation
from baldur.saving import SavedModel, folder_files, state_files
from baldur.saving.estimator_state import ESTIMATORS, attributes_of, settings_state
from preparation.test_state import STEPS
from preparation.test_state import cohort as steps_cohort
from saving.models import MODELS, fitted, manifest_of
from saving.test_round_trip import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "model-format.md").read_text()


def fields_on_the_page():
    """Fields by kind, or by the title of a section."""
    found = {}
    for part in re.split(r"^#{2,3} ", PAGE, flags=re.M)[1:]:
        title, _, text = part.partition("\n")
        rows = re.findall(r"^\| (`[^|]*) \|", text, flags=re.M)
        names = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
        for kind in re.findall(r"`([^`]+)`", title) or [title]:
            found[kind] = names
    return found


def collect(tree, found):
    if isinstance(tree, dict):
        if isinstance(tree.get("kind"), str):
            found.setdefault(tree["kind"], set()).update(set(tree) - {"kind"})
        for value in tree.values():
            collect(value, found)
    elif isinstance(tree, list):
        for value in tree:
            collect(value, found)


def fields_in_states():
    found = {}
    for model in map(fitted, MODELS):
        collect(write_state(SavedModel.alone(model)), found)
    whole = Preparation("rank", steps=STEPS, regress_out=["age"])
    collect(write_state(whole.fit(steps_cohort())), found)
    value = [(1,), {1: 2}, slice(1), np.random.RandomState(0), whole]
    collect(settings_state(Settings(value)), found)
    frame = pd.DataFrame(
        {
            "a": [1.0],
            "b": ["x"],
            "c": [None],
            "d": pd.Categorical(["x"]),
            "e": pd.to_datetime(["2024-01-01"]),
            "f": pd.to_timedelta([1]),
            "g": pd.array([1], dtype="Int64"),
        }
    )
    collect(dataframe_state(frame), found)
    return found


def test_every_kind_and_field_is_on_the_page():
    page, states = fields_on_the_page(), fields_in_states()
    for kind, names in states.items():
        assert page.get(kind) == names, kind
    for kind in ESTIMATORS:
        assert page[kind] == states["mean-field classifier"]


def test_every_kind_on_the_page_is_known():
    titles = {t for t in fields_on_the_page() if not t[0].isupper()}
    assert titles - set(ESTIMATORS) <= set(fields_in_states())


def test_every_fitted_attribute_is_on_the_page():
    known = set()
    for kind, (_, tasks) in ESTIMATORS.items():
        for task in tasks:
            known |= set(attributes_of(kind, task))
    assert fields_on_the_page()["Fitted attributes"] == known


def test_every_key_of_the_manifest_is_on_the_page(tmp_path):
    from baldur.saving import save

    manifest = manifest_of(save(fitted("mean field"), tmp_path / "model"))
    assert fields_on_the_page()["Manifest"] == set(manifest)


def test_limits_are_those_of_the_code():
    assert f"{folder_files.MANIFEST_BYTES >> 20} MB, {folder_files.STATE_BYTES >> 20} MB" in PAGE
    assert f"{state_files.NODES:,}, {state_files.DEPTH}" in PAGE
    assert f"{state_files.ARRAYS:,}, {state_files.DIMENSIONS}" in PAGE
