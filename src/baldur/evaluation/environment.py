"""What a result depends on besides data and settings: the code and the libraries under it."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

import numpy as np
import scipy
import sklearn

import baldur

__all__ = ["environment"]


@cache
def environment() -> dict[str, str]:
    """Return the versions of the package, its libraries and Python.

    The version of the package carries a hash of its source files, so that results of changed code
    are not taken for those of the old one.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> from baldur.evaluation.environment import environment
    >>> list(environment())
    ['baldur', 'scikit-learn', 'numpy', 'scipy', 'python']
    """
    return {
        "baldur": f"{baldur.__version__}+{_code(Path(baldur.__file__).parent)}",
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


def _code(package: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(package).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]
