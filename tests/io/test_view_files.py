"""read_view: sections of a study file, their options, and paths that try to leave the folder."""

import inspect
import os

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from baldur.baselines import BASELINES
from baldur.exceptions import InputError
from baldur.io import align
from baldur.io.view_sections import (
    MudataView,
    NiftiView,
    PlinkView,
    TableView,
    read_view,
    view_steps,
)
from baldur.preparation import CategoryEncoder, VariantFilter, VoxelMask


@pytest.fixture
def folder(tmp_path):
    """A study folder with one file of each kind, and a secret beside it."""
    nib = pytest.importorskip("nibabel")
    to_bed = pytest.importorskip("bed_reader").to_bed
    anndata = pytest.importorskip("anndata")
    home = tmp_path / "study"
    (home / "maps").mkdir(parents=True)
    rng = np.random.default_rng(0)
    ids = [f"p{i}" for i in range(12)]
    pd.DataFrame({"age": rng.normal(size=12), "site": list("ABC") * 4}, index=ids).to_csv(
        home / "clinic.csv", index_label="id"
    )
    to_bed(
        home / "snps.bed",
        rng.integers(0, 3, (12, 30)).astype(np.int8),
        properties={"iid": ids},
    )
    for one in ids:
        cells = rng.normal(5, 1, (3, 3, 3)).astype(np.float32)
        nib.save(nib.Nifti1Image(cells, np.eye(4)), home / "maps" / f"{one}.nii.gz")
    frame = pd.DataFrame(index=ids)
    anndata.AnnData(rng.normal(size=(12, 4)), obs=frame).write_h5ad(home / "rna.h5ad")
    (tmp_path / "secret.csv").write_text("id,a\nx,1\n")
    return home


SPECS = [
    {"name": "clinic", "file": "clinic.csv"},
    {"name": "snps", "file": "snps.bed", "min_maf": 0.05},
    {"name": "grey", "file": "maps/*.nii.gz", "kind": "nifti", "threshold": 0.2},
    {"name": "rna", "file": "rna.h5ad", "kind": "mudata"},
]


def test_all_kinds_become_one_study(folder):
    data = align([read_view(spec, folder) for spec in SPECS]).data
    assert data.n_features == {"clinic": 4, "snps": 30, "grey": 27, "rna": 4}
    steps = [step for spec in SPECS for step in view_steps(spec)]
    assert [type(step) for step in steps] == [CategoryEncoder, VariantFilter, VoxelMask]
    y = np.arange(12) % 2
    model = make_pipeline(*steps, BASELINES["Ridge logistic"].make(0)).fit(data[:9], y[:9])
    assert model.predict(data[9:]).shape == (3,)


def test_lists_of_images_and_files_named_by_options(folder):
    nib = pytest.importorskip("nibabel")
    nib.save(nib.Nifti1Image(np.ones((3, 3, 3), np.uint8), np.eye(4)), folder / "mask.nii")
    spec = {"file": ["maps/p1.nii.gz", "maps/p0.nii.gz"], "mask": "mask.nii"}
    X = read_view(spec, folder)
    assert X.sample_ids.tolist() == ["p1", "p0"]
    assert view_steps(spec) == []
    np.savez(folder / "m.npz", X=np.eye(12))
    X = read_view({"file": "m.npz", "sample_ids": "clinic.csv"}, folder)
    assert X.sample_ids[0] == "p0"
    with pytest.raises(InputError, match="threshold: these options learn a mask"):
        view_steps({**spec, "threshold": 0.1})


@pytest.mark.parametrize(
    "file",
    [
        "../secret.csv",
        "maps/../../secret.csv",
        "/etc/passwd",
        "maps/../../../../../../etc/passwd",
        "link.csv",
        "linked/secret.csv",
        "~/secret.csv",
        "$HOME/secret.csv",
        "file:///etc/passwd",
        "https://example.org/a.csv",
        "a\0.csv",
        "",
        "clinic.csv\n",
        "|ls",
        "maps",
        "/dev/zero",
    ],
)
def test_paths_that_are_refused(folder, file):
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    (folder / "linked").symlink_to(folder.parent)
    with pytest.raises(InputError):
        read_view({"file": file, "kind": "table"}, folder)


