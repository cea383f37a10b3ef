"""Commands that read change nothing but their output; nothing is lost by a kill or a full disk."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from baldur.saving import save
from baldur.study import fit_study, load_study
from cli.conftest import command, environment, fitting, small_study
from cli.places import disk  # noqa: F401 a fixture

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses Linux tools")
NOBODY = 65534
CHANGING = (
    "open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,"
    "truncate,ftruncate,link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat,chown,fchown,lchown,"
    "utimensat,mknod,mknodat,setxattr"
)


@pytest.fixture(scope="module")
def inputs():
    """A study, its results and a model, in a folder that every user may read."""
    place = Path(tempfile.mkdtemp(prefix="baldur-readers-"))
    place.chmod(0o755)
    models = [{"name": "Ridge logistic", "grid": {"C": [0.1, 1.0]}}]
    study, _ = small_study(place, models, {"outer": 2, "inner": 2})
    save(fit_study(load_study(fitting(study)))[0], place / "model")
    yield place
    shutil.rmtree(place)


def some_slow(first, *others):
    """The first name, and the others as slow tests: each starts a process, which takes seconds."""
    return [first, *(pytest.param(name, marks=pytest.mark.slow) for name in others)]


def commands(inputs, out):
    """The commands that read, each with its output below `out`."""
    study, model = inputs / "study.toml", inputs / "model"
    return {
        "predict": ("predict", model, study, "--out", out / "p.csv", "--quiet"),
        "report": ("report", inputs / "whole", "--out", out / "page.html", "--quiet"),
        "report of a model": ("report", model, "--out", out / "model.html", "--quiet"),
        "validate": ("validate", model, study, "--out", out / "validation", "--quiet"),
    }


def state_of(folder):
    """Content, rights and time of change of everything below a folder."""
    return {
        path.relative_to(folder).as_posix(): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def settings(scratch):
    """An environment whose temporary files and caches go to a folder of their own."""
    scratch.mkdir(exist_ok=True)
    scratch.chmod(0o777)
    names = ("TMPDIR", "HOME", "MPLCONFIGDIR", "XDG_CACHE_HOME")
    return {
        **environment(),
        **dict.fromkeys(names, str(scratch)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "ignore",
    }


@pytest.fixture
def places():
    """An output folder and one for temporary files, outside of pytest's own, which is private."""
    place = Path(tempfile.mkdtemp(prefix="baldur-output-"))
    place.chmod(0o755)
    (place / "out").mkdir()
    yield place / "out", place / "scratch"
    shutil.rmtree(place)


def as_nobody(arguments, scratch):
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user, with setpriv")
    who = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    imports = [*who, sys.executable, "-c", "import json, numpy"]
    tried = subprocess.run(
        imports, capture_output=True, cwd="/", env=settings(scratch), check=False
    )
    if tried.returncode != 0:
        pytest.skip(f"an ordinary user may not read {sys.base_prefix} here")
    return subprocess.run(
        [*who, *command(*arguments)],
        env=settings(scratch), capture_output=True, text=True, check=False, cwd="/", timeout=300,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["predict", "report", "validate"])
def test_an_ordinary_user_needs_no_right_to_write_to_inputs(inputs, places, name):
    out, scratch = places
    os.chown(out, NOBODY, NOBODY)
    before = state_of(inputs)
    done = as_nobody(commands(inputs, out)[name], scratch)
    assert done.returncode == 0, done.stderr
    assert state_of(inputs) == before
    assert any(out.iterdir())


@pytest.mark.parametrize("name", some_slow("predict", "report", "report of a model", "validate"))
def test_an_ordinary_user_without_the_right_to_write_gets_one_line(inputs, places, name):
    out, scratch = places
    before = state_of(inputs)
    done = as_nobody(commands(inputs, out)[name], scratch)
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1, done.stderr
    assert "Permission denied" in errors[0]
    assert "allow writing there, or choose another place" in errors[0]
    assert "Traceback" not in done.stderr
    assert state_of(inputs) == before
    assert list(out.iterdir()) == []


