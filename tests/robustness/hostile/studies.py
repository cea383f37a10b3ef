"""Study files that reach out, and samples that do."""

from functools import partial

from robustness.hostile.base import CANARY, Case
from robustness.hostile.text import BOMBS, packed

SAMPLES = "sample,diagnosis\n" + "".join(f"p{i},{'ab'[i % 2]}\n" for i in range(40))
VIEW = "sample,x,y\n" + "".join(f"p{i},{i % 7},{i % 2}\n" for i in range(40))
PARTS = {
    "top": "",
    "samples": 'file = "samples.csv"\nid = "sample"',
    "outcome": 'column = "diagnosis"',
    "views.v": 'file = "v.csv"',
}


def study(files=(), links=(), **parts):
    """Write a study; sections by name with __ for a dot, files and links beside it."""

    def make(folder, outside):
        (outside / "secret.csv").write_text(SAMPLES.replace("p0", CANARY))
        (outside / "precious").mkdir()
        (outside / "precious" / "log.txt").write_text(CANARY)
        (folder / "samples.csv").write_text(SAMPLES)
        (folder / "v.csv").write_text(VIEW)
        for name, data in dict(files).items():
            (folder / name).write_bytes(data() if callable(data) else data)
        for name, target in dict(links).items():
            (folder / name).unlink(missing_ok=True)
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).symlink_to(outside / target)
        given = {**PARTS, **{key.replace("__", "."): text for key, text in parts.items()}}
        sections = [f"[{key}]\n{text}\n" for key, text in given.items() if key != "top"]
        text = "\n".join([given["top"], 'models = ["Dummy"]', *sections])
        (folder / "study.toml").write_text(text.replace("OUTSIDE", outside.as_posix()))
        return folder / "study.toml"

    return make


OUTPUTS = [
    "../outside/precious",
    "OUTSIDE/precious",
    ".",
    "..",
    "results/../..",
    "/",
    "link",
    "link/x",
]
CASES = {
    **{
        f"output {output}": Case(
            study(top=f'output = "{output}"', links={"link": "precious"}), "study"
        )
        for output in OUTPUTS
    },
    "log through a link": Case(study(links={"results/log.txt": "precious/log.txt"}), "study"),
    "jobs through a link": Case(study(links={"results/jobs": "precious"}), "study"),
    "samples outside": Case(study(samples='file = "../outside/secret.csv"\nid = "sample"'), "study"),
    "samples by an absolute path": Case(
        study(samples='file = "OUTSIDE/secret.csv"\nid = "sample"'), "study"
    ),
    "samples through a link": Case(study(links={"samples.csv": "secret.csv"}), "study"),
    "view outside": Case(study(views__v='file = "../outside/secret.csv"'), "study"),
    "view through a link": Case(study(links={"v.csv": "secret.csv"}), "study"),
    "view from a device": Case(study(views__v='file = "/dev/zero"'), "study"),
    "view from an address": Case(study(views__v='file = "http://localhost/x.csv"'), "study"),
    "ids outside": Case(
        study(views__v='file = "v.csv"\nsample_ids = "../outside/secret.csv"'), "study"
    ),
    "samples that unpack": Case(
        study(
            files={"s.csv.gz": partial(packed, *BOMBS["different texts"])},
            samples='file = "s.csv.gz"\nid = "id"',
        ),
        "study",
    ),
    "limits lifted": Case(study(views__v='file = "v.csv"\nmax_bytes = 1000000000000'), "study"),
    "long key": Case(study(top=".".join("a" * 200_000) + " = 1"), "study"),
    "deep list": Case(study(top="a = " + "[" * 200_000), "study"),
    "estimator from elsewhere": Case(
        study(top='models = [{name = "x", estimator = "os.system"}]\nunused = 1'), "study"
    ),
    "escape codes in a class": Case(
        study(files={"samples.csv": SAMPLES.replace(",a", ",\x1b[2Ja").encode()}), "study"
    ),
    "escape codes in a column": Case(
        study(files={"v.csv": VIEW.replace("x,y", "x\x1b[2J,y").encode()}), "study"
    ),
}  # fmt: skip
