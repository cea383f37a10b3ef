"""CSV and TSV, plain and compressed."""

import gzip
import zlib
from functools import partial

from robustness.hostile.base import Case, content


def packed(*parts):
    """Compress (text, times) pairs; a repeated part costs nothing to make."""
    made = b""
    for text, times in parts:
        made += gzip.compress(text.encode() if isinstance(text, str) else text, 6) * times
    return made


def raw_stream(head, piece, times):
    """One single gzip stream in which a piece is repeated."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    out = packer.compress(head)
    for _ in range(times):
        out += packer.compress(piece)
    return out + packer.flush()


def rows(cells, width, size=1 << 20):
    line = ",".join(["a", *[cells] * (width - 1)]) + "\n"
    return line * max(1, size // len(line))


def header(width):
    return ",".join(["id", *(f"c{j}" for j in range(width - 1))]) + "\n"


GB3 = 3000
BOMBS = {
    "zeros": [(header(10), 1), (rows("0", 10), GB3)],
    "texts": [(header(10), 1), (rows("x", 10), GB3)],
    "long cells": [(header(3), 1), (rows("y" * 50_000, 3), GB3)],
    "long numbers": [(header(3), 1), (rows("1" * 50_000, 3), GB3)],
    "one line of cells": [(header(3), 1), ("0," * (1 << 19), GB3)],
    "one line without cells": [(header(3), 1), ("x" * (1 << 20), GB3)],
    "blank lines": [(header(3), 1), ("\n" * (1 << 20), GB3)],
    "blanks": [(header(3), 1), (" " * (1 << 20), GB3)],
    "header without end": [("c," * (1 << 19), GB3)],
    "open quote": [(header(3) + '"', 1), ("x\n" * (1 << 19), GB3)],
    "missing cells": [(header(10), 1), (rows("NA", 10), GB3)],
    "empty cells": [(header(10), 1), (rows("", 10), GB3)],
    "one column": [("id\n", 1), ("a\n" * (1 << 19), GB3)],
    "wide rows": [(header(20_000), 1), (rows("0.5", 20_000), GB3)],
    "carriage returns": [(header(3), 1), ("\r" * (1 << 20), GB3)],
    "commas": [(header(3), 1), ("," * (1 << 20), GB3)],
    "zero bytes": [(header(3), 1), ("\0" * (1 << 20), GB3)],
    "quotes": [(header(3), 1), ('"' * (1 << 20), GB3)],
    "different texts": [
        (header(4), 1),
        ("".join(f"{i},{i}a,{i}b,{i}c\n" for i in range(40_000)), 100),
    ],
}

CASES = {}
for _name, _parts in BOMBS.items():
    CASES[f"{_name} in .csv.gz"] = Case(content("f.csv.gz", partial(packed, *_parts)))
for _name in ("zeros", "texts", "one line of cells", "long cells", "different texts", "one column"):
    _made = content("samples.csv.gz", partial(packed, *BOMBS[_name]))
    CASES[f"samples with {_name}"] = Case(_made, "text")
    # With the default budget of 4 GB.
    CASES[f"{_name}, default budget"] = Case(_made, "table", {"max_bytes": None})
CASES["one stream of 3 GB"] = Case(
    content("f.csv.gz", lambda: raw_stream(b"id,a\n", rows("0", 2, 1 << 24).encode(), 190)),
    options={"max_bytes": None},
)

WIDE = 120_000
names = [f"c{j}" for j in range(WIDE)]
twice = [*names[:-1], names[0]]
CASES |= {
    "one name twice among 120,000": Case(
        content("f.csv", ",".join(["id", *twice]) + "\n" + "1," * WIDE + "1\n")
    ),
    "all names the same": Case(content("f.csv", "a," * WIDE + "a\n" + "1," * WIDE + "1\n")),
    "120,000 columns of text": Case(
        content("f.csv", ",".join(["id", *names]) + "\n" + "p" + ",x" * WIDE + "\n"), read=True
    ),
    "120,000 columns of dates": Case(
        content("f.csv", ",".join(["id", *names]) + "\n" + "p" + ",2020-01-01" * WIDE + "\n")
    ),
    "a million columns": Case(
        content("f.csv", header(1_000_000) + "p" + ",1" * 999_999 + "\n"), read=True
    ),
    "samples with 120,000 columns": Case(
        content("f.csv", ",".join(["id", *names]) + "\n" + "p" + ",x" * WIDE + "\n"),
        "text",
        read=True,
    ),
    "a date and blanks without end": Case(
        content("f.csv", 'id,a\n1,"2020-01-01 ' + " " * 100_000 + '\nx"\n2,"b\nc"\n'), read=True
    ),
    "long id among many": Case(
        content(
            "f.csv", "id,a\n" + "".join(f"{i},1\n" for i in range(200_000)) + "z" * 100_000 + ",1\n"
        )
    ),
    "long level among many": Case(
        content(
            "f.csv",
            "id,a\n" + "".join(f"{i},u\n" for i in range(50_000)) + "z," + "v" * 100_000 + "\n",
        )
    ),
    "long name of a column": Case(content("f.csv", "id," + "n" * 100_000 + ",b\n1,2,3\n")),
    "escape codes in a name": Case(content("f.csv", "id,a\x1b[2J\n1,2\n")),
    "escape codes in an id": Case(content("f.csv", "id,a\nx\x1b]0;owned\x07,2\n")),
    "line break in an id": Case(content("f.csv", 'id,a\n"x\ny",2\n')),
    "reversed text in an id": Case(content("f.csv", "id,a\nx\u202ey,2\n")),
    "escape codes in a level": Case(content("f.csv", "id,a\n1,x\x1b[1m\n2,y\n")),
    "formulas as ids": Case(
        content("f.csv", "id,a\n=cmd|' /C calc'!A0,1\n@b,2\n+c,3\n"), read=True
    ),
    "digits of other scripts": Case(content("f.csv", "id,a\n1,١٢٣\n2,4_5\n"), read=True),
    "not text at all": Case(content("f.csv", bytes(range(1, 256)) * 100)),
    "broken UTF-8": Case(content("f.csv", b"id,a\n1,\xff\xfe\xc0\n")),
    "gzip cut short": Case(content("f.csv.gz", packed((rows("0", 3), 4))[:-20])),
    "gzip with a wrong sum": Case(content("f.csv.gz", packed(("id,a\n1,2\n", 1))[:-8] + b"\1" * 8)),
    "a million quotes": Case(content("f.csv", "id,a\n1," + '""' * 500_000 + "\n")),
}

for _encoding in (
    "zlib",
    "bz2",
    "punycode",
    "idna",
    "unicode_escape",
    "utf-7",
    "rot13",
    "nonsense",
):
    CASES[f"encoding {_encoding}"] = Case(
        content("f.csv", b"id,a\n" + b"x-" * 500_000), "view", {"encoding": _encoding}
    )
WRONG = {
    "separator": "",
    "decimal": "ab",
    "columns": 3,
    "max_levels": "many",
    "missing": 5,
    "id_column": 1.5,
    "array": 7,
    "max_bytes": 1 << 60,
    "categorical": {"a": 1},
}
for _key, _value in WRONG.items():
    _read = _key in ("array", "max_levels")
    CASES[f"option {_key}={_value!r}"] = Case(
        content("f.csv", "id,a\n1,2\n3,4\n"), "view", {_key: _value}, read=_read
    )
