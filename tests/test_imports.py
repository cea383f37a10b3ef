"""The import graph: parts in one order, no upward import, no circle, nothing private of others.

Imports by name (``import_module("baldur.saving")``) count as imports. A method that saves, draws or
reports may import a later part within the method; `LATER` lists all of them.

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
    "core",
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
    "reproduction",
    "cli",
)

# Methods that import a later part when they are called.
LATER = {
    ("baldur.estimators.base", "save", "baldur.saving"),
    ("baldur.estimators.base", "card", "baldur.saving.card"),
    ("baldur.estimators.base", "report", "baldur.report"),
    ("baldur.evaluation.nested_result", "report", "baldur.report"),
    ("baldur.evaluation.view_additions", "summary", "baldur.report.added_value"),
    ("baldur.evaluation.view_additions", "plot", "baldur.plots"),
}


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
    """Return the syntax tree of every module; parsed once per process."""
    return {
        module_name(file): ast.parse(file.read_text(encoding="utf-8"), str(file))
        for file in sorted(PACKAGE.rglob("*.py"))
    }


def imports_of(module):
    """Return every import of the package in a module, inside functions and by name too."""
    return imports_in(trees()[module], module)


def imports_in(tree, module):
    """Return the imports of the package in a syntax tree."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            pairs = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}, line {node.lineno}: imports are written in full"
            pairs = [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Constant) and node.value in trees():
            # The name of a module as a text serves to import it: import_module, sys.modules. That
            # of the module's own package is there for its data files.
            if f"{module}.".startswith(f"{node.value}."):
                continue
            pairs = [(node.value, "")]
        else:
            continue
        for target, name in pairs:
            if target.split(".")[0] != "baldur":
                continue
            if f"{target}.{name}" in trees():  # a module taken out of its package
                target, name = f"{target}.{name}", ""
            found.append(Import(module, target, name, node.lineno))
    return found


def composed_imports(tree, module):
    """Return calls that import a module of the package by a name that is not written in full."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called not in ("import_module", "__import__"):
            continue
        literal = isinstance(node.args[0], ast.Constant)
        texts = [
            text.value
            for argument in node.args
            for text in ast.walk(argument)
            if isinstance(text, ast.Constant) and isinstance(text.value, str)
        ]
        of_ours = any(text.split(".")[0] == "baldur" for text in texts)
        relative = any(text.startswith(".") for text in texts)
        if (of_ours or relative) and not (literal and node.args[0].value in trees()):
            found.append(f"{module}, line {node.lineno}: {ast.unparse(node)}")
    return found


def part_of(module):
    return [*module.split("."), ""][1]


@cache
def all_imports():
    # The top of the package imports its parts when they are first used, which is not an edge.
    return [found for module in trees() if module != "baldur" for found in imports_of(module)]


@cache
def later():
    """Return the imports of `LATER`, which are in the code."""
    lines = {
        (module, node.name): (node.lineno, node.end_lineno)
        for module in {module for module, _, _ in LATER}
        for node in ast.walk(trees()[module])
        if isinstance(node, ast.FunctionDef)
    }
    return {
        i: (module, method, target)
        for i in all_imports()
        for module, method, target in LATER
        if (i.source, i.target) == (module, target)
        and lines[module, method][0] < i.line <= lines[module, method][1]
    }


@cache
def imports():
    return [i for i in all_imports() if i not in later()]


def between():
    return [i for i in imports() if part_of(i.source) != part_of(i.target)]


def test_every_part_has_its_position():
    parts = {part_of(module) for module in trees()} - {""}
    assert parts - set(ORDER) == set(), "a new part: put it in ORDER, after what it imports"
    assert set(ORDER) - parts == set(), "a part was removed: remove it from ORDER"


def test_no_import_goes_upwards():
    # A part that is not in ORDER, which the test above reports, counts as the highest.
    place = defaultdict(lambda: len(ORDER), {"": -1}, **{part: i for i, part in enumerate(ORDER)})
    wrong = [str(i) for i in between() if place[part_of(i.source)] < place[part_of(i.target)]]
    assert not wrong, "\n".join(wrong)


UPWARD = """
from importlib import import_module
import sys

def save(self):
    import_module("baldur.saving").save(self)
    __import__("baldur.report")
    sys.modules["baldur.study"]
"""


def test_imports_by_name_are_seen():
    found = imports_in(ast.parse(UPWARD), "baldur.estimators.base")
    assert {i.target for i in found} == {"baldur.saving", "baldur.report", "baldur.study"}
    for hidden in ("f'baldur.{x}'", "'baldur.' + x", "'.saving', 'baldur'", "'.saving', __name__"):
        assert composed_imports(ast.parse(f"import_module({hidden})"), "baldur.views")
    assert not composed_imports(ast.parse("import_module('jinja2')"), "baldur.report")


def test_names_of_imported_modules_are_written_in_full():
    wrong = [
        text
        for module, tree in trees().items()
        if module != "baldur"
        for text in composed_imports(tree, module)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_method_that_imports_a_later_part_is_listed_and_does():
    assert set(later().values()) == LATER


def test_the_top_is_used_for_its_version_and_location_alone():
    own = ("__version__", "__file__")
    wrong = [str(i) for i in imports() if i.target == "baldur" and i.name not in ("", *own)]
    for module, tree in trees().items():
        allowed = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr in own
        }
        # Any other use of the name, such as getattr(baldur, ...), could reach a higher part.
        wrong += [
            f"{module}, line {node.lineno}: use of the top-level package"
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id == "baldur" and id(node) not in allowed
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
    assert {"_views", "_samples", "_with"} <= private
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
