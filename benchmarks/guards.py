"""Does a redesign change any answer? What one checkout says is stored, and compared with another.

Usage::

    PYTHONPATH=/work/start/src python benchmarks/guards.py --save /work/guards
    PYTHONPATH=src python benchmarks/guards.py --against /work/guards [--part study] [--save new]
    python benchmarks/guards.py --load new --against /work/guards  # compares what was saved

============  =============================================================================
`problems`    the twenty problems of ``fixed_problems.py``, bit by bit
`study`       six studies by the command: tables, texts, pages; a model on a new cohort
`models`      every estimator saved and loaded: predictions, fitted attributes, summary
`help`        help of every command, the written study file, its schema, the list of models
`names`       public names with their signatures; names and types of fitted attributes
`baselines`   predictions of every baseline for two classes, three classes and numbers
============  =============================================================================

An item is an array, a column of a table, a key of a JSON file, a text, or an aspect of a page.
Times, dates, folders, versions and digests are not compared. Every item that differs is one line,
and then the exit code is 1. What fails leaves an ``.error.txt``, which is an item, too.
"""

import argparse
import html
import importlib
import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
import sklearn
from fixed_problems import PROBLEMS, solve_all
from shared_sets import folder as shared_folder
from threadpoolctl import threadpool_info, threadpool_limits

import baldur
from baldur import BaldurClassifier, BaldurRegressor, MultiView, Preparation, load
from baldur.baselines import BASELINES
from baldur.preparation import SiteHarmoniser

try:
    from baldur.paper import PaperClassifier, PaperRegressor
except ImportError:
    from baldur import PaperClassifier, PaperRegressor

PACKAGES = """baselines cli datasets evaluation exceptions io paper plots preparation report
reproduction saving study views"""
COMMANDS = "init evaluate report fit predict validate demo reproduce models simulate"
METHODS = """predict predict_proba decision_function predict_interval transform explain views_used
flag_samples"""
PROGRAM = (sys.executable, "-c", "from baldur.cli import main; main()")
SETTINGS = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
SETTINGS |= {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}
STUDIES = {
    "outcomes": """outcome = {columns = ["fall", "stroke"], positive = "yes"}
folds.repeats = 2
models = ["BALDUR", "Ridge logistic"]""",
    "numbers": """samples.site = "site"
outcome = {column = "score", task = "regression"}
covariates.regress_out = ["age"]
report.subgroups = ["sex"]
models = ["BALDUR", "BALDUR (mean-field)", "MV-PLS", "Boosted trees"]""",
    "classes": """samples.group = "family"
outcome.column = "stage"
preparation.scale = "rank"
covariates.include = ["sex"]
models = ["BALDUR", "BALDUR (mean-field)", "Dummy"]""",
    "options": """outcome = {column = "status", positive = "ill"}
harmonise = {by = "site", keep = ["age"]}
report.thresholds = [0.3, 0.5]
report.prevalence = 0.2
report.permutations = 1
report.learning_curve = [0.5]
report.baseline_views = ["clinic"]
models = ["Ridge logistic"]""",
    "ad_csf": """outcome = {column = "label", positive = "Impaired"}
models = ["LSVM-l1", "RF", "Elastic-net logistic", "BALDUR"]""",
}
"""Name to what its study file has besides folds, samples and views."""
STUDY = """title = "{name}"
output = "results"
folds.outer = 3
folds.inner = 2
samples.file = "samples.csv"
samples.id = "sample"
"""


# -- data -------------------------------------------------------------------------------------


