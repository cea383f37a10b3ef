"""Save and load fitted models as folders of readable files; nothing in them is executed.

===================  ============================================================================
`folder`             save and load, what a user calls; SavedModel, a fitted model with its classes
                     and what a study says about it
`folder_files`       a folder is written completely or not at all, and read within limits
`estimator_state`    which settings and attributes of an estimator are stored
`state_files`        plain values as JSON, and named arrays, both within limits
`card`               the card of a model and the files it is written as
`printed_model`      the numbers of a card, as JSON has them, as R code and as an ONNX graph
===================  ============================================================================

In: fitted estimators, whose classes describe what is stored of them (`baldur.core.state`). Out:
folders as described in ``docs/reference/model-format.md``, and estimators again. May import every
part that is saved, from `views` to `evaluation`; is imported by `study`, `report` and `cli`.
"""

from baldur.saving.folder import SavedModel, load, save

__all__ = [
    "SavedModel",
    "load",
    "save",
]
