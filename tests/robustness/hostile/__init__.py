"""Hostile files of every kind the readers know, made by code.

`CASES` maps a name to a `Case`. Modules: `base` (what a case is), one per format, `driver` (reads
each file in a process of its own and measures it).
"""

from robustness.hostile import (
    arrays,
    hdf5,
    hdf5_types,
    image_headers,
    images,
    model_folders,
    mutations,
    parquet,
    parquet_pages,
    plink,
    plink_lists,
    studies,
    text,
    workbooks,
)
from robustness.hostile.base import CANARY, Case

__all__ = ["CANARY", "CASES", "Case"]

CASES: dict[str, Case] = {
    f"{module.__name__.rpartition('.')[2]}: {name}": case
    for module in (
        text,
        arrays,
        parquet,
        parquet_pages,
        workbooks,
        hdf5,
        hdf5_types,
        images,
        image_headers,
        plink,
        plink_lists,
        mutations,
        model_folders,
        studies,
    )
    for name, case in module.CASES.items()
}
