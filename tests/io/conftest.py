"""Fixtures of the tests of files."""

import numpy as np
import pytest


@pytest.fixture
def mni_study():
    """Maker of images on the MNI152 mask: ``mni_study(folder)`` gives labels and the region."""
    pytest.importorskip("nibabel")
    pytest.importorskip("nilearn")
    return make_mni_study


def make_mni_study(folder, n=200, resolution=8, seed=0):
    """Images on the MNI152 mask: smooth noise, and patients lower in a ball of 16 mm."""
    import nibabel as nib
    from nilearn.datasets import load_mni152_brain_mask
    from scipy.ndimage import gaussian_filter

    mask = load_mni152_brain_mask(resolution=resolution)
    nib.save(mask, folder / "mask.nii.gz")
    inside = mask.get_fdata() > 0
    places = nib.affines.apply_affine(mask.affine, np.indices(inside.shape).reshape(3, -1).T)
    centre = np.array([-26.0, -22.0, -16.0])
    ball = (((places - centre) ** 2).sum(axis=1) < 16**2).reshape(inside.shape) & inside
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    for i in range(n):
        field = gaussian_filter(rng.normal(size=inside.shape), 1.0)
        cells = np.where(inside, 10 + field / field.std() - 1.5 * y[i] * ball, 0)
        nib.save(
            nib.Nifti1Image(cells.astype(np.float32), mask.affine), folder / f"sub-{i:03d}.nii"
        )
    return y, ball
