"""Save and load fitted models: open folders, and nothing in them is ever executed."""

from baldur.persist.folder import (
    identity,
    load,
    load_model,
    read_manifest,
    save,
    save_model,
)
from baldur.persist.manifest import SCHEMA
from baldur.persist.saved import SavedModel

__all__ = [
    "SCHEMA",
    "SavedModel",
    "identity",
    "load",
    "load_model",
    "read_manifest",
    "save",
    "save_model",
]
