"""BaldurClassifier on views read from files: genotypes of four populations, images of the brain."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from baldur import BaldurClassifier, MultiView
from baldur.io import read_nifti, read_plink, to_nifti
from baldur.preparation import Preparation
from shared_cohorts import load_shared


def components(train, test, k=10):
    """Principal components of the genotypes, learned on training rows by products from disk."""
    prepared = Preparation().fit(train)
    A, B = prepared.transform(train)["genotypes"], prepared.transform(test)["genotypes"]
    value, vector = np.linalg.eigh(A.weighted_gram())
    value, vector = np.sqrt(value[::-1][:k]), vector[:, ::-1][:, :k]
    return vector * value, A.cross_gram(B) @ vector / value


@pytest.mark.slow
def test_four_populations(shared_data):
    """Of all genotypes the linear predictor takes admixed people for the larger group beside them;
    on ten components the four can be distinguished."""
    pytest.importorskip("bed_reader")
    folder = shared_data / "hapmap3_plink"
    X = read_plink(folder / "hapmap3.bed")
    y = load_shared(folder, labels_only=True).target
    right = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
        Z, new = components(X[train], X[test])
        model = BaldurClassifier().fit(MultiView({"components": Z}), y[train])
        right.append(model.predict(MultiView({"components": new})) == y[test])
    accuracy = np.concatenate(right).mean()
    print(f"hapmap3, four populations, BaldurClassifier on ten components: {accuracy:.3f}")
    assert accuracy >= 0.98


@pytest.mark.slow
def test_weights_of_images(tmp_path, mni_study):
    nib = pytest.importorskip("nibabel")
    y, ball = mni_study(tmp_path)
    X = read_nifti(str(tmp_path / "sub-*.nii"), mask=tmp_path / "mask.nii.gz", name="grey")
    model = BaldurClassifier().fit(X[:150], y[:150])
    accuracy = (model.predict(X[150:]) == y[150:]).mean()
    to_nifti(model.coef_["grey"][0], X, file=tmp_path / "weights.nii.gz")
    read = np.abs(nib.load(tmp_path / "weights.nii.gz").get_fdata())
    peak = np.unravel_index(read.argmax(), read.shape)
    print(
        f"200 images, {X.shape[1]:,} voxels, BaldurClassifier: accuracy {accuracy:.3f}, "
        f"{int(model.selected_features_['grey'].sum())} voxels kept, peak of the map in the "
        f"simulated region: {bool(ball[peak])}"
    )
    assert ball[peak]
    assert accuracy > 0.8
