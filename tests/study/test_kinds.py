"""Views of other kinds in a study, and simulated studies that are evaluated as written."""

import numpy as np
import pandas as pd
import pytest

from baldur.datasets import make_adni_like, make_biofind_like
from baldur.exceptions import StudyError
from baldur.study import evaluate_study, load_study, simulate_study
from study.conftest import read_file


def test_genotypes_written_for_plink_read_back_equal(tmp_path):
    pytest.importorskip("bed_reader")
    models = [{"name": "Dummy"}]
    file = simulate_study("biofind", tmp_path, scale=0.007, models=models, folds={"outer": 3})
    study = load_study(file)
    genetic = study.views["genetic"]
    assert (genetic.file, genetic.kind) == ("genetic.bed", "plink")
    found = read_file(file).data
    expected = make_biofind_like(scale=0.007, random_state=0).data
    assert found.sample_ids.tolist() == expected.sample_ids.tolist()
    np.testing.assert_array_equal(found.view("genetic").read(), expected.view("genetic").read())
    assert found.feature_names["genetic"].tolist() == expected.feature_names["genetic"].tolist()


def test_variant_filters_of_a_study_are_learned_on_training_rows(tmp_path):
    pytest.importorskip("bed_reader")
    models = [{"name": "Ridge logistic", "grid": {"C": [0.1]}}]
    file = simulate_study("biofind", tmp_path, scale=0.007, models=models, folds={"outer": 3})
    file.write_text(file.read_text().replace('kind = "plink"', 'kind = "plink"\nmin_maf = 0.2'))
    found = read_file(file)
    assert [type(s).__name__ for s in found.preparation.steps] == ["VariantFilter"]
    done = evaluate_study(load_study(file))
    assert done.run.failures == {}
    two = evaluate_study(load_study(file), output=tmp_path / "two", n_jobs=2)
    assert (two.folder / "table.csv").read_bytes() == (done.folder / "table.csv").read_bytes()
    row = done.run.selection.query("view == 'genetic' and feature == '*'")
    counts = [int(k) for k in row["folds"].item().split(";")]
    print(f"variants kept per fold of {row['n_features'].item()}: {counts}")
    assert len(set(counts)) > 1
    assert max(counts) < row["n_features"].item()


def test_images_are_written_as_nifti_and_come_back(tmp_path):
    pytest.importorskip("nibabel")
    file = simulate_study("adni", tmp_path, scale=0.004, models=[{"name": "Dummy"}])
    study = load_study(file)
    assert (study.folds.outer, study.folds.inner) == (10, 10)
    found = read_file(file).data
    cohort = make_adni_like(scale=0.004, random_state=0).data
    for view in cohort.view_names:
        np.testing.assert_allclose(found.view(view).read(), cohort.view(view).read(), atol=1e-6)
        assert found.feature_names[view].tolist() == cohort.feature_names[view].tolist()
    for name in ("shape", "affine"):
        read, made = (d.feature_info["grey_matter"].attrs[name] for d in (found, cohort))
        np.testing.assert_allclose(read, made)
    truth = pd.read_csv(tmp_path / "truth.csv", dtype=str)
    voxels = truth.loc[truth["view"] == "grey_matter", "feature"]
    assert set(voxels) <= set(found.feature_names["grey_matter"])


def test_wide_float_views_go_to_npz_and_come_back(tmp_path, constants):
    constants(WIDEST_CSV=15)
    file = simulate_study("multiview", tmp_path, models=[{"name": "Dummy"}], folds={"outer": 3})
    study = load_study(file)
    wide = [name for name, view in study.views.items() if view.file.endswith(".npz")]
    assert wide
    found = read_file(file)
    truth = pd.read_csv(tmp_path / "truth.csv")
    for view in wide:
        assert found.data.n_features[view] > 15
        named = truth.loc[truth["view"] == view, "feature"]
        assert set(named) <= set(found.data.feature_names[view])


def test_files_outside_the_study_are_not_read(parts, tables, write, tmp_path):
    file = write(parts, tables, tmp_path / "inside")
    tables["brain"].to_csv(tmp_path / "brain.csv", index=False)
    text = file.read_text()
    file.write_text(text.replace('"brain.csv"', '"../brain.csv"'))
    with pytest.raises(StudyError, match=r"views\.brain: .*have to lie in its folder"):
        read_file(file)
    assert len(read_file(file, roots=[tmp_path]).data) == 60
    file.write_text(text.replace('"samples.csv"', '"../samples.csv"'))
    tables["samples"].to_csv(tmp_path / "samples.csv", index=False)
    with pytest.raises(StudyError, match=r"samples\.file: .*--data"):
        read_file(file)


def test_categories_of_a_table_are_learned_on_training_rows(parts, tables, write):
    tables["blood"]["group"] = ["x"] * 30 + ["y"] * 29 + ["z"]
    found = read_file(write(parts, tables))
    assert [type(s).__name__ for s in found.preparation.steps] == ["CategoryEncoder"]
    done = evaluate_study(load_study(write(parts, tables)))
    assert done.run.failures == {}
    rare = done.run.selection.query("model == 'Ridge logistic' and feature == 'group=z'")
    # The fold that tests the only sample of this level has not seen it.
    assert rare["frequency"].item() == pytest.approx(2 / 3)
