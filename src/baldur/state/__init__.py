"""The state of a fitted object: plain values for saving, validated values when loading.

An object that can be saved has two methods:

- ``to_state()`` returns a dictionary of plain values: None, bool, int, float, str, NumPy arrays of
  numbers, truth values or text, and lists and string-keyed dictionaries of these. Its entry
  ``kind`` says what the object is. An object inside another one is its own ``to_state()``; a
  DataFrame is `dataframe_state` of it.
- ``from_state(state)``, a class method, builds the object again. `Fields` reads
  every field with its shape, its type and what must hold for its values, and a field too many, a
  field too few or a value that cannot be is an InputError that names the field.

How states become files is the job of `baldur.saving`. ``docs/reference/model-format.md`` lists
every kind with its fields. May import `baldur.exceptions` and `baldur.safety`; every part that can
be saved imports it.

Examples
--------
>>> import numpy as np
>>> from dataclasses import dataclass
>>> from baldur.state import Fields
>>> @dataclass
... class Gaussian:
...     mean: np.ndarray
...     cov: np.ndarray
...
...     def to_state(self):
...         return {"kind": "gaussian", "mean": self.mean, "cov": self.cov}
...
...     @classmethod
...     def from_state(cls, state):
...         with Fields(state, "gaussian") as read:
...             return cls(read.array("mean", ("d",)), read.covariance("cov", ("d", "d")))
>>> Gaussian.from_state(Gaussian(np.zeros(2), np.eye(2)).to_state()).mean
array([0., 0.])
>>> Gaussian.from_state({"kind": "gaussian", "mean": np.zeros(2), "cov": -np.eye(2)})
Traceback (most recent call last):
    ...
baldur.state.fields.StateError: cov: expected variances that are not negative
"""

from baldur.state.dataframes import dataframe_state, read_dataframe
from baldur.state.fields import LARGEST, Fields, Shape, State, StateError, by_kind, made_by, plain

__all__ = [
    "LARGEST",
    "Fields",
    "Shape",
    "State",
    "StateError",
    "by_kind",
    "made_by",
    "plain",
    "read_dataframe",
    "dataframe_state",
]
