"""Studies on real data, as a new user would run them."""

import os
import shutil
import time

import numpy as np
import pandas as pd
import pytest
import tomli_w

from baldur.study import evaluate_study, fit_study, load_study


def write_study(folder, samples, **sections):
    samples.to_csv(folder / "samples.csv", index=False)
    file = folder / "study.toml"
    file.write_text(tomli_w.dumps({"samples": {"file": "samples.csv", "id": "sample"}, **sections}))
    return file


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="the bar is for two cores")
def test_five_models_on_ad_csf_take_less_than_two_minutes(shared_data, tmp_path):
    source = shared_data / "ad_csf"
    labels = pd.read_csv(source / "labels.csv", dtype=str)
    views = {}
    for file in sorted(source.glob("view_*.npz")):
        with np.load(file, allow_pickle=False) as archive:
            np.savez(tmp_path / file.name, X=archive["X"], features=archive["features"],
                     samples=labels["sample"].to_numpy(str))  # fmt: skip
        views[file.stem.removeprefix("view_")] = {"file": file.name}
    study = write_study(
        tmp_path, labels, outcome={"column": "label"}, views=views,
        folds={"outer": 5, "inner": 3},
        models=["LSVM-l1", "RF", "MV-PLS", "Lasso-MkSVM", "BALDUR"],
    )  # fmt: skip
    started = time.monotonic()
    done = evaluate_study(load_study(study), n_jobs=2, on_check=lambda check: None)
    seconds = time.monotonic() - started
    print(f"{seconds:.0f} s")
    assert done.run.failures == {}
    assert seconds < 120


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_covariate_with_an_effect_of_two_is_found_as_such(seed, shared_data, tmp_path):
    """Sex beside 13,928 genotypes without any effect."""
    for ending in ("bed", "bim", "fam"):
        shutil.copy(shared_data / "hapmap3_plink" / f"hapmap3.{ending}", tmp_path)
    fam = pd.read_csv(tmp_path / "hapmap3.fam", sep=r"\s+", header=None, dtype=str)
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], len(fam))
    ill = rng.random(len(fam)) < 1 / (1 + np.exp(1 - 2 * (sex == "m")))
    samples = pd.DataFrame({"sample": fam[1], "sex": sex, "status": np.where(ill, "ill", "well")})
    study = write_study(
        tmp_path, samples, outcome={"column": "status", "positive": "ill"},
        covariates={"include": ["sex"]}, views={"snps": {"file": "hapmap3.bed"}},
        models=["BALDUR"],
    )  # fmt: skip
    saved, _ = fit_study(load_study(study))
    model = saved.estimator
    names = saved.features["covariates"].tolist()
    kept = model.selected_features_["covariates"]
    chosen = [name for name, is_kept in zip(names, kept, strict=True) if is_kept]
    weight = float(model.coef_["covariates"][0, names.index("sex=m")])
    print(seed, chosen, round(weight, 2), int(model.selected_features_["snps"].sum()))
    assert chosen == ["sex=m"]
    # The effect in this sample, which the estimate shrinks a little.
    table = pd.crosstab(sex, ill).to_numpy(float)
    sampled = np.log(table[1, 1] * table[0, 0] / (table[1, 0] * table[0, 1]))
    assert weight == pytest.approx(sampled, abs=0.5)
