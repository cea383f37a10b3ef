"""Mutated model folders: damage as it happens, and as somebody would do it on purpose.

``python tests/persist/fuzz.py 2000`` prints what became of so many of each kind.
"""

import json
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from baldur.exceptions import BaldurError
from baldur.persist import load_model
from baldur.persist.arrays import pack_arrays, unpack_arrays
from baldur.persist.plain import digest, write_json
from persist.models import N, cohort, fitted, rows_for

FREE = ("card.md",)
"""What may be edited by hand."""


def contents_of(folder):
    return {f.name: f.read_bytes() for f in Path(folder).iterdir() if not f.name.startswith(".")}


# -- damage ------------------------------------------------------------------------------------


def damaged(contents, rng):
    """Return the contents with one file changed in one way, and what was done."""
    made = dict(contents)
    name = rng.choice(sorted(set(contents) - set(FREE)))
    raw = bytearray(made[name])
    kind = rng.choice(["flip", "cut", "grow", "drop", "swap", "zero", "json", "file"])
    at = rng.randrange(len(raw))
    if kind == "flip":
        raw[at] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del raw[at:]
    elif kind == "grow":
        raw[at:at] = rng.randbytes(rng.randrange(1, 40))
    elif kind == "drop":
        del raw[at : at + rng.randrange(1, 9)]
    elif kind == "zero":
        raw[at : at + 16] = bytes(len(raw[at : at + 16]))
    elif kind == "swap":
        other = rng.randrange(len(raw))
        raw[at], raw[other] = raw[other], raw[at]
    elif kind == "json":
        name = rng.choice(
            [n for n in ("manifest.json", "structure.json", "card.json") if n in made]
        )
        value = json.loads(made[name])
        change_json(value, rng)
        raw = bytearray(write_json(value, sort=name != "structure.json"))
    elif kind == "file":
        other = rng.choice(sorted(contents))
        raw = bytearray(contents[other])
    made[name] = bytes(raw)
    return made, f"{kind} {name}"


def places_in(value, found=None):
    """Every (container, key) of a JSON value."""
    found = [] if found is None else found
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        found.append((value, key))
        if isinstance(item, (dict, list)):
            places_in(item, found)
    return found


def change_json(value, rng):
    """Change one place of a JSON value."""
    places = places_in(value)
    if not places:
        return
    container, key = rng.choice(places)
    kind = rng.choice(["other", "delete", "reverse", "copy", "number", "deep"])
    if kind == "delete":
        del container[key]
    elif kind == "reverse" and isinstance(container[key], list):
        container[key].reverse()
    elif kind == "copy":
        source, from_key = rng.choice(places)
        if from_key in source if isinstance(source, dict) else from_key < len(source):
            container[key] = json.loads(json.dumps(source[from_key]))
    elif kind == "number" and isinstance(container[key], (int, float)):
        container[key] = rng.choice([container[key] * 2 + 1, -1, 0, 1 << 40, 1e308, True])
    elif kind == "deep":
        container[key] = [[[[container[key]]]]]
    else:
        container[key] = rng.choice([None, True, -1, 1 << 62, "", "../../etc/passwd", [], {}, 0.5])


# -- malice: what was changed gets right checksums ------------------------------------------------


def resealed(contents, rng):
    """Return contents with a changed tree or changed arrays and all checksums right again."""
    arrays, _ = unpack_arrays(contents["arrays.safetensors"])
    tree = json.loads(contents["structure.json"])
    if rng.random() < 0.5:
        for _ in range(rng.choice([1, 1, 2, 4])):
            change_json(tree, rng)
        done = "tree"
    else:
        done = change_arrays(arrays, rng)
    manifest = json.loads(contents["manifest.json"])
    made = {n: c for n, c in contents.items() if n in ("structure.json",)}
    made["structure.json"] = write_json(tree, sort=False)
    manifest["files"] = {"structure.json": digest(made["structure.json"])}
    del manifest["arrays"]
    made["arrays.safetensors"] = pack_arrays(arrays, {"manifest": digest(manifest)})
    manifest["arrays"] = digest(made["arrays.safetensors"])
    made["manifest.json"] = write_json(manifest, indent=1)
    return made, f"resealed {done}"


