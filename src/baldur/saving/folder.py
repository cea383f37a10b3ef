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

import hashlib
import json
import platform
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import sklearn

import baldur
from baldur.core.limits import MAX_BYTES
from baldur.core.state import (
    Boolean,
    ByName,
    ByView,
    Each,
    Form,
    Integer,
    Labels,
    Numbers,
    OrNone,
    Plain,
    Sizes,
    Text,
    need,
    read_fields,
    read_state,
    stored,
    write_state,
)
from baldur.exceptions import InputError, InputWarning
from baldur.saving.estimator_state import estimator_state, kind_of, read_estimator
from baldur.saving.folder_files import (
    FORMAT,
    MANIFEST,
    SCHEMA,
    SCORERS,
    STATE_BYTES,
    check_place,
    read_folder,
    write_folder,
)
from baldur.saving.state_files import (
    pack_arrays,
    pack_tree,
    read_json,
    unpack_arrays,
    unpack_tree,
    write_json,
)


def _labels(value: Any, sizes: Sizes) -> Any:
    """Read a list of labels, of which those of one type are checked as an array is."""
    labels = Each(Plain())(value, sizes)
    for kind in (str, int, float, bool):
        alike = [label for label in labels if type(label) is kind]
        Labels()(np.array(alike, dtype=object if kind is str else kind), sizes)
    simple = all(type(label) in (str, int, float, bool) for label in labels)
    need(simple, "expected labels that are text, numbers or truth values")
    return labels


_DETAILS: dict[str, Form] = {
    **dict.fromkeys(("model", "task", "outcome", "title"), OrNone(Text())),
    "samples": OrNone(Integer(1)),
    "setting": OrNone(ByName(Plain())),
    # Which columns of the samples table are categories, see `learn_coding`
    "included": OrNone(ByName(ByName(Boolean()))),
}
"""What the package itself uses of what a study says about a model."""


def _details(value: Any, sizes: Sizes) -> Any:
    """Read what a study says about a model; there may be more entries than the package uses."""
    details = ByName(Plain())(value, sizes)
    used = {name: entry for name, entry in details.items() if name in _DETAILS}
    read_fields(used, {name: _DETAILS[name] for name in used}, sizes)
    return details


@dataclass
class SavedModel:
    """A fitted model with the description of its input.

    Attributes
    ----------
    estimator : estimator
        Fitted.
    classes : list
        Labels in the order of the estimator's own, which may be their places in this list; the
        positive one is last. Empty for numbers. Of a label matrix, the names of the outcomes.
    details : dict
        Anything else that JSON holds.
    training : dict of str to dict of str to ndarray
        Statistics of every feature over training rows, see `baldur.evaluation.cohort_shift`;
        may be empty.

    Examples
    --------
    >>> from baldur.paper import PaperClassifier
    >>> from baldur.datasets import make_multiview
    >>> from baldur.saving import SavedModel
    >>> sim = make_multiview(50, {"a": 4}, random_state=0)
    >>> fitted = PaperClassifier(sparsity=0.5).fit(sim.data, sim.target)
    >>> model = SavedModel(fitted, classes=["control", "patient"], details={"title": "Pilot"})
    >>> model.classes[-1], model.details["title"]
    ('patient', 'Pilot')
    """

    kind: ClassVar[str] = "saved model"

    estimator: Any = stored(read_estimator)
    classes: list[Any] = stored(_labels, default_factory=list)
    details: dict[str, Any] = stored(_details, default_factory=dict)
    training: dict[str, dict[str, np.ndarray]] = stored(
        ByView(ByName(Numbers("D", "number", finite=False, largest=np.inf)), some=True),
        default_factory=dict,
    )

    @property
    def outcomes(self) -> list[str]:
        """Names of the outcomes of a model of a label matrix; empty for a single outcome."""
        several = getattr(self.estimator, "_task", None) == "multilabel"
        return [str(name) for name in self.classes] if several else []

    @property
    def features(self) -> dict[str, np.ndarray | None]:
        """Names of the features of every view in order, None for a view without given names."""
        return dict(self.estimator.preparation_.feature_names)

    @property
    def n_features(self) -> dict[str, int]:
        """Number of features of every view."""
        return {name: int(n) for name, n in self.estimator.preparation_.n_features_.items()}

    @classmethod
    def alone(cls, estimator: Any) -> SavedModel:
        """Build a saved model from a fitted estimator without a study."""
        kind_of(estimator)
        if not hasattr(estimator, "preparation_"):
            raise InputError(f"save: {type(estimator).__name__} is not fitted. Call fit first.")
        classes = getattr(estimator, "classes_", None)
        return cls(estimator, [] if classes is None else np.asarray(classes).tolist())

    def state_values(self) -> dict[str, Any]:
        """Return the values that are stored in another form than the attributes have."""
        return {"estimator": estimator_state(self.estimator)}

    def check_state(self, sizes: Sizes) -> None:
        """Refuse other labels than the estimator has."""
        expected = len(getattr(self.estimator, "classes_", self.classes))
        fits = not self.classes or len(self.classes) == expected
        need(fits, f"expected {expected} labels", "classes")


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
    state, arrays = _pack(saved)
    card = saved.estimator.card(classes=saved.classes)
    parts = {"state": state, "arrays": arrays, **card.files()}
    write_folder(folder, manifest, parts, overwrite=overwrite)
    return folder


