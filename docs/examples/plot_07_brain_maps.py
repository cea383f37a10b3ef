"""
Brain maps
==========

Views made of images keep the place of every voxel, so that selected voxels can be shown on slices
and written as images again.
"""

# %%
# A cohort shaped as ADNI, with a fiftieth of its voxels. To begin where a study begins, the grey
# matter of 250 people is turned into images; files would be given as a pattern,
# ``read_nifti("maps/*.nii.gz")``.

import nibabel as nib
import numpy as np

from baldur import BaldurClassifier
from baldur.datasets import make_adni_like
from baldur.io import read_nifti, to_nifti
from baldur.plots import BrainDisplay

cohort = make_adni_like(scale=0.02, random_state=0)
y = cohort.target[:250]
mask = nib.Nifti1Image(cohort.mask.astype(np.int8), cohort.affine)
images = []
for row in cohort.data.view("grey_matter").read()[:250]:
    cells = np.zeros(cohort.mask.shape, dtype=np.float32)
    cells[cohort.mask.astype(bool)] = row
    images.append(nib.Nifti1Image(cells, cohort.affine))
X = read_nifti(images, mask=mask, name="grey_matter", sample_ids=[f"sub-{i}" for i in range(250)])

# %%
# The selected voxels, on slices.

model = BaldurClassifier().fit(X, y)
brain = BrainDisplay.from_estimator(model).plot()

# %%
# The weights as an image for any viewer; ``file="weights.nii.gz"`` writes it.

image = to_nifti(model.coef_scaled_["grey_matter"][0], X)
print(image.shape, np.count_nonzero(image.get_fdata()), "voxels selected")
