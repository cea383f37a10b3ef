"""Parquet: texts and cells that unpack to gigabytes."""

import numpy as np

from robustness.hostile.base import Case, content


def table(**options):
    """Make a file from a function of pyarrow that gives a table."""

    def wrap(build):
        def make(folder, outside):
            import pyarrow as pa
            from pyarrow import parquet

            parquet.write_table(build(pa), folder / "f.parquet", store_schema=False, **options)
            return folder / "f.parquet"

        return make

    return wrap


def repeated(pa, value, n):
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([value]))


def ids(pa, n):
    return pa.array([f"s{i}" for i in range(n)])


def long_text(n, length, where="t", **options):
    @table(**options)
    def build(pa):
        columns = {"id": ids(pa, n), "t": repeated(pa, "x" * length, n)}
        if where == "id":
            columns = {"id": columns["t"], "t": pa.array(np.zeros(n))}
        return pa.table(columns)

    return build


@table()
def long_bytes(pa):
    return pa.table({"id": ids(pa, 57_000), "t": repeated(pa, b"x" * 100_000, 57_000)})


@table()
def fixed_bytes(pa):
    wide = pa.array([b"x" * 100_000] * 50, pa.binary(100_000))
    return pa.table({"id": ids(pa, 50_000), "t": pa.chunked_array([wide] * 1000)})


@table()
def many_texts(pa):
    column = repeated(pa, "x" * 1000, 20_000)
    return pa.table({"id": ids(pa, 20_000), **{f"c{j}": column for j in range(200)}})


def plain_texts(codec):
    @table(use_dictionary=False, compression=codec, data_page_size=1 << 28)
    def build(pa):
        return pa.table({"id": ids(pa, 4000), "t": ["x" * 100_000] * 4000})

    return build


@table()
def rows_of_zeros(pa):
    zeros = pa.array(np.zeros(1 << 20, np.float64))
    return pa.table({"a": pa.chunked_array([zeros] * 200), "b": pa.chunked_array([zeros] * 200)})


@table()
def rows_of_ones(pa):
    ones = pa.array(np.ones(1 << 20, np.int8))
    return pa.table({"a": pa.chunked_array([ones] * 100)})


@table()
def many_columns(pa):
    return pa.table({f"c{j}": pa.array([0.5]) for j in range(20_000)})


@table()
def many_text_columns(pa):
    return pa.table({f"c{j}": pa.array(["x"]) for j in range(20_000)})


@table()
def lists(pa):
    return pa.table({"id": ["a"], "t": [[0.0] * 1_000_000]})


@table()
def structures(pa):
    return pa.table({"id": ["a"], "t": [{"a": {"b": {"c": 1}}}]})


@table()
def escape_codes(pa):
    return pa.table({"id": ["a", "b"], "x\x1b[2J": [1.0, 2.0]})


@table()
def escape_ids(pa):
    return pa.table({"id": ["a", "b\x1b[2J"], "x": [1.0, 2.0]})


@table()
def decimals(pa):
    n = 1 << 21
    return pa.table(
        {"id": pa.array(np.arange(n)), "t": pa.array(np.arange(n)).cast(pa.decimal128(30, 2))}
    )


def two_names(folder, outside):
    import pyarrow as pa
    from pyarrow import parquet

    made = pa.Table.from_arrays(
        [pa.array(["a"]), pa.array([1.0]), pa.array([2.0])], ["id", "x", "x"]
    )
    parquet.write_table(made, folder / "f.parquet")
    return folder / "f.parquet"


def footer(change):
    """Write a good file and change bytes of its footer."""

    def make(folder, outside):
        path = long_text(1000, 10)(folder, outside)
        path.write_bytes(change(path.read_bytes()))
        return path

    return make


CASES = {
    "24 KB to 5.7 GB": Case(long_text(57_000, 100_000), read=True),
    "24 KB to 5.7 GB, default": Case(long_text(57_000, 100_000), options={"max_bytes": None}, read=True),
    "a text of 50 MB": Case(long_text(100, 50_000_000, row_group_size=10)),
    "long id repeated": Case(long_text(57_000, 100_000, "id")),
    "a million rows of text": Case(long_text(1_000_000, 5000), read=True),
    "long bytes": Case(long_bytes, read=True),
    "wide fixed bytes": Case(fixed_bytes),
    "200 columns of text": Case(many_texts, read=True),
    **{f"plain texts in {codec}": Case(plain_texts(codec)) for codec in ("zstd", "gzip", "brotli", "snappy", "lz4")},
    "rows of zeros": Case(rows_of_zeros, options={"id_column": None}),
    "rows of zeros as samples": Case(rows_of_zeros, "text"),
    "rows of ones": Case(rows_of_ones, options={"id_column": None}),
    "20,000 columns": Case(many_columns, options={"id_column": None}, read=True),
    "20,000 columns of text": Case(many_text_columns, read=True),
    "lists": Case(lists),
    "structures": Case(structures),
    "escape codes in a name": Case(escape_codes),
    "escape codes in an id": Case(escape_ids),
    "decimals": Case(decimals),
    "a name twice": Case(two_names),
    "long footer": Case(footer(lambda raw: raw[:-8] + b"\xff\xff\xff\x7fPAR1")),
    "wild footer": Case(footer(lambda raw: raw[:-200] + b"\xff" * 190 + raw[-10:])),
    "no footer": Case(content("f.parquet", b"PAR1" + bytes(5000) + b"PAR1")),
    "samples with long text": Case(long_text(57_000, 100_000), "text", read=True),
}  # fmt: skip
