"""A PLINK file that counts the other allele is scored as the file of fit, or refused."""

import numpy as np
import pandas as pd
import pytest

from baldur.exceptions import InputError
from baldur.saving import load, save
from baldur.study import fit_study, load_study, predict_study

pytestmark = pytest.mark.usefixtures("one_repeat")

pytest.importorskip("bed_reader")

STUDY = """
[samples]
file = "samples.csv"
id = "sample"
[outcome]
column = "state"
positive = "ill"
[views.snps]
file = "snps.bed"
[[models]]
name = "BALDUR"
settings = { members = ["pooled"] }
"""


def write(folder, cells, alleles, state):
    from bed_reader import to_bed

    folder.mkdir()
    ids = [f"p{i:02d}" for i in range(len(cells))]
    (folder / "study.toml").write_text(STUDY)
    pd.DataFrame({"sample": ids, "state": state}).to_csv(folder / "samples.csv", index=False)
    properties = {
        "iid": ids,
        "sid": [f"rs{i}" for i in range(cells.shape[1])],
        "chromosome": ["1"] * cells.shape[1],
        "bp_position": list(range(1, cells.shape[1] + 1)),
        "allele_1": [a for a, _ in alleles],
        "allele_2": [b for _, b in alleles],
    }
    to_bed(folder / "snps.bed", cells, properties=properties)
    return folder / "study.toml"


def test_swapped_alleles_in_the_bim(tmp_path):
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 3, (50, 4)).astype(np.int8)
    cells[3, 1] = -127
    state = np.where(cells[:, 0] + cells[:, 3] + rng.normal(size=50) > 2, "ill", "well")
    alleles = [("A", "G"), ("C", "A"), ("T", "G"), ("A", "T")]
    file = write(tmp_path / "fit", cells, alleles, state)
    saved, _ = fit_study(load_study(file))
    model = load(save(saved, tmp_path / "model"), study=True)
    want, notes = predict_study(model, load_study(file, predicting=True))
    assert notes == []

    other = np.where(cells == -127, -127, 2 - cells).astype(np.int8)
    other[:, 3] = cells[:, 3]
    turned = [(b, a) for a, b in alleles[:3]] + alleles[3:]
    swapped = write(tmp_path / "swapped", other, turned, state)
    found, _ = predict_study(model, load_study(swapped, predicting=True))
    pd.testing.assert_frame_equal(found, want)

    unclear = write(tmp_path / "unclear", cells, [*alleles[:3], ("T", "A")], state)
    with pytest.raises(InputError, match=r"'snps'.*rs3.*A/T and is now T/A: it cannot be decided"):
        predict_study(model, load_study(unclear, predicting=True))
