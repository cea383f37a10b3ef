"""Hostile files of every kind the readers know, made by code.

`CASES` maps a name to a `Case`. Modules: `base` (what a case is), one per format, `driver` (reads
each file in a process of its own and measures it).
"""

from robustness.hostile import arrays, hdf5, images, parquet, plink, studies, text, workbooks
from robustness.hostile.base import CANARY, Case

__all__ = ["CANARY", "CASES", "Case"]

CASES: dict[str, Case] = {
    f"{module.__name__.rpartition('.')[2]}: {name}": case
    for module in (text, arrays, parquet, workbooks, hdf5, images, plink, studies)
    for name, case in module.CASES.items()
}
