"""Parsers of single file formats, below the public readers of `baldur.io`.

In: the path of one file (CSV, Excel, Parquet, `.npy`, PLINK, NIfTI, HDF5). Out: arrays, lazily read
matrices and tables of text, with limits on memory and time checked before cells are read.
A parser does not know views, samples or studies: that is the task of the readers one folder up.
May import: `baldur.exceptions`, `baldur.safety`, `baldur.views` and `baldur.preparation`.
"""
