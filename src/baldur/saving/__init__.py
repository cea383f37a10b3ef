"""Save and load fitted models as folders of readable files; nothing in them is executed.

===================  ============================================================================
`folder`             save and load: what a user calls
`saved_model`        SavedModel, a fitted model with its classes and what a study says about it
`estimator_state`    states of estimators: settings, fitted attributes, preparation and predictor
`state_tree`         states as JSON and named arrays, for `json_text` and `array_file`
`folder_reader`      reads a folder without following links, within `limits`, changing nothing
`folder_writer`      writes a folder completely or not at all
`cards`              the printable model with scorers, and ONNX
===================  ============================================================================

In: fitted estimators, whose parts are plain values (`baldur.core.state`). Out: folders as described
in ``docs/reference/model-format.md``, and estimators again. May import every part that is saved,
from `views` to `evaluation`; is imported by `study`, `report` and `cli`.
"""

from baldur.saving.folder import load, save
from baldur.saving.saved_model import SavedModel

__all__ = [
    "SavedModel",
    "load",
    "save",
]
