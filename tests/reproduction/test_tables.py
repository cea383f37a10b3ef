"""Tables of the page: orders of rows, and rows that were not run."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import spearmanr

from baldur.reproduction.page import _rank_correlation, difference_table, markdown_of, page_of
from baldur.reproduction.protocol import DEFAULT, PAPER
from reproduction.changed import changed_result


@pytest.mark.parametrize("seed", range(3))
def test_the_correlation_is_spearmans_and_its_p_value_that_of_all_orders(seed):
    """With five rows, the last two tied in the paper, all 120 orders can be listed."""
    ours = np.random.default_rng(seed).normal(size=5)
    printed = [0.5, 0.6, 0.7, 0.8, 0.8]
    rho, p = _rank_correlation(printed, ours)
    assert rho == pytest.approx(spearmanr(printed, ours).statistic)
    every = [spearmanr(printed, order).statistic for order in permutations(ours)]
    assert p == pytest.approx(np.mean(np.abs(every) >= abs(rho) - 1e-9), abs=0.02)


def test_rows_that_are_all_tied_have_no_order():
    assert np.isnan(_rank_correlation([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0])).all()


def without(evidence, *models):
    """Return the evidence without the rows of some models."""
    table = evidence.result.table()
    return changed_result(evidence, table=lambda: table[~table["model"].isin(models)])


def test_a_row_without_results_is_not_said_to_have_some(evidence, tmp_path, monkeypatch):
    monkeypatch.setattr("baldur.reproduction.page.draw", lambda plans: ([], []))
    request = {"scale": 1, "quick": False, "command": "baldur reproduce", "date": "2026-01-01"}

    def text(*models):
        return markdown_of(page_of(without(evidence, *models), request, tmp_path))

    table = difference_table(without(evidence, DEFAULT))
    assert not any("our default" in column.name for column in table.columns)
    assert difference_table(without(evidence, PAPER, DEFAULT)) is None
    assert difference_table(without(evidence, *evidence.baselines)) is None
    assert "The rows that would be compared were not run." in text(PAPER, DEFAULT)
    assert "`BaldurClassifier`, has no results in this run" in text(DEFAULT)
    assert "`BaldurClassifier`, was run on the same folds" in text()