def change_arrays(arrays, rng):
    name, other = rng.choice(list(arrays)), rng.choice(list(arrays))
    array = arrays[name]
    kind = rng.choice(["exchange", "cut", "shape", "type", "nan", "huge", "rename", "empty"])
    if kind == "exchange":
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif kind == "cut":
        arrays[name] = np.ascontiguousarray(array[:-1] if array.ndim else array)
    elif kind == "shape":
        arrays[name] = np.ascontiguousarray(array.reshape(-1) if array.ndim > 1 else array[None])
    elif kind == "type":
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays[name] = array.astype(rng.choice(["i8", "f4", "b1", "u1", "f8"]))
    elif kind in ("nan", "huge") and array.size:
        array = array.copy()
        if array.dtype.kind == "f":
            array.flat[rng.randrange(array.size)] = np.nan if kind == "nan" else 1e300
        elif array.dtype.kind == "i":
            array.flat[rng.randrange(array.size)] = rng.choice([-5, 1 << 40, 7])
        arrays[name] = array
    elif kind == "rename":
        arrays["zz"] = arrays.pop(name)
    else:
        arrays[name] = np.zeros(tuple(0 for _ in array.shape), dtype=array.dtype)
    return kind


# -- what becomes of them ----------------------------------------------------------------------


def judge(folder, rows, expected, sealed):
    """Return "refused", "same" or a fault; anything but an error of ours is a fault."""
    started = time.perf_counter()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = load_model(folder).estimator
            found = model.predict_proba(rows)
            if sealed and hasattr(model, "explain"):
                model.explain(rows[:2])
                model.summary()
    except BaldurError:
        return "refused" if time.perf_counter() - started < 10 else "SLOW"
    except Exception as error:
        return f"CRASH {type(error).__name__}: {error}"[:160]
    if time.perf_counter() - started > 10:
        return "SLOW"
    if np.array_equal(found, expected):
        return "same"
    return "other numbers" if sealed else "WRONG PREDICTIONS ACCEPTED"


def run(count, seed, root, models):
    """Judge that many mutations of both kinds; returns counts and the faults with their makers."""
    counts, faults = Counter(), []
    rng = random.Random(seed)
    packed = {}
    for name, (model, rows) in models.items():
        folder = model.save(root / f"model {len(packed)}")
        packed[name] = (contents_of(folder), rows, model.predict_proba(rows))
    target = root / "mutated"
    target.mkdir()
    for i in range(count):
        for kind in (damaged, resealed):
            name = rng.choice(sorted(packed))
            contents, rows, expected = packed[name]
            made, done = kind(contents, rng)
            for old in target.iterdir():
                old.unlink()
            for file, content in made.items():
                (target / file).write_bytes(content)
            said = judge(target, rows, expected, kind is resealed)
            counts[f"{kind.__name__}: {said.split(' ')[0] if said[0].isupper() else said}"] += 1
            if said[0].isupper():
                faults.append((i, name, done, said))
    return counts, faults


def small_models():
    """Models of every kind of part that are quick to fit."""
    from baldur.baselines import BASELINES

    X, y = cohort("two")
    names = ("ranks", "dense, columns", "dense, Grams", "loadings", "mean field")
    models = {name: (fitted(name), rows_for(name)) for name in names}
    models["Ridge logistic"] = (BASELINES["Ridge logistic"].make().fit(X[:N], y[:N]), X[N:])
    return models


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as here:
        found, wrong = run(int(sys.argv[1]), 0, Path(here), small_models())
    for what, times in sorted(found.items()):
        print(f"{times:6,} {what}")
    for fault in wrong[:20]:
        print(*fault, sep=" | ")
