"""The printed tables as data."""

import re

import pytest

from baldur.baselines import BASELINES
from baldur.report.formatting import listed
from baldur.report.page import asset
from baldur.reproduction.claims import FIRST_IN
from baldur.reproduction.printed import CHECKS, METRICS, PRINTED, REMARKS, percent_texts
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
