"""The printed tables as data, and the arithmetic of precision and recall."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, precision_score, recall_score

from baldur.baselines import BASELINES
from baldur.reproduction.printed import METRICS, PRINTED, implied, swapped
from baldur.reproduction.protocol import PROTOCOLS

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


@settings(deadline=None)
@given(labels=st.lists(st.sampled_from([(0, 0), (0, 1), (1, 0), (1, 1)]), min_size=4, max_size=60))
def test_precision_and_recall_imply_the_accuracies(labels):
    truth, predicted = [[0, 1, 1, *part] for part in zip(*labels, strict=True)]
    predicted[:3] = [0, 1, 0]  # both classes, and one right prediction
    found = implied(
        precision_score(truth, predicted),
        recall_score(truth, predicted),
        sum(truth),
        len(truth) - sum(truth),
    )
    assert found.accuracy == pytest.approx(accuracy_score(truth, predicted))
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(truth, predicted))


def test_precision_and_recall_of_the_papers_row_are_exchanged():
    counts = PROTOCOLS["biofind"].counts
    row = PRINTED["biofind"]["BALDUR"]
    assert swapped(row, *counts) is True
    as_printed = implied(row.mean("precision"), row.mean("recall"), *counts)
    exchanged = implied(row.mean("recall"), row.mean("precision"), *counts)
    assert round(as_printed.accuracy, 2) == 0.53
    assert round(as_printed.balanced_accuracy, 2) == 0.49
    assert exchanged.distance(row) < 0.005
    # Where both or neither agree, nothing is said.
    assert swapped(PRINTED["adni"]["RF"], *PROTOCOLS["adni"].counts) is None
    assert swapped(PRINTED["adni"]["SGP+ARD"], *PROTOCOLS["adni"].counts) is False
