"""Precision and recall of a printed row against its accuracies."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, precision_score, recall_score

from baldur.report.formatting import number
from baldur.reproduction.printed import CHECKS, POSITIVE_SHARE, PRINTED
from baldur.reproduction.protocol import PROTOCOLS
from reproduction.arithmetic import fit_of, fits_of, implied, mismatch, positive_share


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
    expected = accuracy_score(truth, predicted), balanced_accuracy_score(truth, predicted)
    assert found == pytest.approx(expected)


@st.composite
def folds(draw):
    """People of both classes, true and false positives of some stratified folds.

    The sizes of a class differ by at most one; each fold has at least one true positive.
    """
    count = draw(st.sampled_from([5, 10]))

    def sizes():
        base = draw(st.integers(5, 70))
        return np.array([base + draw(st.integers(0, 1)) for _ in range(count)])

    positives, negatives = sizes(), sizes()
    true = [draw(st.integers(1, int(most))) for most in positives]
    false = [draw(st.integers(0, int(most))) for most in negatives]
    return positives, negatives, np.array(true), np.array(false)


@settings(deadline=None, max_examples=300)
@given(table=folds(), sample=st.booleans())
def test_folds_that_exist_fit(table, sample):
    """Whatever happened in the folds, the figures that are printed of them are possible."""
    positives, negatives, true, false = table
    recall, precision = true / positives, true / (true + false)
    specificity = 1 - false / negatives
    share = positives / (positives + negatives)
    accuracy = (share * recall + (1 - share) * specificity).mean()
    balanced = 0.5 * (recall + specificity)
    mean_share = share.mean()

    def printed(values):
        return round(values.mean(), 2), round(values.std(ddof=int(sample)), 2)

    # Rounding of a tie may go either way in floating point.
    inside = 1e-9
    rest = (
        (mean_share - inside, mean_share + inside), len(true), int((positives + negatives).sum()),
    )  # fmt: skip
    first = printed(precision), printed(recall), round(accuracy, 2)
    assert mismatch(*first, printed(balanced), *rest) == 0.0
    assert mismatch(*first, None, *rest) == 0.0


def test_rows_at_chance_say_what_the_share_of_patients_was():
    biofind, adni = (PROTOCOLS[name] for name in ("biofind", "adni"))
    low, high = positive_share(PRINTED["biofind"].values(), *biofind.counts)
    assert (low, high) == pytest.approx((119 / 215, 0.575))
    assert positive_share(PRINTED["adni"].values(), *adni.counts) == pytest.approx((0.615, 0.625))


def test_unequal_shares_of_folds_are_allowed_for():
    """Two folds of nine and ten people: with equal shares these figures would contradict."""
    positives, negatives = np.array([4, 5, 4, 5, 4]), np.array([6, 5, 6, 5, 6])
    true, false = np.array([4, 1, 4, 1, 4]), np.array([5, 0, 5, 0, 5])
    recall, specificity = true / positives, 1 - false / negatives
    precision = true / (true + false)
    balanced = (recall + specificity) / 2
    share = positives / (positives + negatives)
    accuracy = float((share * recall + (1 - share) * specificity).mean())
    equal = share.mean() * recall.mean() + (1 - share.mean()) * specificity.mean()
    assert abs(accuracy - equal) > 0.02
    cells = [(x.mean(), x.std()) for x in (precision, recall, balanced)]
    given = cells[0], cells[1], accuracy, cells[2], (share.mean(), share.mean() + 1e-9), 5
    assert mismatch(*given, 50) == 0.0
    assert mismatch(*given, 50_000) > 0.0  # large folds have nearly equal shares


EXPECTED = {
    "biofind": {
        "exchanged": {"Lasso-MkSVM", "BALDUR"},
        "either way": {"LSVM-l1"},
        "neither way": {"MV-PLS"},
    },
    "adni": {
        "exchanged": set(),
        "either way": {"RF", "K-AWDR"},
        "neither way": {"PCA-AWDR", "MV-PLS", "Lasso-MkSVM", "BALDUR"},
    },
}
"""How precision and recall fit, where not as printed."""
CONTRADICTING = {"biofind": set(), "adni": {"PCA-AWDR", "MV-PLS", "BALDUR"}}
"""Rows that do not fit either if the balanced accuracy is of (prediction, truth) as well."""


@pytest.mark.parametrize("study", PRINTED)
def test_readings_of_the_printed_rows(study):
    protocol = PROTOCOLS[study]
    fits = fits_of(PRINTED[study], *protocol.counts, protocol.folds)
    for word, names in EXPECTED[study].items():
        assert {name for name, fit in fits.items() if fit.reading == word} == names
    assert {name for name, fit in fits.items() if fit.contradicts} == CONTRADICTING[study]
    for fit in fits.values():
        # Without a statement more is possible, and never less.
        assert fit.without_balanced <= fit.exchanged
        assert (fit.off_by == 0.0) == (fit.reading != "neither way")


def test_the_other_order_of_arguments_changes_the_balanced_accuracy():
    """(prediction, truth) exchanges precision and recall, and has the predictive values' mean."""
    truth, predicted = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]
    assert precision_score(predicted, truth) == recall_score(truth, predicted)
    predictive = precision_score(truth, predicted), precision_score(truth, predicted, pos_label=0)
    assert balanced_accuracy_score(predicted, truth) == pytest.approx(sum(predictive) / 2)
    assert balanced_accuracy_score(predicted, truth) != balanced_accuracy_score(truth, predicted)


def test_exchanging_the_two_columns_exchanges_the_readings():
    protocol, rows = PROTOCOLS["biofind"], PRINTED["biofind"]
    share = positive_share(rows.values(), *protocol.counts)
    row = rows["BALDUR"]
    cells = {**row.cells, "precision": row.cells["recall"], "recall": row.cells["precision"]}
    other = replace(row, cells=MappingProxyType(cells))
    shape = protocol.folds, sum(protocol.counts)
    mine, theirs = fit_of(row, share, *shape), fit_of(other, share, *shape)
    assert (mine.reading, theirs.reading) == ("exchanged", "as printed")
    assert (mine.as_printed, mine.exchanged) == (theirs.exchanged, theirs.as_printed)
    # What the printed means of the row imply, beside its accuracy .68 and balanced accuracy .70.
    precision, recall = row.mean("precision"), row.mean("recall")
    assert implied(precision, recall, *protocol.counts) == pytest.approx((0.53, 0.49), abs=0.005)
    assert implied(recall, precision, *protocol.counts) == pytest.approx((0.68, 0.70), abs=0.005)


@pytest.mark.parametrize("study", PRINTED)
def test_the_stored_checks_are_what_the_printed_rows_say(study):
    protocol, rows = PROTOCOLS[study], PRINTED[study]
    share = positive_share(rows.values(), *protocol.counts)
    assert tuple(round(end, 3) for end in share) == POSITIVE_SHARE[study]
    fits = fits_of(rows, *protocol.counts, protocol.folds)
    assert list(CHECKS[study]) == list(rows)
    for name, stored in CHECKS[study].items():
        precision, recall = rows[name].mean("precision"), rows[name].mean("recall")
        for text, pair in (
            (stored.as_printed, (precision, recall)),
            (stored.exchanged, (recall, precision)),
        ):
            assert text == ", ".join(map(number, implied(*pair, *protocol.counts))), name
        fit = fits[name]
        assert (stored.reading, stored.contradicts) == (fit.reading, fit.contradicts), name
        assert stored.off_by == round(fit.off_by, 3), name
