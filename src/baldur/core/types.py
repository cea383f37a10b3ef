"""Names of array types that the whole package uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]
Mask = NDArray[np.bool_]
Index = list[NDArray[np.intp]]
"""Column numbers of every view."""
