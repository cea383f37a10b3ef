"""The page "From the paper to the code": every name on it exists."""

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from baldur.baselines import BASELINES
from baldur.datasets import make_multiview
from baldur.paper import PaperClassifier, PaperRegressor
from baldur.paper.predictor import MeanFieldResult
from baldur.paper.state import Data, State, ViewState

PAGE = Path(__file__).parents[2] / "docs" / "understand" / "paper.md"
pytestmark = pytest.mark.filterwarnings("ignore::baldur.exceptions.NotConvergedWarning")
TEXT = PAGE.read_text(encoding="utf-8")
# Code spans of the tables and of the text; blocks of code are run below.
SPANS = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)))
NAMES = sorted(span for span in SPANS if re.fullmatch(r"baldur(\.\w+)+", span))
FILES = sorted(span for span in SPANS if span.startswith("tests/"))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_on_the_page_exists(name):
    assert resolve_name(name) is not None


@pytest.mark.parametrize("name", FILES)
def test_a_file_on_the_page_exists(name):
    assert (PAGE.parents[2] / name).is_file()


def columns(heading):
    """Return the code spans of each column of the table under a heading."""
    table = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")]
    spans = [[re.findall(r"`([^`]+)`", cell) for cell in row] for row in rows[2:]]
    width = max(map(len, spans))
    return [[s for row in spans if len(row) > i for s in row[i]] for i in range(width)]


@pytest.fixture(scope="module")
def fitted():
    sim = make_multiview(60, {"a": 4, "b": 6}, informative={"a": 2}, random_state=0)
    number = make_multiview(
        60, {"a": 4, "b": 6}, informative={"a": 2}, n_classes=None, noise=1.0, random_state=0
    )
    return (
        PaperClassifier(bound="jaakkola", max_iter=11).fit(sim.data, sim.target),
        PaperRegressor(max_iter=11).fit(number.data, number.target),
    )


def test_the_table_of_symbols_names_fields_and_fitted_attributes(fitted):
    _, _, state, posterior, attributes = columns("Symbols")
    known = {f"Data.{name}" for name in Data.__dataclass_fields__}
    known |= {*State.__dataclass_fields__, *ViewState.__dataclass_fields__, "q.H"}
    assert set(state) <= known
    assert set(posterior) <= set(MeanFieldResult.__dataclass_fields__)
    for name in attributes:
        if not name.startswith("baldur."):
            assert any(hasattr(model, name) for model in fitted), name


def test_every_row_of_the_paper_is_a_baseline():
    row = next(line for line in TEXT.splitlines() if line.startswith("| LSVM-l1"))
    named = row.strip("| ").split(" | ")[0].split(", ")
    assert named == [name for name, entry in BASELINES.items() if entry.in_paper]


def test_every_update_of_the_model_is_on_the_page():
    from baldur.paper import updates

    steps = {name for name in vars(updates) if name.startswith("step_")}
    named = {name.rsplit(".", 1)[1] for name in NAMES if ".updates.step_" in name}
    assert steps - {"step_dropped"} == named  # it is ours, as "step_b" is


@pytest.mark.usefixtures("few_cycles")
def test_the_example_of_the_page_runs():
    code = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL).group(1)
    space = {}
    exec(compile(code, str(PAGE), "exec"), space)
    assert space["model"].n_factors_ == 1
