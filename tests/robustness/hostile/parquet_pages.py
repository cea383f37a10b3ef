"""Parquet, second round: footers and pages that contradict each other, odd types, odd metadata."""

import json
import struct

import numpy as np

from robustness.hostile.base import CANARY, Case


def written(build, change=None, metadata=None, **options):
    """Write what `build(pyarrow)` returns, with metadata of the schema, and change its bytes."""

    def make(folder, outside):
        import pyarrow as pa
        from pyarrow import parquet

        made = build(pa)
        if metadata is not None:
            made = made.replace_schema_metadata(metadata)
        path = folder / "f.parquet"
        parquet.write_table(made, path, **options)
        if change is not None:
            path.write_bytes(change(path.read_bytes()))
        return path

    return make


def varint(value, length=0):
    """A number as Thrift writes it (zigzag), filled up to a length that means the same."""
    value, out = value << 1, bytearray()
    while value >= 128 or len(out) + 1 < length:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def claim_rows(n, claimed, keep):
    """Replace the number of rows everywhere in the footer but at the first `keep` places."""

    def change(raw):
        size = struct.unpack("<I", raw[-8:-4])[0]
        body, footer = raw[: -8 - size], raw[-8 - size : -8]
        true = varint(n)
        parts = footer.split(true)
        false = varint(claimed, len(true))
        made = parts[0]
        for i, part in enumerate(parts[1:]):
            made += (true if i in keep else false) + part
        return body + made + raw[-8:]

    return change


def zeros(n, kind=np.float64):
    def build(pa):
        cell = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(n, np.int32)), pa.array(np.zeros(1, kind))
        )
        return pa.table({"a": cell, "b": cell})

    return build


def column(make_cells, name="x"):
    """A table of three people with one odd column."""
    return lambda pa: pa.table({"id": ["a", "b", "c"], name: make_cells(pa)})


def named(names):
    def build(pa):
        cells = [pa.array(["a", "b"]), *[pa.array([1.0, 2.0])] * len(names)]
        return pa.Table.from_arrays(cells, ["id", *names])

    return build


def pandas_says(value):
    said = value if isinstance(value, bytes) else json.dumps(value).encode()
    return written(column(lambda pa: [1.0, 2.0, 3.0]), metadata={b"pandas": said})


def arrow_says(value):
    """Another schema than that of the columns in the place where Arrow keeps its own."""
    return written(
        column(lambda pa: [1.0, 2.0, 3.0]), metadata={b"ARROW:schema": value}, store_schema=False
    )


def other_schema(folder, outside):
    import base64

    import pyarrow as pa

    other = pa.schema([("id", pa.dictionary(pa.int8(), pa.string())), ("x", pa.list_(pa.int8()))])
    return arrow_says(base64.b64encode(other.serialize().to_pybytes()))(folder, outside)


def partition(folder, outside):
    """A folder in place of a file, as partitioned data sets are."""
    (folder / "f.parquet").mkdir()
    written(named(["x"]))(folder / "f.parquet", outside)
    return folder / "f.parquet"


def external_chunk(folder, outside):
    """A column whose cells are said to lie in another file (`file_path` of a column chunk)."""
    import pyarrow as pa
    from pyarrow import parquet

    secret = pa.table({"id": [CANARY, "b"], "x": [7.0, 8.0]})
    parquet.write_table(secret, outside / "secret.parquet")
    parquet.write_table(secret, folder / "part.parquet")
    found = parquet.read_metadata(folder / "part.parquet")
    found.set_file_path("../outside/secret.parquet")
    found.write_metadata_file(folder / "f.parquet")
    return folder / "f.parquet"


def exchange(old, new):
    return lambda raw: raw.replace(old, new)


