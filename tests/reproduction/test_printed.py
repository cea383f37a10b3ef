"""The printed tables as data."""

import re
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, precision_score, recall_score

from baldur.baselines import BASELINES
from baldur.report.formatting import listed, number
from baldur.report.render import asset
from baldur.reproduction.claims import FIRST_IN
from baldur.reproduction.printed import (
    CHECKS,
    METRICS,
    POSITIVE_SHARE,
    PRINTED,
    REMARKS,
    percent_texts,
)
from baldur.reproduction.protocol import PROTOCOLS
from reproduction.arithmetic import fit_of, fits_of, implied, mismatch, positive_share

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


LABELS = {"biofind": "Park_res", "adni": "per_alz"}


@pytest.fixture(scope="module")
def paper(shared_data):
    """The text of the paper, beside the folder of the data."""
    file = shared_data.parent / "paper.tex"
    if not file.is_file():
        pytest.skip("the text of the paper is not here")
    return file.read_text(encoding="utf-8")


def table_of(paper, study):
    """Return name, cells as lists of numbers, and whether there is an asterisk, row by row."""
    before = paper.split(rf"\label{{tab:{LABELS[study]}}}")[0]
    table = before.rsplit(r"\begin{tabular}", 1)[1].split(r"\end{tabular}")[0]
    for line in table.split("\n"):
        cells = line.split("\\\\")[0].split("&")
        if len(cells) == 8 and cells[0].strip():
            name = cells[0].strip().replace(r"$\ell$", "l")
            numbers = [[float(x) for x in re.findall(r"\d+\.?\d*", cell)] for cell in cells[1:]]
            yield name, numbers, "{*}" in line, "cdot" in line


@pytest.mark.parametrize("study", PRINTED)
def test_every_cell_is_that_of_the_paper(study, paper):
    found = {name: rest for name, *rest in table_of(paper, study)}
    assert list(found) == list(PRINTED[study])
    for name, (numbers, chance, powers) in found.items():
        row = PRINTED[study][name]
        assert row.chance == chance
        for metric, values in zip(METRICS, numbers[:-1], strict=True):
            cell = row.cells[metric]
            assert values == ([] if cell is None else list(cell)), (name, metric)
        if powers:  # 10^-4 (9.50 +- 0.76)
            assert numbers[-1][:2] == [10.0, 4.0]
            numbers[-1] = [x * 1e-4 for x in numbers[-1][2:]]
        percent = [*numbers[-1], 0.0][:2]
        assert row.percent == pytest.approx(percent), name


@pytest.mark.parametrize("study", PROTOCOLS)
def test_sizes_are_those_of_the_paper(study, paper):
    """Numbers of people and of features, but for grey matter, which has none in the text."""
    text = (
        paper.replace("\\textbf", "").replace("{", "").replace("}", "").replace("37 643", "37,643")
    )
    protocol = PROTOCOLS[study]
    people = {
        "biofind": "96 healthy participants and 119 patients",
        "adni": "661 participants with late MCI (LMCI) and 402 participants with early MCI",
    }[study]
    assert people in text
    assert all(f"{n} " in people for n in map(str, protocol.counts))
    assert "5-fold and 10-fold nested CV" in text
    named = {
        "neuropsychological": "18 neuropsychological", "sleep": "19 sleep",
        "socio-economic": "2 socio-economic", "demographical": "8 demographical",
        "genetic": "841,685 genetic", "t1_intensity": "37,643 features",
    }  # fmt: skip
    for view, width in protocol.views.items():
        if view in named:
            assert named[view] in text
            assert named[view].startswith(f"{width:,} ")
        elif view.endswith("_volume"):
            assert f"volumes in {width} ROIs" in text


@pytest.mark.parametrize("study", PRINTED)
def test_remarks_on_claims_are_those_of_the_printed_table(study):
    """Baselines that are as high as BALDUR, metrics that are not printed, values exchanged."""
    rows = dict(PRINTED[study])
    own = rows.pop("BALDUR")
    words = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "f1": "F1 score",
             "recall": "recall", "auc": "AUC"}  # fmt: skip
    for metric in {*FIRST_IN[study], "recall"}:
        word = words[metric]
        best, remark = own.mean(metric), REMARKS[study].get(metric, "")
        equal = [n for n, row in rows.items() if row.mean(metric) >= best and not row.chance]
        first = f"In the paper's table the {word} of {' and '.join(equal)} is as high ({best:.2f})."
        assert remark.startswith("In the paper's table") == bool(equal)
        assert first in remark or not equal
        unknown = sum(row.cells[metric] is None for row in rows.values())
        none = f"The paper prints no {word} for {unknown} of its {len(rows)} baselines."
        assert (none in remark) == bool(unknown)
        exchanged = metric == "recall" and CHECKS[study]["BALDUR"].reading == "exchanged"
        values = f"for BALDUR, {best}, fits its accuracies only as a precision; its recall is then "
        assert (f"{values}{own.mean('precision')}." in remark) == exchanged


def test_the_page_names_the_rows_that_do_not_fit():
    """What the page says of the printed tables follows from the checks of their rows."""
    text = asset("reproduction.j2")
    for checks in CHECKS.values():
        exchanged = [n for n, check in checks.items() if check.reading == "exchanged"]
        contradict = [n for n, check in checks.items() if check.contradicts]
        apart = [n for n, c in checks.items() if c.off_by > 0 and not c.contradicts]
        for before, names in (
            ("Only exchanged values fit in the rows ", exchanged),
            ("the printed values contradict each other in ", contradict),
            ("the one of (prediction, truth), in ", apart),
        ):
            assert not names or f"{before}{listed(names)}." in text


@pytest.mark.parametrize(
    ("mean", "sd", "texts"),
    [(45.56, 34.03, ("45.56", "34.03")), (100.0, 0.0, ("100.00", "0.00")),
     (0.23, 0.03, ("0.23", "0.03")), (0.00968, 0.0027, ("0.0097", "0.0027"))],
)  # fmt: skip
def test_shares_have_the_same_decimals_as_their_spread(mean, sd, texts):
    assert percent_texts(mean, sd) == texts


# -- Precision and recall of a printed row against its accuracies ---------------------------------


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
