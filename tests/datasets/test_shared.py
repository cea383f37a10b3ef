"""load_shared: the real folders, and folders that are broken in one way each."""

import json

import numpy as np
import pandas as pd
import pytest

from baldur.datasets.prepared_folder import load_shared
from baldur.exceptions import InputError


@pytest.fixture
def folder(tmp_path):
    """Write a small valid data set."""
    rng = np.random.default_rng(0)
    views = {}
    for name, X in {
        "a": rng.standard_normal((6, 3)).astype(np.float32),
        "b": rng.integers(0, 9, (6, 2)).astype(np.int32),
    }.items():
        file = f"view_{name}.npz"
        np.savez(tmp_path / file, X=X, features=[f"{name}{j}" for j in range(X.shape[1])])
        views[name] = {"file": file}
    (tmp_path / "meta.json").write_text(json.dumps({"name": "small", "views": views}))
    (tmp_path / "labels.csv").write_text(
        "sample,label,split,group\n"
        + "".join(f"s{i},{'yes' if i % 2 else 'NA'},train,f{i // 2}\n" for i in range(6))
    )
    return tmp_path


def test_small_folder(folder):
    loaded = load_shared(folder)
    assert loaded.data.shape == (6, 5)
    assert list(loaded.data.feature_names["b"]) == ["b0", "b1"]
    assert loaded.data.view("b").raw(slice(None)).dtype == np.int32
    assert list(loaded.data.sample_ids) == [f"s{i}" for i in range(6)]
    # "NA" is a label like any other, not a gap.
    assert loaded.classes.tolist() == ["NA", "yes"]
    assert loaded.target.tolist() == ["NA", "yes"] * 3
    assert loaded.groups.tolist() == ["f0", "f0", "f1", "f1", "f2", "f2"]
    assert set(loaded.split) == {"train"}
    assert loaded.meta["name"] == "small"


def test_labels_only(folder):
    (folder / "view_a.npz").unlink()
    loaded = load_shared(str(folder), labels_only=True)
    assert loaded.data is None
    assert len(loaded.target) == 6


def break_meta(d):
    (d / "meta.json").write_text("{")


def break_meta_views(d):
    (d / "meta.json").write_text('{"views": {}}')


def break_meta_entry(d):
    (d / "meta.json").write_text('{"views": {"a": {}}}')


def drop_labels(d):
    (d / "labels.csv").unlink()


def drop_label_column(d):
    (d / "labels.csv").write_text("sample,class\ns0,x\n")


def empty_label(d):
    (d / "labels.csv").write_text("sample,label\ns0,x\ns1,\n")


def repeat_sample(d):
    (d / "labels.csv").write_text("sample,label\ns0,x\ns0,y\n")


def short_labels(d):
    (d / "labels.csv").write_text("sample,label\ns0,x\ns1,y\n")


def drop_view(d):
    (d / "view_b.npz").unlink()


def text_for_view(d):
    (d / "view_b.npz").write_text("not an archive")


def cut_view(d):
    whole = (d / "view_b.npz").read_bytes()
    (d / "view_b.npz").write_bytes(whole[: len(whole) // 2])


def no_x(d):
    np.savez(d / "view_b.npz", Y=np.zeros((6, 2)), features=["u", "v"])


def names_do_not_fit(d):
    np.savez(d / "view_b.npz", X=np.zeros((6, 2)), features=["u"])


def pickled(d):
    np.savez(d / "view_b.npz", X=np.array([[{}]] * 6, dtype=object), features=["u"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (break_meta, "meta.json is not valid JSON"),
        (break_meta_views, '"views"'),
        (break_meta_entry, "view 'a' must have"),
        (drop_labels, "labels.csv is missing"),
        (drop_label_column, r"has no column\(s\) \['label'\]"),
        (empty_label, "without a label, the first for sample 's1'"),
        (repeat_sample, "more than once"),
        (short_labels, "has 6 rows and labels.csv has 2"),
        (drop_view, "view 'b' is missing"),
        (text_for_view, "cannot be read as plain .npz"),
        (cut_view, "cannot be read as plain .npz"),
        (no_x, "must hold the arrays X and features"),
        (names_do_not_fit, "one name per feature"),
        (pickled, "cannot be read as plain .npz"),
    ],
)
def test_a_broken_folder_gives_one_clear_error(folder, damage, message):
    damage(folder)
    with pytest.raises(InputError, match=message):
        load_shared(folder)


def test_wrong_folder(folder, tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        load_shared(tmp_path / "nowhere")
    parent = tmp_path / "parent"
    (parent / "one").mkdir(parents=True)
    (parent / "one" / "meta.json").write_text("{}")
    with pytest.raises(InputError, match="one of the data sets in it: one"):
        load_shared(parent)


@pytest.mark.parametrize(
    "name",
    [
        "ad_csf",
        "autism_gut_kang",
        "breast_tcga_mixomics",
        "darwin_handwriting",
        "golub_leukemia",
        "ibd_families_jacobs",
        "mfeat_digits",
        "nutrimouse",
        "pd_speech",
        "prostate_singh",
    ],
)
def test_real_sets_agree_with_their_description(shared_data, name):
    loaded = load_shared(shared_data / name)
    meta = loaded.meta
    assert len(loaded.data) == meta["n_samples"] == len(loaded.target)
    assert loaded.data.n_features == {v: e["n_features"] for v, e in meta["views"].items()}
    counts = dict(zip(*np.unique(loaded.target, return_counts=True), strict=True))
    assert counts == {str(k): v for k, v in meta["classes"].items()}
    raw = pd.read_csv(shared_data / name / "labels.csv", dtype=str)
    assert loaded.data.sample_ids.tolist() == raw["sample"].tolist()


def test_split_and_groups_of_real_sets(shared_data):
    ad = load_shared(shared_data / "ad_csf")
    assert np.sum(ad.split == "train") == 267
    assert np.sum(ad.split == "test") == 66
    assert ad.groups is None
    ibd = load_shared(shared_data / "ibd_families_jacobs")
    assert ibd.split is None
    assert 1 < len(np.unique(ibd.groups)) < 90


def test_protein_is_absent_in_the_breast_test_rows(shared_data):
    loaded = load_shared(shared_data / "breast_tcga_mixomics")
    present = loaded.data.view("protein").present
    np.testing.assert_array_equal(present, loaded.split == "train")
    assert loaded.data.view("mrna").present.all()


def test_plink_folder_points_to_its_reader(shared_data):
    with pytest.raises(InputError, match=r"baldur\.io\.read_plink"):
        load_shared(shared_data / "hapmap3_plink")
    loaded = load_shared(shared_data / "hapmap3_plink", labels_only=True)
    assert loaded.classes.tolist() == ["ASW", "CEU", "MEX", "YRI"]
    assert len(loaded.sample_ids) == 324
