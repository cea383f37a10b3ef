"""read_table: what is written is what is read, and text becomes columns with names."""

import gzip
import itertools
import pickle
import re
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from baldur.exceptions import InputError, MissingExtraError
from baldur.io import read_table
from baldur.preparation import Preparation

FORMATS = (".csv", ".tsv", ".csv.gz", ".parquet", ".xlsx", ".npz", ".npy")

names = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")),
    min_size=1,
    max_size=8,
).filter(
    lambda s: s == s.strip() and not s[0].isspace() and not re.match(r"'+\s*[=+\-@＝＋－＠]", s)
)
"""A name such as "'=x" is what text files have instead of the formula "=x", and is read as that."""
ids = st.text("abcXYZ0123456789_-", min_size=1, max_size=6)


@st.composite
def frames(draw):
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    cells = draw(
        hnp.arrays(
            np.float64,
            (n, d),
            elements=st.one_of(
                st.floats(allow_nan=True, allow_infinity=False, allow_subnormal=False),
                st.integers(-(2**53), 2**53).map(float),
            ),
        )
    )
    columns = draw(st.lists(names, min_size=d, max_size=d, unique_by=str.strip))
    index = draw(st.lists(ids, min_size=n, max_size=n, unique=True))
    return pd.DataFrame(cells, index=index, columns=columns)