def cohort(n=120):
    """Return a table of samples with outcomes, and three views with categories and gaps."""
    rng = np.random.default_rng(0)
    crp, bmi = rng.standard_normal((2, n))
    genes, risk = rng.standard_normal((n, 30)), rng.binomial(2, 0.3, (n, 12)).astype(np.int8)
    site, ward = rng.integers(0, 3, n), rng.choice(["east", "north", "west"], n)
    score = 1.5 * crp + 1.2 * genes[:, 0] - genes[:, 1] + (ward == "west") + rng.logistic(size=n)
    other = genes[:, 2] + risk[:, 0] + rng.logistic(size=n)
    samples = {
        "sample": [f"s{i:03d}" for i in range(n)],
        "family": [f"f{i // 2}" for i in range(n)],
        "site": np.array(["A", "B", "C"])[site],
        "age": rng.integers(40, 80, n),
        "sex": rng.choice(["f", "m"], n),
        "status": np.where(score > 0.3, "ill", "well"),
        "stage": np.array(["early", "late", "none"])[np.digitize(score, [-1.0, 1.0])],
        "fall": np.where(score + rng.standard_normal(n) > 0.5, "yes", "no"),
        "stroke": np.where(other > 0.5, "yes", "no"),
        "score": np.round(10.0 + 2.0 * score, 3),
    }
    genes += 0.5 * site[:, None]
    genes[::10, 3] = crp[::12] = np.nan
    clinic = pd.DataFrame({"crp": crp, "bmi": bmi, "ward": ward, "smoker": rng.random(n) < 0.3})
    wide = {name: pd.DataFrame(X).add_prefix(name) for name, X in (("gene", genes), ("snp", risk))}
    return pd.DataFrame(samples), {"clinic": clinic, **wide}


def train_and_new(column):
    """Return 90 training rows with an outcome, and 30 new rows."""
    samples, views = cohort()
    X = MultiView(views, samples=samples[["site", "age", "sex"]])
    y = samples[column].to_numpy()
    return X[:90], (y if y.ndim == 1 else (y == "yes").astype(int))[:90], X[90:]


def ad_csf(split):
    """Return the labels and the views of a part of the published split of a real data set."""
    source = shared_folder() / "ad_csf"
    labels = pd.read_csv(source / "labels.csv", dtype=str)
    rows, views = (labels["split"] == split).to_numpy(), {}
    for file in sorted(source.glob("view_*.npz")):
        with np.load(file, allow_pickle=False) as a:
            views[file.stem[5:]] = pd.DataFrame(a["X"][rows], columns=a["features"])
    return labels[rows], views


def write_study(folder, text, samples, views):
    """Write the files of a study: tables, and ``study.toml``."""
    folder.mkdir()
    samples.to_csv(folder / "samples.csv", index=False)
    for name, view in views.items():
        view.set_index(pd.Index(samples["sample"])).to_csv(folder / f"{name}.csv")
    files = [f'views.{name}.file = "{name}.csv"' for name in views]
    (folder / "study.toml").write_text("\n".join([STUDY.format(name=folder.name), text, *files]))


# -- the parts: each writes files into a folder -----------------------------------------------


@contextmanager
def failures(out, name):
    """Write down how something failed, and go on."""
    try:
        yield
    except Exception:
        print(f"FAILED: {name}: {traceback.format_exc(limit=-1).splitlines()[-1]}")
        (out / f"{name}.error.txt").write_text(traceback.format_exc())


