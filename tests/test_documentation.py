"""The pages of ``docs`` name commands, keys and functions that exist.

``make docs-check`` runs the code blocks and looks at the built site; these tests need neither.
"""

import json
import re
import shlex
import tomllib
from pathlib import Path
from pkgutil import resolve_name

import pytest
import typer
from typer.testing import CliRunner

from baldur.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOLDERS = ("start", "howto", "understand", "reference", "develop")
PAGES = [page for folder in FOLDERS for page in sorted((DOCS / folder).rglob("*.md"))]
PAGES += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text("utf-8") for page in PAGES}
FENCE = re.compile(r"^```(?:\{run\} )?(bash|console|toml)\n(.*?)^```$", re.M | re.S)


def blocks(*languages):
    """Yield (page, text) of every block in one of the languages."""
    for page, text in TEXTS.items():
        for language, code in FENCE.findall(text):
            if language in languages:
                yield page, code


def command_lines():
    for page, code in blocks("bash", "console"):
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words[:1] == ["baldur"] and "--version" not in words:
                yield pytest.param(words[1:], id=f"{page}: {line.strip()[:60]}")


@pytest.mark.parametrize("words", list(command_lines()))
def test_a_command_on_a_page_exists_with_its_options(words):
    command = typer.main.get_command(app).commands[words[0]]
    command.make_context(words[0], words[1:])  # fails on unknown options and missing arguments


@pytest.mark.parametrize(("page", "code"), list(blocks("toml")))
def test_the_keys_of_a_study_file_on_a_page_exist(page, code):
    """Whole files and parts of them alike; which values fit is tested with real files."""
    schema = json.loads(CliRunner().invoke(app, ["init", "--schema"]).output)
    known = schema["$defs"]
    views = {k for name, part in known.items() if name.endswith("View") for k in part["properties"]}
    models = set(known["ModelEntry"]["properties"])
    for name, section in tomllib.loads(code).items():
        assert name in schema["properties"], page
        if name == "views":
            assert {key for view in section.values() for key in view} <= views, page
        elif name == "models":
            assert all(isinstance(m, str) or set(m) <= models for m in section), page
        elif isinstance(section, dict):
            keys = set(known[f"{name.capitalize()}Section"]["properties"])
            assert set(section) <= keys, page


def named():
    text = TEXTS["docs/understand/equations.md"] + TEXTS["docs/understand/model.md"]
    return sorted(set(re.findall(r"`(baldur(?:\.\w+)+)`", text)))


@pytest.mark.parametrize("name", named())
def test_a_name_beside_an_equation_exists(name):
    assert resolve_name(name) is not None


def test_every_equation_has_its_code():
    text = TEXTS["docs/understand/equations.md"]
    equations = re.split(r"\\tag\{\d+\}", text)
    without = [i for i, part in enumerate(equations[1:], 1) if "`baldur." not in part]
    # (5) and (6) are one computation, and the code of (10) stands beside (12).
    assert without == [5, 10]


@pytest.mark.parametrize("page", [p for p in TEXTS if p.count("/") == 2])
def test_a_page_begins_with_whom_it_is_for(page):
    first = TEXTS[page].split("\n", 2)[2].strip()
    assert re.match(r"For |This page is for ", first), first[:80]


def test_every_page_of_a_folder_is_in_its_list():
    for folder in FOLDERS:
        listed = TEXTS[f"docs/{folder}/index.md"]
        for page in (DOCS / folder).glob("*.md"):
            assert page.stem == "index" or re.search(rf"^{page.stem}$", listed, re.M), page


@pytest.mark.parametrize("page", TEXTS)
def test_links_between_pages_lead_to_files(page):
    here = (ROOT / page).parent
    for link in re.findall(r"\]\(([^)#\s]+)", TEXTS[page]):
        made = ("_generated/", "gallery/")  # written by make docs
        if "://" in link or any(part in link for part in made):
            continue
        assert (here / link).exists(), link
