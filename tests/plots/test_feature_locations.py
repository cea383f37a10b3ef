"""Where selected features lie: images of weights, overlaps, and variants along the chromosomes."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from baldur import MultiView
from baldur.baselines import ElasticNetLogisticClassifier
from baldur.evaluation import nested_cv
from baldur.exceptions import InputError
from baldur.plots import BrainDisplay, ManhattanDisplay
from pages import write_folder

AFFINE = np.diag([8.0, 8.0, 8.0, 1.0])
AFFINE[:3, 3] = (-80.0, -100.0, -60.0)
GRID = {"shape": (20, 24, 20), "affine": AFFINE}


def voxels(view, start, weight):
    at = np.array([(i, j, k) for i in range(3) for j in range(3) for k in range(3)]) + start
    table = pd.DataFrame(at, columns=list("ijk"))
    names = [f"{view}_{n}" for n in range(len(at))]
    return table.assign(view=view, feature=names, weight=weight)


@pytest.fixture
def display():
    pytest.importorskip("nilearn")
    table = pd.concat([voxels("grey", (8, 10, 8), -0.5), voxels("t1", (9, 10, 8), 0.25)])
    return BrainDisplay(table, {"grey": GRID, "t1": GRID})


def test_images_hold_the_weights(display):
    cells = np.asarray(display.image("grey").dataobj)
    assert cells.shape == (20, 24, 20)
    rows = display.table[display.table["view"] == "grey"]
    assert cells[rows["i"], rows["j"], rows["k"]] == pytest.approx(-0.5)
    assert np.count_nonzero(cells) == 27
    assert np.allclose(display.image("t1").affine, AFFINE)
    with pytest.raises(InputError, match="no view"):
        display.image("other")


def test_overlap_counts_voxel_by_voxel(display):
    codes = np.asarray(display.overlap().dataobj)
    grey, t1 = (np.asarray(display.image(v).dataobj) != 0 for v in ("grey", "t1"))
    assert (codes == 1).sum() == (grey & ~t1).sum() == 9
    assert (codes == 2).sum() == (t1 & ~grey).sum() == 9
    assert (codes == 3).sum() == (grey & t1).sum() == 18
    assert "both views select 18 voxels" in display.alt_text


def test_views_on_other_grids_are_brought_together(display):
    fine = np.diag([4.0, 4.0, 4.0, 1.0])
    fine[:3, 3] = AFFINE[:3, 3] - 2.0
    at = np.array([(i, j, k) for i in range(16, 22) for j in range(20, 26) for k in range(16, 22)])
    part = pd.DataFrame(at, columns=list("ijk")).assign(view="fine", feature="v", weight=1.0)
    mixed = BrainDisplay(
        pd.concat([display.table, part]),
        {"grey": GRID, "fine": {"shape": (40, 48, 40), "affine": fine}},
    )
    codes = np.asarray(mixed.overlap().dataobj)
    assert codes.shape == (20, 24, 20)
    assert (codes == 3).sum() == 27


def test_brains_are_drawn_without_pyplot(display, tmp_path):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    # Without the template, which takes seconds to load.
    display.plot(background=None, theme="dark", width=3.6)
    assert plt.get_fignums() == before
    assert len(display.axes_) == 3
    assert display.save(tmp_path / "brain.png", dpi=50).read_bytes().startswith(b"\x89PNG")
    assert [a.get_title(loc="left") for a in display.axes_] == ["grey", "t1", "overlap"]


def test_one_view_and_nothing_selected(display):
    one = BrainDisplay(voxels("grey", (8, 10, 8), 1.0), {"grey": GRID}).plot(background=None)
    assert len(one.axes_) == 1
    none = BrainDisplay(display.table.head(0), {"grey": GRID}).plot()
    assert "No voxel" in none.ax_.texts[0].get_text()
    assert "0 voxels" in none.alt_text


def test_a_model_shows_its_selected_voxels():
    pytest.importorskip("nibabel")
    info = voxels("grey", (8, 10, 8), 0.0)[["i", "j", "k"]]
    info.attrs.update(GRID)
    kept = np.arange(27) % 5 == 0
    weights = np.where(kept, np.linspace(-1, 1, 27), 0.0)[None]
    model = SimpleNamespace(
        view_names_=["clinic", "grey"],
        feature_info_={"grey": info},
        feature_names_={"grey": np.array([f"v{k}" for k in range(27)])},
        selected_features_={"grey": kept},
        coef_scaled_={"grey": weights},
        classes_=np.array([0, 1]),
    )
    display = BrainDisplay.from_estimator(model)
    assert display.table["weight"].to_numpy() == pytest.approx(weights[0, kept])
    cells = np.asarray(display.image("grey").dataobj)
    assert cells[info["i"], info["j"], info["k"]] == pytest.approx(weights[0])
    for name, sign in (("0", -1.0), ("1", 1.0)):
        of_class = BrainDisplay.from_estimator(model, name).table["weight"].to_numpy()
        assert of_class == pytest.approx(sign * weights[0, kept])
    with pytest.raises(InputError, match="no class 'other'"):
        BrainDisplay.from_estimator(model, "other")
    model.feature_info_ = {}
    with pytest.raises(InputError, match="images"):
        BrainDisplay.from_estimator(model)


# -- over the folds of a study, in memory and in its folder ----------------------------------


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
    write_folder(result, folder)
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
