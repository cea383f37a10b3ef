"""The pages for contributors name files that exist, and their examples run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("docs/develop/extending.md", "docs/develop/architecture.md", "CONTRIBUTING.md")
EXAMPLES = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/develop/extending.md").read_text("utf-8"), re.S
)


@pytest.mark.parametrize("page", PAGES)
def test_files_on_the_page_exist(page):
    text = (ROOT / page).read_text("utf-8")
    named = set(re.findall(r"`((?:src|tests|docs|benchmarks|\.ci)/[\w./-]*)`", text))
    missing = [name for name in sorted(named) if not (ROOT / name).exists()]
    assert not missing


def test_modules_in_the_drawings_exist():
    text = (ROOT / "docs/develop/architecture.md").read_text("utf-8")
    package = ROOT / "src" / "baldur"
    drawings = "".join(re.findall(r"```text\n(.*?)```", text, re.S))
    named = set(re.findall(r"^\s*([\w/]+\.py|[\w/]+/)\s", drawings, re.M))
    assert len(named) > 15
    everywhere = {str(p.relative_to(package)) for p in package.rglob("*")}
    for name in named:
        known = any(p == name.rstrip("/") or p.endswith("/" + name.rstrip("/")) for p in everywhere)
        assert known, name


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_run(number):
    assert len(EXAMPLES) >= 3
    pytest.importorskip("matplotlib")
    exec(compile(EXAMPLES[number], f"docs/develop/extending.md, example {number}", "exec"), {})


def test_the_import_graph_is_up_to_date():
    command = [sys.executable, ROOT / "docs/draw_import_graph.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
