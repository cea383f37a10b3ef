"""Print pyproject's requirements with every lower bound turned into an exact version."""

import tomllib
from pathlib import Path

# Checkers, what only a slow test needs, and dcurves, which asks for newer libraries than ours; the
# tests run without them.
LEAVE_OUT = (
    "baldur-multiview[",
    "build",
    "check-wheel-contents",
    "codespell",
    "dcurves",
    "jax",
    "mypy",
    "numpyro",
    "pandas-stubs",
    "pytest-cov",
    "ruff",
    "twine",
)


def main() -> None:
    """Print one requirement per line: the core, then every extra."""
    file = Path(__file__).resolve().parents[1] / "pyproject.toml"
    project = tomllib.loads(file.read_text())["project"]
    extras = project["optional-dependencies"]
    # The site is built with current tools only.
    groups = [project["dependencies"], *(extras[name] for name in extras if name != "docs")]
    for requirement in (r for group in groups for r in group):
        if not requirement.startswith(LEAVE_OUT):
            print(requirement.replace(">=", "=="))


if __name__ == "__main__":
    main()
