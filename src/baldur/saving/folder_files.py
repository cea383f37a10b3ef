"""Read a model folder without changing it, without following links, and within limits."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self
from uuid import uuid4

from baldur.core.atomic_io import PART, folder_lock, make_folder, sync_folder, writing
from baldur.core.state import ByName, Choice, Form, Sizes, StateError, Text, read_fields
from baldur.exceptions import InputError
from baldur.saving import limits
from baldur.saving.layout import DATA_FILES, FORMAT, KNOWN, MANIFEST, PRINTED, SCHEMA
from baldur.saving.model_files import checksum, read_json, write_json

_TRIES = 5
"""Attempts at a folder that is being replaced meanwhile; a save replaces it once."""


class FolderContent(NamedTuple):
    """Content of a model folder, after its checksums were verified."""

    manifest: dict[str, Any]
    state: bytes  # The JSON text of the state
    arrays: bytes  # The array file
    printed: dict[str, bytes]


def read_folder(folder: Path, max_bytes: int) -> FolderContent:
    """Return the content of a model folder after verifying all checksums.

    A folder that is being saved to is read again from the start, so that what is returned belongs
    together. Leftovers of an interrupted save are not looked at.
    """
    with OpenFolder(folder) as files:
        for attempt in range(_TRIES):
            raw = files.read(MANIFEST, limits.MANIFEST_BYTES)
            if raw is None:
                raise InputError(
                    f"{folder} is not a model folder: it has no {MANIFEST}. Make one with fit."
                )
            try:
                return _consistent(files, folder, raw, max_bytes)
            except InputError:
                # Only a save that ended in between explains it.
                if attempt == _TRIES - 1 or files.read(MANIFEST, limits.MANIFEST_BYTES) == raw:
                    raise
    raise AssertionError("the last attempt returns or raises")


class OpenFolder:
    """A folder whose plain files can be read by name, as a context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number: int | None = None

    def __enter__(self) -> Self:
        try:
            if os.open in os.supports_dir_fd:
                # Files are opened relative to it, so that it stays the same folder throughout.
                self._number = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            elif not self._folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or "it cannot be a path"
            raise InputError(f"{self._folder} is not a model folder ({said}).") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._number is not None:
            os.close(self._number)

    def read(self, name: str, most_bytes: int) -> bytes | None:
        """Return the content of a plain file, None if it is not there."""
        path = self._folder / name
        try:
            number = self._open(name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EMLINK):
                raise _not_plain(path) from None
            raise InputError(f"{path} cannot be read ({error.strerror}); copy it again.") from None
        try:
            about = os.fstat(number)
            if not stat.S_ISREG(about.st_mode):
                raise _not_plain(path)
            if about.st_size > most_bytes:
                raise InputError(
                    f"{path} has {about.st_size:,} bytes, and {most_bytes:,} are the most that is "
                    "read."
                )
            with os.fdopen(number, "rb", closefd=False) as file:
                return read_open(file, about.st_size)
        except MemoryError:
            raise InputError(
                f"{path} has {about.st_size:,} bytes, more than there is memory for."
            ) from None
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror}); copy it again.") from None
        finally:
            os.close(number)

    def _open(self, name: str) -> int:
        flags = os.O_RDONLY
        for one in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
            flags |= getattr(os, one, 0)
        if self._number is not None:
            return os.open(name, flags, dir_fd=self._number)
        path = self._folder / name
        if stat.S_ISLNK(os.lstat(path).st_mode):
            raise _not_plain(path)
        return os.open(path, flags)


def read_open(file: IO[bytes], size: int) -> bytes:
    """Return what a file holds, up to the size it had when it was opened."""
    return file.read(size)


def _not_plain(path: Path) -> InputError:
    return InputError(f"{path} is not a plain file; copy the model again.")


def _consistent(files: OpenFolder, folder: Path, raw: bytes, max_bytes: int) -> FolderContent:
    manifest = _manifest(folder, raw)
    sums = manifest["checksums"]
    sizes = dict(zip(("state", "arrays"), (limits.STATE_BYTES, max_bytes), strict=True))
    found: dict[str, bytes] = {}
    for part, name in zip(sizes, manifest["data_files"], strict=True):
        content = files.read(name, sizes[part])
        if content is None:
            raise InputError(f"{folder}/{name} is missing; copy the model again.")
        if checksum(content) != sums[part]:
            raise InputError(f"{folder}/{name} is not what the manifest says; copy it again.")
        found[part] = content
    printed = {}
    for name in PRINTED:
        if name == "card.md":
            continue
        # A missing printed file does no harm.
        content = files.read(name, limits.PRINTED_BYTES)
        if content is None:
            continue
        if name in sums and checksum(content) != sums[name]:
            raise InputError(f"{folder}/{name} is not what the manifest says; copy it again.")
        printed[name] = content
    return FolderContent(manifest, found["state"], found["arrays"], printed)


_FILES: dict[str, Form] = {
    "checksums": ByName(Text()),
    "data_files": Choice(tuple(list(names) for names in DATA_FILES)),
}
"""Entries of a manifest that say which files belong to the model."""


