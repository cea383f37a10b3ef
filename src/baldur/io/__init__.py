"""Files in, named views out.

===================  ============================================================================
`read_table`         CSV, TSV, Parquet, Excel, ``.npy`` and ``.npz``
`read_plink`         PLINK 1 and 2 genotypes, read from disk by blocks of variants
`read_fam`           sex and phenotype of the people of a PLINK file
`read_nifti`         NIfTI images to voxels or region means; `to_nifti` takes weights back
`align`              people matched by id over several views
`CategoryEncoder`    levels of categories, learned on training rows
`VariantFilter`      rare, poorly called and monomorphic variants, judged on training rows
`VoxelMask`          voxels that are not background, judged on training rows
===================  ============================================================================

Every reader returns a `MultiView` with sample ids and feature names. What has to be learned from
training rows is a step of its own, to be put in front of an estimator in a scikit-learn pipeline.
"""

from baldur.io._ids import simplify_id
from baldur.io.align import Aligned, AlignReport, align
from baldur.io.encode import CategoryEncoder
from baldur.io.nifti import read_nifti
from baldur.io.plink import read_fam, read_plink
from baldur.io.tables import MISSING_MARKERS, read_table
from baldur.io.variants import VariantFilter
from baldur.io.voxels import VoxelMask
from baldur.io.weights import to_nifti

__all__ = [
    "AlignReport",
    "Aligned",
    "CategoryEncoder",
    "MISSING_MARKERS",
    "VariantFilter",
    "VoxelMask",
    "align",
    "read_fam",
    "read_nifti",
    "read_plink",
    "read_table",
    "simplify_id",
    "to_nifti",
]
