"""Steps before a model are learned on training rows; its features are given back at full width."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from baldur import structured_fit
from baldur.baselines import BASELINES
from baldur.datasets import make_multiview
from baldur.evaluate import Deconfounded, SideBySide, WithSteps, nested_cv
from baldur.evaluate.deconfound import CONFOUNDS
from baldur.evaluate.steps import fit_with_groups
from baldur.io import CategoryEncoder, VariantFilter
from baldur.views import MultiView
from evaluate import spies


@pytest.fixture
def genotypes():
    rng = np.random.default_rng(0)
    G = rng.integers(0, 3, (60, 12)).astype(np.int8)
    G[:, 3] = 0
    G[:40, 7] = 1  # monomorphic in the first 40 rows only
    return MultiView({"snps": G, "age": rng.normal(size=(60, 1))}), np.arange(60) % 2


def test_masks_and_weights_come_back_for_every_column(genotypes):
    mv, y = genotypes
    model = WithSteps(BASELINES["LSVM-l1"].make(), [VariantFilter("snps", drop_monomorphic=True)])
    model.fit(mv[:40], y[:40])
    kept = np.ones(12, bool)
    kept[[3, 7]] = False
    assert model.selected_features_["snps"].shape == (12,)
    assert not model.selected_features_["snps"][~kept].any()
    inner = model.estimator_.coef_["snps"]
    assert inner.shape[1] == 10
    np.testing.assert_array_equal(model.coef_["snps"][:, kept], inner)
    assert model.predict(mv[40:]).shape == (20,)
    # The column that varies in test rows only was not let in by them.
    assert model.estimator_.preparation_.n_features_["snps"] == 10


def test_steps_come_before_covariates_are_taken_out(genotypes):
    mv, y = genotypes
    steps = [VariantFilter("snps", drop_monomorphic=True)]
    result = nested_cv(
        {"Ridge logistic": {"C": [0.1, 1.0]}, "lr": (LogisticRegression(), {"C": [1.0, 10.0]})},
        mv, y, outer=3, inner=3, steps=steps, confounds=mv.view("age").read(),
    )  # fmt: skip
    assert result.failures == {}
    whole = result.selection[result.selection["feature"] == "*"].set_index(["model", "view"])
    assert whole.loc[("lr", "snps"), "n_features"] == 12
    assert max(int(k) for k in whole.loc[("lr", "snps"), "folds"].split(";")) <= 11
    assert set(result.settings["setting"]) == {"C"}


def test_levels_of_test_rows_are_not_learned():
    info = pd.DataFrame({"column": ["site"] * 3, "level": ["a", "b", "c"]})
    X = np.eye(3)[np.arange(40) % 2]
    X[35:] = [0, 0, 1]
    mv = MultiView(
        {"t": X}, feature_names={"t": ["site=a", "site=b", "site=c"]}, feature_info={"t": info}
    )
    model = WithSteps(SideBySide(LogisticRegression()), [CategoryEncoder("t")])
    model.fit(mv[:35], np.arange(35) % 2)
    # The reference level has no column; the third did not occur in training.
    assert model.selected_features_["t"].tolist() == [False, True, False]
    assert np.isfinite(model.predict_proba(mv[35:])).all()


class Grouped(spies.Spy):
    """Says which groups it was told."""

    def fit(self, X, y, groups=None):
        self.groups_ = groups
        return super().fit(X, y)


def test_groups_are_told_to_models_that_ask_for_them_through_every_wrapper():
    rng = np.random.default_rng(0)
    mv = MultiView({"a": rng.normal(size=(20, 3)), CONFOUNDS: rng.normal(size=(20, 1))})
    y, groups = np.arange(20) % 2, np.repeat(np.arange(5), 4)
    wrapped = WithSteps(Deconfounded(Grouped()), [])
    fitted = fit_with_groups(wrapped, mv, y, groups)
    assert fitted.estimator_.estimator_.groups_ is groups
    assert fit_with_groups(spies.Spy(), mv, y, groups).classes_.tolist() == [0, 1]


@pytest.mark.usefixtures("one_repeat")
def test_groups_reach_the_folds_inside_baldur(monkeypatch):
    """BALDUR chooses its sparsity on folds of the training rows; those keep groups whole."""
    sim = make_multiview(60, {"a": 6}, random_state=0)
    groups = np.repeat(np.arange(20), 3)
    told = []
    original = structured_fit.inner_folds

    def spy(labels, task, inside, random_state):
        folds = original(labels, task, inside, random_state)
        told.append((inside, folds))
        return folds

    monkeypatch.setattr(structured_fit, "inner_folds", spy)
    nested_cv({"BALDUR": {}}, sim.data, sim.target, groups=groups, outer=3)
    assert len(told) == 3
    for inside, folds in told:
        members = np.unique(inside, return_counts=True)[1]
        assert len(members) < 20
        assert (members == 3).all()  # whole groups, whatever they are called inside
        for train, test in folds:
            assert not set(inside[train]) & set(inside[test])
