"""Write a model folder as a whole, and read one without following links and within limits.

The content of a folder is a manifest and its other parts by name: "state", "arrays", and the files
of the card. The size of each file is checked before it is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from baldur.core.atomic_io import PART, atomic_file, folder_lock, make_folder, sync_folder, writing
from baldur.core.limits import MAX_BYTES
from baldur.core.paths import open_plain
from baldur.core.state import ByName, Choice, Form, Sizes, StateError, Text, read_fields
from baldur.exceptions import InputError
from baldur.saving.state_files import checksum, read_json, write_json

FORMAT = "baldur model"

SCHEMA = 4
"""Version of the layout; raised when an older package could not read a newer folder."""

MANIFEST = "manifest.json"

DATA_FILES = (
    ("state.json", "arrays.safetensors"),
    ("state-2.json", "arrays-2.safetensors"),
)
"""State and arrays lie in one of two places, and the manifest says in which. A save over an older
model fills the other place and then replaces the manifest, which is one step for the file system:
a reader sees the old model or the new one, whatever happens in between."""

SCORERS = ("score.py", "score.R", "score.js")

PRINTED = ("card.json", "card.md", "card.R", *SCORERS)
"""The files of a card, named here so that loading need not import what prints them."""

OWN_FILES = (MANIFEST, *DATA_FILES[0], *DATA_FILES[1], *PRINTED, ".lock")

MANIFEST_BYTES = 16 << 20
"""Of ``manifest.json``: it has a line per view and per class, and the settings of a study."""

STATE_BYTES = 64 << 20
"""Of ``state.json``. Models have 5 kB to 2 MB there; long columns and names are arrays."""

PRINTED_BYTES = 64 << 20
"""Of one file of the card: 500,000 numbers of 20 digits, the most that is printed, are 10 MB."""

_TRIES = 5
"""Attempts at a folder that is being replaced meanwhile; a save replaces it once."""


def read_folder(
    folder: Path, max_bytes: int = MAX_BYTES
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest and the other parts of a model folder after verifying all checksums.

    A folder that is being saved to is read again from the start, so that what is returned belongs
    together. Leftovers of an interrupted save are not looked at.
    """
    try:
        os.stat(os.path.join(folder, "."))  # fails for what is not a folder, too
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be a path"
        raise InputError(f"{folder} is not a model folder ({reason}).") from None
    for attempt in range(_TRIES):
        raw = _read_file(folder / MANIFEST, MANIFEST_BYTES)
        if raw is None:
            raise InputError(
                f"{folder} is not a model folder: it has no {MANIFEST}. Make one with fit."
            )
        try:
            manifest = _read_manifest(folder, raw)
            return manifest, _read_parts(folder, manifest, max_bytes)
        except InputError:
            # Only a save that ended in between explains it: the manifest is then another one.
            last = attempt == _TRIES - 1
            if last or _read_file(folder / MANIFEST, MANIFEST_BYTES) == raw:
                raise
    raise AssertionError("the last attempt returns or raises")


def _read_parts(folder: Path, manifest: dict[str, Any], max_bytes: int) -> dict[str, bytes]:
    """Return the parts of a folder whose checksums are those of its manifest."""
    sums = manifest["checksums"]
    # A missing printed file does no harm; the page may be edited by hand.
    files = dict(zip(("state", "arrays"), manifest["data_files"], strict=True))
    files |= {name: name for name in PRINTED if name != "card.md"}
    sizes = {"state": STATE_BYTES, "arrays": max_bytes}
    parts: dict[str, bytes] = {}
    for part, name in files.items():
        content = _read_file(folder / name, sizes.get(part, PRINTED_BYTES))
        if content is None and part in sizes:
            raise InputError(f"{folder}/{name} is missing; copy the model again.")
        if content is None:
            continue
        if part in sums and checksum(content) != sums[part]:
            raise InputError(f"{folder}/{name} is not what the manifest says; copy it again.")
        parts[part] = content
    return parts