def changes(trace, allowed):
    """Calls in a trace of strace that changed something outside of the allowed folders."""
    found = []
    for line in trace.read_text(errors="replace").splitlines():
        call = re.search(r"\b(\w+)\(", line)
        if call is None or re.search(r"= -1 E|resumed>|<unfinished", line):
            continue
        opens = call[1] in ("open", "openat", "openat2")
        if opens and not re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", line):
            continue
        paths = re.findall(r'"(/[^"]*)"|<(/[^>]*)>', line)
        touched = [a or b for a, b in paths if (a or b) != "/"]
        if not any(str(path).startswith(tuple(map(str, allowed))) for path in touched):
            found.append(line)
    return found


@pytest.mark.parametrize(
    "name", some_slow("load", "predict", "report", "report of a model", "validate")
)
def test_traced_commands_change_nothing_outside_of_their_output(inputs, places, name):
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    out, scratch = places
    code = "import sys, baldur; baldur.load(sys.argv[1])"
    asked = [sys.executable, "-c", code, str(inputs / "model")]
    if name != "load":
        asked = command(*commands(inputs, out)[name])
    trace = out.parent / "trace.txt"
    tool = ["strace", "-f", "-y", "-qq", "-s", "400", "-e", f"trace={CHANGING}", "-o", str(trace)]
    before = state_of(inputs)
    done = subprocess.run(
        [*tool, *asked], env=settings(scratch), capture_output=True, text=True, check=False,
        timeout=900, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert state_of(inputs) == before
    assert changes(trace, (out, scratch, "/dev/", "/proc/self/", "/memfd:")) == []


def test_changes_are_seen_in_a_trace(tmp_path):
    lines = [
        '7 unlink("/home/a") = 0',
        '7 openat(AT_FDCWD</>, "/home/b", O_WRONLY|O_CREAT, 0666) = 3</home/b>',
        '7 rename("/home/a", "/home/b") = 0',
        '7 openat(AT_FDCWD</>, "/home/b", O_RDONLY) = 3</home/b>',
        '7 mkdir("/home/c", 0777) = -1 EEXIST (File exists)',
        '7 openat(AT_FDCWD</>, "/out/x", O_WRONLY|O_CREAT, 0666) = 3</out/x>',
    ]
    (tmp_path / "trace").write_text("\n".join(lines))
    assert changes(tmp_path / "trace", ("/out",)) == lines[:3]


# -- killed, and without room --------------------------------------------------------------------


def killed_after(arguments, seconds, scratch):
    process = subprocess.Popen(
        command(*arguments), env=settings(scratch), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode


def visible(folder):
    return {f.name: f.read_bytes() for f in folder.iterdir() if not f.name.startswith(".")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report", "validate"])
def test_killed_at_any_moment_the_old_output_is_there_and_the_next_run_finishes(
    inputs, places, name
):
    out, scratch = places
    arguments = commands(inputs, out)[name]
    if name == "validate":
        arguments = (*arguments, "--fresh", "--no-report")
    started = time.monotonic()
    assert killed_after(arguments, 300, scratch) == 0
    whole = time.monotonic() - started
    folder = out if name == "report" else out / "validation"
    known = visible(folder)
    before = state_of(inputs)
    for i in range(8):
        killed_after(arguments, whole * (0.3 + 0.7 * i / 8), scratch)
        # Killed while it moves a new set, a process leaves the rest of it in a hidden folder.
        moving = {f.name: f.read_bytes() for f in folder.glob(".[nm]*/*")}
        found = moving | visible(folder)
        assert set(found) == set(known)
        # The log begins anew with every run; the others are complete, and differ by their times.
        whole_files = [one for one in known if one != "log.txt"]
        assert all(len(found[one]) > 0.9 * len(known[one]) for one in whole_files)
        for one in found:
            if one.endswith(".json"):
                json.loads(found[one])
    assert killed_after(arguments, 300, scratch) == 0
    assert set(visible(folder)) == set(known)
    assert not list(folder.glob(".*.stage"))
    assert state_of(inputs) == before


@pytest.mark.slow
def test_validate_on_a_full_disk_leaves_the_old_results(inputs, places, disk):  # noqa: F811
    _, scratch = places
    small = disk("8m")
    out = small.path / "validation"
    arguments = (*commands(inputs, small.path)["validate"], "--no-report")
    assert killed_after(arguments, 300, scratch) == 0
    before = visible(out)
    small.fill(leave=8192)
    done = subprocess.run(
        command(*arguments, "--fresh"), env=settings(scratch), capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1, done.stderr
    assert "No space left on device" in errors[0]
    assert "free some space" in errors[0]
    assert visible(out) == before
