"""What code blocks of pages find: a folder of small files, and objects under their usual names."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from baldur import BaldurClassifier, MultiView
from baldur.evaluation import nested_cv
from baldur.io import read_table
from baldur.study.simulate import write_bed

DATA = Path(__file__).parents[1] / "data" / "ad_csf"
STUDY = """
models = ["BALDUR", "Dummy"]
[samples]
file = "people.csv"
id = "id"
[outcome]
column = "diagnosis"
positive = "Impaired"
[views.csf]
file = "csf.csv"
[views.proteins]
file = "proteins.csv"
[folds]
outer = 2
"""


def fill(folder):
    """Write the files that pages name: tables, genotypes, images, MuData and a study."""
    ids = pd.read_csv(DATA / "people.csv")["id"][:120]
    for name, columns in (("people", None), ("csf", None), ("proteins", range(13))):
        pd.read_csv(DATA / f"{name}.csv", usecols=columns)[:120].to_csv(
            folder / f"{name}.csv", index=False
        )
    (folder / "study.toml").write_text(STUDY)
    new = STUDY.replace('models = ["BALDUR", "Dummy"]', "")
    (folder / "new.toml").write_text(new)
    rng = np.random.default_rng(0)
    calls = MultiView({"snps": rng.integers(0, 3, (120, 30)).astype(np.int8)}, sample_ids=ids)
    write_bed(folder / "cohort.bed", calls.view("snps"), np.asarray(ids))
    _write_images(folder / "maps", rng)
    _write_mudata(folder / "cohort.h5mu", ids, rng)


def _write_images(folder, rng):
    import nibabel as nib

    folder.mkdir()
    for i in range(4):
        cells = rng.uniform(1, 2, (3, 4, 5)).astype(np.float32)
        nib.save(nib.Nifti1Image(cells, np.eye(4)), folder / f"sub-{i}.nii.gz")


def _write_mudata(file, ids, rng):
    import anndata
    import mudata

    obs = pd.DataFrame({"age": rng.integers(40, 80, len(ids))}, index=list(ids))
    parts = {
        name: anndata.AnnData(rng.normal(size=(len(ids), 5)).astype(np.float32), obs=obs.copy())
        for name in ("rna", "protein")
    }
    mudata.MuData(parts).write(file)


def objects(folder):
    """Return what pages call X, y, model, result and so on."""
    from baldur.saving import save
    from baldur.study import evaluate_study, fit_study, load_study

    config = load_study(folder / "study.toml")
    evaluate_study(config)
    saved, _ = fit_study(config)
    save(saved, folder / "model")
    shutil.copy(folder / "results" / "predictions.csv", folder / "predictions.csv")
    tables = {name: read_table(folder / f"{name}.csv", name=name) for name in ("csf", "proteins")}
    X = MultiView(
        {name: one.view(name).read() for name, one in tables.items()},
        feature_names={name: one.feature_names[name] for name, one in tables.items()},
    )
    y = pd.read_csv(folder / "people.csv")["diagnosis"].to_numpy()
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.normal(70, 8, len(y)),
            "sex": rng.choice(["f", "m"], len(y)),
            "site": np.resize(["Lima", "Oslo", "Rome"], len(y)),
        }
    )
    model = BaldurClassifier().fit(X, y)
    result = nested_cv({"BALDUR": model, "Dummy": None}, X, y, outer=2, inner=2)
    return {
        "X": X,
        "y": y,
        "people": people,
        "model": model,
        "fitted": model,
        "result": result,
        "evaluation": result.evaluation(),
        "train": np.arange(90),
        "test": np.arange(90, 120),
        "blood": X.view("proteins").read(),
        "mri": X.view("proteins").read(),
        "snps": rng.integers(0, 3, (120, 30)).astype(np.int8),
    }
