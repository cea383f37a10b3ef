"""Date the changelog with the version of the package, commit, and tag the commit.

The version is written in ``src/baldur/__init__.py`` and nowhere else but in ``recipe/meta.yaml``,
which a test compares with it. Nothing leaves this machine: pushing the tag publishes.
"""

import datetime as dt
import re
import subprocess
import sys

from environments import ROOT, the_wheel

HEADING = "## Unreleased\n"


def dated(changelog: str, version: str, date: dt.date) -> str:
    """Return the changelog with the entries of the next version under its number and date."""
    if changelog.count(HEADING) != 1:
        sys.exit("CHANGELOG.md must have one section 'Unreleased'.")
    if re.search(rf"^## {re.escape(version)} ", changelog, re.M):
        sys.exit(f"{version} is released already; raise the version in src/baldur/__init__.py.")
    return changelog.replace(HEADING, f"{HEADING}\n## {version} ({date.isoformat()})\n")


def git(*arguments: str) -> str:
    """Run git in the repository, and return what it prints."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Release the version that the wheel in dist/ has."""
    if git("status", "--porcelain"):
        sys.exit("There are changes that are not committed.")
    version = the_wheel().name.split("-")[1]
    file = ROOT / "CHANGELOG.md"
    file.write_text(dated(file.read_text("utf-8"), version, dt.date.today()), "utf-8")
    git("commit", "-q", "-m", f"Release {version}", "CHANGELOG.md")
    git("tag", "-a", f"v{version}", "-m", f"Version {version}")
    print(f"Tagged v{version}. To publish it: git push --follow-tags")


if __name__ == "__main__":
    main()
