"""Bare virtual environments in which an installed wheel is tried, outside the repository."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
TRIALS = ROOT / "tests" / "installed"
VERSIONS = ("3.11", "3.12", "3.13")
# The release that the tests pin; other builds are several gigabytes large.
TORCH = "torch==2.13.0"


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


def the_wheel() -> Path:
    """Return the only wheel in dist, which `.ci/package.py` has built."""
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    if len(wheels) != 1:
        sys.exit(f"dist must hold one wheel, but has {len(wheels)}; run 'make package'.")
    return wheels[0]


def find_python(version: str) -> str | None:
    """Return an interpreter of that version which can make environments, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    named = [f"python{version}", "python3", "python", sys.executable]
    others = sorted(map(str, pyenv.glob(f"{version}.*/bin/python{version}")))
    code = f"import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
    for name in [*named, *others]:
        found = shutil.which(name)
        # A name may be a shim that has no interpreter behind it.
        if found and subprocess.run([found, "-c", code], capture_output=True).returncode == 0:
            return found
    return None


class Environment:
    """A virtual environment and an empty folder to work in.

    Commands see neither the repository nor the variables that lead Python to it.
    """

    def __init__(self, python: str, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.bin / "python"
        self.call(python, "-m", "venv", folder / "venv")

    def call(self, *command: object, quiet: bool = False) -> None:
        """Run a command in the folder; end this script if it fails."""
        hidden = {name: v for name, v in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env={**hidden, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL if quiet else None,
            check=False,
        )
        if done.returncode:
            sys.exit(f"exit code {done.returncode}: {' '.join(map(str, command))}")

    def install(self, *requirements: object) -> None:
        """Install requirements with pip."""
        self.call(self.python, "-m", "pip", "install", "-qq", *requirements)

    def try_script(self, name: str, *arguments: str) -> None:
        """Run one of the scripts in tests/installed, without the folder it lies in."""
        self.call(self.python, "-I", "-W", "ignore", TRIALS / name, *arguments)


@contextmanager
def environment(python: str) -> Iterator[Environment]:
    """Make a bare environment, and remove it afterwards."""
    with TemporaryDirectory(prefix="baldur-trial-") as folder:
        yield Environment(python, Path(folder))
