"""Install the wheel of dist/ in bare environments of every supported Python, and try it.

In each: the command, a small study with its report, a fit that is saved and loaded, the errors of
absent extras, and ``mypy --strict`` on a project that uses the package. A version of Python that
is not here is named and left out.
"""

import subprocess
import sys
from pathlib import Path

from environments import TRIALS, VERSIONS, Environment, environment, find_python, say, the_wheel

# Every extra but those for tests; none of them is installed at first.
EXTRAS = ("genetics", "imaging", "mudata", "tables", "dask", "report", "onnx", "torch")

# Two folds of each kind: what is tried is that everything is installed, not that it is good.
STUDY = """
models = [{ name = "Ridge logistic" }, { name = "BALDUR", settings = { members = ["pooled"] } }]
samples = { file = "samples.csv", id = "sample" }
outcome = { column = "diagnosis", positive = "case" }
views = { view0 = { file = "view0.csv" }, view1 = { file = "view1.csv" } }
folds = { outer = 2, inner = 2 }
"""


def try_core(here: Environment, wheel: Path) -> None:
    """Try what needs no extra, and the errors where one is absent."""
    here.install(wheel)
    baldur = here.bin / "baldur"
    for arguments in (["--version"], ["--help"], ["models"], ["init"]):
        here.call(baldur, *arguments, quiet=True)
    here.try_script("try_core.py", wheel.name.split("-")[1])
    here.try_script("try_extra.py", "--without", *EXTRAS)


def try_study(here: Environment, wheel: Path) -> None:
    """Run a small study from its files to the page, and score people with its model."""
    here.install(f"{wheel}[report]")
    baldur = here.bin / "baldur"
    study = Path("simulated", "small.toml")
    here.call(baldur, "simulate", "multiview", "--out", "simulated", quiet=True)
    (here.folder / study).write_text(STUDY)
    here.call(baldur, "evaluate", study, "--jobs", 2, "--quiet")
    here.call(baldur, "fit", study, "--model", "BALDUR", "--out", "model", quiet=True)
    here.call(baldur, "predict", "model", study, "--out", "predictions.csv", "--quiet")
    here.call(baldur, "report", "model", "--quiet")
    for name in ("simulated/results/report.html", "predictions.csv", "model/report.html"):
        if not (here.folder / name).is_file():
            sys.exit(f"the study wrote no {name}")


def check_types(here: Environment) -> None:
    """Check the example project against the types of the installed wheel."""
    for file in sorted((TRIALS / "typed_project").glob("*.py")):
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir",
                   here.folder / "mypy", "--python-executable", here.python, file]  # fmt: skip
        if subprocess.run(list(map(str, command)), cwd=here.folder, check=False).returncode:
            sys.exit(f"the types of the wheel do not hold in {file.name}")


def main() -> None:
    """Try every version."""
    wheel = the_wheel()
    tried = []
    for version in VERSIONS:
        python = find_python(version)
        if python is None:
            say(f"Python {version} is not here and was not tried.")
            continue
        say(f"== Python {version}")
        with environment(python) as here:
            try_core(here, wheel)
            check_types(here)
            try_study(here, wheel)
        tried.append(version)
    if not tried:
        sys.exit("no supported Python was found")
    say(f"{wheel.name} works on Python {', '.join(tried)}.")


if __name__ == "__main__":
    main()
