"""Text files, plain or compressed, as a stream that never grows beyond the budget."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from baldur.exceptions import InputError
from baldur.io.formats.files import parsing, suffix_of
from baldur.safety.budget import Deadline, check_size

_BUFFER = 1 << 20
# A cell of a line takes a pointer, and as a number eight bytes twice; long texts may be held twice.
_PER_BYTE = 2
_PER_CELL = 24
_ADVICE = "Give a larger max_bytes=, or save the table as .npy, .npz or Parquet."
# Encodings of Python that take the square of the length, or are not meant for files.
_NO_ENCODINGS = ("idna", "punycode", "unicode", "raw", "undefined", "utf7")


class BoundedText(io.RawIOBase):
    """The bytes of a file, counted as they are read; refused when a table of them is too large."""

    def __init__(
        self, path: Path, separator: bytes, max_bytes: int, deadline: Deadline, zeros: bool
    ) -> None:
        self.path = path
        self.separator = separator
        self.max_bytes = max_bytes
        self.deadline = deadline
        self.zeros = zeros
        self.apostrophes = False
        self._size = self._cells = 0
        packed = suffix_of(path).endswith(".gz")
        self._stream: Any = (gzip.open if packed else open)(path, "rb")

    def readable(self) -> bool:
        """Return True, because the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer, and count them."""
        self.deadline.check()
        piece = self._stream.read(len(buffer))
        self._size += len(piece)
        self._cells += piece.count(self.separator) + piece.count(b"\n")
        needed = _PER_BYTE * self._size + _PER_CELL * self._cells
        check_size(self.path, needed, self.max_bytes, _ADVICE)
        if not self.zeros and b"\0" in piece:
            raise InputError(
                f"{self.path}: expected a text table, but it holds zero bytes, as binary files do. "
                "If it is text in UTF-16, give encoding='utf-16'; otherwise the file is of another "
                "kind."
            )
        self.apostrophes = self.apostrophes or b"'" in piece
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file and the stream."""
        self._stream.close()
        super().close()


@contextmanager
def open_text(
    path: Path, separator: str, encoding: str, max_bytes: int, deadline: Deadline
) -> Iterator[tuple[IO[str], BoundedText]]:
    """Yield a file as text with unchanged line ends, and the stream of bytes behind it."""
    # Before a byte is read: the size of a plain file is known.
    check_size(path, path.stat().st_size, max_bytes, _ADVICE)
    plain = encoding.lower().replace("-", "").replace("_", "")
    try:
        between = separator.encode(encoding)
        # Python also calls compression and the like encodings; these are refused here.
        b"".decode(encoding)
        if plain.startswith(_NO_ENCODINGS):
            raise LookupError(f"{encoding} is not a text encoding")
    except (LookupError, UnicodeError) as error:
        raise _not_in(path, encoding, error) from error
    wide = plain.startswith(("utf16", "utf32"))
    if wide:
        # Without the mark that each call of encode puts in front.
        between = between[-2 if plain.startswith("utf16") else -4 :]
    with parsing(path, "a text table"):
        raw = BoundedText(path, between, max_bytes, deadline, wide)
        buffered = io.BufferedReader(raw, _BUFFER)
        name = "utf-8-sig" if plain == "utf8" else encoding
        with io.TextIOWrapper(buffered, encoding=name, newline="") as text:
            try:
                yield text, raw
            except UnicodeError as error:
                raise _not_in(path, encoding, error) from error


def _not_in(path: Path, encoding: str, error: Exception) -> InputError:
    return InputError(
        f"{path}: cannot be read as text in {encoding} ({error}). Give the encoding it was written "
        "in, often encoding='latin-1' or 'cp1252'."
    )
