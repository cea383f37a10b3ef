"""Study files of strangers: bounded time and memory, and one line that names the key."""

import time
import tracemalloc

import numpy as np
import pytest

from baldur.exceptions import StudyError
from baldur.study import load_study
from study.conftest import read_file

SECONDS = 10
HUGE = {
    "decimal": "9" * 400,
    "more digits than Python converts": "9" * 5_000,
    "digits with underscores": "9_" * 4_999 + "9",
    "negative": "-" + "9" * 5_000,
    "hexadecimal": "0x" + "f" * 20_000,
    "octal": "0o" + "7" * 20_000,
    "binary": "0b" + "1" * 70,
    "beyond 64 bits": str(2**63),
}


def refused(file):
    """Return the one line that a study file is refused with, within the time."""
    started = time.process_time()
    with pytest.raises(StudyError) as caught:
        load_study(file)
    assert time.process_time() - started < SECONDS
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 1_000
    return line


# -- time -----------------------------------------------------------------------------------------


def dotted(n):
    return ".".join(["a"] * n)


SLOW = {
    "dotted key": f"{dotted(400_000)} = 1\n",
    "quoted parts": '"a".' * 150_000 + "b = 1\n",
    "spaced parts": "a . " * 150_000 + "b = 1\n",
    "header": f"[{dotted(400_000)}]\n",
    "array of tables": f"[[{dotted(400_000)}]]\n",
    "inline table": f"x = {{ {dotted(400_000)} = 1 }}\n",
    "after a multi-line string": f'x = """\n"\n"""\n{dotted(400_000)} = 1\n',
    "after a literal multi-line string": f"x = '''\n'\n'''\n{dotted(400_000)} = 1\n",
    "between multi-line strings": f'x = """ " """\n{dotted(400_000)} = 1\ny = """ " """\n',
    "after a string that ends in a quote": (
        f'x = {{ k = """a"""", {dotted(400_000)} = 1, z = "" }}\n'
    ),
    "after an escaped quote": f'x = """\\""""\n{dotted(400_000)} = 1\n',
    "after a comment with a quote": f"# it's\n{dotted(400_000)} = 1 # it's\n",
    "many parts": f"{dotted(5_000)} = 1\n",
    "many parts in a multi-line string's shadow": f'x = """\n"""\n{dotted(5_000)} = 1\n',
    "nested lists": "x = " + "[" * 100_000 + "]" * 100_000 + "\n",
    "nested inline tables": "x = " + "{ a = " * 50_000 + "1" + " }" * 50_000 + "\n",
    "unclosed strings": 'x = """\\"' + '\n"""\\"' * 150_000,
    "unclosed literal strings": "x = '\n" * 200_000,
    "quotes only": '"' * 1_000_000,
    "keys at the limit below a header": f"[{dotted(9)}]\n"
    + "".join(f"k{i}.{dotted(8)} = 1\n" for i in range(35_000)),
    "long float": f"x = {'1' * 900_000}.5\n",
    "many tables": "[[a]]\n" * 150_000,
}


