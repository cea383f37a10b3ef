"""Build the container image and run a study in it without a network.

Without a builder, the steps of the Dockerfile are done in a virtual environment instead: the same
requirement is installed, and the command is run by a user without rights, in a network namespace
without a network (Linux, as root), with the environment read-only for that user.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from environments import ROOT, Environment, say, the_wheel
from smoke import STUDY

# The user of the Dockerfile; it need not exist.
USER = 10001


def installed_extras() -> str:
    """Return the extras that the Dockerfile installs, as written there."""
    return re.findall(r"\.whl\)(\[[\w,]+\])", (ROOT / "Dockerfile").read_text())[0]


def try_image(builder: str, folder: Path) -> None:
    """Build the image, and run the command in it as the user of the Dockerfile."""
    subprocess.run([builder, "build", "-t", "baldur-trial", ROOT], check=True)
    limits = ["--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp",
              "--tmpfs", "/home/baldur", "-v", f"{folder}:/study"]  # fmt: skip
    _study([builder, "run", *limits, "baldur-trial"], folder)


def try_steps(folder: Path) -> None:
    """Do the steps of the Dockerfile in a virtual environment."""
    # An interpreter below a home folder cannot be read by other users.
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    here = Environment(python, folder)
    here.install(f"{the_wheel()}{installed_extras()}")
    home = folder / "home"
    home.mkdir()
    os.chmod(folder, 0o755)
    for place in (home, here.folder):
        os.chown(place, USER, USER)
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    variables = {"HOME": home, "PYTHONDONTWRITEBYTECODE": 1, "PATH": here.bin}
    settings = ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]
    _study(["unshare", "--net", *user, *settings, here.bin / "baldur"], here.folder)


def _study(baldur: list[object], folder: Path) -> None:
    """Run a small study with the command."""
    (folder / "small.toml").write_text(STUDY)
    for arguments in (
        ["--version"],
        ["simulate", "multiview", "--out", "."],
        ["evaluate", "small.toml", "--quiet"],
    ):
        command = [str(part) for part in [*baldur, *arguments]]
        if subprocess.run(command, cwd=folder, check=False).returncode:
            sys.exit(f"failed: {' '.join(command)}")
    if not (folder / "results" / "report.html").is_file():
        sys.exit("the study wrote no report")


def _builder() -> str | None:
    """Return a command that can build images here."""
    for name in ("docker", "podman"):
        path = shutil.which(name)
        if path and subprocess.run([path, "info"], capture_output=True).returncode == 0:
            return path
    return None


def main() -> None:
    """Try the image, or its steps."""
    builder = _builder()
    with TemporaryDirectory(prefix="baldur-container-") as name:
        if builder is not None:
            os.chmod(name, 0o777)
            try_image(builder, Path(name))
            say("The image was built and ran a study without a network.")
        elif shutil.which("unshare") and shutil.which("setpriv") and os.geteuid() == 0:
            say("No image builder is here: the steps of the Dockerfile are tried without one.")
            try_steps(Path(name))
            say("The steps of the Dockerfile work without a network and without rights.")
        else:
            say("No image builder is here, and no way to cut off the network: not tried.")


if __name__ == "__main__":
    main()
