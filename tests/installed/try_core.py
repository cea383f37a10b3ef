"""Fit, predict, explain, save and load with an installed wheel and nothing but its dependencies.

Run by `.ci/smoke.py` with the interpreter of a bare environment, in an empty folder outside the
repository: ``python -I try_core.py VERSION``.
"""

import sys
import sysconfig
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import numpy as np

import baldur
from baldur import BaldurClassifier, BaldurRegressor
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv


def check_installed(expected: str) -> None:
    """Check that the package comes from the environment, whole, and with its version."""
    assert Path(baldur.__file__).is_relative_to(sysconfig.get_path("purelib")), baldur.__file__
    assert baldur.__version__ == version("baldur-multiview") == expected, baldur.__version__
    package = files("baldur")
    for name in ("py.typed", "report/templates/page.html.j2", "saving/score.js"):
        assert package.joinpath(name).is_file(), name


def check_model(estimator: type, outcome: np.ndarray, X: baldur.MultiView, folder: Path) -> None:
    """Check that a saved model predicts what it predicted before."""
    model = estimator(members=("pooled",), random_state=0).fit(X[:40], outcome[:40])
    model.save(folder)
    again = baldur.load(folder)
    names = ["predict", "predict_interval"] + ["predict_proba"] * hasattr(model, "predict_proba")
    for name in names:
        before, after = getattr(model, name)(X[40:]), getattr(again, name)(X[40:])
        np.testing.assert_array_equal(np.asarray(before), np.asarray(after))
    assert model.summary() is not None
    assert len(model.explain(X[40:43])) > 0


def check_genotypes() -> None:
    """Check that PLINK 1 files are read; this one is written here byte by byte."""
    people = ["a", "b", "c", "d"]
    lines = [f"f{p} {p} 0 0 1 -9" for p in people]
    Path("g.fam").write_text("\n".join(lines) + "\n")
    Path("g.bim").write_text("".join(f"1 rs{j} 0 {100 + j} A C\n" for j in range(2)))
    # The header, then one byte for the four people of each variant, two bits for a person.
    Path("g.bed").write_bytes(bytes([0x6C, 0x1B, 0x01, 0b11100000, 0b00000011]))
    X = baldur.io.read_plink("g.bed")
    expected = [[2, 0], [2, 2], [1, 2], [0, 2]]
    np.testing.assert_array_equal(X.view("genotypes").raw(), expected)
    assert X.sample_ids.tolist() == people


def main() -> None:
    """Try everything."""
    check_installed(sys.argv[1])
    sim = make_multiview(60, {"clinical": 4, "genes": 30}, random_state=0)
    X, labels = sim.data, sim.target
    check_model(BaldurClassifier, labels, X, Path("classifier"))
    check_model(BaldurRegressor, X.view("clinical").read()[:, 0], X, Path("regressor"))
    check_genotypes()
    result = nested_cv(["Ridge logistic"], X, labels, outer=3, inner=2, random_state=0)
    assert result.table()["auc_pooled"].between(0, 1).all()
    print(f"baldur {baldur.__version__}, Python {sys.version.split()[0]}, numpy {np.__version__}")


if __name__ == "__main__":
    main()