def command(work, name, *arguments):
    """Run the program in a folder, and write there what it prints."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)], cwd=work, env={**os.environ, **SETTINGS},
        capture_output=True, text=True,
    )  # fmt: skip
    (work / f"{name}.stdout.txt").write_text(f"{done.stdout}exit code {done.returncode}\n")
    (work / f"{name}.stderr.txt").write_text(done.stderr)


def store(file, value):
    """Write nested dictionaries, lists, tables and values as named arrays."""
    np.savez_compressed(file, **dict(flat("", value)))


def flat(name, value):
    """Yield the names and arrays that something consists of."""
    if isinstance(value, pd.DataFrame):
        value = {"index": value.index.to_numpy(), **{str(c): value[c] for c in value}}
    if isinstance(value, (Mapping, list, tuple)):
        for key, one in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from flat(f"{name}/{key}".lstrip("/"), one)
    elif isinstance(value, (str, bool, int, float, np.generic, np.ndarray, pd.Series)):
        array = np.asarray(value)
        yield name, array.astype(str) if array.dtype == object else array
    else:
        yield name, np.array(type(value).__name__)


def problems(out):
    """Solve the twenty fixed problems."""
    for name in PROBLEMS:
        with failures(out, name), redirect_stdout(io.StringIO()):
            solve_all([name], out / f"{name}.npz")


def study(out):
    """Run the demo, four small studies, and one of real data whose model meets a new cohort."""
    with tempfile.TemporaryDirectory(prefix="guards-") as here:
        work = Path(here)
        command(work, "demo", "demo", "--out", "demo", "--jobs", 1)
        for name, text in STUDIES.items():
            write_study(work / name, text, *(ad_csf("train") if name == "ad_csf" else cohort()))
            command(work, f"{name} check", "evaluate", f"{name}/study.toml", "--check")
            command(work, name, "evaluate", f"{name}/study.toml")
        write_study(work / "new", STUDIES["ad_csf"], *ad_csf("test"))
        known, new = "ad_csf/study.toml", "new/study.toml"
        command(work, "fit", "fit", known, "--model", "BALDUR", "--out", "model")
        files = ("--out", "predicted.csv", "--explain", "explained.csv", "--drift", "drift.csv")
        command(work, "predict", "predict", "model", new, *files)
        command(work, "validate", "validate", "model", new, "--development", "ad_csf/results")
        page = ("--model", "model", "--people", "named", "--out", "with model.html")
        command(work, "report", "report", "ad_csf/results", *page)
        left_out = shutil.ignore_patterns("jobs", ".*", "*.safetensors", "state.json", "manifest*")
        shutil.copytree(work, out, dirs_exist_ok=True, ignore=left_out)


def models(out):
    """Fit every estimator behind a preparation, save and load it, and ask it about new rows."""
    harmonised = Preparation(steps=[SiteHarmoniser("site", ["gene"])], regress_out=["age"])
    whole = {"preparation": harmonised}
    more = {"cost": {"gene": 2.0, "clinic": 1.0}, "always": ["bmi"], "preparation": "rank"}
    dual = {"bound": "jaakkola", "space": "dual", "sparsity": 0.5}
    for name, model, column in (
        ("binary", BaldurClassifier(**whole), "status"),
        ("classes", BaldurClassifier(**whole), "stage"),
        ("labels", BaldurClassifier(**whole), ["fall", "stroke"]),
        ("numbers", BaldurRegressor(**whole), "score"),
        ("costs", BaldurClassifier(class_weight="balanced", **more), "status"),
        ("paper binary", PaperClassifier(**whole), "status"),
        ("paper dual", PaperClassifier(**dual), "stage"),
        ("paper labels", PaperClassifier(**whole), ["fall", "stroke"]),
        ("paper numbers", PaperRegressor(**whole), "score"),
    ):
        with failures(out, name):
            X, y, new = train_and_new(column)
            model.fit(X, y).save(out / name)
            found = {"fitted": attributes(model), "summary": str(model.summary())}
            found |= {"fresh": answers(model, new), "loaded": answers(load(out / name), new)}
            if hasattr(model, "submodel"):
                small = model.submodel(3)
                found |= {"of submodel": attributes(small), "submodel": answers(small, new)}
            store(out / f"{name}.npz", found)


def answers(model, X):
    """Return all that a model says about new rows."""
    return {
        method: getattr(model, method)(X) for method in METHODS.split() if hasattr(model, method)
    }


def attributes(model):
    """Return the fitted attributes of an estimator by name."""
    names = [n for n in dir(model) if n.endswith("_") and not n.startswith("_")]
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def help_texts(out):
    """Store what the program says about itself."""
    for name in COMMANDS.split():
        command(out, name, name, "--help")
    command(out, "baldur", "--help")
    command(out, "models listed", "models")
    command(out, "study file written", "init", "study.toml")


def names(out):
    """Store public names of every package, and fitted attributes."""
    for package in ("baldur", *(f"baldur.{name}" for name in PACKAGES.split())):
        with failures(out, package):
            module = importlib.import_module(package)
            defined = {n for n, v in vars(module).items() if belongs(v, package) and n[0] != "_"}
            public = getattr(module, "__all__", sorted(defined))
            known = {name: described(getattr(module, name)) for name in public}
            (out / f"{package}.json").write_text(json.dumps(known, indent=1))
    for model, column in ((BaldurClassifier(), "status"), (BaldurRegressor(), "score")):
        found = attributes(model.set_params(members=("pooled",)).fit(*train_and_new(column)[:2]))
        kinds = {name: type(value).__name__ for name, value in found.items()}
        (out / f"fitted {type(model).__name__}.json").write_text(json.dumps(kinds, indent=1))


def described(value):
    """Return the signatures of a function or of a class and its members, or a type."""
    if inspect.isclass(value):
        own = {n: m for n, m in inspect.getmembers(value) if not n.startswith("_")}
        own = {n: "property" if isinstance(m, property) else signature(m) for n, m in own.items()}
        return {"": signature(value)} | {n: text for n, text in own.items() if text}
    if isinstance(value, Mapping):
        return sorted(map(str, value))
    return signature(value) if callable(value) else type(value).__name__


def belongs(value, package):
    """Return whether something is a function or class of a package."""
    return callable(value) and str(getattr(value, "__module__", "")).startswith(package)


def signature(value):
    """Return the signature of something of this package without annotations, "" of the rest."""
    if not belongs(value, "baldur"):
        return ""
    try:
        found = inspect.signature(value).parameters.values()
    except ValueError:  # an error has the constructor of its base class
        return "no signature"
    return str(inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in found]))


def baselines(out):
    """Fit every entry of the registry with its default settings, and predict new rows."""
    for name, entry in BASELINES.items():
        for column in ("status", "stage", *(["score"] if entry.regressor else [])):
            with failures(out, f"{name}, {column}"):
                X, y, new = train_and_new(column)
                model = entry.make(random_state=0, classification=column != "score").fit(X, y)
                store(out / f"{name}, {column}.npz", answers(model, new))


PARTS = {"problems": problems, "study": study, "models": models, "help": help_texts,
         "names": names, "baselines": baselines}  # fmt: skip


# -- comparing --------------------------------------------------------------------------------

VARIABLE = (
    (r";[^;\n]*\(estimated from small fits\)", "; <time>"),
    (r"[\w/.-]*/guards-\w{8}", "<folder>"),
    (r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?", "<date>"),
    (r"\b[0-9a-f]{64}\b", "<digest>"),
    (r"(about |less than )?\b[\d.,]+ (s(?!\.d)|seconds?|min|minutes?|hours?)\b", "<time>"),
    (r"\b0x[0-9a-f]+", "<address>"),
    (r"\b\d+\.\d+\.\d+\w*\b", "<version>"),
    (r"(?m)^\d+ of \d+ jobs.*\n", ""),
)
"""What is replaced in every text before it is compared."""


def plain(text):
    """Return a text without what differs from run to run."""
    for pattern, instead in VARIABLE:
        text = re.sub(pattern, instead, text)
    return text


def items(file):
    """Return the items of a file by name: arrays and texts."""
    if file.suffix == ".npz":
        with np.load(file) as archive:
            return {key: archive[key] for key in archive.files if "seconds" not in key}
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".csv" and text.strip():
        cells = pd.read_csv(file, dtype=str, keep_default_na=False)
        return {"columns": np.array(list(cells)), **{c: column(cells[c]) for c in cells}}
    if file.suffix == ".json":
        whole = json.loads(text)
        whole = whole if isinstance(whole, dict) else {"whole": whole}
        return {key: plain(json.dumps(one, indent=1)) for key, one in whole.items()}
    if file.suffix != ".html":
        return {"text": plain(text)}
    drawings = re.findall(r"<svg.*?</svg>|<img[^>]*>", text, re.S)
    seen = re.sub(r"<(svg|script|style)\b.*?</\1>", " ", text, flags=re.S)
    texts = {
        "visible text": html.unescape(re.sub(r"<[^>]+>", " ", seen)).split(),
        "alternative texts": re.findall(r'(?:role="img" aria-label|alt)="([^"]*)"', text),
        "data": re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S),
        "drawings": drawings,
    }
    found = {name: plain(" ".join(parts)) for name, parts in texts.items()}
    return {"number of figures": np.array(len(drawings)), **found}


def column(cells):
    """Return a column as numbers where it has nothing else, otherwise as text."""
    try:
        return cells.replace("", "nan").to_numpy(float)
    except ValueError:
        return np.array([plain(cell) for cell in cells], dtype=str)


def difference(old, new):
    """Return how two items differ, in a few words, or None."""
    if isinstance(old, str):
        same = (a == b for a, b in zip(old, new, strict=False))
        at = next((i for i, one in enumerate(same) if not one), min(len(old), len(new)))
        shown = (repr(text[max(0, at - 40) : at + 60]) for text in (old, new))
        return None if old == new else " -> ".join(shown)
    if old.shape != new.shape or old.dtype.kind != new.dtype.kind:
        return f"{old.dtype} {old.shape} -> {new.dtype} {new.shape}"
    real = old.dtype.kind == "f"
    changed = (old != new) & ~((old != old) & (new != new)) if real else old != new
    if not changed.any():
        return None
    if not real:
        return f"{changed.sum()} of {old.size}: {old[changed][0]} -> {new[changed][0]}"
    largest = np.nanmax(np.abs(old - new), initial=0.0)
    return f"{changed.sum()} of {old.size}, largest difference {largest:.2e}"


def read(folder, part):
    """Return all items of a part by file and name; the format of model folders may change."""
    files = (folder / part).rglob("*") if part != "models" else (folder / part).glob("*.*")
    every = {f.relative_to(folder): items(f) for f in sorted(files) if f.is_file()}
    return {f"{file}: {name}": one for file, found in every.items() for name, one in found.items()}


def compare(before, after, parts):
    """Print every item that differs between two folders; return how many do."""
    kinds = [(folder / "machine.txt").read_text() for folder in (before, after)]
    if kinds[0] != kinds[1]:
        print("processor or libraries differ, so that last bits may:", *kinds, sep="\n")
    for folder in sorted((before / "models").glob("*/")) if "models" in parts else ():
        try:
            load(folder)
            print(f"stored model {folder.name!r} loads")
        except Exception as error:
            print(f"stored model {folder.name!r} does not load (not counted): {str(error)[:80]}")
    compared, lines = 0, []
    for part in parts:
        old, new = read(before, part), read(after, part)
        compared += len(old | new)
        lines += [f"{name}: is gone" for name in old if name not in new]
        lines += [f"{name}: is new" for name in new if name not in old]
        changes = {name: difference(old[name], new[name]) for name in old if name in new}
        lines += [f"{name}: {change}" for name, change in changes.items() if change]
    print(*lines, f"{compared} items compared, {len(lines)} differ", sep="\n", flush=True)
    return len(lines)


def machine():
    """Return what decides the last bits besides the code: processor and libraries."""
    kinds = {str(one.get("architecture")) for one in threadpool_info()}
    return [*sorted(kinds), *(f"{m.__name__} {m.__version__}" for m in (np, pd, sklearn, scipy))]


def compute(folder, parts):
    """Compute parts, one after the other, and write them into a folder."""
    print(f"measured: {Path(baldur.__file__).parent}", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "machine.txt").write_text("\n".join(machine()))
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in parts:
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / name).mkdir(parents=True)
            started = time.monotonic()
            with failures(folder / name, name):
                PARTS[name](folder / name)
            print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)


def main():
    """Read the arguments; compute, store and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--save", type=Path, help="folder to write; its parts are replaced")
    parser.add_argument("--load", type=Path, help="folder saved earlier, instead of computing")
    parser.add_argument("--against", type=Path, help="folder saved by another checkout")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as here:
        after = given.load or given.save or Path(here)
        if not given.load:
            compute(after, given.part)
        wrong = sum(len(list((after / part).glob("*.error.txt"))) for part in given.part)
        if given.against:
            wrong = compare(given.against, after, given.part)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
