"""Build the sdist, and the wheel from it, into dist/; check both.

The wheel holds the package and nothing else, the sdist every file of the repository. The sdist is
unpacked, all tests are collected in it, and those that read files of the repository are run.
"""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from environments import ROOT, say

# Tests that read files of the repository; all others need the package and the tests alone.
TESTS_OF_FILES = (
    "tests/test_package.py",
    "tests/test_imports.py",
    "tests/test_extending.py",
    "tests/test_publishing.py",
    "tests/safety/test_security_page.py",
)


def build(dist: Path) -> tuple[Path, Path]:
    """Build both, and return the paths of the wheel and the sdist."""
    shutil.rmtree(dist, ignore_errors=True)
    _call(sys.executable, "-m", "build", "--outdir", dist, ROOT, quiet=True)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    return wheel, sdist


def check_wheel(wheel: Path) -> None:
    """Check that the wheel holds every tracked file of the package, the licence, and no more."""
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        metadata = next(archive.read(name) for name in inside if name.endswith("/METADATA"))
    package = {str(Path(name).relative_to("src")) for name in _tracked("src/baldur")}
    packed = {name for name in inside if ".dist-info/" not in name}
    _same("the wheel", packed, package)
    for wanted in ("licenses/LICENSE", "entry_points.txt", "RECORD"):
        if not any(name.endswith(f".dist-info/{wanted}") for name in inside):
            sys.exit(f"the wheel has no {wanted}")
    if b"\nLicense-Expression: BSD-3-Clause" not in metadata:
        sys.exit("the metadata of the wheel do not name the licence")


def check_sdist(sdist: Path) -> None:
    """Check the files of the sdist, and run tests in it."""
    with TemporaryDirectory(prefix="baldur-sdist-") as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (root,) = Path(folder).iterdir()
        found = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
        _same("the sdist", found - {"PKG-INFO"}, _tracked("."))
        pytest = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
        _call(*pytest, "--collect-only", "-q", "-W", "ignore", folder=root, quiet=True)
        _call(*pytest, *TESTS_OF_FILES, folder=root)


def _tracked(folder: str) -> set[str]:
    """Return the files of a folder that belong to the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}


def _same(what: str, found: set[str], expected: set[str]) -> None:
    if found != expected:
        more, fewer = sorted(found - expected), sorted(expected - found)
        sys.exit(f"{what} has files too many: {more}; too few: {fewer}")


def _call(*command: object, folder: Path = ROOT, quiet: bool = False) -> None:
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, check=False, text=True,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
    )  # fmt: skip
    if done.returncode:
        said = (done.stdout or "")[-3000:]
        sys.exit(f"{said}\nexit code {done.returncode}: {' '.join(map(str, command))}")


def main() -> None:
    """Build and check."""
    wheel, sdist = build(ROOT / "dist")
    _call(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    _call(sys.executable, "-m", "check_wheel_contents", wheel)
    if (ROOT / ".git").exists():
        check_wheel(wheel)
        check_sdist(sdist)
    else:
        say("Not a git checkout: what the files should be is not known, and was not checked.")
    say(f"{wheel.name} and {sdist.name} are in dist.")


if __name__ == "__main__":
    main()
