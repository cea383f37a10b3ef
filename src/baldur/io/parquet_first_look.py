"""Read a Parquet file a few columns at a time in a process of its own, within a limit of memory.

Run as a script: ``python parquet_first_look.py file max_bytes seconds``, with a JSON object on
standard input: the columns that the caller reads ``now``, which all have to fit into memory, and
those it reads ``later``, a few at a time. Pages may unpack to more than the footer of the file
says, and a damaged page can crash the library. Exceptions are ignored here, because the caller
meets them again and reports them.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from baldur.core.limited_process import TOO_LARGE, limit_process

# At a time: one by one, a wide table takes a hundred times longer than at once.
_COLUMNS = 64


def main(file: str, max_bytes: str, seconds: str) -> int:
    """Read some columns of a file; return the exit code."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = json.load(sys.stdin)
    parts = [
        (columns[when][start : start + _COLUMNS], when == "now")
        for when in ("now", "later")
        for start in range(0, len(columns[when]), _COLUMNS)
    ]
    # Half: the caller holds the columns and the table made of them.
    room = int(max_bytes) // 2
    # Every worker of the library takes address space, which the limit counts.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    limit_process(int(max_bytes), int(seconds))
    held = 0
    try:
        # What cannot be read is the caller's to refuse, with a message: here it only costs nothing.
        with contextlib.suppress(pa.lib.ArrowInvalid, OSError, ValueError, NotImplementedError):
            texts = text_columns(parquet.ParquetFile(file).schema_arrow)
            with parquet.ParquetFile(file, read_dictionary=texts) as opened:
                for group in range(opened.num_row_groups):
                    for some, is_held in parts:
                        part = opened.read_row_group(group, columns=some, use_threads=False)
                        held += part.nbytes if is_held else 0
                        if held > room:
                            return TOO_LARGE
    # Arrow's own error for memory derives from MemoryError.
    except MemoryError:
        return TOO_LARGE
    return 0


def text_columns(schema: Any) -> list[str]:
    """Return the columns that are read as a list of different texts and numbers into it."""
    from pyarrow import types

    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return [field.name for field in schema if any(kind(field.type) for kind in texts)]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
