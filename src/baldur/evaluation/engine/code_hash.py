"""code_hash: a hash of the code that a job of an estimator runs.

A stored result is used again only while this hash is the same. The files are those of the modules
that evaluation and the classes of the estimator import, directly or through others. A change of a
baseline therefore leaves the results of other models valid, and a change of the report leaves all
of them valid. Versions of optional libraries that these files import, such as torch, count too; the
libraries that every job needs are named in the key of the job. What a class of somebody else runs
is not known: it counts as running the whole package, and is itself known by name and parameters
alone.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import baldur

PACKAGE = Path(baldur.__file__).parent
ENTRY = "baldur.evaluation.engine.job"
"""The module that runs a job."""
MODELS = ("estimators", "inference", "model", "paper", "baselines")
"""Parts that define models. Evaluation imports all models to know them by name, but a job runs one;
its modules are found from the classes of its estimator instead."""
KNOWN = ("baldur", "sklearn", "abc", "typing")
"""Packages whose classes run no model of this package that is not among their parameters."""


def code_hash(estimator: Any) -> str:
    """Return a hash of the source files and optional libraries that a job of an estimator runs.

    Examples
    --------
    >>> from baldur.baselines import MVPLSClassifier, RidgeLogisticClassifier
    >>> from baldur.evaluation.engine.code_hash import code_hash
    >>> code_hash(MVPLSClassifier()) == code_hash(RidgeLogisticClassifier())
    False
    """
    classes = {c for part in _estimators(estimator) for c in type(part).__mro__ if c is not object}
    modules = {c.__module__ for c in classes}
    own = frozenset(name for name in modules if name.split(".")[0] == "baldur")
    if any(name.split(".")[0] not in KNOWN for name in modules):
        return package_hash()
    return _hash_of(own)


def package_hash(package: Path | None = None) -> str:
    """Return a hash of all source files of a package, by default this one."""
    package = PACKAGE if package is None else package
    return _digest(package, sorted(package.rglob("*.py")))


def _estimators(value: Any) -> Iterator[Any]:
    """Yield an estimator and all estimators among its parameters."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        yield value
        value = list(value.get_params(deep=False).values())
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _estimators(part)


@cache
def _hash_of(own: frozenset[str]) -> str:
    parts = tuple(f"baldur.{part}" for part in MODELS)
    modules = imported_modules([ENTRY], without=parts) | imported_modules(own)
    files = _digest(PACKAGE, sorted(filter(None, map(_file_of, modules))))
    extras = sorted({extra for name in modules for extra in _extras(name)})
    if not extras:
        return files
    versions = " ".join(f"{extra} {_version(extra)}" for extra in extras)
    return f"{files} {versions}"


def imported_modules(names: Iterable[str], without: tuple[str, ...] = ()) -> set[str]:
    """Return modules and all modules of this package that they import, directly or not.

    Imports inside functions count. The package itself, whose names are imported when they are
    first used, does not.
    """
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name in found or any(name == p or name.startswith(f"{p}.") for p in without):
            continue
        found.add(name)
        left += _imports(name)
    return found


@cache
def _imports(name: str) -> frozenset[str]:
    """Return the modules of this package that a module names in its imports."""
    named: set[str] = set()
    for node in _nodes(name):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(n for n in named if n.startswith("baldur.") and _file_of(n) is not None)


@cache
def _extras(name: str) -> frozenset[str]:
    """Return the optional libraries that a module names in its calls of `import_extra`."""
    found: set[str] = set()
    for node in _nodes(name):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_extra":
            module = node.args[0]
            if isinstance(module, ast.Constant) and isinstance(module.value, str):
                found.add(module.value.split(".")[0])
    return frozenset(found)


def _version(library: str) -> str:
    """Return the version of an installed library."""
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"


def _nodes(name: str) -> Iterator[ast.AST]:
    """Yield all nodes of the syntax tree of a module, none for names that are no module."""
    file = _file_of(name)
    if file is not None:
        yield from ast.walk(ast.parse(file.read_bytes()))


@cache
def _file_of(name: str) -> Path | None:
    """Return the source file of a module of this package, None for names that are no module."""
    place = PACKAGE.joinpath(*name.split(".")[1:])
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            return file
    return None


def _digest(package: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(package).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]
