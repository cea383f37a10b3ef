"""The matrices behind views: read by blocks of columns, standardised as they are read.

In: arrays, files on disk and Dask arrays (`source`, `memory_maps`). Out: products that touch every
feature once, tile by tile (`prepared_view`: X^T a, X diag(s) X^T, x_d^T M x_d), so that a view of a
million features is never copied or expanded as a whole (`blocks`, `standardised`, `normal_scores`,
`read_counter`, `gram`).
Nothing is learned here: means, scales and limits come from `baldur.preparation`.
May import: `baldur.exceptions`, `baldur.types`, `baldur.safety`, `baldur.state`.
"""
