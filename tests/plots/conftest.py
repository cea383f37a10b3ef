"""Models and results of small size, made once."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from baldur import BaldurClassifier, BaldurRegressor
from baldur.baselines import BASELINES, ElasticNetLogisticClassifier
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.paper import PaperClassifier
from constants import constants
from pages import write_folder

pytest.importorskip("matplotlib")


class Broken(DummyClassifier):
    """A model that cannot be fitted."""

    def fit(self, X, y):
        raise RuntimeError("out of order")


@pytest.fixture(scope="session")
def cohort():
    """Seventy people with two views, the first of which matters."""
    return make_multiview(
        70, {"clinic": 4, "genes": 8}, informative={"clinic": 2}, noise=0.3, random_state=2
    )


@pytest.fixture(scope="session")
def model(cohort):
    """A default classifier: path, credible sets and inclusion probabilities."""
    return fitted(BaldurClassifier(), cohort.data[:60], cohort.target[:60])


def fitted(estimator, X, y):
    # Of figures it is asked what they show, whatever the folds.
    with warnings.catch_warnings(), constants(MOST_REPEATS=1):
        warnings.simplefilter("ignore")
        return estimator.fit(X, y)


@pytest.fixture(scope="session")
def ten_classes(cohort):
    """A classifier of ten classes."""
    rank = cohort.data.view("clinic").read()[:, 0].argsort().argsort()
    target = np.array([f"c{k}" for k in rank // 7])
    return fitted(BaldurClassifier(n_factors=4, members=("pooled",)), cohort.data, target)


@pytest.fixture(scope="session")
def labels(cohort):
    """Three outcomes of the same people, with an awkward name among them."""
    cells = cohort.data.view("clinic").read()[:, :2]
    rng = np.random.default_rng(0)
    Y = cells @ rng.normal(size=(2, 3)) + rng.normal(size=(len(cells), 3)) > 0
    return pd.DataFrame(Y.astype(int), columns=["stroke", "<b>fall</b> " * 5, "pain"])


@pytest.fixture(scope="session")
def multilabel(cohort, labels):
    """A classifier of three labels with two factors."""
    model = BaldurClassifier(n_factors=2, members=("pooled",))
    return fitted(model, cohort.data, labels.to_numpy())


@pytest.fixture(scope="session")
def outcomes(cohort, labels):
    """A comparison of models for three outcomes."""
    given = {"ridge": BASELINES["Ridge logistic"].make(), "prior": BASELINES["Dummy"].make()}
    return nested_cv(given, cohort.data, labels, outer=3)


@pytest.fixture(scope="session")
def regressor(cohort):
    """A regression, which has no probabilities."""
    y = cohort.data.view("clinic").read()[:, 0] * 3 + 10
    return fitted(BaldurRegressor(members=("per_view",)), cohort.data, y)


@pytest.fixture(scope="session")
def nothing(cohort):
    """A classifier that selects no feature, whose fit has a bound."""
    y = np.arange(70) % 2
    return fitted(PaperClassifier(bound="jaakkola"), cohort.data, y)


@pytest.fixture(scope="session")
def result(cohort):
    """A comparison of three models that finish and one that does not."""
    models = {
        "elastic net": ElasticNetLogisticClassifier(),
        "ridge": BASELINES["Ridge logistic"].make(),
        "prior": BASELINES["Dummy"].make(),
        "broken": Broken(),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nested_cv(models, cohort.data, cohort.target, outer=3, inner=2)


@pytest.fixture(scope="session")
def run(result, tmp_path_factory):
    """The folder of the same comparison."""
    folder = tmp_path_factory.mktemp("run")
    write_folder(result, folder)
    return folder


@pytest.fixture(scope="session")
def view_sets(cohort):
    """A comparison of view sets."""
    ridge = {"ridge": BASELINES["Ridge logistic"].make()}
    return nested_cv(ridge, cohort.data, cohort.target, outer=3, baseline_views=["clinic"])
