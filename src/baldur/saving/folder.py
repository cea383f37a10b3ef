"""Save and load models as folders, which are written completely or not at all.

========================  =======================================================================
``manifest.json``         what the model is, for anyone to read; checksums of the other files
``state.json``            its parts as plain values, every array by name
``arrays.safetensors``    the arrays
``card.md``, ...          the printable model, where it is small enough to print
========================  =======================================================================

``docs/reference/model-format.md`` describes them. Checksums find any change of a file that was made
by accident. They do not show who wrote a folder, because anybody can compute them again. To know
that it is the model you expect, compare its identity (`identity`, or ``load(..., identity=...)``).
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import baldur
from baldur.core.limits import MAX_BYTES
from baldur.exceptions import InputError, InputWarning
from baldur.saving import limits
from baldur.saving.folder_files import check_place, read_folder, write_folder
from baldur.saving.layout import MANIFEST, SCORERS
from baldur.saving.model_files import (
    COMPARED,
    describe,
    pack_arrays,
    read_json,
    unpack_arrays,
    versions,
    write_json,
)
from baldur.saving.saved_model import SavedModel
from baldur.saving.state_tree import pack_tree, unpack_tree

# What building an object from a forged state can run into, beside errors of ours: every
# `from_state` validates, and this is the net below it.
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError,
           RecursionError, TypeError, ValueError)  # fmt: skip


def save(model: Any, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a fitted model into a folder of its own, completely or not at all.

    Parameters
    ----------
    model : fitted estimator or SavedModel
        Any estimator of the package.
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
    >>> fitted = baldur.paper.PaperClassifier(sparsity=0.5).fit(sim.data, sim.target)
    >>> with tempfile.TemporaryDirectory() as here:
    ...     again = baldur.load(baldur.save(fitted, pathlib.Path(here) / "model"))
    >>> bool((again.predict_proba(sim.data) == fitted.predict_proba(sim.data)).all())
    True
    """
    saved = model if isinstance(model, SavedModel) else SavedModel.alone(model)
    return save_model(saved, path, overwrite=overwrite)


def load(path: str | Path, *, identity: str | None = None, max_bytes: int = MAX_BYTES) -> Any:
    """Load a fitted model from a folder that `save` wrote.

    Nothing in the folder is executed, and nothing is changed.

    Parameters
    ----------
    path : str or Path
        The folder.
    identity : str, optional
        The identity of the expected model, see `identity`; any other model is refused.
    max_bytes : int, default=4 GB
        The largest array file that is read.

    Returns
    -------
    estimator
        It predicts and explains bit for bit what it did before it was saved.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import baldur
    >>> from baldur.baselines import MVPLSClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4}, random_state=0)
    >>> with tempfile.TemporaryDirectory() as here:
    ...     fitted = MVPLSClassifier().fit(sim.data, sim.target)
    ...     folder = baldur.save(fitted, pathlib.Path(here) / "model")
    ...     again = baldur.load(folder)
    >>> bool((again.predict(sim.data) == fitted.predict(sim.data)).all())
    True
    """
    return load_model(path, identity=identity, max_bytes=max_bytes).estimator


