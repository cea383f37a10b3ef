"""Everything that is learned from training samples before a model.

In come the views of a `MultiView`, in their units, and what is known about the samples. Out come
prepared columns, through block products, and the way back from weights on them to all columns of
the input. Estimators and competitors alike own one `Preparation` as ``preparation_``.

- `preparation`: the object itself, with what it learned over all input columns.
- `steps`: the base of the steps before scaling, and the mask of voxels;
- `variants`: the filter of variants, and the alleles of new genotypes;
  `categories`: levels of categories; `sites`, `site_effects`: the alignment of sites.
- `scaling`: the last step, with `column_statistics` and `covariates` (which are regressed out).
- `new_samples`: new samples against training: warnings and flags.

It may import `views`, `core` and `exceptions`.
"""

from baldur.preparation.categories import CategoryEncoder
from baldur.preparation.preparation import Preparation, preparation_for
from baldur.preparation.sites import SiteHarmoniser
from baldur.preparation.steps import Step, VoxelMask
from baldur.preparation.variants import VariantFilter

__all__ = [
    "CategoryEncoder",
    "Preparation",
    "SiteHarmoniser",
    "Step",
    "VariantFilter",
    "VoxelMask",
    "preparation_for",
]
