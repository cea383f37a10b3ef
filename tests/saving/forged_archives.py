"""Forged baselines: arrays and numbers changed inside of a skops archive, all checksums right.

Each is loaded and asked in a process of its own, since compiled code could crash on it.
``python tests/saving/forged_archives.py 500`` prints what became of so many.
"""

import io
import json
import os
import random
import signal
import sys
import warnings
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from baldur.baselines import BASELINES
from baldur.evaluation import SideBySide
from baldur.saving import SavedModel
from baldur.saving.state_tree import pack_tree, unpack_tree
from saving.forging import WHOLE, forged_array, judge
from saving.models import N, cohort

SECONDS = 20
QUICK = {
    "RF": {"n_estimators": 3},
    "Boosted trees": {"max_iter": 3},
    "PB-MVBoost": {"n_rounds": 3},
    "CPM-Nets": {"max_iter": 5},
}
"""Settings that make a fit quick."""


CLASSIFIERS = [name for name, entry in BASELINES.items() if entry.classifier is not None]
NAMES = (*(name for name in CLASSIFIERS if name != "SGP+ARD"), "SVC", "logistic")
"""Those that need torch are left out, because torch does not survive a fork."""


@cache
def state(name):
    """The state of a fitted baseline, as it is read from files, and new rows for it."""
    X, y = cohort("two")
    if name == "SVC":
        model = SideBySide(SVC())
    elif name == "logistic":
        model = SideBySide(LogisticRegression())
    else:
        model = BASELINES[name].make()
        settings = QUICK.get(name, {})
        model.set_params(**{k: v for k, v in settings.items() if k in model.get_params()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        saved = SavedModel.alone(model.fit(X[:N], y[:N]))
    return unpack_tree(*pack_tree(saved.to_state())), X[N:]


def forge(content, rng):
    """Change one to three members of an archive; returns it, and what was done."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in members if name.endswith(".npy")]
    loaded = [np.load(io.BytesIO(members[name]), allow_pickle=False) for name in arrays]
    done = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        if arrays and rng.random() < 0.6:
            at = rng.randrange(len(arrays))
            members[arrays[at]] = packed(forged(loaded[at], loaded, rng))
            done.append(f"{arrays[at]} {loaded[at].dtype} {loaded[at].shape}")
        else:
            schema = json.loads(members["schema.json"])
            done.append(forge_schema(schema, rng))
            members["schema.json"] = json.dumps(schema).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    return made.getvalue(), done


def forged(array, others, rng):
    if array.dtype.names:
        made = array.copy()
        field = rng.choice(array.dtype.names)
        made[field] = np.array(rng.choice([0, 1, 2, 3, 100, 2**30, 200])).astype(made[field].dtype)
        return made
    if array.dtype == bool and rng.random() < 0.5:
        # Neither true nor false.
        return np.full(array.shape, 255, np.uint8).view(bool)
    plain = [one for one in others if not one.dtype.names]
    return np.asarray(forged_array(array, plain, rng))


def packed(array):
    made = io.BytesIO()
    np.save(made, array, allow_pickle=False)
    return made.getvalue()


def forge_schema(schema, rng):
    """Change one number or text of the description, or take one entry away."""
    found, left = [], [(schema, ())]
    while left:
        node, path = left.pop()
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in pairs:
            if isinstance(value, (dict, list)):
                left.append((value, (*path, key)))
            number = isinstance(node, dict) and node.get("is_json") and key == "content"
            entry = isinstance(node, dict) and "__class__" not in node and rng.random() < 0.1
            if number or entry:
                found.append((node, key, (*path, key)))
    node, key, path = rng.choice(found)
    if node.get("is_json"):
        options = [*WHOLE, 10**6, 1e300, "NaN", "-Infinity", "null", "true", '"x"', "[]"]
        # Equal numbers have one id, of which the first would count.
        node |= {key: str(rng.choice(options)), "__id__": f"forged {rng.random()}"}
    else:
        del node[key]
    return ".".join(map(str, path[-4:]))


def judge_apart(state, rows):
    """Judge a state in a process of its own; a crash is a fault."""
    end, start = os.pipe()
    number = os.fork()
    if number == 0:
        os.close(end)
        signal.alarm(SECONDS)
        said = judge(state, rows)
        os.write(start, said.encode()[:4000])
        os._exit(0)
    os.close(start)
    with os.fdopen(end) as answer:
        said = answer.read()
    _, status = os.waitpid(number, 0)
    return said or f"KILLED by {signal.Signals(os.WTERMSIG(status)).name}"


def run(count, seed, names=None):
    """Judge that many forgeries; returns counts, and the faults with what made them."""
    counts, faults = Counter(), []
    rng = random.Random(seed)
    for i in range(count):
        name = rng.choice(sorted(names or NAMES))
        good, rows = state(name)
        content, done = forge(good["estimator"]["skops"].tobytes(), rng)
        archive = np.frombuffer(content, dtype=np.uint8)
        said = judge_apart({**good, "estimator": {**good["estimator"], "skops": archive}}, rows)
        counts[said if said[0].islower() else said.split()[0]] += 1
        if said[0].isupper():
            faults.append((i, name, done, said))
    return counts, faults


if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found, wrong = run(int(sys.argv[1]), seed, sys.argv[3:] or None)
    for what, times in sorted(found.items()):
        print(f"{times:6,} {what}")
    for fault in wrong[:40]:
        print(*fault, sep=" | ")
