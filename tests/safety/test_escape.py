"""Escaping: exact inverses for CSV, nothing live in any format."""

import csv
import io
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur.core.escape import (
    check_names,
    csv_text,
    escape_cell,
    has_control,
    latex,
    markdown,
    one_line,
    printable,
    unescape_cell,
    unescape_frame,
)
from baldur.evaluation.metric_table import format_table
from baldur.exceptions import InputError

LIVE = ["=cmd|' /C calc'!A0", "+1+cmd", "-1+1", "@SUM(A1)", "\t=1", " =1", "＝1+1", "'=1", "''@x"]
PLAIN = ["a", "", "'", "'a", "-0.5", "+3", "1e-5", "-.5e+10", "a=b", "rs123"]
nasty = st.text(st.sampled_from(list("'=+-@\t\r \n0123.eE;,\"|a＝")), max_size=8)


@given(st.one_of(nasty, st.text()))
def test_cells_come_back_exactly(text):
    assert unescape_cell(escape_cell(text)) == text


@given(st.one_of(nasty, st.text()))
def test_no_escaped_cell_is_a_formula_unless_it_is_a_number(text):
    made = escape_cell(text)
    if re.match(r"\s*[=+\-@＝＋－＠]", made):
        float(made)


@pytest.mark.parametrize("text", LIVE)
def test_live_cells_get_an_apostrophe(text):
    assert escape_cell(text) == "'" + text


@pytest.mark.parametrize("text", [*PLAIN, -1.5, None, 3, True])
def test_others_stay_as_they_are(text):
    assert escape_cell(text) is text


tables = st.lists(
    st.tuples(nasty, st.floats(allow_nan=False), st.integers(-9, 9)), min_size=1, max_size=5
)


@settings(max_examples=50)
@given(tables, st.lists(nasty.filter(str.strip), min_size=3, max_size=3, unique=True))
def test_tables_come_back_exactly(rows, heads):
    text = csv_text(pd.DataFrame(rows, columns=heads))
    read = list(csv.reader(io.StringIO(text, newline="")))
    back = unescape_frame(pd.DataFrame(read[1:], columns=read[0]))
    assert back.columns.tolist() == heads
    assert back.iloc[:, 0].tolist() == [row[0] for row in rows]
    np.testing.assert_array_equal(back.iloc[:, 1].astype(float), [row[1] for row in rows])


def test_a_table_without_formulas_is_written_as_pandas_does():
    frame = pd.DataFrame({"id": ["a", None], "x": [-1.0, np.nan], "c": pd.Categorical(["u", "v"])})
    assert csv_text(frame) == frame.to_csv(index=False, lineterminator="\n")


@given(st.text())
def test_printable_text_holds_no_control_characters_but_line_breaks_and_tabs(text):
    shown = printable(text)
    assert not has_control(shown.replace("\n", "").replace("\t", ""))
    assert not has_control(one_line(text))
    if not has_control(text):
        assert shown == text


EVIL = "a\\input{/etc/passwd}\n\\end{tabular}<script>alert(1)</script>|b\x1b[2J[x](javascript:1)"


def test_latex_has_no_command_from_outside():
    made = latex(EVIL)
    assert "\n" not in made
    known = r"\\(?:textbackslash|textless|textgreater|textbar|textasciitilde|textasciicircum"
    rest = re.sub(known + r"|textasciigrave)\{\}|\\[&%$#_{}]", "", made)
    assert not set(rest) & set("\\{}&%$#_^~")


def test_markdown_has_no_markup_from_outside():
    made = markdown(EVIL)
    assert "<" not in made
    assert "\n" not in made
    assert not re.search(r"(?<!\\)[|\[\]`*_]", made)


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_tables_escape_models_and_reasons(form):
    table = pd.DataFrame(
        {
            "model": [EVIL, "LSVM-l1"],
            "auc": [0.5, 0.7], "auc_sd": [0.1, 0.1],
            "auc_pooled": [0.5, 0.7], "auc_low": [0.4, 0.6], "auc_high": [0.6, 0.8],
            "features_percent": [1.0, 2.0], "features_percent_sd": [0.0, 0.0],
            "folds": [3, 3], "note": ["", ""], "failure": ["", EVIL],
        }
    )  # fmt: skip
    made = format_table(table, ["auc"], form)
    assert not has_control(made.replace("\n", ""))
    if form == "markdown":
        assert "<script" not in made
        rows = [line for line in made.splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}
    if form == "latex":
        body = [line for line in made.splitlines() if not line.startswith("%")]
        assert sum("\\end{tabular}" in line for line in body) == 1
        assert not any(re.search(r"\\input", line) for line in body)


@pytest.mark.parametrize("bad", ["a\nb", "\x1b[31m", "a\tb", "\x7f", "\x9b", "a\u202eb", "\ud800"])
def test_names_with_control_characters_are_refused(bad):
    with pytest.raises(InputError, match="control characters") as caught:
        check_names(["fine", bad], "sample id", "file.csv")
    assert not has_control(str(caught.value))
    check_names(["fine", "Grüße, 日本"], "sample id", "file.csv")
