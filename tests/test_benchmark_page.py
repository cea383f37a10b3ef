"""Sentences of the documentation about benchmarks agree with the stored figures."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
STORED = json.loads((ROOT / "docs" / "data" / "benchmarks.json").read_text("utf-8"))
ON_REAL_DATA = [one for one in STORED["results"] if "metric" in one]


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "_ext"), *sys.path])
    return __import__("benchmark_page")


@pytest.mark.parametrize("one", ON_REAL_DATA, ids=lambda one: one["metric"])
def test_the_average_is_that_of_the_rows(one):
    *rows, average = [[float(cell) for cell in row[1:]] for row in one["rows"]]
    np.testing.assert_allclose(np.mean(rows, axis=0), average, atol=0.001)  # three decimals


@pytest.mark.parametrize("one", ON_REAL_DATA, ids=lambda one: one["metric"])
def test_the_sentence_names_every_set_where_another_method_is_better(made, one):
    sign = 1 if one["larger"] else -1
    better = {
        row[0].split(",")[0]
        for row in one["rows"][:-1]
        if any(sign * (float(cell) - float(row[1])) > 0 for cell in row[2:])
    }
    sentence = made.better_elsewhere(one)
    assert set(re.findall(r"\*(\w+)\*", sentence)) == better
    assert f" on {len(better)} of the {len(one['rows']) - 1} sets" in sentence


def test_every_sentence_that_a_page_includes_is_written(made):
    pages = (ROOT / "docs").glob("*/*.md")
    names = {n for p in pages for n in re.findall(r"_generated/(\w+)\.txt", p.read_text("utf-8"))}
    assert names == set(made.SENTENCES)


def test_the_figures_of_size_are_the_stored_ones():
    limits = (ROOT / "docs" / "understand" / "limits.md").read_text("utf-8")
    stored = {one["question"]: {r[0]: r[1:] for r in one["rows"]} for one in STORED["results"]}
    times, memory = stored["How wide can data be?"][".bed file"]
    assert f"needs {memory} GB and {times} times the cost of one kernel matrix" in limits
    forest = stored["How long does a fit take, compared with a random forest?"]
    for size in ("200 x 2,020", "1,000 x 2,020"):
        assert f"at {size} {forest[size][0]} times" in limits
