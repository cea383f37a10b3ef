"""Parsers of single file formats, below the public readers of `baldur.io`.

`delimited` and `text_stream` read CSV and TSV, `excel` workbooks, `parquet` Parquet, `numpy_files`
``.npy`` and ``.npz``, `genotypes` and `plink_tables` PLINK, `images` and `regions` NIfTI, `hdf5`
and `hdf5_tables` MuData and AnnData. The two scripts ``*_first_look`` read a file in another
process.

In: the path of one file. Out: arrays, lazily read matrices and tables of text; limits on memory and
time are checked before cells are read. A parser does not know views, samples or studies, which are
the task of the readers one folder up.
May import: `baldur.exceptions`, `baldur.safety` and `baldur.views`.
"""
