"""Everything that is learned from training samples before a model.

In come the views of a `MultiView`, in their units, and what is known about the samples. Out come
prepared columns, through block products, and the way back from weights on them to all columns of
the input. Estimators and competitors alike own one `Preparation` as ``preparation_``.

- `preparation`: the object itself; `learned_columns`: what it learned, over all input columns;
  `stored_form`: its form in model files; `sample_flags`: new samples that differ from training.
- `steps`: the steps before scaling: levels of categories, filters of variants and voxels, and the
  alignment of sites.
- `scaling`: the last step, with `column_statistics`, `tile_statistics`, `ranks`, `check_missing`
  and `covariates` (which are regressed out).

It may import `views`, `state`, `safety` and `exceptions`.
"""

from baldur.preparation.categories import CategoryEncoder
from baldur.preparation.column_filters import VariantFilter, VoxelMask
from baldur.preparation.preparation import Preparation, preparation_for
from baldur.preparation.sites import SiteHarmoniser
from baldur.preparation.steps import Step

__all__ = [
    "CategoryEncoder",
    "Preparation",
    "SiteHarmoniser",
    "Step",
    "VariantFilter",
    "VoxelMask",
    "preparation_for",
]