def save_model(model: SavedModel, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write a model folder, completely or not at all.

    Parameters
    ----------
    model : SavedModel
        What to save.
    folder : str or Path
        Where to.
    overwrite : bool, default=False
        As in `save`.

    Returns
    -------
    Path

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from baldur.baselines import MVPLSClassifier
    >>> from baldur.saving import SavedModel, save_model
    >>> fitted = MVPLSClassifier().fit(np.eye(4), [0, 0, 1, 1])
    >>> model = SavedModel(fitted, classes=["control", "patient"], details={"title": "Pilot"})
    >>> with tempfile.TemporaryDirectory() as here:
    ...     folder = save_model(model, pathlib.Path(here) / "model")
    ...     print(sorted(file.name for file in folder.glob("[a-z]*")))
    ['arrays.safetensors', 'manifest.json', 'state.json']
    """
    target = Path(folder)
    check_place(target, overwrite)
    state, arrays = _pack(model)
    write_folder(
        target,
        {**describe(model), "versions": versions()},
        state,
        arrays,
        _printed(model),
        overwrite=overwrite,
    )
    return target


def identity(folder: str | Path) -> str:
    """Return the identity of a saved model: a SHA-256 that covers every file it is made of.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import baldur
    >>> from baldur.baselines import MVPLSClassifier
    >>> from baldur.saving.folder import identity
    >>> fitted = MVPLSClassifier().fit(np.eye(4), [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as here:
    ...     folder = baldur.save(fitted, pathlib.Path(here) / "model")
    ...     known = identity(folder)
    ...     again = baldur.load(folder, identity=known)
    >>> len(known)
    64
    """
    return str(read_manifest(folder)["identity"])


def read_manifest(folder: str | Path, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Read the manifest of a model folder after verifying all checksums.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import baldur
    >>> from baldur.baselines import MVPLSClassifier
    >>> from baldur.saving.folder import read_manifest
    >>> fitted = MVPLSClassifier().fit(np.eye(4), [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as here:
    ...     manifest = read_manifest(baldur.save(fitted, pathlib.Path(here) / "model"))
    >>> manifest["class"], manifest["task"], manifest["views"]
    ('MVPLSClassifier', 'classification', [{'name': 'X', 'features': 4}])
    """
    return read_folder(Path(folder), max_bytes).manifest


def load_model(
    folder: str | Path, *, identity: str | None = None, max_bytes: int = MAX_BYTES
) -> SavedModel:
    """Load a model folder, with the description of the study it was fitted in.

    Parameters
    ----------
    folder : str or Path
        As `save_model` wrote it.
    identity, max_bytes
        As in `load`.

    Returns
    -------
    SavedModel

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from baldur.baselines import MVPLSClassifier
    >>> from baldur.saving import SavedModel, load_model, save_model
    >>> fitted = MVPLSClassifier().fit(np.eye(4), [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as here:
    ...     model = SavedModel(fitted, classes=["control", "patient"])
    ...     again = load_model(save_model(model, pathlib.Path(here) / "model"))
    >>> again.estimator, again.classes
    (MVPLSClassifier(), ['control', 'patient'])
    """
    folder = Path(folder)
    manifest, state, arrays, printed = read_folder(folder, max_bytes)
    if identity is not None and manifest["identity"] != identity.strip().lower():
        raise InputError(
            f"{folder} is another model: its identity is {manifest['identity']}, and {identity} "
            "was asked for."
        )
    try:
        model = _unpack(state, arrays)
        again = describe(model)
    except (InputError, *_FAULTS) as error:
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(
            f"{folder} does not hold a sound model: {said.rstrip('.')}. Ask for it again where it "
            "came from."
        ) from None
    if any(manifest.get(key) != again[key] for key in COMPARED):
        raise InputError(f"{folder}/{MANIFEST} describes another model than the one beside it.")
    _compare_scorers(folder, printed)
    return model


def _pack(model: SavedModel) -> tuple[bytes, bytes]:
    """Return the state and the arrays of a model as files that can be read again."""
    tree, arrays = pack_tree(model.to_state())
    state, content = write_json(tree), pack_arrays(arrays)
    try:
        # A model that could not be loaded is refused when it is saved.
        _unpack(state, content)
    except InputError as error:
        raise InputError(
            f"The model cannot be saved, because it could not be loaded: {error}"
        ) from error
    return state, content


def _unpack(state: bytes, arrays: bytes) -> SavedModel:
    tree = read_json(state, limits.STATE_BYTES)
    return SavedModel.from_state(unpack_tree(tree, unpack_arrays(arrays)))


def _printed(model: SavedModel) -> dict[str, bytes]:
    """Return the files of the card, for models that have one."""
    if not hasattr(model.estimator, "card"):
        return {}
    from baldur.saving.card import make_card

    return make_card(model.estimator, classes=model.classes).files()


def _compare_scorers(folder: Path, printed: dict[str, bytes]) -> None:
    """Warn about scorers in a folder that differ from those of the installed version."""
    ours = Path(baldur.__file__).parent / "saving"
    other = [
        name for name in SCORERS if name in printed and printed[name] != (ours / name).read_bytes()
    ]
    if other:
        warnings.warn(
            f"{folder}: {', '.join(other)} came with the folder and "
            f"{'is' if len(other) == 1 else 'are'} not what this version of baldur writes. It is a "
            "program of the person who made the folder: do not run it unless you trust them. "
            "model.card(folder) writes the scorers of this version.",
            InputWarning,
            stacklevel=3,
        )
