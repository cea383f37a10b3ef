"""Steps before a model are learned on training rows; its features are given back at full width."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from baldur import Preparation
from baldur.baselines import BASELINES
from baldur.datasets import make_multiview
from baldur.estimators import default_fit
from baldur.evaluation import SideBySide, nested_cv
from baldur.evaluation.fitted_model import weights_of
from baldur.evaluation.models import fit_with_groups
from baldur.exceptions import InputError
from baldur.preparation import VariantFilter
from baldur.views import MultiView
from baldur.views.container import select_columns
from evaluation import spies


@pytest.fixture
def genotypes():
    rng = np.random.default_rng(0)
    G = rng.integers(0, 3, (60, 12)).astype(np.int8)
    G[:, 3] = 0
    G[:40, 7] = 1  # monomorphic in the first 40 rows only
    age = rng.normal(size=60)
    mv = MultiView({"snps": G, "age": age[:, None]}, samples=pd.DataFrame({"age": age}))
    return mv, np.arange(60) % 2


def test_masks_and_weights_come_back_for_every_column(genotypes):
    mv, y = genotypes
    preparation = Preparation(steps=[VariantFilter("snps", drop_monomorphic=True)])
    model = BASELINES["LSVM-l1"].make().set_params(preparation=preparation)
    model.fit(mv[:40], y[:40])
    kept = np.ones(12, bool)
    kept[[3, 7]] = False
    assert model.selected_features_["snps"].shape == (12,)
    assert not model.selected_features_["snps"][~kept].any()
    assert model.coef_["snps"].shape[1] == 12
    assert model.predict(mv[40:]).shape == (20,)
    # The column that varies in test rows only was not let in by them.
    np.testing.assert_array_equal(model.preparation_.columns_["snps"], np.flatnonzero(kept))


@pytest.mark.parametrize(
    "name", [n for n, e in BASELINES.items() if e.classifier and n not in ("CPM-Nets", "SGP+ARD")]
)
def test_a_competitor_behind_a_filter_is_the_one_on_what_is_left(genotypes, name):
    """Predictions, masks and weights are those of a fit on the columns that a filter leaves."""
    mv, y = genotypes
    settings = {k: v for k, v in (("random_state", 0), ("n_estimators", 5)) if k in
                BASELINES[name].make().get_params()}  # fmt: skip
    preparation = Preparation(steps=[VariantFilter("snps")])
    model = BASELINES[name].make().set_params(preparation=preparation, **settings)
    model.fit(mv[:40], y[:40])
    kept = model.preparation_.columns_["snps"]
    left = select_columns(mv, {"snps": kept})
    alone = BASELINES[name].make().set_params(**settings).fit(left[:40], y[:40])
    np.testing.assert_allclose(
        model.decision_function(mv[40:]), alone.decision_function(left[40:]), atol=1e-10
    )
    assert len(model.selected_features_["snps"]) == 12
    np.testing.assert_array_equal(
        model.selected_features_["snps"][kept], alone.selected_features_["snps"]
    )
    found, want = weights_of(model, mv[:40]), weights_of(alone, left[:40])
    assert (found is None) == (want is None)
    if found is not None:
        for part in ("per_sd", "raw"):
            np.testing.assert_allclose(
                getattr(found, part)["snps"][kept], getattr(want, part)["snps"], atol=1e-10
            )
            assert not np.delete(getattr(found, part)["snps"], kept, axis=0).any()
        for view, variance in want.variance.items():
            assert found.variance[view] == pytest.approx(variance)


def test_steps_come_before_covariates_are_taken_out(genotypes):
    mv, y = genotypes
    preparation = Preparation(
        steps=[VariantFilter("snps", drop_monomorphic=True)], regress_out=["age"]
    )
    result = nested_cv(
        {"Ridge logistic": {"C": [0.1, 1.0]}, "lr": (LogisticRegression(), {"C": [1.0, 10.0]})},
        mv, y, outer=3, inner=3, preparation=preparation,
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
    model = SideBySide(LogisticRegression())
    model.fit(mv[:35], np.arange(35) % 2)
    # The reference level has no column; the third did not occur in training.
    assert model.selected_features_["t"].tolist() == [False, True, False]
    assert np.isfinite(model.predict_proba(mv[35:])).all()


class Grouped(spies.Spy):
    """Says which groups it was told."""

    def fit(self, X, y, groups=None):
        self.groups_ = groups
        return super().fit(X, y)


def test_groups_are_passed_to_models_that_ask_for_them():
    mv = MultiView({"a": np.random.default_rng(0).normal(size=(20, 3))})
    y, groups = np.arange(20) % 2, np.repeat(np.arange(5), 4)
    assert fit_with_groups(Grouped(), mv, y, groups).groups_ is groups
    assert fit_with_groups(spies.Spy(), mv, y, groups).classes_.tolist() == [0, 1]


def test_a_model_that_cannot_prepare_is_explained(genotypes):
    mv, y = genotypes
    with pytest.raises(InputError, match=r"'spy'.*no parameter 'preparation'"):
        nested_cv({"spy": spies.Spy()}, mv, y, outer=3, preparation=Preparation())


@pytest.mark.usefixtures("one_repeat")
def test_groups_reach_the_folds_inside_baldur(monkeypatch):
    """BALDUR chooses its sparsity on folds of the training rows; those keep groups whole."""
    sim = make_multiview(60, {"a": 6}, random_state=0)
    groups = np.repeat(np.arange(20), 3)
    told = []
    original = default_fit.inner_folds

    def spy(labels, task, inside, random_state):
        folds = original(labels, task, inside, random_state)
        told.append((inside, folds))
        return folds

    monkeypatch.setattr(default_fit, "inner_folds", spy)
    nested_cv({"BALDUR": {}}, sim.data, sim.target, groups=groups, outer=3)
    assert len(told) == 3
    for inside, folds in told:
        members = np.unique(inside, return_counts=True)[1]
        assert len(members) < 20
        assert (members == 3).all()  # whole groups, whatever they are called inside
        for train, test in folds:
            assert not set(inside[train]) & set(inside[test])
