"""A small project that uses the public interface, for ``mypy --strict``.

`.ci/smoke.py` checks it against the installed wheel. The annotations are what the package promises:
a wrong one, or a name without a type, is an error.
"""

from pathlib import Path

import numpy as np

import baldur
from baldur import BaldurClassifier, BaldurRegressor, MultiView, Preparation
from baldur.datasets import make_multiview
from baldur.evaluation import NestedResult, evaluate_predictions, nested_cv
from baldur.exceptions import BaldurError, InputError
from baldur.io import align, read_plink, read_table
from baldur.paper import PaperClassifier
from baldur.study import evaluate_study, load_study


def read_cohort(folder: Path) -> MultiView:
    """Read two files and match their people."""
    clinical: MultiView = read_table(folder / "clinical.csv", name="clinical")
    genotypes: MultiView = read_plink(folder / "genotypes.bed")
    return align([clinical, genotypes]).data


def fit(X: MultiView, y: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> BaldurClassifier:
    """Fit a classifier; `fit` returns the class it is called on."""
    model: BaldurClassifier = BaldurClassifier(random_state=0).fit(X, y)
    smaller: BaldurClassifier = model.submodel(5)
    paper: PaperClassifier = PaperClassifier().fit(X, y)
    probability: np.ndarray = smaller.predict_proba(X)
    share: float = float(probability[:, 1].mean())
    print(share, model.summary(), paper.predict(X)[:3])
    return model


def keep(model: BaldurClassifier, folder: Path) -> None:
    """Save a model, and load it again."""
    model.save(folder)
    again = baldur.load(folder)
    print(again, baldur.__version__)


def compare(X: MultiView, y: np.ndarray) -> NestedResult:
    """Compare two models by nested cross-validation; a label matrix has a result of its own."""
    result = nested_cv(["BALDUR", "Ridge logistic"], X, y, outer=3, n_jobs=2)
    assert isinstance(result, NestedResult)
    print(result.table(), evaluate_predictions(result.predictions))
    return result


def run(file: Path) -> int:
    """Run a study file; return an exit code."""
    try:
        evaluate_study(load_study(file), n_jobs=2)
    except InputError as error:
        print(error)
        return 2
    except BaldurError:
        return 1
    return 0


def predict_numbers(X: MultiView, y: np.ndarray) -> np.ndarray:
    """Predict numbers with their intervals."""
    model: BaldurRegressor = BaldurRegressor(preparation=Preparation()).fit(X, y)
    interval: np.ndarray = np.asarray(model.predict_interval(X))
    return interval


if __name__ == "__main__":
    sim = make_multiview(60, {"clinical": 4, "genes": 30}, random_state=0)
    keep(fit(sim.data, sim.target), Path("model"))
