"""Model folders: written whole or not at all, and read without running anything they hold.

========================  =======================================================================
``manifest.json``         what the model is, for anyone to read
``structure.json``        its parts, every array by name
``arrays.safetensors``    the arrays
``card.md``, ...          the printable model, where it is small enough to print
========================  =======================================================================

The manifest holds the SHA-256 of every other file; its own stands in the header of the array file.
Any change of any file is found, unless somebody computes all checksums anew: a checksum tells what
was written from damage and mix-ups, and not who wrote it. To know that it is the model somebody
told you about, compare its identity (`identity`, or ``load(..., identity=...)``).
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np

from baldur.cards import CARD_FILES, make_card
from baldur.exceptions import InputError
from baldur.files import finish_replacing, make_folder, replace_files
from baldur.persist.arrays import pack_arrays, unpack_arrays
from baldur.persist.baselines import pack_baseline, unpack_baseline
from baldur.persist.decode import Decoder
from baldur.persist.encode import Encoder
from baldur.persist.legacy import OLD_FILES, load_pickled, old_manifest
from baldur.persist.manifest import COMPARED, FORMAT, SCHEMA, describe, versions
from baldur.persist.plain import digest, read_json, write_json
from baldur.persist.saved import SavedModel, layers
from baldur.persist.verify import verify

__all__ = ["identity", "load", "load_model", "read_manifest", "save", "save_model"]

MANIFEST, STRUCTURE, ARRAYS = "manifest.json", "structure.json", "arrays.safetensors"
PRINTED = CARD_FILES
_KNOWN = (MANIFEST, STRUCTURE, ARRAYS, *PRINTED, *OLD_FILES)
_PARTS = ("estimator", "features", "n_features", "classes", "details", "training")
# What reading a damaged tree can run into, beside errors of ours.
_FAULTS = (
    ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError,
    MemoryError, UnicodeError, AssertionError,
)  # fmt: skip


def save(model: Any, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a fitted model into a folder of its own, whole or not at all.

    Parameters
    ----------
    model : fitted estimator or SavedModel
        Any estimator of the package, alone or inside of its wrappers.
    path : str or Path
        The folder.
    overwrite : bool, default=False
        Replace a model folder that is there; nothing else is ever replaced.

    Returns
    -------
    Path
        The folder.

    See Also
    --------
    load : The way back.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import baldur
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(50, {"a": 4}, random_state=0)
    >>> fitted = baldur.BaldurClassifier(members=("pooled",)).fit(sim.data, sim.target)
    >>> with tempfile.TemporaryDirectory() as here:
    ...     again = baldur.load(baldur.save(fitted, pathlib.Path(here) / "model"))
    >>> bool((again.predict_proba(sim.data) == fitted.predict_proba(sim.data)).all())
    True
    """
    saved = model if isinstance(model, SavedModel) else SavedModel.alone(model)
    return save_model(saved, path, overwrite=overwrite)


def load(path: str | Path, *, trust: bool = False, identity: str | None = None) -> Any:
    """Load a fitted model from a folder that `save` wrote. Nothing in the folder is executed.

    Parameters
    ----------
    path : str or Path
        The folder.
    trust : bool, default=False
        Also open folders of the first schema, which hold a pickle. A pickle can run any code: set
        it only for folders from people you would run a program from.
    identity : str, optional
        The model's identity as its maker told you, see `identity`; any other model is refused.

    Returns
    -------
    estimator
        It predicts and explains bit for bit what it did before it was saved.
    """
    return load_model(path, trust=trust, identity=identity).estimator