BIG = 100_000_000
ROWS = {"row_group_size": BIG, "use_dictionary": True, "compression": "none"}
ODD = {
    "timestamps of year 290000": lambda pa: pa.array([2**52, 0, -(2**52)], pa.timestamp("s")),
    "zone of another file": lambda pa: pa.array([1, 2, 3], pa.timestamp("s", "../../etc/passwd")),
    "zone without end": lambda pa: pa.array([1, 2, 3], pa.timestamp("s", "x" * 100_000)),
    "dates beyond the calendar": lambda pa: pa.array([2**31 - 1, 0, -(2**31)], pa.date32()),
    "dates in milliseconds beyond": lambda pa: pa.array([2**62, 0, -(2**62)], pa.date64()),
    "times of day": lambda pa: pa.array([1, 2, 3], pa.time64("ns")),
    "durations": lambda pa: pa.array([2**62, 0, 1], pa.duration("s")),
    "decimals of 76 digits": lambda pa: pa.array([1, 2, 3]).cast(pa.decimal256(76, 0)),
    "half precision": lambda pa: pa.array(np.array([1, np.inf, np.nan], np.float16)),
    "infinite numbers": lambda pa: [1.0, np.inf, -np.inf],
    "numbers beyond 53 bits": lambda pa: pa.array([2**63, 2**64 - 1, 0], pa.uint64()),
    "nothing": lambda pa: pa.nulls(3),
    "bytes that are no text": lambda pa: pa.array([b"\xff\xfe", b"\x00", b"a"], pa.binary()),
    "text that is no text": lambda pa: pa.array([b"\xff", b"\xc3", b"a"]).view(pa.string()),
    "categories of bytes": lambda pa: pa.array([b"\xff", b"b", b"\xff"]).dictionary_encode(),
    "categories of nothing": lambda pa: pa.array([None, None, None], pa.string()).dictionary_encode(),
    "a map": lambda pa: pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int8())),
    "an extension": lambda pa: pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16] * 3, pa.binary(16))),
    "a tensor": lambda pa: pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2]] * 3, pa.list_(pa.int8(), 2))),
    "views of text": lambda pa: pa.array(["a", "b", "c"], pa.string_view()),
}  # fmt: skip
NAMES = {
    "an empty name": [""],
    "a name of dots": ["a.b.c", "a", "a.b"],
    "a name of blanks": ["   "],
    "a long name": ["x" * 2_000_000],
    "a formula": ["=cmd|' /C calc'!A0"],
    "reversed text": ["a\u202eb"],
    "a zero byte": ["a\x00b"],
}

CASES = {
    **{
        f"{BIG:,} cells, {claimed} rows claimed, {where}": Case(
            written(zeros(BIG, kind), claim_rows(BIG, claimed, keep), **ROWS),
            options={"id_column": None},
        )
        for kind in (np.float64,)
        for claimed in (10, 0)
        for where, keep in (("by file", (0, 1)), ("by file and group", (0, 1, 2)), ("everywhere", ()))
    },
    **{name: Case(written(column(cells)), read=True) for name, cells in ODD.items()},
    **{f"{name} as ids": Case(written(column(cells, "person")), options={"id_column": "person"}, read=True)
       for name, cells in list(ODD.items())[:12]},
    **{name: Case(written(named(names)), read=True) for name, names in NAMES.items()},
    "pandas: a list": Case(pandas_says([1, 2]), read=True),
    "pandas: no JSON": Case(pandas_says(b"{"), read=True),
    "pandas: nested": Case(pandas_says(b"[" * 100_000), read=True),
    "pandas: index of numbers": Case(pandas_says({"index_columns": [1, None, {"a": 1}]}), read=True),
    "pandas: index that is text": Case(pandas_says({"index_columns": "id"}), read=True),
    "pandas: index nowhere": Case(pandas_says({"index_columns": 5}), read=True),
    "Arrow's schema: nonsense": Case(arrow_says(b"nonsense"), read=True),
    "Arrow's schema: another one": Case(other_schema, read=True),
    "a folder": Case(partition),
    "cells in another file": Case(external_chunk),
    "an unknown codec": Case(written(named(["x"]), exchange(b"\x15\x02", b"\x15\x7e")), read=True),
    "encrypted": Case(written(named(["x"]), lambda raw: raw[:-4] + b"PARE")),
    "footer within footer": Case(written(named(["x"]), lambda raw: raw + raw[-300:]), read=True),
    "no rows": Case(written(lambda pa: pa.table({"id": pa.array([], pa.string()), "x": pa.array([], pa.float64())}))),
    "no columns": Case(written(lambda pa: pa.table({}))),
    "50,000 groups of rows": Case(
        written(lambda pa: pa.table({"id": pa.array(np.arange(50_000)), "x": pa.array(np.zeros(50_000))}), row_group_size=1),
        read=True),
}  # fmt: skip
