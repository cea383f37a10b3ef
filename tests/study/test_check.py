"""What is said before anything is fitted: the plan, what is refused, and what looks wrong."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from baldur.exceptions import StudyError
from baldur.study import check_study, evaluate_study, load_study
from baldur.study.suspicious_data import (
    LIMIT,
    RowHashes,
    constant_columns,
    copying_classes,
    copying_numbers,
    dated,
    sentinel_cells,
)
from baldur.views.table_encoding import decimal_commas
from study.conftest import read_file

WRONG = Path(__file__).parent / "wrong_data"
CASES = sorted(folder.name for folder in WRONG.iterdir())


@pytest.mark.parametrize("case", CASES)
def test_each_wrong_file_gives_its_one_line(case):
    check = check_study(load_study(WRONG / case / "study.toml"), trial=False)
    expected = (WRONG / case / "expected.txt").read_text().splitlines()
    assert [str(finding) for finding in check.findings] == expected
    assert len(expected) == (case != "nothing_wrong")
    for line in expected:
        key, _, rest = line.partition(": ")
        assert key.split(".")[0] in ("samples", "outcome", "covariates", "views")
        assert "; " in rest
        assert line.endswith(".")


def test_every_kind_of_wrong_data_has_a_file():
    for kind in ("comma", "label", "outcome", "near_copy", "sentinel", "dates", "ids", "duplicated",
                 "constant_in_site", "site_predicts"):  # fmt: skip
        assert any(kind in case for case in CASES), kind


def _with_view(tmp_path, cells, options):
    """Write a study of one view with a semicolon between the fields, and return its file."""
    ids = [f"p{i}" for i in range(len(cells))]
    rows = "".join(f"{i};{'ab'[k % 2]}\n" for k, i in enumerate(ids))
    (tmp_path / "samples.csv").write_text("id;y\n" + rows)
    lines = "".join(f"{i};{cell}\n" for i, cell in zip(ids, cells, strict=True))
    (tmp_path / "blood.csv").write_text("id;iron;smoking\n" + lines)
    study = tmp_path / "study.toml"
    study.write_text(
        'models = ["Dummy"]\n[samples]\nfile = "samples.csv"\nid = "id"\nseparator = ";"\n'
        '[outcome]\ncolumn = "y"\n[views.blood]\nfile = "blood.csv"\nseparator = ";"\n' + options
    )
    return study


def test_the_line_about_a_code_for_missing_can_be_pasted(tmp_path):
    smoking = ["yes", "no", "", " ", "NA"]
    cells = [f"{3 + k / 7:.2f}".replace(".", ",") + f";{smoking[k % 5]}" for k in range(60)]
    cells[0], cells[5], cells[7], cells[9] = "-999,0;yes", "-999;no", "-9;yes", ".;NA"
    study = _with_view(tmp_path, cells, 'decimal = ","\n')
    findings = [f for f in check_study(load_study(study), trial=False).findings if "away" in f.what]
    assert len(findings) == 2
    lines = {f.fix.removeprefix("write ").partition(" in [views.blood]")[0] for f in findings}
    assert lines == {'missing = ["-9", "-999"]'}
    study = _with_view(tmp_path, cells, 'decimal = ","\n' + lines.pop() + "\n")
    check = check_study(load_study(study), trial=False)
    assert not check.findings
    view = check.data.data.view("blood")
    # Blank and "NA" cells are still missing and no level of their own.
    assert view.feature_names.tolist() == ["iron", "smoking=no", "smoking=yes"]
    missing = np.isnan(view.read())
    assert np.flatnonzero(missing[:, 0]).tolist() == [0, 5, 7, 9]
    assert missing[2:5, 1:].all()
    study = _with_view(tmp_path, cells, 'decimal = ","\nmissing = ["unknown"]\n')
    findings = check_study(load_study(study), trial=False).findings
    assert 'missing = ["unknown", "-9", "-999"]' in findings[0].fix


def test_decimal_commas_are_named_however_many_values_there_are(tmp_path):
    cells = [f"{20 + k / 7:.2f}".replace(".", ",") + ";no" for k in range(98)]
    for whole in (0, 10, 60):
        mixed = [f"{k};no" for k in range(whole)] + cells[whole:]
        with pytest.raises(StudyError, match=r'decimal comma\. Give decimal=","') as caught:
            read_file(_with_view(tmp_path, mixed, ""))
        assert "max_levels" not in str(caught.value)
        data = read_file(_with_view(tmp_path, mixed, 'decimal = ","\n'))
        assert "iron" in data.data.view("blood").feature_names


@pytest.mark.parametrize("described", [False, True])
def test_a_transposed_table_is_recognised_and_read(described, parts, tables, write):
    plain = read_file(write(parts, tables))
    brain = tables["brain"]
    turned = brain.set_index("sample").T.rename_axis("feature").reset_index()
    if described:
        turned.insert(1, "about", [f"region {k}" for k in range(len(turned))])
    tables["brain"] = turned
    with pytest.raises(StudyError) as caught:
        read_file(write(parts, tables))
    count = f"60 of {60 + described} columns of brain.csv are named as samples ('p00', ...)"
    assert count in str(caught.value)
    assert "write transpose = true in [views.brain]" in str(caught.value)
    parts["views"]["brain"] |= {"transpose": True} | ({"exclude": ["about"]} if described else {})
    read = read_file(write(parts, tables))
    np.testing.assert_array_equal(read.data.view("brain").read(), plain.data.view("brain").read())


def test_strict_turns_the_first_warning_into_an_error(tmp_path):
    study = load_study(WRONG / "sentinel_minus_9" / "study.toml")
    with pytest.raises(StudyError, match="-9 occurs 3 times") as caught:
        evaluate_study(study, output=tmp_path / "strict", strict=True)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "strict" / "table.csv").exists()
    evaluate_study(study, output=tmp_path / "loose")
    assert "warning: views.blood: -9 occurs" in (tmp_path / "loose" / "log.txt").read_text()


def test_the_plan_names_samples_views_folds_jobs_and_time(parts, tables, write):
    tables["brain"] = tables["brain"].iloc[3:]
    parts["align"] = "union"
    study = load_study(write(parts, tables))
    check = check_study(study, n_jobs=2)
    text = "\n".join(check.lines())
    counts = tables["samples"]["diagnosis"].value_counts()
    assert (
        f"60 samples: {counts['control']} control, {counts['patient']} patient (positive)" in text
    )
    assert "blood: 4 features" in text
    assert "brain: 12 features; missing for 3 samples ('p00', 'p01', 'p02')" in text
    assert "Folds: stratified, 3 outer (40 training and 20 test rows), 3 inner" in text
    # Two models with two settings each: 3 outer folds of 2 settings on 3 inner folds, and one fit;
    # three more for the probabilities of the one with margins alone.
    assert "2 models, 18 jobs, 51 fits; about" in text
    assert "with 2 processes" in text
    assert set(check.plan.seconds) == {"Ridge logistic", "LSVM-l1"}
    intersect = dict(parts, align="intersection")
    lines = check_study(load_study(write(intersect, tables)), trial=False).lines()
    assert "  brain: 12 features; 3 samples are not in its file and are left out" in "\n".join(
        lines
    )


def test_a_setting_that_cannot_be_fitted_is_found_before_the_run(parts, tables, write):
    parts["models"] = [{"name": "RF", "grid": {"max_features": ["squirt", 0.1]}}]
    check = check_study(load_study(write(parts, tables)))
    assert [f.key for f in check.findings] == ["models.RF"]
    assert "squirt" in str(check.findings[0])


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["patient"] * 2 + ["control"] * 58, "ask for fewer outer folds"),
        (["patient"] * 30 + ["control"] * 29 + ["other"], "'other' of 'diagnosis' has one sample"),
        (["patient"] * 30 + ["control"] * 29 + ["Patient"], "'Patient' and 'patient'"),
        (["patient"] * 30 + ["control"] * 28 + ["Patient"] * 2, "'Patient' and 'patient'"),
    ],
)
def test_check_refuses_what_evaluate_would(labels, said, parts, tables, write):
    tables["samples"]["diagnosis"] = labels
    parts["outcome"].pop("positive")
    study = load_study(write(parts, tables))
    with pytest.raises(StudyError, match=r"study\.toml: ") as refused:
        check_study(study, trial=False)
    assert said in str(refused.value)
    with pytest.raises(StudyError) as run:
        evaluate_study(study)
    assert str(run.value) == str(refused.value)


# -- laws of the single checks ---------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 0.4), st.booleans())
@example(986, 0.1875, True)  # 99 of 100 pairs: on the limit, where rounding decides
def test_columns_that_separate_are_those_of_a_large_auc(seed, gaps, rounded):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat([0, 1], [14, 11]))
    block = rng.normal(size=(25, 12)) + np.linspace(-6, 6, 12) * codes[:, None]
    if rounded:
        block = block.round()
    block[rng.random(block.shape) < gaps] = np.nan
    slow = []
    for column in block.T:
        known = np.isfinite(column)
        both = known.any() and len(np.unique(codes[known])) == 2
        auc = roc_auc_score(codes[known], column[known]) if both else 0.5
        slow.append(max(auc, 1 - auc))
    clear = np.abs(np.array(slow) - LIMIT) > 1e-12
    found = copying_classes(block, codes, 12)
    assert (found == (np.array(slow) > LIMIT))[clear].all()


def test_few_rows_separate_by_chance_and_are_not_reported():
    codes = np.repeat([0, 1], 3)
    assert not copying_classes(codes[:, None].astype(float), codes, 10_000).any()
    codes = np.repeat([0, 1], 20)
    assert copying_classes(codes[:, None].astype(float), codes, 10_000).all()


def test_several_classes_need_a_column_that_tells_them_all_or_stands_for_one():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 20)
    block = np.column_stack(
        [codes * 2.0, codes == 1, np.where(codes == 2, 5.0, 0.0) + rng.normal(size=60),
         rng.normal(size=60)]
    )  # fmt: skip
    assert copying_classes(block, codes, 4).tolist() == [True, True, False, False]


def test_numbers_are_compared_by_correlation():
    rng = np.random.default_rng(0)
    y = rng.normal(size=50)
    block = np.column_stack([-3 * y + 1, y + rng.normal(size=50), y**3])
    block[:5, 0] = np.nan
    assert copying_numbers(block, y).tolist() == [True, False, False]


def test_sentinels_among_values_of_their_size_are_left_alone():
    assert sentinel_cells(np.array([-9.0, -8.0, -7.5, -9.0, 3.0])) == {}
    assert sentinel_cells(np.array([990.0, 999.0, 1010.0])) == {}
    assert sentinel_cells(np.array([1.0, 2.0, -9.0, -99.0, np.nan])) == {-9.0: 1, -99.0: 1}
    assert sentinel_cells(np.array([-1.2, 0.4, 0.9, 999.0])) == {999.0: 1}


def test_sentinels_count_only_where_the_numbers_beside_them_do_not_stand_apart(
    parts, tables, write
):
    """Whole numbers around 300, as of a microarray: some columns have one negative number."""
    rng = np.random.default_rng(0)
    cells = rng.normal(250, 120, size=(60, 1500)).round()
    frame = pd.DataFrame(cells, columns=[f"g{j}" for j in range(1500)])
    frame.insert(0, "sample", tables["blood"]["sample"])
    parts["views"]["blood"] = {"file": "genes.csv"}

    def found():
        check = check_study(load_study(write(parts, {**tables, "genes": frame})), trial=False)
        return [f.what for f in check.findings if "away from" in f.what]

    alone = [j for j in range(1500) if sentinel_cells(cells[:, j])]
    assert alone
    assert not found()
    frame.iloc[:3, 1:200] = -9.0
    assert len(found()) == 1
    assert "-9 occurs" in found()[0]


def test_a_column_that_only_one_class_has_is_reported(parts, tables, write):
    """Days to an event, with a code for missing in people without the event."""
    case = (tables["samples"]["diagnosis"] == "patient").to_numpy()
    days = np.where(case, np.arange(60) + 20.0, np.nan)
    tables["blood"]["days to event"] = days
    tables["blood"].loc[::7, "blood_0"] = np.nan
    findings = check_study(load_study(write(parts, tables)), trial=False).findings
    (found,) = [f for f in findings if "missing tells" in f.what]
    assert "whether 'days to event' is missing tells 'diagnosis'" in found.what
    assert "exclude = ['days to event'] in [views.blood]" in found.fix


def test_dates_and_comma_numbers_by_their_form():
    days = pd.date_range("1999-12-20", periods=30).strftime("%Y%m%d").astype(float).to_numpy()
    assert dated(days, "x")
    assert not dated(days + 60, "x")
    assert not dated(np.arange(43_000.0, 43_030.0), "platelets")
    assert dated(np.arange(43_000.0, 43_030.0), "date_of_birth")
    assert decimal_commas(["1,5", "2,25", "-3,0"])
    assert not decimal_commas(["a,b", "1,5", "2,5"])
    assert not decimal_commas(["1,5", "2,5"])


def test_equal_rows_count_only_where_chance_does_not_make_them():
    rng = np.random.default_rng(0)
    everybody = np.ones(30, dtype=bool)
    wide = rng.normal(size=(30, 50))
    wide[7] = wide[21]
    hashes = RowHashes(everybody)
    hashes.add(wide[:, :20])
    hashes.add(wide[:, 20:])
    assert hashes.pairs() == [(7, 21)]
    narrow = RowHashes(everybody)
    narrow.add(rng.integers(0, 2, size=(30, 4)).astype(float))
    assert narrow.pairs() == []
    absent = everybody.copy()
    absent[21] = False
    without = RowHashes(absent)
    without.add(wide)
    assert without.pairs() == []


def test_rare_values_are_constant_at_a_site_by_chance():
    rng = np.random.default_rng(0)
    sites = np.repeat(["a", "b", "c"], 20)
    block = np.column_stack([rng.normal(size=60), np.zeros(60), rng.normal(size=60)])
    block[3, 1] = 1.0
    block[sites == "b", 2] = 4.0
    assert constant_columns(block, sites, 3) == [(2, "b")]
