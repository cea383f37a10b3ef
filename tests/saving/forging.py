"""Forged models: what somebody would write who knows the format, all checksums right.

``python tests/saving/forging.py 2000`` prints what became of so many.
"""

import copy
import json
import random
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from baldur.core.state import read_state, write_state
from baldur.exceptions import BaldurError
from baldur.saving import SavedModel
from baldur.saving.folder import describe
from baldur.saving.folder_files import STATE_BYTES, identity_of
from baldur.saving.state_files import (
    checksum,
    pack_arrays,
    pack_tree,
    read_json,
    unpack_arrays,
    unpack_tree,
    write_json,
)


def read_tree(folder):
    """The state tree of a folder."""
    state = read_json((folder / "state.json").read_bytes(), STATE_BYTES)
    return unpack_tree(state, unpack_arrays((folder / "arrays.safetensors").read_bytes()))


def reseal(folder, tree=None, **changes):
    """Write another state and manifest into a folder, with right checksums throughout."""
    manifest = json.loads((folder / "manifest.json").read_text())
    if tree is not None:
        value, arrays = pack_tree(tree)
        (folder / "state.json").write_bytes(write_json(value))
        (folder / "arrays.safetensors").write_bytes(pack_arrays(arrays))
    manifest |= changes
    names = {"state": "state.json", "arrays": "arrays.safetensors"}
    manifest["checksums"] = {
        part: checksum((folder / names.get(part, part)).read_bytes())
        for part in manifest["checksums"]
    }
    manifest["identity"] = identity_of(manifest)
    (folder / "manifest.json").write_bytes(write_json(manifest, indent=1))


# -- changes -------------------------------------------------------------------------------------

FLOATS = [
    np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1.0, 2.0, 1e300, -1e300, 1e-300, 1e140, -1e140, 1e16,
    -1e8, 0.5, 1e-12,
]  # fmt: skip
WHOLE = [0, -1, 1, 2, 5, 255, 2**31, 2**40, -(2**40)]


def leaves(tree, path=()):
    """Every (container, key, path) of a tree that holds no list or dictionary."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in pairs:
        if isinstance(value, (dict, list)):
            yield from leaves(value, (*path, key))
        else:
            yield tree, key, (*path, key)


def forge(tree, rng, places=None):
    """Change one to three values of a tree, in place, and return what was done."""
    done = []
    found = [leaf for leaf in leaves(tree) if places is None or leaf[2] in places]
    arrays = [leaf for leaf in found if isinstance(leaf[0][leaf[1]], np.ndarray)]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        # Arrays are what predictions come from; there are more plain values.
        container, key, path = rng.choice(arrays if rng.random() < 0.8 else found)
        value = container[key]
        container[key] = forged_value(value, [a[0][a[1]] for a in arrays], rng)
        done.append(".".join(map(str, path)))
    return done


def forged_value(value, arrays, rng):
    if isinstance(value, np.ndarray):
        return forged_array(value, arrays, rng)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice(WHOLE)
    if isinstance(value, float):
        return float(rng.choice(FLOATS))
    if isinstance(value, str):
        return rng.choice(["", "other", "\x1b[31m", "x" * 1000])
    return rng.choice([0, "x", [], {}, None])


def forged_array(array, arrays, rng):
    kind = rng.choice(
        ["one", "one", "all", "some", "times", "reverse", "exchange", "shape", "type"]
    )
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = array.copy()
        if kind == "exchange":
            alike = [a for a in arrays if a.dtype.kind == array.dtype.kind]
            same = [a for a in alike if a.shape == array.shape]
            return rng.choice(same if same and rng.random() < 0.8 else alike).copy()
        if kind == "shape":
            return rng.choice([made[:-1] if made.ndim else made, made.ravel(), made[None], made.T])
        if kind == "type":
            return made.astype(
                rng.choice(["f4", "i8", "b1", "U4"] if made.dtype.kind in "biuf" else ["U1"])
            )
        if kind == "reverse" or made.dtype.kind in "UO" or not made.size:
            return np.ascontiguousarray(np.flip(made))
        if made.dtype.kind == "b":
            return ~made
        if kind == "times":
            return (made * rng.choice([-1, 0, 1e3, 1e-3, 1e100, 1e-100, 2])).astype(made.dtype)
        new = rng.choice(FLOATS if made.dtype.kind == "f" else WHOLE)
        at = {
            "one": [rng.randrange(made.size)],
            "all": range(made.size),
            "some": [i for i in range(made.size) if rng.random() < 0.5],
        }[kind]
        for i in at:
            made.flat[i] = np.array(new).astype(made.dtype)
        return made


# -- what becomes of them ------------------------------------------------------------------------


def judge(tree, rows):
    """Return "refused", "sound" or a fault; anything but an error of ours is a fault."""
    started = time.process_time()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = read_state(tree, SavedModel)
            describe(model)
            said = wrong_answer(model.estimator, rows)
    except BaldurError as error:
        said = "refused" if len(str(error).splitlines()) == 1 else f"LINES {error}"
    except Exception as error:
        said = f"CRASH {type(error).__name__}: {error}"[:200]
    return "SLOW" if time.process_time() - started > 10 else said


def wrong_answer(model, rows):
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(rows)
        if not (np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()):
            return f"PROBABILITIES from {np.min(p)} to {np.max(p)}"
        if getattr(model, "_task", "binary") != "multilabel" and not np.allclose(p.sum(1), 1):
            return "SUM of probabilities is not 1"
    elif hasattr(model, "decision_function"):
        if not np.isfinite(model.decision_function(rows)).all():
            return "SCORES are not finite"
    elif not np.isfinite(model.predict(rows)).all():
        return "PREDICTIONS are not finite"
    model.predict(rows)
    if hasattr(model, "explain"):
        model.explain(rows[:2])
        str(model.summary())
    return "sound"


def run(count, seed, models):
    """Judge that many forgeries of models; returns counts, and the faults with their makers."""
    counts, faults = Counter(), []
    rng = random.Random(seed)
    trees = {}
    for name, (model, rows) in models.items():
        saved = model if isinstance(model, SavedModel) else SavedModel.alone(model)
        value, arrays = pack_tree(write_state(saved))
        trees[name] = (unpack_tree(value, arrays), rows)
    for i in range(count):
        name = rng.choice(sorted(trees))
        tree, rows = trees[name]
        tree = copy.deepcopy(tree)
        done = forge(tree, rng)
        said = judge(tree, rows)
        counts[said if said[0].islower() else said.split()[0]] += 1
        if said[0].isupper():
            faults.append((i, name, done, said))
    return counts, faults


REAL = (
    "auto", "words", "everything kept", "ranks", "dense, Grams", "genotypes", "three classes",
    "factors", "labels", "numbers", "mean field, words", "mean field, three",
    "mean field, labels", "mean field, numbers",
)  # fmt: skip
"""Models that have every kind of part."""


def real_models():
    """The models above, and one behind every step of a preparation, with new rows for each."""
    from saving.models import fitted, prepared, rows_for

    return {**{name: (fitted(name), rows_for(name)) for name in REAL}, "prepared": prepared()}


if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found, wrong = run(int(sys.argv[1]), seed, real_models())
    for what, times in sorted(found.items()):
        print(f"{times:6,} {what}")
    for fault in wrong[:40]:
        print(*fault, sep=" | ")
