"""The package imports and its errors form one family."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import baldur
from baldur import exceptions

ROOT = Path(__file__).resolve().parents[1]


def test_version_is_a_release_number():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", baldur.__version__)


def test_errors_can_be_caught_as_builtin_kinds():
    assert issubclass(exceptions.InputError, (exceptions.BaldurError, ValueError))
    assert issubclass(exceptions.InputError, ValueError)
    assert issubclass(exceptions.MissingExtraError, ImportError)
    assert issubclass(exceptions.StudyError, exceptions.BaldurError)
    assert issubclass(exceptions.NotConvergedWarning, UserWarning)


def test_parts_come_with_the_package_and_only_when_asked_for():
    code = (
        "import sys, baldur\n"
        "assert not {'numpy', 'pandas', 'sklearn', 'scipy', 'torch'} & set(sys.modules)\n"
        "assert baldur.io.read_table and baldur.datasets.make_multiview\n"
        "assert baldur.evaluation.nested_cv and baldur.study.load_study\n"
        "assert baldur.baselines.BASELINES and baldur.saving.load\n"
        "assert baldur.BaldurClassifier and baldur.MultiView is baldur.views.MultiView\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in baldur.__all__:
        assert getattr(baldur, name) is not None
        assert name in dir(baldur)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = baldur.nothing


def test_the_distribution_and_its_extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert project["name"] == "baldur-multiview"
    assert project["scripts"] == {"baldur": "baldur.cli:main"}
    assert "torch" in extras["torch"]
    assert "torch==2.13.0" in extras["test"]
    pinned = [r for name, listed in extras.items() if name != "test" for r in listed if "==" in r]
    assert pinned == []
    sources = "\n".join(p.read_text() for p in (ROOT / "src").rglob("*.py"))
    assert "'baldur[" not in sources
    for extra in re.findall(r"baldur-multiview\[([\w,]+)\]", " ".join(extras["all"])):
        assert set(extra.split(",")) <= set(extras)