@contextmanager
def without_first_look():
    """Parquet files that these tests write themselves need no separate process, of 25 examples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("baldur.io.parquet.first_look", lambda *_: None)
        yield


def write(frame: pd.DataFrame, path: Path) -> Path:
    name = path.name
    if name.endswith((".csv", ".csv.gz")):
        frame.to_csv(path, index_label="sample id")
    elif name.endswith(".tsv"):
        frame.to_csv(path, sep="\t", index_label="sample id")
    elif name.endswith(".parquet"):
        frame.to_parquet(path)
    elif name.endswith(".xlsx"):
        with pd.ExcelWriter(path, engine="openpyxl") as book:
            frame.to_excel(book, index_label="sample id")
            # A text such as "=x" is text here, and no formula.
            for cell in itertools.chain.from_iterable(book.book.active.iter_rows()):
                cell.data_type = "s" if cell.data_type == "f" else cell.data_type
    elif name.endswith(".npz"):
        np.savez(
            path,
            X=frame.to_numpy(),
            features=frame.columns.to_numpy(str),
            samples=frame.index.to_numpy(str),
        )
    else:
        np.save(path, frame.to_numpy())
    return path


@pytest.mark.parametrize("ending", FORMATS)
@settings(max_examples=25, deadline=None)
@given(frame=frames())
def test_what_is_written_is_read(ending, frame):
    if ending == ".xlsx":
        # The format writes 15 significant digits at most, and no formulas as names.
        frame = frame.clip(-1e9, 1e9).round(3) + 0.0
        frame.columns = [f"c{j}" for j in range(frame.shape[1])]
    with tempfile.TemporaryDirectory() as folder, without_first_look():
        X = read_table(write(frame, Path(folder) / f"t{ending}"), missing=["nan"])
        assert X.view_names == ["t"]
        np.testing.assert_array_equal(X.view("t").read(), frame.to_numpy())
        if ending != ".npy":
            assert X.sample_ids.tolist() == frame.index.tolist()
            assert X.feature_names["t"].tolist() == frame.columns.tolist()


@settings(max_examples=40, deadline=None)
@given(
    levels=st.lists(st.sampled_from(["a", "b", "x y", "", "ü"]), min_size=2, max_size=8),
    ending=st.sampled_from([".csv", ".parquet", ".xlsx"]),
)
def test_text_becomes_one_column_per_level(levels, ending):
    frame = pd.DataFrame(
        {"n": np.arange(len(levels)), "g": [one or None for one in levels]},
        index=[f"s{i}" for i in range(len(levels))],
    )
    with tempfile.TemporaryDirectory() as folder, without_first_look():
        X = read_table(write(frame, Path(folder) / f"t{ending}"))
    known = sorted({one for one in levels if one})
    expected = [f"g={one}" for one in known] or ["g"]
    assert X.feature_names["t"].tolist() == ["n", *expected]
    cells = X.view("t").read()[:, 1:]
    for row, one in zip(cells, levels, strict=True):
        if one:
            assert row.tolist() == [float(other == one) for other in known]
        else:
            assert np.isnan(row).all()
    if known:
        info = X.feature_info["t"]
        assert info["level"].tolist() == [None, *known]
        assert info["column"].tolist() == ["n", *["g"] * len(known)]


def table(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_ids_keep_leading_zeros_wherever_their_column_is(tmp_path):
    path = table(tmp_path, "age,id\n1,007\n2,08\n")
    X = read_table(path, id_column="id")
    assert X.sample_ids.tolist() == ["007", "08"]
    assert X.feature_names["t"].tolist() == ["age"]
    assert read_table(path, id_column=1).sample_ids.tolist() == ["007", "08"]


def test_without_ids_all_columns_are_data(tmp_path):
    X = read_table(table(tmp_path, "a,b\n1,2\n1,4\n"), id_column=None)
    np.testing.assert_array_equal(X.view("t").read(), [[1, 2], [1, 4]])
    assert X.sample_ids.tolist() == [0, 1]


def test_ids_from_a_list_or_another_table(tmp_path):
    np.save(tmp_path / "m.npy", np.eye(2))
    other = table(tmp_path, "sample,label\n01,x\n02,y\n", "labels.csv")
    assert read_table(tmp_path / "m.npy", sample_ids=other).sample_ids.tolist() == ["01", "02"]
    given_ids = read_table(table(tmp_path, "a,b\n1,2\n1,4\n"), sample_ids=["p", "q"])
    assert given_ids.sample_ids.tolist() == ["p", "q"]
    assert given_ids.n_features == {"t": 2}
    with pytest.raises(InputError, match="expected 2 sample ids"):
        read_table(tmp_path / "m.npy", sample_ids=["one"])


def test_row_names_of_r(tmp_path):
    X = read_table(table(tmp_path, '"a"\t"b"\n"s1"\t1\t2\n"s2"\t3\t4\n', "t.tsv"))
    assert X.sample_ids.tolist() == ["s1", "s2"]
    np.testing.assert_array_equal(X.view("t").read(), [[1, 2], [3, 4]])


def test_booleans_with_gaps(tmp_path):
    X = read_table(table(tmp_path, "id,b,c\n1,True,TRUE\n2,False,NA\n3,NA,FALSE\n"))
    np.testing.assert_array_equal(X.view("t").read(), [[1, 1], [0, np.nan], [np.nan, 0]])


def test_markers_of_missing_cells(tmp_path):
    path = table(tmp_path, "id,a\n1,-9\n2,3\n3,unknown\n")
    with pytest.raises(InputError, match=r"numbers except for 1 of 3 cells \('unknown'\)"):
        read_table(path)
    X = read_table(path, missing=["-9", "unknown"])
    np.testing.assert_array_equal(X.view("t").read().ravel(), [np.nan, 3, np.nan])
    frame = pd.DataFrame({"a": [-9, 3], "g": ["-9", "u"]}, index=["x", "y"])
    for name in ("p.parquet", "p.xlsx"):
        X = read_table(write(frame, tmp_path / name), missing=["-9"])
        np.testing.assert_array_equal(X.view("p").read(), [[np.nan, np.nan], [3, 1]])


def test_numbers_as_categories_when_asked(tmp_path):
    X = read_table(table(tmp_path, "id,site\na,1\nb,2\nc,NA\n"), categorical=["site"])
    assert X.feature_names["t"].tolist() == ["site=1", "site=2"]


def test_european_tables(tmp_path):
    path = table(tmp_path, "id;a\n1;0,5\n2;1,25\n")
    with pytest.raises(InputError, match="separator=';'"):
        read_table(path)
    X = read_table(path, separator=";", decimal=",")
    assert X.view("t").read().ravel().tolist() == [0.5, 1.25]


def test_choosing_columns(tmp_path):
    path = table(tmp_path, "id,a,b,c\n1,1,2,3\n")
    assert read_table(path, columns=["c", "a"]).feature_names["t"].tolist() == ["c", "a"]
    assert read_table(path, exclude=["b"]).feature_names["t"].tolist() == ["a", "c"]
    with pytest.raises(InputError, match=r"columns names 'z'"):
        read_table(path, columns=["z"])
    np.savez(tmp_path / "n.npz", X=np.arange(6.0).reshape(2, 3), features=list("abc"))
    X = read_table(tmp_path / "n.npz", columns=["c", "a"])
    np.testing.assert_array_equal(X.view("n").read(), [[2, 0], [5, 3]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,a\n1,2020-01-31\n2,2021-05-01\n", "dates"),
        ("id,a\n1,31/01/2020\n2,01/05/2021\n", "dates"),
        ("id,a\n1,2\n1,3\n", "sample ids must be unique, but '1' occurs"),
        ("id,a\n,2\n1,3\n", "every row needs a sample id"),
        ("id,a,a\n1,2,3\n", "'a' occurs more than once"),
        ("id,,b\n1,2,3\n", "column 2 has none"),
        ("id,a,b\n1,2,3\n2,4\n", "line 3 has 2 fields and the header has 3"),
        ("id,a\n", "only a header"),
        ("\n\n", "nothing"),
        ("id\n1\n", "no column is left"),
        ('id,a\n1,"2\n', "cannot be read as a text table"),
    ],
)
def test_text_tables_that_are_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_table(table(tmp_path, text))


def test_dates_in_typed_formats(tmp_path):
    frame = pd.DataFrame({"seen": pd.to_datetime(["2020-01-31", "2021-01-01"])}, index=["a", "b"])
    for name in ("d.parquet", "d.xlsx"):
        with pytest.raises(InputError, match=r"column 'seen' holds dates.*exclude=\['seen'\]"):
            read_table(write(frame, tmp_path / name))


def test_free_text_is_refused(tmp_path):
    rows = "".join(f"{i},note number {i}\n" for i in range(60))
    with pytest.raises(InputError, match=r"60 different values.*exclude=\['note'\]"):
        read_table(table(tmp_path, f"id,note\n{rows}"))


def test_encoding_is_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("id,é\n1,2\n".encode("latin-1"))
    with pytest.raises(InputError, match="encoding='latin-1'"):
        read_table(path)
    assert read_table(path, encoding="latin-1").feature_names["t"].tolist() == ["é"]


@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize("ending", [".npy", ".npz", ".parquet"])
def test_large_matrices_stay_on_disk(tmp_path, constants, ending, fortran):
    constants(LAZY_BYTES=100)
    cells = np.random.default_rng(0).normal(size=(7, 30))
    cells[3, 4] = np.nan
    frame = pd.DataFrame(cells, index=[f"s{i}" for i in range(7)]).rename(columns="c.{}".format)
    path = tmp_path / f"w{ending}"
    if ending == ".parquet":
        frame.to_parquet(path)
    elif ending == ".npz":
        np.savez(path, other=np.arange(5), X=np.asfortranarray(cells) if fortran else cells)
    else:
        np.save(path, np.asfortranarray(cells) if fortran else cells)
    X = pickle.loads(pickle.dumps(read_table(path)))
    view = X.view("w")
    assert not view.source.in_memory
    np.testing.assert_array_equal(view.read(), cells)
    np.testing.assert_array_equal(X[[5, 2]].view("w").read([7, 3]), cells[[5, 2]][:, [7, 3]])
    if ending == ".parquet":
        assert X.sample_ids.tolist() == frame.index.tolist()
        assert X.feature_names["w"].tolist() == frame.columns.tolist()
    prepared = Preparation().fit_transform(X)["w"]
    held = Preparation().fit_transform(read_table_in_memory(cells))["w"]
    np.testing.assert_allclose(prepared.weighted_gram(), held.weighted_gram(), rtol=1e-10)


def read_table_in_memory(cells):
    from baldur import MultiView

    return MultiView({"w": cells})


def test_wide_text_tables_are_read_in_seconds(tmp_path):
    cells = np.random.default_rng(0).normal(size=(20, 20_000)).round(3)
    frame = pd.DataFrame(cells, index=[f"s{i}" for i in range(20)]).rename(columns="g{}".format)
    X = read_table(write(frame, tmp_path / "t.csv"))
    np.testing.assert_array_equal(X.view("t").read(), cells)


def test_gzip_is_read_only_up_to_the_limit(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb") as stream:
        stream.write(b"id,a\n" + b"1,2\n" * 2_000_000)
    with pytest.raises(InputError, match="above the limit max_bytes"):
        read_table(path, max_bytes=1 << 20)


@pytest.mark.parametrize(("ending", "library"), [(".parquet", "pyarrow"), (".xlsx", "openpyxl")])
def test_the_extra_is_named(tmp_path, monkeypatch, ending, library):
    path = write(pd.DataFrame({"a": [1.0]}, index=["x"]), tmp_path / f"t{ending}")
    for module in (library, "pyarrow.parquet", "pyarrow.types"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'baldur-multiview\[tables\]'"):
        read_table(path)


@pytest.mark.parametrize("store_schema", [False, True])
def test_bytes_in_parquet_are_text(tmp_path, store_schema):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), pa.array([b"a", b"b"]))
    table = pa.table({"id": ["x", "y", "z"], "t": cells})
    parquet.write_table(table, tmp_path / "f.parquet", store_schema=store_schema)
    made = read_table(tmp_path / "f.parquet")
    view = made.view(made.view_names[0])
    assert view.feature_names.tolist() == ["t=a", "t=b"]
    assert view.read()[:, 1].tolist() == [0.0, 1.0, 0.0]


def test_texts_of_parquet_come_in_order_over_groups_of_rows(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {"a": [1.0, 2.0, 3.0], "t": ["u", None, "v"], "id": ["x", "y", "z"], "b": [4, 5, 6]}
    )
    parquet.write_table(table, tmp_path / "f.parquet", row_group_size=1)
    view = read_table(tmp_path / "f.parquet", id_column="id").view("f")
    assert view.feature_names.tolist() == ["a", "t=u", "t=v", "b"]
    expected = [[1, 1, 0, 4], [2, np.nan, np.nan, 5], [3, 0, 1, 6]]
    np.testing.assert_array_equal(view.read(), expected)


def test_the_first_look_at_a_wide_parquet_file_comes_to_its_end(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = {f"c{j}": ["x", "y"] for j in range(2000)}
    path = tmp_path / "f.parquet"
    parquet.write_table(pa.table({"id": ["p", "q"], **texts}), path)
    limit = 1 << 27
    # Large enough to be looked at with this budget.
    assert path.stat().st_size << 15 > limit
    view = read_table(path, max_bytes=limit).view("f")
    np.testing.assert_array_equal(view.read(), np.tile(np.eye(2), 2000))


def _same(one, other):
    assert one.sample_ids.tolist() == other.sample_ids.tolist()
    (view,) = one.view_names
    assert one.feature_names[view].tolist() == other.feature_names[view].tolist()
    np.testing.assert_array_equal(one.view(view).read(), other.view(view).read())


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".xlsx"])
@settings(max_examples=15, deadline=None)
@given(frame=frames())
def test_a_transposed_table_is_read_as_the_table(ending, frame):
    turned = frame.T.set_axis(list(frame.index), axis=1)
    with tempfile.TemporaryDirectory() as folder, without_first_look():
        whole = write(frame, Path(folder) / f"t{ending}")
        file = write(turned, Path(folder) / f"u{ending}")
        _same(read_table(file, name="t", transpose=True), read_table(whole, name="t"))


MIXED = "id;age;sex;stage\n007;61,5;f;2\n008;NA;m;3a\n009;70;;2\n"
TURNED = "name;007;008;009\nage;61,5;NA;70\nsex;f;m;\nstage;2;3a;2\n"


def test_a_transposed_table_of_numbers_and_categories(tmp_path):
    european = {"separator": ";", "decimal": ",", "name": "t", "categorical": ["stage"]}
    plain = table(tmp_path, MIXED, "plain.csv")
    turned = table(tmp_path, TURNED, "turned.csv")
    _same(read_table(turned, transpose=True, **european), read_table(plain, **european))
    for option in ({"columns": ["age", "stage"]}, {"exclude": ["sex"]}, {"missing": ["2"]}):
        _same(
            read_table(turned, transpose=True, **european, **option),
            read_table(plain, **european, **option),
        )


def test_columns_that_describe_features_are_left_out_of_a_transposed_table(tmp_path):
    text = "gene,what,a,b\ng1,first,1,2\ng2,second,3,4\n"
    file = table(tmp_path, text)
    with pytest.raises(InputError, match=r"'what' holds text where.*exclude = \[\"what\"\]"):
        read_table(file, transpose=True)
    found = read_table(file, transpose=True, exclude=["what", "g1"])
    assert found.sample_ids.tolist() == ["a", "b"]
    assert found.view("t").read().tolist() == [[3.0], [4.0]]


def test_transposing_needs_a_header_of_ids_and_names_of_features(tmp_path):
    file = table(tmp_path, "gene,a,b\ng1,1,2\n")
    with pytest.raises(InputError, match="not for sample_ids"):
        read_table(file, transpose=True, sample_ids=["a", "b"])
    with pytest.raises(InputError, match="id_column must be the column of feature names"):
        read_table(file, transpose=True, id_column=None)
    np.save(tmp_path / "x.npy", np.eye(2))
    with pytest.raises(InputError, match="not for arrays"):
        read_table(tmp_path / "x.npy", transpose=True)
    with pytest.raises(InputError, match="g1"):
        read_table(table(tmp_path, "gene,a,b\ng1,1,2\ng1,3,4\n", "u.csv"), transpose=True)
