"""Save and load fitted models as folders of readable files; nothing in them is executed.

===================  ============================================================================
`folder`             save and load: what a user calls
`saved_model`        SavedModel, a fitted model with its classes and what a study says about it
`estimator_state`    which attributes of an estimator are stored; `setting_state` its settings
`state_tree`         plain values as JSON and named arrays, which `model_files` writes and reads
`folder_files`       a folder is written completely or not at all, and read within `limits`
`card`, `scorers`    the printable model with scorers; `onnx_model` the model as a graph
===================  ============================================================================

In: fitted estimators, whose classes describe what is stored of them (`baldur.core.state`). Out:
folders as described in ``docs/reference/model-format.md``, and estimators again. May import every
part that is saved, from `views` to `evaluation`; is imported by `study`, `report` and `cli`.
"""

from baldur.saving.folder import load, save
from baldur.saving.saved_model import SavedModel

__all__ = [
    "SavedModel",
    "load",
    "save",
]
