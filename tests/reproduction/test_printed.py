"""The printed tables as data."""

import pytest

from baldur.baselines import BASELINES
from baldur.reproduction.printed import METRICS, PRINTED

IN_PAPER = [name for name, entry in BASELINES.items() if entry.in_paper]
ROWS = [(study, name) for study in PRINTED for name in PRINTED[study]]


@pytest.mark.parametrize("study", PRINTED)
def test_rows_are_the_baselines_of_the_paper_and_its_model(study):
    assert list(PRINTED[study]) == [*IN_PAPER, "BALDUR"]
    assert all(tuple(row.cells) == METRICS for row in PRINTED[study].values())


@pytest.mark.parametrize(("study", "name"), ROWS)
def test_a_row_at_chance_has_a_balanced_accuracy_near_one_half(study, name):
    row = PRINTED[study][name]
    if row.chance:
        assert row.mean("balanced_accuracy") == pytest.approx(0.5, abs=0.021)
