"""Views of the same samples: the container that every estimator accepts, and block products.

In come arrays, memory maps, sparse matrices, DataFrames and files that are read lazily, with names
of samples and features. Out come a `MultiView`, whose rows can be selected without copying, and
`PreparedView`, which multiplies standardised columns block by block. Nothing is learned here.

- `container`, `view`, `source`: the container, one view of it, and the matrix behind a view.
- `estimator_input`, `column_selection`, `encode`: from a 2-D `X` with ``views=`` to a container.
- `validate`, `labels`, `indexing`, `sample_weights`: checks of what users give.
- `replace_columns`: containers with other columns; `memory_maps`, `blocks`: reading in blocks.
- `prepared_view`, `standardised`, `normal_scores`, `gram`: products of standardised columns;
  `read_counter` counts how often the data were read.

It may import `exceptions`, `types`, `safety` and `state`; all later parts import it.
"""

from baldur.views.container import MultiView, View
from baldur.views.estimator_input import as_multiview
from baldur.views.labels import validate_labels

__all__ = ["MultiView", "View", "as_multiview", "validate_labels"]
