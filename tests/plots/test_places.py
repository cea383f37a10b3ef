"""What a results folder keeps of variants and voxels is enough to draw them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from baldur import MultiView
from baldur.baselines import ElasticNetLogisticClassifier
from baldur.evaluation import nested_cv
from baldur.exceptions import InputError
from baldur.plots import BrainDisplay, ManhattanDisplay
from baldur.study.results_folder import write_results


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A comparison on variants and voxels, in memory and in its folder."""
    rng = np.random.default_rng(0)
    snps, voxels = rng.integers(0, 3, (60, 12)).astype(np.int8), rng.normal(size=(60, 8))
    y = (snps[:, 3] + voxels[:, 2] + 0.3 * rng.normal(size=60) > 1).astype(int)
    places = pd.DataFrame({"chromosome": ["1"] * 6 + ["X"] * 6, "position": np.arange(12) * 100})
    grid = pd.DataFrame([(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    grid.columns = list("ijk")
    grid.attrs.update(shape=(2, 2, 2), affine=np.eye(4), kind="voxels")
    data = MultiView({"snps": snps, "grey": voxels}, feature_info={"snps": places, "grey": grid})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = nested_cv({"net": ElasticNetLogisticClassifier()}, data, y, outer=3, inner=2)
    folder = tmp_path_factory.mktemp("places")
    write_results(result, folder)
    return result, folder


def test_manhattan_of_folds_is_that_of_the_folder(study):
    result, folder = study
    here, there = (ManhattanDisplay.from_result(one) for one in (result, folder))
    assert_frame_equal(here.table, there.table, check_dtype=False)
    assert set(here.table["feature"]) <= {f"snps_{k}" for k in range(12)}
    selection = result.selection.set_index(["view", "feature"])
    for row in here.table.to_dict("records"):
        assert row["value"] == selection.loc[("snps", row["feature"]), "frequency"]
    with pytest.raises(InputError, match="chromosome"):
        ManhattanDisplay.from_result(folder, view="grey")


def test_brains_of_folds_are_those_of_the_folder(study):
    pytest.importorskip("nibabel")
    result, folder = study
    here, there = (BrainDisplay.from_result(one) for one in (result, folder))
    cells = [np.asarray(one.image("grey").dataobj) for one in (here, there)]
    assert cells[0] == pytest.approx(cells[1])
    selection = result.selection
    mine = selection[(selection["view"] == "grey") & (selection["feature"] != "*")]
    assert np.sort(cells[0][cells[0] != 0]) == pytest.approx(np.sort(mine["mean_weight"]))


def test_results_without_places_say_so(result, run):
    for one in (result, run):
        with pytest.raises(InputError, match="images"):
            BrainDisplay.from_result(one)
        with pytest.raises(InputError, match="chromosome"):
            ManhattanDisplay.from_result(one)