@pytest.mark.parametrize("case", SLOW)
def test_slow_files_are_refused_in_time(case, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(SLOW[case])
    assert refused(file).startswith("study.toml: ")


# -- numbers --------------------------------------------------------------------------------------

SAMPLES = '[samples]\nfile = "samples.csv"\nid = "sample"\n'
VIEWS = '[views.blood]\nfile = "blood.csv"\n'
OUTCOME = '[outcome]\ncolumn = "diagnosis"\n'
MODELS = '[[models]]\nname = "RF"\n'
PLACES = {
    "seed": "seed = {}\n" + SAMPLES + OUTCOME + VIEWS + MODELS,
    "samples.sheet": SAMPLES + "sheet = {}\n" + OUTCOME + VIEWS + MODELS,
    "outcome.positive": SAMPLES + OUTCOME + "positive = {}\n" + VIEWS + MODELS,
    "views.blood.max_levels": SAMPLES + OUTCOME + VIEWS + "max_levels = {}\n" + MODELS,
    "folds.outer": SAMPLES + OUTCOME + VIEWS + "[folds]\nouter = {}\n" + MODELS,
    "folds.repeats": SAMPLES + OUTCOME + VIEWS + "[folds]\nrepeats = {}\n" + MODELS,
    "report.prevalence": SAMPLES + OUTCOME + VIEWS + "[report]\nprevalence = {}\n" + MODELS,
    "report.thresholds": SAMPLES + OUTCOME + VIEWS + "[report]\nthresholds = [{}]\n" + MODELS,
    "models.settings.n_estimators": SAMPLES + OUTCOME + VIEWS + MODELS
    + "settings = {{ n_estimators = {} }}\n",
    "models.grid.max_depth": SAMPLES + OUTCOME + VIEWS + MODELS
    + "[models.grid]\nmax_depth = [\n 1,\n {},\n]\n",
}  # fmt: skip


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("key", PLACES)
def test_huge_numbers_are_one_line_that_names_the_key(key, number, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(PLACES[key].format(HUGE[number]))
    line = refused(file)
    assert line.startswith(f"study.toml: {key}: "), line
    assert "64 bits" in line


@pytest.mark.parametrize(
    ("key", "number"),
    [("seed", 2**62), ("folds.outer", 2**62), ("folds.repeats", 2**62), ("seed", -1),
     ("report.prevalence", 2**62), ("report.prevalence", "1e999"), ("report.prevalence", "nan"),
     ("report.thresholds", "-inf"), ("views.blood.max_levels", -(2**62))],
)  # fmt: skip
def test_numbers_outside_of_their_range_are_named(key, number, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(PLACES[key].format(number))
    line = refused(file)
    assert line.startswith(f"study.toml: {key}: must be a "), line
    assert "between" in line or "at least" in line


@pytest.mark.parametrize("kind", ["long", "many"])
def test_a_misspelt_column_of_a_table_of_long_names_is_found_in_time(kind, tmp_path):
    rng = np.random.default_rng(0)
    long = ["".join(map(chr, rng.integers(0x4E00, 0x4E00 + 250, 15_000))) for _ in range(20)]
    wide = [f"{'sampl' * 16}{i}" for i in range(100_000)]
    column, names, said = {
        "long": (long[0], long[1:], "; choose one of"),
        "many": ("sampl" * 17, wide, "; did you mean 'sampl"),
    }[kind]
    rows = "".join(f"p{i}{',x' * len(names)}\n" for i in range(4))
    samples = f"sample,{','.join(names)}\n{rows}"
    (tmp_path / "samples.csv").write_text(samples, encoding="utf-8")
    (tmp_path / "blood.csv").write_text("sample,a\np0,1\np1,2\np2,3\np3,4\n")
    file = tmp_path / "study.toml"
    file.write_text(f"{SAMPLES}[outcome]\ncolumn = '{column}'\n{VIEWS}{MODELS}", encoding="utf-8")
    started = time.process_time()
    with pytest.raises(StudyError, match=r"outcome\.column: samples\.csv has no column") as caught:
        read_file(file)
    assert said in str(caught.value)
    assert time.process_time() - started < SECONDS / 2


DOTS = "a.b" * 1_000


@pytest.mark.parametrize(
    ("title", "value"),
    [
        (f'"{DOTS}"', DOTS),
        (f"'{DOTS}'", DOTS),
        (f'"""\n{DOTS}"""', DOTS),
        (f"'''{DOTS}'''", DOTS),
        ('"""a"""""', 'a""'),
    ],
)
def test_dots_in_strings_and_comments_are_no_parts_of_keys(title, value, tmp_path):
    file = tmp_path / "study.toml"
    report = "[report]\nthresholds = [0.5, 0.25]\n"
    file.write_text(f"# {DOTS}\ntitle = {title}\n{SAMPLES}{OUTCOME}{VIEWS}{report}{MODELS}")
    study = load_study(file)
    assert study.title == value
    assert list(study.report.thresholds) == [0.25, 0.5]


# -- memory ---------------------------------------------------------------------------------------


def test_a_category_of_many_levels_is_refused_before_memory_is_taken(tmp_path):
    levels = 30_000
    rows = range(levels)
    samples = "sample,diagnosis\n" + "".join(f"p{i},{'ab'[i % 2]}\n" for i in rows)
    (tmp_path / "samples.csv").write_text(samples)
    (tmp_path / "blood.csv").write_text("sample,a\n" + "".join(f"p{i},t{i}\n" for i in rows))
    file = tmp_path / "study.toml"
    options = 'categorical = ["a"]\nmax_levels = 1000000\n'
    file.write_text(SAMPLES + OUTCOME + VIEWS + options + MODELS)
    tracemalloc.start()
    try:
        with pytest.raises(StudyError, match=r"views\.blood: .*above the limit") as caught:
            read_file(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f"{levels:,} levels" in str(caught.value)
    assert peak < 200e6
