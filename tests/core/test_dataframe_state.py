"""DataFrames become plain values and come back as they were."""

import numpy as np
import pandas as pd
import pytest

from baldur.core.dataframe_state import Table, dataframe_state, read_dataframe
from baldur.core.state import Sizes
from baldur.exceptions import InputError

FRAMES = {
    "empty": pd.DataFrame(),
    "no rows": pd.DataFrame({"a": np.zeros(0), "b": pd.Series([], dtype=object)}),
    "no columns": pd.DataFrame(index=pd.RangeIndex(3)),
    "numbers": pd.DataFrame({"a": [1.5, np.nan], "b": [1, 2], "c": [True, False]}),
    "small numbers": pd.DataFrame({"a": np.array([1, 2], "int8"), "b": np.array([1, 2], "f4")}),
    "text": pd.DataFrame({"a": ["x", "Größe"], "b": ["", None], "c": ["y", np.nan]}),
    "mixed": pd.DataFrame({"a": ["x", 1, None, 2.5, True]}),
    "category": pd.DataFrame(
        {"a": pd.Categorical(["x", None, "y"], ["y", "x", "z"], ordered=True)}
    ),
    "category of numbers": pd.DataFrame({"a": pd.Categorical([3, 1, 3])}),
    "times": pd.DataFrame({"a": pd.to_datetime(["2024-02-29 00:00:00.5", None])}),
    "zone": pd.DataFrame({"a": pd.date_range("2024-03-31", periods=3, freq="h", tz="Europe/Oslo")}),
    "coarse times": pd.DataFrame({"a": np.array(["2024-01-01", "NaT"], "M8[s]")}),
    "durations": pd.DataFrame({"a": pd.to_timedelta([1, None], unit="h")}),
    "nullable": pd.DataFrame(
        {
            "a": pd.array([1, None], dtype="Int64"),
            "b": pd.array([True, None], dtype="boolean"),
            "c": pd.array(["x", None], dtype="string"),
            "d": pd.array([0.5, None], dtype="Float32"),
        }
    ),
    "index of names": pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index(["x", "y"], name="who")),
    "index of numbers": pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 3]),
    "names that are numbers": pd.DataFrame([[1.0, 2.0]], columns=[0, 7]),
    "a name twice": pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_table_comes_back_as_it_was(name):
    frame = FRAMES[name]
    again = read_dataframe(dataframe_state(frame))
    pd.testing.assert_frame_equal(
        again, frame, check_exact=True, check_column_type=False, check_index_type=bool(len(frame))
    )


def test_attributes_of_a_table_stay():
    frame = pd.DataFrame({"a": [1]})
    frame.attrs.update(shape=(2, 3), affine=np.eye(4), kind="voxels")
    again = read_dataframe(dataframe_state(frame))
    assert again.attrs["shape"] == [2, 3]
    assert np.array_equal(again.attrs["affine"], np.eye(4))


def test_columns_that_must_be_there():
    state = dataframe_state(pd.DataFrame({"a": [1]}))
    Table({"a": "whole numbers"})(state, Sizes())
    with pytest.raises(InputError, match="columns: expected the columns"):
        Table({"b": None})(state, Sizes())
    with pytest.raises(InputError, match="expected text in the column a"):
        Table({"a": "text"})(state, Sizes())


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [object()]}),
        pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)])),
        pd.DataFrame({"a": [1 + 2j]}),
        pd.DataFrame({"a": [b"x"]}),
    ],
)
def test_what_has_no_plain_form_is_refused(frame):
    with pytest.raises(InputError, match="cannot be saved"):
        dataframe_state(frame)


def column(kind, values, **more):
    return {
        "kind": "column",
        "type": kind,
        "values": values,
        "missing": None,
        "levels": None,
        **more,
    }


def table(**changes):
    return {**dataframe_state(pd.DataFrame({"a": [1.0]})), **changes}


LEVELS = column("number", np.array([1.0]))
FORGED = {
    "no table": [1],
    "other kind": table(kind="numbers"),
    "rows": table(rows=2),
    "many rows": {**dataframe_state(pd.DataFrame()), "rows": 2**60},
    "columns": table(columns=["a", "b"]),
    "a list as a name": table(columns=[["a"]]),
    "control characters": table(columns=["\x1b[31m"]),
    "cells with control characters": table(data=[column("mixed", ["\x1b[31m"])]),
    "too few cells": table(data=[column("mixed", [])]),
    "a list for numbers": table(data=[column("number", [1.0])]),
    "text for numbers": table(data=[column("number", np.array(["a"]))]),
    "codes": table(data=[column("category", np.array([1]), levels=LEVELS)]),
    "no levels": table(data=[column("category", np.array([0]))]),
    "levels of levels": table(data=[column("category", np.array([0]), levels=[LEVELS])]),
    "a category twice": table(
        data=[
            column("category", np.array([1]), levels=column("number", np.array([1.0, 1.0]))),
        ]
    ),
    "a zone": table(data=[column("datetime64[ns, ../../etc/passwd]", np.array([1]))]),
    "an unknown type": table(data=[column("object", np.array([1]))]),
    "nothing missing": table(data=[column("Int64", np.array([1]))]),
    "another width": table(
        data=[column("Int64", np.array([1], dtype="i4"), missing=np.array([False]))]
    ),
    "a field too many": table(more=1),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_tables_are_refused(name):
    with pytest.raises(InputError):
        read_dataframe(FORGED[name])
