"""A small comparison with the names of the paper's rows, fitted by quick models."""

import pandas as pd
import pytest

from baldur.baselines import BASELINES, L1SVMClassifier
from baldur.datasets import make_adni_like, make_biofind_like
from baldur.evaluation import nested_cv
from baldur.evaluation.clinical.held_out import Resampled
from baldur.reproduction.evidence import Evidence
from baldur.reproduction.protocol import DEFAULT, PAPER, PROTOCOLS, Protocol

MODELS = {
    "LSVM-l1": BASELINES["Ridge logistic"].make(),
    "RF": BASELINES["Dummy"].make(),
    "Lasso-MkSVM": BASELINES["Ridge logistic"].make().set_params(C=0.01),
    PAPER: L1SVMClassifier(c_ratio=3.0),
    DEFAULT: L1SVMClassifier(c_ratio=10.0),
}


def truth_of(cohort):
    return pd.DataFrame(
        [
            (view, str(name))
            for view, columns in cohort.truth.features.items()
            for name in cohort.data.view(view).names_of(columns)
        ],
        columns=["view", "feature"],
    )


@pytest.fixture(scope="session", params=PROTOCOLS)
def evidence(request):
    make = {"biofind": make_biofind_like, "adni": make_adni_like}[request.param]
    cohort = make(scale=0.001 if request.param == "biofind" else 0.004, random_state=0)
    labels = cohort.target_names[cohort.target]
    positive = PROTOCOLS[request.param].positive
    result = nested_cv(MODELS, cohort.data, labels, positive=positive, outer=3, inner=2)
    result.resampled = Resampled(
        result.predictions, [str(c) for c in result.classes], resamples=200
    )
    return Evidence(
        PROTOCOLS[request.param], result, truth_of(cohort), factors=1,
        not_run={"SGP+ARD": "not run: too wide"},
    )  # fmt: skip


def only_rows(monkeypatch, rows):
    """Let every study have these rows only."""
    monkeypatch.setattr(Protocol, "rows", property(lambda self: rows))
