"""Brain maps: the images hold the weights, and overlaps are counted voxel by voxel."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from baldur.exceptions import InputError
from baldur.plots import BrainDisplay

pytest.importorskip("nilearn")

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
    model.feature_info_ = {}
    with pytest.raises(InputError, match="images"):
        BrainDisplay.from_estimator(model)
