"""Text tables read as a stream equal what pandas reads, and stay within their budget."""

import gzip
import io
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur.core.escape import csv_text
from baldur.core.limits import ReadLimits
from baldur.exceptions import InputError
from baldur.io import read_table
from baldur.io.delimited import read_delimited
from baldur.io.tables import read_text_table
from baldur.views.table_encoding import encode_frame

numbers = st.one_of(
    st.floats(allow_nan=False, width=64).map(repr),
    st.integers(-(2**53), 2**53).map(str),
    st.sampled_from(["NA", "", "-9", "-9.0", "1e5", " 7", ".5", "-0"]),
)
texts = st.text(st.sampled_from(list("ab1,\"'= .\n")), max_size=4)
columns = st.lists(st.one_of(st.tuples(*[numbers] * 4), st.tuples(*[texts] * 4)), max_size=4)


def written(columns):
    """A table of four rows as CSV, with ids in front."""
    heads = ["id", *(f"c{j}" for j in range(len(columns)))]
    frame = pd.DataFrame([[f"s{i}", *(c[i] for c in columns)] for i in range(4)], columns=heads)
    return frame.to_csv(index=False)


@settings(max_examples=60, deadline=None)
@given(columns)
def test_numbers_and_texts_are_those_of_pandas(columns):
    missing = ["NA", "", "-9"]
    text = written(columns)
    expected = pd.read_csv(
        io.StringIO(text), na_values=missing, keep_default_na=False, float_precision="round_trip",
        low_memory=False,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(text, newline="")
        found = read_delimited(path, ReadLimits(path), missing=missing, id_column=0)
    assert found.columns.tolist() == expected.columns.tolist()
    for name in expected.columns[1:]:
        mine, theirs = found[name], expected[name]
        if pd.api.types.is_numeric_dtype(theirs.dtype):
            np.testing.assert_array_equal(mine.to_numpy(float), theirs.to_numpy(float))
        else:
            known = [None if pd.isna(cell) else cell for cell in theirs]
            # Apostrophes before a formula are a mark of ours, which pandas does not know.
            if not any(str(cell).startswith("'") for cell in known):
                assert [None if pd.isna(cell) else cell for cell in mine] == known


@settings(max_examples=60, deadline=None)
@given(columns)
def test_as_text_every_cell_is_as_written(columns):
    heads = ["id", *(f"c{j}" for j in range(len(columns)))]
    rows = [[f"s{i}", *(c[i] for c in columns)] for i in range(4)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(csv_text(pd.DataFrame(rows, columns=heads)), newline="")
        found = read_delimited(path, ReadLimits(path), as_text=True)
    assert found.to_numpy().tolist() == rows


@pytest.mark.parametrize("packed", [False, True])
def test_a_wide_table_and_many_batches(tmp_path, packed):
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(300, 700)).round(3)
    frame = pd.DataFrame(cells, columns=[f"c{j}" for j in range(700)])
    frame.insert(0, "id", [f"s{i}" for i in range(300)])
    # A column turns out to be text after the first batch.
    frame["site"] = ["1"] * 250 + ["Oslo"] * 50
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes((gzip.compress if packed else bytes)(frame.to_csv(index=False).encode()))
    X = read_table(path, categorical=["site"])
    np.testing.assert_array_equal(X.view("t").read()[:, :700], cells)
    assert X.feature_names["t"][-2:].tolist() == ["site=1", "site=Oslo"]
    assert X.view("t").read()[:, -1].sum() == 50


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "latin-1", "utf-32"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes("id,größe\né,1\nb,2\n".encode(encoding))
    X = read_table(path, encoding=encoding)
    assert X.feature_names["t"].tolist() == ["größe"]
    assert X.sample_ids.tolist() == ["é", "b"]


def test_the_budget_counts_cells_and_texts(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a,b\n" + "s,1,x\n" * 10_000)
    with pytest.raises(InputError, match="above the limit max_bytes"):
        read_text_table(path, max_bytes=1_000_000)
    with pytest.raises(InputError, match="above the limit max_bytes"):
        read_table(path, max_bytes=500_000, id_column=None)
    assert read_text_table(path, max_bytes=10_000_000).shape == (10_000, 3)


words = st.sampled_from(["a", " a", "b", "True", "false", "2020-01-31", "1", "1.5", None, "NA"])


@settings(max_examples=100, deadline=None)
@given(st.lists(words, min_size=1, max_size=12))
def test_columns_of_text_by_value_equal_those_cell_by_cell(cells):
    """Texts looked at once each give what looking at every cell gives."""
    column = pd.Series(cells, dtype=object)
    outcome = []
    for whole in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not whole:
                inferred = "baldur.views.table_encoding.types.infer_dtype"
                patch.setattr(inferred, lambda *a, **k: "mixed")
            try:
                view = encode_frame(column.to_frame("c"), "v", origin="t", max_levels=3)
                outcome.append((view.read().tolist().__repr__(), view.feature_names.tolist()))
            except InputError as error:
                outcome.append(str(error))
    assert outcome[0] == outcome[1]


def test_cells_are_written_as_a_reader_would(tmp_path):
    frame = pd.DataFrame(
        {
            "id": ["007", "008", None],
            "whole": [1.0, np.nan, 3.0],
            "half": [0.5, 1e-7, 2.0],
            "flag": [True, False, True],
            "day": pd.to_datetime(["2020-01-31", "2020-02-01 10:30", None], format="ISO8601"),
        }
    )
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    assert read_text_table(tmp_path / "a.parquet").to_numpy().tolist() == [
        ["007", "1", "0.5", "True", "2020-01-31"],
        ["008", "", "1e-07", "False", "2020-02-01 10:30:00"],
        ["", "3", "2", "True", ""],
    ]
    with pytest.raises(InputError, match="one character"):
        read_text_table(tmp_path / "a.parquet", decimal="")