# What building an object from a forged state can run into, beside errors of ours: every
# field is checked, and this is the net below it.
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError,
           RecursionError, TypeError, ValueError)  # fmt: skip


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
    manifest, parts = read_folder(folder, max_bytes)
    if identity is not None and manifest["identity"] != identity.strip().lower():
        raise InputError(
            f"{folder} is another model: its identity is {manifest['identity']}, and {identity} "
            "was asked for."
        )
    try:
        model = _unpack(parts["state"], parts["arrays"])
        description = describe(model)
    except (InputError, *_FAULTS) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(
            f"{folder} does not hold a sound model: {reason.rstrip('.')}. Ask for it again where "
            "it came from."
        ) from None
    if any(manifest.get(key) != description[key] for key in COMPARED):
        raise InputError(f"{folder}/{MANIFEST} describes another model than the one beside it.")
    _compare_scorers(folder, parts)
    return model if study else model.estimator


COMPARED = ("model", "task", "classes", "views", "samples", "steps", "regress_out",
            "training_rows_inside", "fingerprint")  # fmt: skip
"""What a manifest must say as the loaded model does; the rest may be put otherwise one day."""
_PLAIN_CONSTANTS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def describe(model: SavedModel) -> dict[str, Any]:
    """Return what a manifest says about a model, as JSON has it.

    A loaded model is described again and the two are compared, so a manifest cannot describe
    another model than the one beside it.
    """
    estimator, kind = model.estimator, kind_of(model.estimator)
    preparation = estimator.preparation_
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "model": kind,
        "class": type(estimator).__name__,
        "task": estimator._task,
        "classes": [_plain(label) for label in model.classes],
        "views": [
            {"name": name, "features": int(width)} for name, width in model.n_features.items()
        ],
        "samples": int(preparation.n_samples_),
        "steps": [type(step).__name__ for step in preparation.steps_],
        "regress_out": [] if preparation.covariates_ is None else preparation.covariates_.names,
        "training_rows_inside": estimator.predictor.holds_training_rows,
        "fingerprint": fingerprint(preparation),
        "details": _plain(model.details),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries used for the fit."""
    return {
        "baldur": baldur.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }


def fingerprint(preparation: Any) -> str:
    """Return a checksum of what was learned about every column of the training rows.

    Number of rows, and mean, scale, smallest and largest value of every column: two models with one
    fingerprint saw the same data, or data that agree in all of these to the last digit.
    """
    digest = hashlib.sha256(str(preparation.n_samples_).encode())
    for name, width in preparation.n_features_.items():
        digest.update(f"\0{name}\0{width}".encode("utf-8", "surrogatepass"))
        for statistic in (
            preparation.mean_, preparation.scale_, preparation.minimum_, preparation.maximum_,
        ):  # fmt: skip
            digest.update(np.ascontiguousarray(statistic[name], dtype="<f8").tobytes())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; what JSON does not know becomes text."""

    def replaced(value: Any) -> Any:
        is_numpy = isinstance(value, (np.generic, np.ndarray))
        return value.tolist() if is_numpy else type(value).__name__

    return json.loads(json.dumps(value, default=replaced), parse_constant=_PLAIN_CONSTANTS.get)


def _pack(model: SavedModel) -> tuple[bytes, bytes]:
    """Return the contents of the two files of a model, after reading them once as a test."""
    tree, arrays = pack_tree(write_state(model))
    state_file, array_file = write_json(tree), pack_arrays(arrays)
    try:
        # A model that could not be loaded is refused when it is saved.
        _unpack(state_file, array_file)
    except InputError as error:
        raise InputError(
            f"The model cannot be saved, because it could not be loaded: {error}"
        ) from error
    return state_file, array_file


def _unpack(state: bytes, arrays: bytes) -> SavedModel:
    tree = read_json(state, STATE_BYTES)
    model: SavedModel = read_state(unpack_tree(tree, unpack_arrays(arrays)), SavedModel)
    return model


def _compare_scorers(folder: Path, parts: dict[str, bytes]) -> None:
    """Warn about scorers in a folder that differ from those of the installed version."""
    installed = Path(__file__).parent
    changed = [
        name for name in SCORERS if name in parts and parts[name] != (installed / name).read_bytes()
    ]
    if changed:
        warnings.warn(
            f"{folder}: {', '.join(changed)} came with the folder and "
            f"{'is' if len(changed) == 1 else 'are'} not what this version of baldur writes. It is "
            "a program of the person who made the folder: do not run it unless you trust them. "
            "model.card(folder) writes the scorers of this version.",
            InputWarning,
            stacklevel=3,  # the line that called `load`
        )
