"""Public names are documented in the numpydoc form, and the documentation fits the signature."""

import importlib
import inspect
import pkgutil

import pytest
from sklearn.base import BaseEstimator

import baldur

validate = pytest.importorskip("numpydoc.validate").validate

# What must hold; matters of taste (final full stops, shared descriptions) are left to ruff.
CODES = {
    "GL08": "no docstring",
    "GL06": "unknown section",
    "GL07": "sections in the wrong order",
    "SS01": "no summary",
    "PR01": "parameters not documented",
    "PR02": "documented parameters that do not exist",
    "PR03": "parameters in the wrong order",
}
# The packages that users import from.
PACKAGES = (
    "baldur",
    "baldur.baselines",
    "baldur.datasets",
    "baldur.evaluation",
    "baldur.io",
    "baldur.paper",
    "baldur.plots",
    "baldur.preparation",
    "baldur.report",
    "baldur.reproduction",
    "baldur.saving",
    "baldur.study",
    "baldur.views",
)


def modules():
    yield baldur
    for found in pkgutil.walk_packages(baldur.__path__, "baldur."):
        if any(part.startswith("_") for part in found.name.split(".")):
            continue
        try:
            yield importlib.import_module(found.name)
        except ImportError as error:
            # Modules over an optional library cannot be looked at where it is not installed.
            if isinstance(error, ModuleNotFoundError) and str(error.name).startswith("baldur"):
                raise


def public_names():
    """Yield (path, codes) for the names that users import, and public methods of classes.

    All parameters have to be documented (PR01) in functions and estimators; an object that is
    only handed out may say what it takes in one sentence.
    """
    wanted = {}
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            thing = getattr(package, name)
            if not (inspect.isclass(thing) or inspect.isfunction(thing)):
                continue
            if not thing.__module__.startswith("baldur"):
                continue
            path = f"{thing.__module__}.{thing.__qualname__}"
            full = inspect.isfunction(thing) or issubclass(thing, BaseEstimator)
            wanted[path] = set(CODES) if full else set(CODES) - {"PR01"}
            if inspect.isclass(thing):
                for method, member in vars(thing).items():
                    if not method.startswith("_") and inspect.isfunction(member):
                        wanted[f"{path}.{method}"] = set(CODES) - {"PR01"}
    yield from wanted.items()


def test_only_packages_list_their_names():
    listing = [
        m.__name__ for m in modules() if hasattr(m, "__all__") and not hasattr(m, "__path__")
    ]
    assert listing == []


def test_every_module_says_what_it_does():
    silent = [m.__name__ for m in modules() if not (m.__doc__ or "").strip()]
    assert silent == []


def test_public_names_are_documented():
    problems = []
    for path, codes in public_names():
        problems += [
            f"{path}: {code} {message}"
            for code, message in validate(path)["errors"]
            if code in codes
        ]
    assert not problems, "\n".join(sorted(set(problems)))


def test_the_search_finds_the_public_names():
    paths = {path for path, _ in public_names()}
    assert "baldur.datasets.multiview.make_multiview" in paths
    assert "baldur.views.container.MultiView.view" in paths
