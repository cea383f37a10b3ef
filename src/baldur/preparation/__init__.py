"""Everything that is learned from training rows before a model.

In come the views of a `MultiView`, in their units, and what is known about the samples; out come
prepared columns, through products, and the way back from weights on them to all columns of the
input. May import `views`, `guard` and `exceptions`.

==================  =============================================================================
`Preparation`       the one object that estimators and competitors own as ``preparation_``
`CategoryEncoder`   levels of categories that occur in training rows
`VariantFilter`     rare, poorly called and monomorphic variants, judged on training rows
`VoxelMask`         voxels that are not background, judged on training rows
`SiteHarmoniser`    location and scale of the features of each site, aligned
`Step`              what these four have in common
==================  =============================================================================

Scaling, missing cells and the regression of covariates are the last step, see `scaling`.
"""

from baldur.preparation.categories import CategoryEncoder
from baldur.preparation.column_statistics import SCALES
from baldur.preparation.preparation import Preparation, preparation_for
from baldur.preparation.sites import SiteHarmoniser
from baldur.preparation.step import Step
from baldur.preparation.variants import VariantFilter
from baldur.preparation.voxels import VoxelMask

__all__ = [
    "SCALES",
    "CategoryEncoder",
    "Preparation",
    "SiteHarmoniser",
    "Step",
    "VariantFilter",
    "VoxelMask",
    "preparation_for",
]