def save_model(model: SavedModel, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write a model folder, whole or not at all.

    Parameters
    ----------
    model : SavedModel
        What to save.
    folder : str or Path
        Where to.
    overwrite : bool, default=False
        Replace a model folder that is there; nothing else is ever replaced.

    Returns
    -------
    Path
        The folder.
    """
    target = Path(folder)
    if target.exists():
        finish_replacing(target, _KNOWN)
        # A save that was stopped in a new folder leaves hidden files only.
        if not (target / MANIFEST).is_file() and (
            not target.is_dir() or any(not f.name.startswith(".") for f in target.iterdir())
        ):
            raise InputError(f"{target} exists and is no model folder; choose another place.")
        if not overwrite and (target / MANIFEST).is_file():
            raise InputError(f"{target} holds a model already; choose another place or overwrite.")
    contents = pack(model)
    new = not target.exists()
    try:
        replace_files(make_folder(target), contents, _KNOWN)
    except BaseException:
        if new:
            shutil.rmtree(target, ignore_errors=True)
        raise
    return target


def pack(model: SavedModel) -> dict[str, bytes]:
    """Return the files of a model folder."""
    encoder = Encoder(_packed)
    tree = encoder.tree({part: getattr(model, part) for part in _PARTS})
    # In the order of writing: what comes again refers to what came before.
    contents = {STRUCTURE: write_json(tree, sort=False), **_printed(model)}
    manifest = {
        **describe(model),
        "versions": versions(),
        # The page may be edited by hand; all else is to stay as it is.
        "files": {name: digest(c) for name, c in contents.items() if name != "card.md"},
    }
    contents[ARRAYS] = pack_arrays(encoder.arrays, {"manifest": digest(manifest)})
    manifest["arrays"] = digest(contents[ARRAYS])
    return {**contents, MANIFEST: write_json(manifest, indent=1)}


def _printed(model: SavedModel) -> dict[str, bytes]:
    """Return the files of the card, for models that have one."""
    if not hasattr(list(layers(model.estimator))[-1], "posterior"):
        return {}
    return make_card(model.estimator, classes=model.classes).files()


def _packed(value: Any) -> dict[str, Any] | None:
    content = pack_baseline(value)
    return None if content is None else {"is": "skops", "content": content}


def identity(folder: str | Path) -> str:
    """Return the identity of a saved model: a SHA-256 that covers every file it is made of.

    Parameters
    ----------
    folder : str or Path
        A model folder.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    return digest(read_manifest(folder))


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Read the manifest of a model folder, once all checksums are found right.

    Parameters
    ----------
    folder : str or Path
        A model folder, of any schema; no pickle is opened.

    Returns
    -------
    dict
    """
    return _checked(Path(folder))[0]


def load_model(
    folder: str | Path, *, trust: bool = False, identity: str | None = None
) -> SavedModel:
    """Load a model folder with all that belongs to it.

    Parameters
    ----------
    folder : str or Path
        As `save_model` wrote it.
    trust : bool, default=False
        Also open folders of the first schema, which hold a pickle; see `load`.
    identity : str, optional
        Refuse any other model; see `load`.

    Returns
    -------
    SavedModel
    """
    folder = Path(folder)
    manifest, contents = _checked(folder)
    if identity is not None and digest(manifest) != identity.strip().lower():
        raise InputError(
            f"{folder} is another model: its identity is {digest(manifest)}, and {identity} was "
            "asked for."
        )
    if manifest["schema"] == 1:
        return load_pickled(folder, manifest, trust)
    try:
        arrays, _ = unpack_arrays(contents[ARRAYS])
        decoder = Decoder(arrays, lambda node: unpack_baseline(decoder.value(node["content"])))
        parts = decoder.value(read_json(contents[STRUCTURE]))
        if not isinstance(parts, dict) or set(parts) != set(_PARTS):
            raise InputError("its parts are not those of a model")
        model = SavedModel(**parts)
        _check_saved(model)
        verify(model.estimator)
        again = describe(model)
    except (InputError, *_FAULTS) as error:
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(
            f"{folder} holds no sound model: {said.rstrip('.')}. Ask for it again where it came "
            "from."
        ) from None
    if any(manifest.get(key) != again[key] for key in COMPARED):
        raise InputError(f"{folder}/{MANIFEST} describes another model than the one beside it.")
    return model


def _check_saved(model: SavedModel) -> None:
    good = (
        isinstance(model.features, dict)
        and isinstance(model.n_features, dict)
        and list(model.features) == list(model.n_features)
        and isinstance(model.classes, list)
        and isinstance(model.details, dict)
        and isinstance(model.training, dict)
        and set(model.training) <= set(model.n_features)
    )
    if not good:
        raise InputError("its views are not told")
    for view, width in model.n_features.items():
        names, figures = model.features[view], model.training.get(view, {})
        fits = type(width) is int and (names is None or np.shape(names) == (width,))
        if not fits or any(np.shape(f) != (width,) for f in figures.values()):
            raise InputError(f"view {view!r} has other names or figures than features")


def _checked(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return manifest and contents of a folder whose checksums are right."""
    finish_replacing(folder, _KNOWN)
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder} is no model folder: it has no {MANIFEST}. Make one with fit.")
    try:
        manifest = read_json(_bytes(folder / MANIFEST))
    except InputError as error:
        raise InputError(f"{folder}/{MANIFEST} cannot be read: {error}; copy it again.") from None
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if type(schema) is not int or schema < 1:
        raise InputError(f"{folder}/{MANIFEST} has no schema number; it is no model of baldur.")
    if schema > SCHEMA:
        made = str(manifest.get("versions", {}) or "").strip("{}")[:80]
        raise InputError(
            f"{folder} was saved in schema {schema} ({made}), and this version reads up to "
            f"{SCHEMA}. Install a newer baldur."
        )
    if schema == 1:
        return old_manifest(folder, manifest), {}
    contents = {name: _bytes(folder / name) for name in (STRUCTURE, ARRAYS)}
    files = manifest.get("files")
    good = manifest.get("format") == FORMAT and isinstance(files, dict) and STRUCTURE in files
    if not good or not set(files) <= {STRUCTURE, *PRINTED}:
        raise InputError(f"{folder}/{MANIFEST} is not one that baldur wrote; copy it again.")
    for name, known in files.items():
        if name not in contents and not (folder / name).exists():
            continue  # a printed card that somebody took away harms nobody
        found = contents.get(name) or _bytes(folder / name)
        if digest(found) != known:
            raise InputError(f"{folder}/{name} is not what the manifest says; copy it again.")
    if digest(contents[ARRAYS]) != manifest.get("arrays"):
        raise InputError(f"{folder}/{ARRAYS} is not what the manifest says; copy it again.")
    try:
        _, notes = unpack_arrays(contents[ARRAYS])
    except InputError as error:
        raise InputError(f"{folder}/{ARRAYS} cannot be read: {error}; copy it again.") from None
    covered = {key: value for key, value in manifest.items() if key != "arrays"}
    if notes.get("manifest") != digest(covered):
        raise InputError(
            f"{folder}/{MANIFEST} was changed after the model was saved; copy it again."
        )
    return manifest, contents


def _bytes(file: Path) -> bytes:
    """Read a plain file; a pipe or a device could keep us waiting for ever."""
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):
            raise InputError(f"{file} is no plain file; copy the model again.")
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); copy it again.") from None
