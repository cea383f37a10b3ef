"""Every promise of SECURITY.md names tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def names_in(file):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def promises():
    """Each row of a table: what is promised, and the tests with their files."""
    for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or cells[0] in ("promise", "---"):
            continue
        file, tests = None, []
        for name in re.findall(r"`([^`]+)`", cells[1]):
            # A name without a file is in the file of the one before.
            file, _, test = name.rpartition("::") if "::" in name else (file, "", name)
            tests.append((file, test))
        yield cells[0], tests


def test_every_promise_names_tests_that_exist():
    found = dict(promises())
    assert len(found) >= 20
    for promise, tests in found.items():
        assert tests, promise
        for file, test in tests:
            assert test in names_in(file), f"{promise}: {file}::{test} does not exist"


def test_files_named_on_the_page_exist():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:src|docs|tests)/[\w/.-]+\.(?:py|md))", text):
        assert (ROOT / path).is_file(), path
