"""Read data files as named views of samples and features.

===================  ============================================================================
`read_table`         CSV, TSV, Parquet, Excel, ``.npy`` and ``.npz``
`read_plink`         PLINK 1 and 2 genotypes, read from disk by blocks of variants
`read_fam`           sex and phenotype of the people of a PLINK file
`read_nifti`         NIfTI images to voxels or region means; `to_nifti` takes weights back
`read_mudata`        MuData and AnnData, one view per modality
`read_obs`           the table about the observations of such a file
`align`              people matched by id over several views
===================  ============================================================================

Every reader returns a `MultiView` with sample ids and feature names. What has to be learned from
training rows (levels of categories, filters of variants and voxels) is a step of
`baldur.preparation`, in front of an estimator in a scikit-learn pipeline.
Nothing stored in a file is executed, and nothing is fetched from a network. Reading keeps to the
budget of memory and time in `baldur.core.limits`, whatever a file claims or unpacks to.

In: paths of files. Out: `MultiView` and tables. Each file format has a module with its parser.
May import: `exceptions`, `core`, `views` and `preparation`.
"""

from baldur.io.align import align
from baldur.io.mudata import read_mudata, read_obs
from baldur.io.nifti import read_nifti, to_nifti
from baldur.io.plink import read_fam, read_plink
from baldur.io.tables import read_table

__all__ = [
    "align",
    "read_fam",
    "read_mudata",
    "read_nifti",
    "read_obs",
    "read_plink",
    "read_table",
    "to_nifti",
]
