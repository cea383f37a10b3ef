"""What is published agrees: versions, requirements, the recipe, the container and the pages."""

import re
import tomllib
from pathlib import Path

import pytest

import baldur

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_USERS = set(re.findall(r"\[([\w,]+)\]", EXTRAS["all"][0])[0].split(","))
# Names that the recipe gives to what pyproject.toml calls otherwise.
OTHER_NAMES = {"matplotlib": ["matplotlib-base"], "dask": ["dask", "distributed"]}


def normal(requirement):
    """A requirement as (name, bound), without extras and in lower case."""
    name, bound = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?\s*(.*)", requirement).groups()
    return name.lower().replace("_", "-"), bound


def recipe():
    """The recipe as conda reads it."""
    yaml, jinja = pytest.importorskip("yaml"), pytest.importorskip("jinja2")
    text = (ROOT / "recipe" / "meta.yaml").read_text("utf-8")
    return yaml.safe_load(jinja.Template(text).render(PYTHON="python"))


def test_the_recipe_has_the_version_and_the_requirements():
    found = recipe()
    assert found["package"] == {"name": PROJECT["name"], "version": baldur.__version__}
    assert found["about"]["summary"] == PROJECT["description"]
    assert found["about"]["license"] == PROJECT["license"]
    assert found["build"]["entry_points"] == [f"baldur = {PROJECT['scripts']['baldur']}"]
    needed = {part: set(map(normal, names)) for part, names in found["requirements"].items()}
    python = ("python", PROJECT["requires-python"])
    assert needed["run"] == {python, *map(normal, PROJECT["dependencies"])}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert needed["host"] == {python, ("pip", ""), *map(normal, build)}
    bounded = set()
    for extra in FOR_USERS:
        for name, bound in map(normal, EXTRAS[extra]):
            if bound:
                bounded |= {(other, bound) for other in OTHER_NAMES.get(name, [name])}
    assert needed["run_constrained"] == bounded


def test_the_container_has_known_extras_a_fixed_base_and_an_ordinary_user():
    text = (ROOT / "Dockerfile").read_text("utf-8")
    (extras,) = re.findall(r"\.whl\)\[([\w,]+)\]", text)
    listed = set(extras.split(","))
    assert listed == FOR_USERS - {"torch", "dask"}
    assert re.findall(r"^ARG PYTHON=\d+\.\d+\.\d+-slim-\w+$", text, re.M)
    assert set(re.findall(r"^FROM (\S+)", text, re.M)) == {"python:${PYTHON}"}
    assert re.findall(r"^COPY (?!--from)(.*)$", text, re.M) == ["dist/*.whl /dist/"]
    assert int(re.findall(r"^USER (\d+)$", text, re.M)[-1]) > 0
    assert (ROOT / ".dockerignore").read_text().split() == ["*", "!dist/*.whl"]


def test_every_extra_for_users_is_tried():
    text = (ROOT / "tests" / "installed" / "try_extra.py").read_text("utf-8")
    tried = set(re.findall(r'^    "(\w+)": Extra\(', text, re.M))
    assert tried == FOR_USERS
    for script in ("smoke.py", "extras.py"):
        named = re.findall(r"^EXTRAS = \((.*)\)$", (ROOT / ".ci" / script).read_text(), re.M)[0]
        assert set(re.findall(r'"(\w+)"', named)) == tried


def test_the_changelog_has_this_version_or_is_ready_for_it():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert headings[0] == "Unreleased" or headings[0].startswith(f"{baldur.__version__} (")
    first = text.split("\n## ")[1]
    assert re.search(r"^### .*\n\n- ", first, re.M)


def test_data_in_the_repository_have_a_source_and_a_licence():
    folders = [folder for folder in (ROOT / "docs" / "data").iterdir() if folder.is_dir()]
    for folder in folders:
        assert "licence" in (folder / "README.md").read_text("utf-8"), folder
        assert "Permission is hereby granted" in (folder / "LICENSE").read_text("utf-8"), folder
