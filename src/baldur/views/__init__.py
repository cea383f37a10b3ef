"""Views of the same samples: the container that every estimator accepts, and block products.

In come arrays, memory maps, sparse matrices, DataFrames and files that are read lazily, with names
of samples and features. Out come a `MultiView`, whose rows can be selected without copying, and
`PreparedView`, which multiplies standardised columns block by block. Nothing is learned here.

- `container`, `view`: the container, and one view of it.
- `estimator_input`, `column_selection`, `encode`: from a 2-D `X` with ``views=`` to a container.
- `validate`, `labels`, `indexing`, `sample_weights`: checks of what users give.
- `replace_columns`: containers with other columns.
- `matrices`: the matrix behind a view, read in blocks, and products of its standardised columns.

It may import `exceptions`, `types`, `safety` and `state`; all later parts import it.
"""

from typing import TYPE_CHECKING

from baldur.core.optional import lazy_names

if TYPE_CHECKING:
    from baldur.views.container import MultiView
    from baldur.views.estimator_input import as_multiview
    from baldur.views.labels import validate_labels
    from baldur.views.view import View

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "container": "MultiView",
        "estimator_input": "as_multiview",
        "labels": "validate_labels",
        "view": "View",
    },
)

__all__ = ["MultiView", "View", "as_multiview", "validate_labels"]
