"""Figures of label matrices: what their tables and sentences say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from baldur.exceptions import InputError
from baldur.plots import LatentDisplay, LoadingsDisplay, OutcomesDisplay
from plots.conftest import fitted


def test_loadings_are_those_of_the_model(multilabel):
    display = LoadingsDisplay.from_estimator(multilabel, ["a", "b", "c"])
    assert_allclose(display.wide("output").to_numpy(), multilabel.loadings_)
    assert display.wide("output").index.tolist() == ["a", "b", "c"]
    shares = multilabel.factor_relevance_
    assert_allclose(display.wide("view").to_numpy(), shares.to_numpy().T)
    assert display.factors == list(shares.index)
    first = display.table[display.table["factor"] == "factor0"]["features"]
    assert set(first) == {multilabel.factor_names_[0]}
    assert "3 outputs on 2 latent factors: factor0 moves" in display.alt_text
    with pytest.raises(InputError, match="expected 3 names"):
        LoadingsDisplay.from_estimator(multilabel, ["a"])


def test_a_single_output_has_one_factor_which_is_its_score(model, regressor):
    for one in (model, regressor):
        display = LoadingsDisplay.from_estimator(one)
        assert display.alt_text == "The model has one output and one factor, which is its score."
        assert display.wide("output").to_numpy().tolist() == [[1.0]]


def test_two_fits_have_the_same_factors(cohort, labels, multilabel):
    """Order, sign and names do not depend on the order of samples and features."""
    rows = np.random.default_rng(0).permutation(len(cohort.data))
    again = fitted(clone(multilabel), cohort.data[rows], labels.to_numpy()[rows])
    Z, other = (m.transform(cohort.data) for m in (multilabel, again))
    same = np.abs(np.corrcoef(Z.T, other.T)[:2, 2:]).argmax(axis=1)
    assert same.tolist() == [0, 1]
    assert (np.sum(Z * other, axis=0) > 0).all()
    assert again.factor_names_ == multilabel.factor_names_


def test_combinations_of_labels_are_drawn_in_the_latent_space(cohort, labels, multilabel):
    display = LatentDisplay.from_estimator(multilabel, cohort.data, labels)
    none = (labels.sum(axis=1) == 0).to_numpy()
    assert set(display.table["label"].to_numpy()[none]) <= {"no label", "other combinations"}
    few = LatentDisplay.from_estimator(multilabel, cohort.data, labels.iloc[:, [0, 0, 2]])
    alone = (labels.iloc[:, [0, 2]].sum(axis=1) == 0).to_numpy()
    assert_array_equal(few.table["label"].to_numpy() == "no label", alone)
    assert len(display.classes) <= 6
    assert display.separation().max() > 0
    many = np.eye(8)[np.arange(70) % 8]
    rare = LatentDisplay.from_estimator(_Wide(multilabel), cohort.data, many)
    assert "other combinations" in rare.classes
    assert len(rare.classes) == 6


class _Wide:
    """A model with eight labels, whose latent space is that of another."""

    classes_ = np.arange(8)

    def __init__(self, model):
        self.transform = model.transform


def test_outcomes_are_shown_with_their_mean(outcomes):
    display = OutcomesDisplay.from_result(outcomes)
    assert display.outcomes[0] == "*"
    assert len(display.table) == 2 * 4
    assert "AUC of 2 models for 3 outcomes" in display.alt_text
    brier = OutcomesDisplay.from_result(outcomes, "brier")
    assert set(brier.table["metric"]) == {"brier"}
    with pytest.raises(InputError, match="no metric 'r2'"):
        OutcomesDisplay.from_result(outcomes, "r2")


def test_a_result_of_one_outcome_is_refused(run):
    with pytest.raises(InputError, match="single outcome"):
        OutcomesDisplay.from_result(run)
