"""Views of the same samples: the container that every estimator accepts, and block products.

In come arrays, memory maps, sparse matrices, DataFrames and files that are read lazily, with names
of samples and features. Out come a `MultiView`, whose rows can be selected without copying, and
`PreparedView`, which multiplies standardised columns block by block. Nothing is learned here.

- `container`, `view`: the container, and one view of it.
- `estimator_input`, `table_encoding`: from a 2-D `X` with ``views=``, or a table with text, to a
  container.
- `validate`: checks of containers, labels, groups and weights.
- `sources`: the matrix behind a view, read in blocks.
- `standardised_blocks`, `prepared_view`: its standardised columns, and products with them.

It may import `exceptions` and `core`; all later parts import it.
"""

from baldur.views.container import MultiView
from baldur.views.view import View

__all__ = ["MultiView", "View"]