@pytest.mark.parametrize(
    "file", ["../*.nii", "/**/*.nii", "maps/*/../../*.nii.gz", "linked/*.nii", ["../x.nii"]]
)
def test_patterns_that_are_refused(folder, file):
    (folder.parent / "x.nii").write_bytes(b"x")
    (folder / "linked").symlink_to(folder.parent)
    with pytest.raises(InputError):
        read_view({"file": file, "kind": "nifti"}, folder)


@pytest.mark.parametrize("file", ["*/" * 40 + "*.nii.gz", "**/" * 40 + "*.nii.gz"])
def test_patterns_end_where_links_go_round_in_circles(folder, file):
    for name in ("a", "b", "c"):
        (folder / name).symlink_to(".")
        (folder / "maps" / name).symlink_to("..")
    assert len(read_view({"file": file, "kind": "nifti"}, folder).sample_ids) == 12


def test_other_options_cannot_leave_the_folder_either(folder):
    for option in ("mask", "atlas", "atlas_labels", "sample_ids", "cache_dir"):
        with pytest.raises(InputError, match="have to lie in its folder"):
            read_view({"file": "maps/*.nii.gz", option: "../x"}, folder)


def test_further_folders_when_the_caller_says_so(folder):
    X = read_view({"file": "../secret.csv"}, folder, roots=[folder.parent])
    assert X.sample_ids.tolist() == ["x"]
    absolute = read_view({"file": str(folder / "clinic.csv")}, folder)
    assert absolute.view_names == ["clinic"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_do_not_hang(folder):
    os.mkfifo(folder / "pipe.csv")
    with pytest.raises(InputError, match="not a regular file"):
        read_view({"file": "pipe.csv"}, folder)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"file": "clinic.csv", "kind": "excel"},
            "kind: 'excel' is not known; choose",
        ),
        ({"file": "clinic.csv", "id_colum": 0}, "id_colum: unknown key; did you mean 'id_column'"),
        ({"file": "snps.bed", "filter_ids": ["p0"]}, "filter_ids: unknown key"),
        ({"file": "clinic.csv", "min_maf": 0.1}, "min_maf: unknown key"),
        ({"kind": "table"}, "file: missing; give the file of this view"),
        ({"file": 3}, "file: must be text, not 3"),
        ({"file": ["clinic.csv", "clinic.csv"]}, "file: must be text, not a list"),
        ("clinic.csv", "view: must be a section, not 'clinic.csv'"),
        ({"file": "nothing.csv"}, "no such file"),
    ],
)
def test_sections_that_are_refused(folder, spec, message):
    with pytest.raises(InputError, match=message):
        read_view(spec, folder)


@pytest.mark.parametrize("view", [TableView, PlinkView, NiftiView, MudataView])
def test_a_section_has_the_options_of_its_reader_and_of_what_is_learned(view):
    reader = set(list(inspect.signature(view.reader).parameters)[1:])
    # They would look at people outside the training rows, or lift the limits on strange files.
    reader -= {"filter_ids", "max_bytes", "trusted"}
    # The columns that a fitted model needs, which it knows itself.
    reader -= {"needed"}
    keys = set(view.model_fields) - {"file", "kind"}
    assert keys == reader | set(view.learned_options)
    for step in view_steps(view(file="x", **{k: 0.2 for k in ("threshold",) if k in keys})):
        assert set(view.learned_options) <= set(step.get_params())


def test_a_reference_level_can_be_kept():
    (step,) = view_steps({"file": "clinic.csv", "drop": "none"})
    assert step.drop is None
