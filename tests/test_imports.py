"""The import graph: parts in one order, no import upwards, no circle, nothing private of others.

``python tests/test_imports.py`` prints the graph.
"""

import ast
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "baldur"

# A part is a module or package directly below baldur. It may import those before it.
ORDER = (
    "exceptions",
    "optional",
    "types",
    "atomic_io",
    "safety",
    "state",
    "model_catalog",
    "views",
    "preparation",
    "io",
    "datasets",
    "model",
    "inference",
    "estimators",
    "paper",
    "baselines",
    "evaluation",
    "saving",
    "plots",
    "study",
    "report",
    "cli",
)


@dataclass(frozen=True)
class Import:
    """One imported module, and the name taken from it ("" for the module itself)."""

    source: str
    target: str
    name: str
    line: int

    def __str__(self):
        return f"{self.source}, line {self.line}: {self.target} {self.name}".rstrip()


def module_name(file):
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def trees():
    """The syntax of every module; parsed by the process that runs these tests, and no other."""
    return {
        module_name(file): ast.parse(file.read_text(encoding="utf-8"), str(file))
        for file in sorted(PACKAGE.rglob("*.py"))
    }


def imports_of(module):
    """Every import of the package in a module, inside functions too."""
    found = []
    for node in ast.walk(trees()[module]):
        if isinstance(node, ast.Import):
            pairs = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}, line {node.lineno}: imports are written in full"
            pairs = [(node.module, alias.name) for alias in node.names]
        else:
            continue
        for target, name in pairs:
            if target.split(".")[0] != "baldur":
                continue
            if f"{target}.{name}" in trees():  # a module taken out of its package
                target, name = f"{target}.{name}", ""
            found.append(Import(module, target, name, node.lineno))
    return found


def part_of(module):
    return [*module.split("."), ""][1]


@cache
def imports():
    # The top of the package imports its parts when they are asked for; that is no arrow.
    return [found for module in trees() if module != "baldur" for found in imports_of(module)]


def between():
    return [i for i in imports() if part_of(i.source) != part_of(i.target)]


def test_every_part_has_its_place():
    parts = {part_of(module) for module in trees()} - {""}
    assert parts - set(ORDER) == set(), "a new part: put it in ORDER, above what it imports"
    assert set(ORDER) - parts == set(), "a part is gone: take it out of ORDER"


def test_no_import_goes_upwards():
    # A part without a place, which the test above reports, counts as the highest.
    place = defaultdict(lambda: len(ORDER), {"": -1}, **{part: i for i, part in enumerate(ORDER)})
    wrong = [str(i) for i in between() if place[part_of(i.source)] < place[part_of(i.target)]]
    assert not wrong, "\n".join(wrong)


def test_the_top_is_asked_for_its_version_and_place_alone():
    own = ("__version__", "__file__")
    wrong = [str(i) for i in imports() if i.target == "baldur" and i.name not in ("", *own)]
    for module, tree in trees().items():
        wrong += [
            f"{module}, line {node.lineno}: baldur.{node.attr}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "baldur"
            and node.attr not in own
        ]
    assert not wrong, "\n".join(wrong)


def test_modules_of_a_part_do_not_import_in_circles():
    graph = defaultdict(set)
    for i in imports():
        # A package's own names are its modules; its __init__ only gathers them.
        if i.target in trees() and i.target != "baldur" and i.source != i.target:
            graph[i.source].add(i.target)
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def test_nothing_private_of_another_part_is_imported():
    wrong = [
        str(i)
        for i in between()
        if is_private(i.name) or any(is_private(part) for part in i.target.split("."))
    ]
    assert not wrong, "\n".join(wrong)


def test_private_members_of_the_container_stay_inside():
    container = next(
        node
        for node in trees()["baldur.views.container"].body
        if isinstance(node, ast.ClassDef) and node.name == "MultiView"
    )
    private = {
        name
        for node in ast.walk(container)
        for name in [getattr(node, "attr", None) or getattr(node, "name", None) or ""]
        if is_private(name)
    }
    assert {"_tables", "_rows", "_with"} <= private
    wrong = [
        f"{module}, line {node.lineno}: {ast.unparse(node)}"
        for module, tree in trees().items()
        if module != "baldur.views.container"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in private
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    for name in ORDER:
        below = {part_of(i.target) for i in between() if part_of(i.source) == name} - {""}
        print(f"{name:<15} {' '.join(sorted(below, key=ORDER.index))}")
