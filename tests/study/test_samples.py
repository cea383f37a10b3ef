"""The samples table is a table like any other, and classes may be written in several ways."""

import gzip

import numpy as np
import pandas as pd
import pytest

from baldur.exceptions import StudyError
from study.conftest import read_file


def as_semicolons(frame, folder):
    frame = frame.assign(bmi=[f"{20 + i / 4:.2f}".replace(".", ",") for i in range(len(frame))])
    frame.to_csv(folder / "samples.csv", index=False, sep=";")
    return {"file": "samples.csv", "separator": ";", "decimal": ","}


def as_latin(frame, folder):
    frame["sex"] = frame["sex"].replace({"m": "männlich"})
    frame.to_csv(folder / "samples.txt", index=False, sep="|", encoding="cp1252")
    return {"file": "samples.txt", "separator": "|", "encoding": "cp1252"}


def as_compressed(frame, folder):
    with gzip.open(folder / "samples.tsv.gz", "wt") as file:
        frame.to_csv(file, index=False, sep="\t")
    return {"file": "samples.tsv.gz"}


def as_excel(frame, folder):
    with pd.ExcelWriter(folder / "samples.xlsx") as book:
        pd.DataFrame({"nothing": [1]}).to_excel(book, sheet_name="notes", index=False)
        frame.to_excel(book, sheet_name="people", index=False)
    return {"file": "samples.xlsx", "sheet": "people"}


def as_second_sheet(frame, folder):
    return {**as_excel(frame, folder), "sheet": 1}


def as_parquet(frame, folder):
    frame.to_parquet(folder / "samples.parquet", index=False)
    return {"file": "samples.parquet"}


def as_parquet_with_index(frame, folder):
    frame.set_index("sample").to_parquet(folder / "samples.parquet")
    return {"file": "samples.parquet"}


FORMS = [
    as_semicolons,
    as_latin,
    as_compressed,
    as_excel,
    as_second_sheet,
    as_parquet,
    as_parquet_with_index,
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_form_gives_the_same_study(form, parts, tables, write, tmp_path):
    parts["covariates"] = {"include": ["age", "sex"]}
    plain = read_file(write(parts, tables))
    samples = tables.pop("samples")
    (tmp_path / "samples.csv").unlink()
    parts["samples"] = {"id": "sample", **form(samples.copy(), tmp_path)}
    found = read_file(write(parts, tables))
    np.testing.assert_array_equal(found.y, plain.y)
    np.testing.assert_array_equal(found.data.sample_ids, plain.data.sample_ids)
    np.testing.assert_array_equal(
        found.data.view("covariates").read(), plain.data.view("covariates").read()
    )


def test_decimal_commas_become_numbers(parts, tables, write, tmp_path):
    parts["samples"] = {"id": "sample", **as_semicolons(tables.pop("samples"), tmp_path)}
    parts["covariates"] = {"include": ["bmi"]}
    found = read_file(write(parts, tables))
    np.testing.assert_allclose(
        found.data.view("covariates").read()[:, 0], 20 + np.arange(60) / 4, atol=0.006
    )


def test_markers_of_missing_cells(parts, tables, write):
    tables["samples"].loc[[1, 2], "diagnosis"] = "-9"
    parts["samples"]["missing"] = ["-9", "NA"]
    found = read_file(write(parts, tables))
    assert len(found.y) == 58
    assert set(found.y) == {"control", "patient"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"separator": ";"}, "looks separated by ','"),
        ({"encoding": "utf-99"}, "utf-99"),
        ({"file": "samples.docx"}, ".csv"),
        ({"file": "no.csv"}, "no such file"),
        ({"separator": ""}, "samples.separator"),
        ({"sheet": [1]}, "samples.sheet"),
    ],
)
def test_wrong_options_are_one_line_about_the_samples(change, said, parts, tables, write):
    parts["samples"].update(change)
    with pytest.raises(StudyError, match=r"study\.toml: samples\.") as caught:
        read_file(write(parts, tables))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_positive_may_be_a_truth_value_or_a_number(parts, tables, write):
    for labels, given, expected in (
        (["False", "True"], True, "True"),
        (["FALSE", "TRUE"], False, "FALSE"),
        (["0", "1"], True, "1"),
        (["0", "1"], 0, "0"),
        (["1.0", "2.0"], 1, "1.0"),
        (["1", "2"], 2.0, "2"),
    ):
        tables["samples"]["diagnosis"] = np.tile(labels, 30)
        parts["outcome"]["positive"] = given
        assert read_file(write(parts, tables)).positive == expected
    for labels, given in ((["False", "True"], "true"), (["no", "yes"], True)):
        tables["samples"]["diagnosis"] = np.tile(labels, 30)
        parts["outcome"]["positive"] = given
        with pytest.raises(StudyError, match=r"outcome\.positive: "):
            read_file(write(parts, tables))