def _manifest(folder: Path, raw: bytes) -> dict[str, Any]:
    """Return the manifest of a folder after checking its format, schema and checksum."""
    where = f"{folder}/{MANIFEST}"
    try:
        manifest = read_json(raw, limits.MANIFEST_BYTES)
    except InputError as error:
        raise InputError(f"{where} cannot be read: {error}; copy it again.") from None
    schema = manifest.get("schema") if type(manifest) is dict else None
    if type(schema) is not int or schema < 1 or manifest.get("format") != FORMAT:
        raise InputError(f"{where} is not one that baldur wrote; copy it again.")
    if schema != SCHEMA:
        made = manifest.get("versions")
        version = str(made.get("baldur", "?"))[:40] if type(made) is dict else "?"
        advice = "Install a newer baldur." if schema > SCHEMA else "Fit the model again."
        raise InputError(
            f"{folder} was saved in schema {schema} (baldur {version!a}), and this version reads "
            f"schema {SCHEMA}. {advice}"
        )
    files = {key: manifest.get(key) for key in _FILES}
    try:
        sums = read_fields(files, _FILES, Sizes())["checksums"]
    except StateError as error:
        raise InputError(
            f"{where} is not one that baldur wrote ({error}); copy it again."
        ) from None
    if not {"state", "arrays"} <= set(sums) <= {"state", "arrays", *PRINTED}:
        raise InputError(f"{where} is not one that baldur wrote; copy it again.")
    if manifest.get("identity") != identity_of(manifest):
        raise InputError(f"{where} was changed after the model was saved; copy it again.")
    return manifest


def identity_of(manifest: dict[str, Any]) -> str:
    """Return the checksum of a manifest without its own checksum and the location of the data."""
    rest = {key: value for key, value in manifest.items() if key not in ("identity", "data_files")}
    return checksum(rest)


_LEFT = re.compile(rf"\.[0-9a-f]{{32}}{re.escape(PART)}")
# Files that a save which was killed left behind.


def check_place(folder: Path, overwrite: bool) -> None:
    """Refuse a place that holds something other than a model, or one not to be replaced."""
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise InputError(f"{folder} exists and is not a folder; choose another place.")
    with writing(folder):
        names = {one.name for one in os.scandir(folder)}
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
    folder: Path,
    manifest: dict[str, Any],
    state: bytes,
    arrays: bytes,
    printed: Mapping[str, bytes],
    *,
    overwrite: bool,
) -> None:
    """Write a model folder, or replace one; files under other names are left alone."""
    new = not folder.exists()
    make_folder(folder)
    try:
        with folder_lock(folder) as alone, writing(folder):
            check_place(folder, overwrite)
            if alone:
                _remove_leftovers(folder)
            _write(folder, manifest, state, arrays, printed)
    except BaseException:
        if new:
            _remove_new(folder)
        raise


def _write(
    folder: Path,
    manifest: dict[str, Any],
    state: bytes,
    arrays: bytes,
    printed: Mapping[str, bytes],
) -> None:
    place = 1 - _present_place(folder)
    manifest = {
        **manifest,
        "checksums": {
            "state": checksum(state),
            "arrays": checksum(arrays),
            # The page may be edited by hand; all else is to stay as it is.
            **{name: checksum(content) for name, content in printed.items() if name != "card.md"},
        },
    }
    manifest["identity"] = identity_of(manifest)
    manifest["data_files"] = list(DATA_FILES[place])
    contents = {
        **dict(zip(DATA_FILES[place], (state, arrays), strict=True)),
        **printed,
        MANIFEST: write_json(manifest, indent=1),
    }
    staged: dict[str, Path] = {}
    try:
        # All of it is on the disk before anything is replaced: a full disk changes nothing.
        for name, content in contents.items():
            staged[name] = folder / f".{uuid4().hex}{PART}"
            with open(staged[name], "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for name in DATA_FILES[place]:
            os.replace(staged[name], folder / name)
        # No card stays beside a model that it is not of. Killed within the next few steps, the
        # old or the new model is there, whole, without its card; `model.card` writes it again.
        for name in PRINTED:
            with suppress(FileNotFoundError):
                os.unlink(folder / name)
        sync_folder(folder)
        os.replace(staged[MANIFEST], folder / MANIFEST)
        sync_folder(folder)
        for name in printed:
            os.replace(staged[name], folder / name)
    finally:
        for part in staged.values():
            with suppress(OSError):
                os.unlink(part)
    for name in DATA_FILES[1 - place]:
        with suppress(OSError):
            os.unlink(folder / name)
    sync_folder(folder)


def _present_place(folder: Path) -> int:
    """Return which of the two places the manifest names; without a manifest, the second."""
    try:
        with OpenFolder(folder) as files:
            raw = files.read(MANIFEST, limits.MANIFEST_BYTES)
        found = {} if raw is None else read_json(raw, limits.MANIFEST_BYTES)
    except InputError:
        return 1
    data = found.get("data_files") if type(found) is dict else None
    return 0 if data == list(DATA_FILES[0]) else 1


def _remove_leftovers(folder: Path) -> None:
    for one in os.scandir(folder):
        if _LEFT.fullmatch(one.name) and one.is_file(follow_symlinks=False):
            with suppress(OSError):
                os.unlink(one.path)


def _remove_new(folder: Path) -> None:
    """Remove a folder that was made for a model which could not be written."""
    with suppress(OSError):
        for one in os.scandir(folder):
            if one.name in (*KNOWN, ".lock") or _LEFT.fullmatch(one.name):
                os.unlink(one.path)
        os.rmdir(folder)
