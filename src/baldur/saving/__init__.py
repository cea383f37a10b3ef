"""Save and load fitted models: open folders, and nothing in them is ever executed.

=============  ==================================================================================
`folder`       save, load, identity: what a user calls
`saved`        SavedModel, a fitted model with what is needed to feed it
`estimators`   states of estimators: settings, fitted attributes, preparation and predictor
`baselines`    competitors, as skops stores them, of listed types
`tree`         states as JSON and named arrays; `arrays` and `json_text` are the two files
`reading`      a folder without following links, within `limits`, changing nothing
`writing`      a folder whole or not at all
=============  ==================================================================================

What comes in: fitted estimators, which give their parts as plain values (`baldur.state`). What goes
out: folders as ``docs/model-format.md`` describes them. It may import every part that is saved,
and is imported by studies, reports and the command line.
"""

from baldur.saving.folder import (
    identity,
    load,
    load_model,
    read_manifest,
    save,
    save_model,
)
from baldur.saving.layout import SCHEMA
from baldur.saving.saved_model import SavedModel

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