def _read_file(path: Path, most_bytes: int) -> bytes | None:
    """Return the content of a plain file; None if it is not there."""
    size = 0
    try:
        descriptor = open_plain(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except InputError:
        raise InputError(f"{path} is not a plain file; copy the model again.") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            if size > most_bytes:
                raise InputError(
                    f"{path} has {size:,} bytes, and {most_bytes:,} are the most that is read."
                )
            return file.read(size)
    except MemoryError:
        raise InputError(f"{path} has {size:,} bytes, more than there is memory for.") from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be read ({error.strerror}); copy it again.")


_FILES: dict[str, Form] = {
    "checksums": ByName(Text()),
    "data_files": Choice(tuple(list(names) for names in DATA_FILES)),
}
"""Entries of a manifest that say which files belong to the model."""


def _read_manifest(folder: Path, raw: bytes) -> dict[str, Any]:
    """Return the manifest of a folder after checking its format, schema and checksum."""
    where = f"{folder}/{MANIFEST}"
    try:
        manifest = read_json(raw, MANIFEST_BYTES)
    except InputError as error:
        raise InputError(f"{where} cannot be read: {error}; copy it again.") from None
    foreign = InputError(f"{where} is not one that baldur wrote; copy it again.")
    schema = manifest.get("schema") if type(manifest) is dict else None
    if type(schema) is not int or schema < 1 or manifest.get("format") != FORMAT:
        raise foreign
    if schema != SCHEMA:
        versions = manifest.get("versions")
        version = str(versions.get("baldur", "?"))[:40] if type(versions) is dict else "?"
        advice = "Install a newer baldur." if schema > SCHEMA else "Fit the model again."
        raise InputError(
            f"{folder} was saved in schema {schema} (baldur {version!a}), and this version reads "
            f"schema {SCHEMA}. {advice}"
        )
    try:
        files = read_fields({key: manifest.get(key) for key in _FILES}, _FILES, Sizes())
    except StateError as error:
        raise InputError(
            f"{where} is not one that baldur wrote ({error}); copy it again."
        ) from None
    if not {"state", "arrays"} <= set(files["checksums"]) <= {"state", "arrays", *PRINTED}:
        raise foreign
    if manifest.get("identity") != identity_of(manifest):
        raise InputError(f"{where} was changed after the model was saved; copy it again.")
    return manifest


def identity_of(manifest: dict[str, Any]) -> str:
    """Return the checksum of a manifest without its own checksum and the location of the data."""
    rest = {key: value for key, value in manifest.items() if key not in ("identity", "data_files")}
    return checksum(rest)


_LEFTOVER = re.compile(rf"\.[0-9a-f]{{32}}{re.escape(PART)}")
"""Files that a save which was killed left behind."""


def check_place(folder: Path, overwrite: bool) -> None:
    """Refuse a place that holds something other than a model, or one not to be replaced."""
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise InputError(f"{folder} exists and is not a folder; choose another place.")
    with writing(folder):
        names = set(os.listdir(folder))
    visible = {name for name in names if not name.startswith(".")}
    if MANIFEST in names:
        if not overwrite:
            raise InputError(f"{folder} holds a model already; choose another place or overwrite.")
        return
    # A first save that was killed leaves data without a manifest, and the lock that it held.
    unfinished = ".lock" in names and visible <= {*DATA_FILES[0], *DATA_FILES[1]}
    if visible and not unfinished:
        raise InputError(f"{folder} exists and is not a model folder; choose another place.")


def write_folder(
    folder: Path, manifest: dict[str, Any], parts: Mapping[str, bytes], *, overwrite: bool
) -> None:
    """Write a model folder, or replace one; files under other names are left alone."""
    # The page may be edited by hand; all else is to stay as it is.
    sums = {name: checksum(part) for name, part in parts.items() if name != "card.md"}
    manifest = {**manifest, "checksums": sums}
    manifest["identity"] = identity_of(manifest)
    new = not folder.exists()
    make_folder(folder)
    try:
        with folder_lock(folder) as alone, writing(folder):
            check_place(folder, overwrite)
            if alone:
                _remove_files(folder, _LEFTOVER.fullmatch)
            _write(folder, manifest, parts)
    except BaseException:
        if new:
            with suppress(OSError):
                _remove_files(folder, lambda name: name in OWN_FILES or _LEFTOVER.fullmatch(name))
                os.rmdir(folder)
        raise


def _write(folder: Path, manifest: dict[str, Any], parts: Mapping[str, bytes]) -> None:
    """Write the parts beside those of an older model, then replace the manifest."""
    place = 1 - _present_place(folder)
    names = dict(zip(("state", "arrays"), DATA_FILES[place], strict=True))
    manifest_text = write_json({**manifest, "data_files": list(DATA_FILES[place])}, indent=1)
    card = {name: content for name, content in parts.items() if name not in names}
    # All of it is on the disk before anything is replaced: a full disk changes nothing.
    with _staged(folder, card), _staged(folder, {MANIFEST: manifest_text}):
        # The data get their names first, where no manifest refers to them yet.
        with _staged(folder, {name: parts[part] for part, name in names.items()}):
            pass
        # No card stays beside a model that it is not of. Killed within the next few steps, the
        # old or the new model is there, whole, without its card; `model.card` writes it again.
        for name in PRINTED:
            (folder / name).unlink(missing_ok=True)
        sync_folder(folder)
    for name in DATA_FILES[1 - place]:
        with suppress(OSError):
            os.unlink(folder / name)
    sync_folder(folder)


@contextmanager
def _staged(folder: Path, contents: Mapping[str, bytes]) -> Iterator[None]:
    """Write files that appear under their names when the block ends without error."""
    with ExitStack() as stack:
        for name, content in contents.items():
            file = stack.enter_context(atomic_file(folder / name, sync=False))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield
    sync_folder(folder)


def _present_place(folder: Path) -> int:
    """Return which of the two places (0 or 1) the manifest names; 1 without a manifest."""
    try:
        raw = _read_file(folder / MANIFEST, MANIFEST_BYTES)
        manifest = {} if raw is None else read_json(raw, MANIFEST_BYTES)
    except InputError:
        return 1
    names = manifest.get("data_files") if type(manifest) is dict else None
    return 0 if names == list(DATA_FILES[0]) else 1


def _remove_files(folder: Path, is_removed: Callable[[str], Any]) -> None:
    """Remove the plain files of a folder with some names."""
    for entry in os.scandir(folder):
        if is_removed(entry.name) and entry.is_file(follow_symlinks=False):
            with suppress(OSError):
                os.unlink(entry.path)
