"""Save and load models as folders, which are written completely or not at all.

========================  =======================================================================
``manifest.json``         what the model is, for anyone to read; checksums of the other files
``state.json``            its parts as plain values, every array by name
``arrays.safetensors``    the arrays
``card.md``, ...          the printable model, where it is small enough to print
========================  =======================================================================

``docs/reference/model-format.md`` describes them. Checksums find any change of a file that was made
by accident. They do not show who wrote a folder, because anybody can compute them again. To know
that it is the model you expect, pass its identity to `load`.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import baldur
from baldur.core.limits import MAX_BYTES
from baldur.core.state import read_state, write_state
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
# field is checked, and this is the net below it.
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError,
           RecursionError, TypeError, ValueError)  # fmt: skip


def save(model: Any, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a fitted model into a folder of its own, completely or not at all.

    Parameters
    ----------
    model : fitted estimator or SavedModel
        `BaldurClassifier`, `BaldurRegressor` or their mean-field form. A `SavedModel` also has
        the labels and the description of the study that it was fitted in.
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
    folder = Path(path)
    check_place(folder, overwrite)
    manifest = {**describe(saved), "versions": versions()}
    write_folder(folder, manifest, *_pack(saved), _printed(saved), overwrite=overwrite)
    return folder


def load(
    path: str | Path,
    *,
    study: bool = False,
    identity: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Any:
    """Load a fitted model from a folder that `save` wrote.

    Nothing in the folder is executed, and nothing is changed.

    Parameters
    ----------
    path : str or Path
        The folder.
    study : bool, default=False
        Return a `SavedModel`: the estimator with its labels and the description of the study that
        it was fitted in.
    identity : str, optional
        The identity of the expected model, as printed by ``baldur fit``; any other model is
        refused.
    max_bytes : int, default=4 GB
        The largest array file that is read.

    Returns
    -------
    estimator or SavedModel
        It predicts and explains bit for bit what it did before it was saved.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import baldur
    >>> from baldur.datasets import make_multiview
    >>> from baldur.paper import PaperClassifier
    >>> from baldur.saving import SavedModel
    >>> sim = make_multiview(50, {"a": 4}, random_state=0)
    >>> fitted = PaperClassifier(sparsity=0.5).fit(sim.data, sim.target)
    >>> model = SavedModel(fitted, classes=["control", "patient"], details={"title": "Pilot"})
    >>> with tempfile.TemporaryDirectory() as here:
    ...     folder = baldur.save(model, pathlib.Path(here) / "model")
    ...     again = baldur.load(folder, study=True)
    >>> again.classes, again.details
    (['control', 'patient'], {'title': 'Pilot'})
    """
    folder = Path(path)
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
    return model if study else model.estimator


def read_manifest(folder: str | Path, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return the manifest of a model folder after verifying all checksums."""
    return read_folder(Path(folder), max_bytes).manifest


def _pack(model: SavedModel) -> tuple[bytes, bytes]:
    """Return the state and the arrays of a model as files that can be read again."""
    tree, arrays = pack_tree(write_state(model))
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
    model: SavedModel = read_state(unpack_tree(tree, unpack_arrays(arrays)), SavedModel)
    return model


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
