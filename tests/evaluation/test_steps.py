"""Steps before a model are learned on training rows; its features are given back at full width."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from baldur import Preparation
from baldur.baselines import BASELINES
from baldur.evaluation import SideBySide, nested_cv
from baldur.exceptions import InputError
from baldur.preparation import VariantFilter
from baldur.views import MultiView
from evaluation import spies


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


GROUPS = []


class Grouped(spies.Spy):
    """Says which groups it was told."""

    def fit(self, X, y, groups=None):
        GROUPS.append((np.array(X.sample_ids, dtype=int), groups))
        return super().fit(X, y)


def test_groups_are_passed_to_models_that_ask_for_them():
    """Those of the training rows; groups stay whole, whatever they are called inside."""
    mv = MultiView({"a": np.random.default_rng(0).normal(size=(60, 3))})
    y, groups = np.arange(60) % 2, np.repeat(np.arange(20), 3)
    GROUPS.clear()
    nested_cv({"grouped": Grouped(), "spy": spies.Spy()}, mv, y, groups=groups, outer=3)
    assert len(GROUPS) == 3
    for rows, inside in GROUPS:
        assert len(np.unique(inside)) < 20
        pairs = set(zip(groups[rows], inside, strict=True))
        assert len(pairs) == len(np.unique(inside)) == len(np.unique(groups[rows]))


def test_a_model_that_cannot_prepare_is_explained(genotypes):
    mv, y = genotypes
    with pytest.raises(InputError, match=r"'spy'.*no parameter 'preparation'"):
        nested_cv({"spy": spies.Spy()}, mv, y, outer=3, preparation=Preparation())
