"""Write a model folder, which holds the old model or the new one whenever the process ends.

State and arrays are written to the place that the present manifest does not name (`layout`). Then
the manifest is replaced, in one step. Nothing has to be repaired after an interrupted save: what it
left is removed by the next one, which holds the lock.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from baldur.atomic_io import PART, folder_lock, make_folder, sync_folder, writing
from baldur.exceptions import InputError
from baldur.saving import limits
from baldur.saving.folder_reader import OpenFolder, identity_of
from baldur.saving.json_text import checksum, read_json, write_json
from baldur.saving.layout import DATA_FILES, KNOWN, MANIFEST, PRINTED

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
