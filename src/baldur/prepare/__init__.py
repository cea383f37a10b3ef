"""Preparation of views, learned on training rows only.

==================  =============================================================================
`Preparation`       scaling, missing cells and covariates, inside every estimator
`CategoryEncoder`   levels of categories that occur in training rows
`SiteHarmoniser`    location and scale of the features of each site, aligned
`VariantFilter`     rare, poorly called and monomorphic variants, judged on training rows
`VoxelMask`         voxels that are not background, judged on training rows
==================  =============================================================================
"""

from baldur.prepare.categories import CategoryEncoder
from baldur.prepare.harmonise import SiteHarmoniser
from baldur.prepare.preparation import Preparation
from baldur.prepare.scale import SCALES
from baldur.prepare.variants import VariantFilter
from baldur.prepare.voxels import VoxelMask

__all__ = [
    "SCALES",
    "CategoryEncoder",
    "Preparation",
    "SiteHarmoniser",
    "VariantFilter",
    "VoxelMask",
]
