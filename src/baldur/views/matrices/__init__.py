"""The matrices behind views: read by blocks of columns, standardised as they are read.

In: arrays, sparse matrices, files on disk and Dask arrays. Out: products that touch every feature
once, tile by tile, so that a view of a million features is never copied or expanded as a whole.

- `source` and `memory_maps`: matrices that are read by columns; `blocks`: how columns are cut.
- `standardise_and_fill` and `normal_scores`: standardised cells of one tile.
- `prepared_view`: the products X^T a, X diag(s) X^T and x_d^T M x_d.
- `gram`: eigenvectors of a wide matrix from its Gram matrix; `read_counter`: passes over the data.

Nothing is learned here: means, scales and limits come from `baldur.preparation`.
May import: `baldur.exceptions`, `baldur.types`, `baldur.safety`, `baldur.state` and the messages in
`baldur.views.validate`.
"""
