"""The page about the format lists every kind and every field, and no other."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from baldur.core.dataframe_state import dataframe_state
from baldur.core.state import write_state
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.saving import SavedModel, folder_files, state_files
from baldur.saving.estimator_state import (
    ESTIMATORS,
    kind_of,
    read_settings,
    settings_state,
)
from preparation.test_state import STEPS
from preparation.test_state import cohort as steps_cohort
from saving.models import MODELS, fitted, manifest_of


class Settings(BaseEstimator):
    def __init__(self, a=1, b=None):
        self.a, self.b = a, b


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
    known = set().union(*(attributes for *_, attributes in ESTIMATORS.values()))
    assert fields_on_the_page()["Fitted attributes"] == known


def test_every_key_of_the_manifest_is_on_the_page(tmp_path):
    from baldur.saving import save

    manifest = manifest_of(save(fitted("mean field"), tmp_path / "model"))
    assert fields_on_the_page()["Manifest"] == set(manifest)


def test_limits_are_those_of_the_code():
    assert f"{folder_files.MANIFEST_BYTES >> 20} MB, {folder_files.STATE_BYTES >> 20} MB" in PAGE
    assert f"{state_files.NODES:,}, {state_files.DEPTH}" in PAGE
    assert f"{state_files.ARRAYS:,}, {state_files.DIMENSIONS}" in PAGE


def test_every_attribute_of_an_estimator_is_in_the_table():
    """A fitted attribute that somebody adds must be stored as well, or be left out on purpose."""
    elsewhere = {"preparation_", "view_names_", "feature_names_", "_predictor", "_task"}
    elsewhere |= {"_default_fit"}  # a folder has one model, not its submodels
    for name in MODELS:
        model = fitted(name)
        *_, attributes = ESTIMATORS[kind_of(model)]
        assert set(vars(model)) - set(model.get_params()) - elsewhere <= set(attributes)


@pytest.mark.parametrize(
    "value",
    [
        None, 3, 0.5, float("inf"), "auto", True, [1, "a"], (1, (2, 3)), {"a": [1]}, {0: 1.0, 1: 2},
        {"kind": "tuple"}, {(1, 2): None}, slice(1, None, 2), [slice(0, 3)], {"x": slice("a", "c")},
    ],
)  # fmt: skip
def test_settings_come_back(value):
    again = read_settings(settings_state(Settings(value)), Settings)
    assert again == {"a": value, "b": None}
    assert type(again["a"]) is type(value)


def test_settings_that_came_later_have_their_defaults_and_unknown_ones_are_refused():
    assert read_settings({"a": 2}, Settings) == {"a": 2}
    for wrong in (
        {"c": 1},
        {"a": {"kind": "os.system"}},
        {"a": {}},
        {"a": {"kind": "mapping", "entries": [[[1], 2]]}},
        {"a": {"kind": "mapping", "entries": [[1, 2], [1, 3]]}},
        {"a": {"kind": "slice", "ends": [0.5, None, None]}},
        {"a": {"kind": "random state", "key": np.zeros(3, int)}},
        [],
    ):
        with pytest.raises(InputError):
            read_settings(wrong, Settings)
