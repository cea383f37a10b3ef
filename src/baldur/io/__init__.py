"""Files in, named views out.

===================  ============================================================================
`read_table`         CSV, TSV, Parquet, Excel, ``.npy`` and ``.npz``
`align`              people matched by id over several views
`CategoryEncoder`    levels of categories, learned on training rows
===================  ============================================================================
"""

from baldur.io._ids import simplify_id
from baldur.io.align import Aligned, AlignReport, align
from baldur.io.encode import CategoryEncoder
from baldur.io.tables import MISSING_MARKERS, read_table

__all__ = [
    "AlignReport",
    "Aligned",
    "CategoryEncoder",
    "MISSING_MARKERS",
    "align",
    "read_table",
    "simplify_id",
]
