"""Model folders: manifests, states, arrays and places that a stranger could send."""

import json
import os
import shutil
import socket
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from robustness.hostile.base import CANARY, Case


@cache
def good():
    """A small saved model, which lives as long as the process."""
    from baldur.datasets import make_multiview
    from baldur.paper import PaperClassifier

    sim = make_multiview(40, {"a": 3, "b": 4}, random_state=0)
    place = Path(tempfile.mkdtemp(prefix="baldur-hostile-"))
    model = PaperClassifier(sparsity=0.5, max_iter=5).fit(sim.data, sim.target)
    return model.save(place / "model")


def folder_with(change, **sealed):
    """Copy the model and let `change(folder, outside)` spoil it."""

    def make(folder, outside):
        target = folder / "model"
        shutil.copytree(good(), target)
        change(target, outside)
        return target

    return make


def resealed(change):
    """Change the state tree, with right checksums."""

    def act(folder, outside):
        from saving.forging import read_tree, reseal

        tree = read_tree(folder)
        change(tree)
        reseal(folder, tree)

    return folder_with(act)


def written(name, content):
    """Replace a file, with right checksums where the manifest stays."""

    def act(folder, outside):
        from saving.forging import reseal

        made = content((folder / name).read_bytes()) if callable(content) else content
        (folder / name).write_bytes(made)
        if name != "manifest.json":
            reseal(folder)

    return folder_with(act)


def manifest(**changes):
    def act(folder, outside):
        from saving.forging import reseal

        reseal(folder, **changes)

    return folder_with(act)


def replaced(name, make):
    """Put something that is not a plain file in place of a file."""

    def act(folder, outside):
        (folder / name).unlink()
        make(folder / name, outside)

    return folder_with(act)


def outside_link(path, outside):
    secret = outside / path.name
    shutil.copy(good() / path.name, secret)
    path.symlink_to(secret)


def a_socket(path, outside):
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def sparse_file(size):
    return lambda path, outside: (path.touch(), os.truncate(path, size))


def left_over(name):
    """What an interrupted save, or a stranger, leaves beside a model."""

    def act(folder, outside):
        (outside / "mine").mkdir()
        (outside / "mine" / "file").write_text(CANARY)
        (folder / name).symlink_to(outside / "mine")

    return folder_with(act)


def array_header(change):
    def content(raw):
        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + size])
        made = change(header)
        text = made if isinstance(made, bytes) else json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + raw[8 + size :]

    return written("arrays.safetensors", content)


def first(header):
    return header[min(header)]


def every_flag(raw):
    """Truth values of 255 in place of 1."""
    size = int.from_bytes(raw[:8], "little")
    made = bytearray(raw)
    for one in json.loads(raw[8 : 8 + size]).values():
        if one["dtype"] == "BOOL":
            begin, end = (8 + size + at for at in one["data_offsets"])
            made[begin:end] = b"\xff" * (end - begin)
    return bytes(made)


def put(path, value):
    def change(tree):
        *way, last = path.split(".")
        for step in way:
            tree = tree[step]
        tree[last] = value(tree.get(last)) if callable(value) else value

    return resealed(change)


def nested(depth):
    made = 1
    for _ in range(depth):
        made = [made]
    return made


FILES = ("manifest.json", "state.json", "arrays.safetensors", "card.json", "score.py")
JSON = {
    "numbers of 5,000 digits": lambda raw: raw.replace(b'"kind"', b'"x":' + b"9" * 5000 + b',"kind"', 1),
    "a number of 400 digits": lambda raw: raw.replace(b'"kind"', b'"x":' + b"9" * 400 + b',"kind"', 1),
    "a number too small": lambda raw: raw.replace(b'"kind"', b'"x":1e-99999,"kind"', 1),
    "half of a character": lambda raw: raw.replace(b'"kind"', b'"\\ud800":1,"kind"', 1),
    "a mark of order": lambda raw: b"\xef\xbb\xbf" + raw,
    "UTF-16": lambda raw: raw.decode().encode("utf-16"),
    "a million empty lists": lambda raw: b'{"x":[' + b"[]," * 900_000 + b"[]]}",
    "a million keys": lambda raw: b"{" + b",".join(b'"%d":0' % i for i in range(900_000)) + b"}",
    "a text of 50 MB": lambda raw: b'{"x":"' + b"x" * 50_000_000 + b'"}',
    "lists within lists": lambda raw: b"[" * 1_000_000,
    "a list": lambda raw: b"[]",
    "nothing": lambda raw: b"",
    "null": lambda raw: b"null",
}  # fmt: skip

CASES = {
    **{f"link at {name}": Case(replaced(name, outside_link), "model") for name in FILES},
    **{f"pipe at {name}": Case(replaced(name, lambda p, o: os.mkfifo(p)), "model") for name in FILES[:3]},
    **{f"folder at {name}": Case(replaced(name, lambda p, o: p.mkdir()), "model") for name in FILES[:3]},
    "socket at state.json": Case(replaced("state.json", a_socket), "model"),
    "device at arrays.safetensors": Case(replaced("arrays.safetensors", lambda p, o: p.symlink_to("/dev/zero")), "model"),
    "arrays of 200 GB that take no room": Case(replaced("arrays.safetensors", sparse_file(200 << 30)), "model"),
    "a state of 200 GB that takes no room": Case(replaced("state.json", sparse_file(200 << 30)), "model"),
    "a card of 60 MB": Case(replaced("card.json", sparse_file(60 << 20)), "model"),
    **{f"a link {name} to a folder": Case(left_over(name), "model", read=True)
       for name in (".new", ".moving", ".stage", f".{'0' * 32}.part", "state-2.json")},
    **{f"state: {name}": Case(written("state.json", content), "model") for name, content in JSON.items()},
    **{f"manifest: {name}": Case(written("manifest.json", lambda raw, c=content: c(raw.replace(b'"format"', b'"kind"', 1))), "model")
       for name, content in JSON.items()},
    "manifest: schema of 400 digits": Case(manifest(schema=10**400), "model"),
    "manifest: a schema that is true": Case(manifest(schema=True), "model"),
    "manifest: files elsewhere": Case(manifest(data_files=["../outside/a", "/etc/passwd"]), "model"),
    "manifest: files of the other place": Case(manifest(data_files=["state-2.json", "arrays-2.safetensors"]), "model"),
    "manifest: versions of text": Case(manifest(schema=99, versions="\x1b[2J"), "model"),
    "manifest: deep details": Case(manifest(details=nested(900)), "model", read=True),
    "manifest: another fingerprint": Case(manifest(fingerprint=[1]), "model"),
    "manifest: no views": Case(manifest(views=None), "model"),
    "arrays: a type that is none": Case(array_header(lambda h: first(h).update(dtype="F999")), "model"),
    "arrays: a shape without end": Case(array_header(lambda h: first(h).update(shape=[1] * 100_000)), "model"),
    "arrays: a shape below 0": Case(array_header(lambda h: first(h).update(shape=[-1, -1])), "model"),
    "arrays: a shape of text": Case(array_header(lambda h: first(h).update(shape="3")), "model"),
    "arrays: offsets of 2**63": Case(array_header(lambda h: first(h).update(data_offsets=[2**63, 2**64])), "model"),
    "arrays: 100,000 empty ones": Case(array_header(lambda h: h.update(
        {f"b{i}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for i in range(100_000)})), "model"),
    "arrays: sides of nothing": Case(array_header(lambda h: h.update(
        {"b": {"dtype": "U8", "shape": [2**39, 0], "data_offsets": [0, 0]}})), "model"),
    "arrays: a header of blanks": Case(array_header(lambda h: b" " * 5_000_000 + b"{}"), "model"),
    "arrays: metadata": Case(array_header(lambda h: h.update({"__metadata__": {"a": "b"}})), "model"),
    "arrays: truth values of 255": Case(written("arrays.safetensors", every_flag), "model"),
    "features by the million": Case(put("estimator.preparation.n_features", lambda v: {**v, "a": 10_000_000}), "model"),
    "views of a slice without end": Case(put("estimator.settings.views", {"kind": "mapping", "entries": [
        ["a", {"kind": "slice", "ends": [0, 2**60, 1]}]]}), "model", read=True),
    "workers by the million": Case(put("estimator.settings.n_jobs", 10**9), "model"),
    "keys within keys": Case(put("estimator.settings.views", {"kind": "mapping", "entries": [
        [{"kind": "tuple", "items": [{"kind": "tuple", "items": []}] * 50_000}, 1]]}), "model", read=True),
    "a table of 2**31 rows": Case(put("estimator.fitted.feature_info_", {"a": {
        "kind": "table", "rows": 2**31, "columns": [], "data": [], "index": None, "index_name": None, "attrs": {}}}),
        "model", read=True),
    "a table with a zone of another file": Case(put("estimator.fitted.feature_info_", {"a": {
        "kind": "table", "rows": 3, "columns": ["t"], "data": [
            {"kind": "times", "values": np.zeros(3, "i8"), "unit": "s", "zone": "../../../etc/passwd"}],
        "index": None, "index_name": None, "attrs": {}}}), "model"),
    "details of a million records": Case(put("details", {"x": [{"a": 1}] * 300_000}), "model", read=True),
    "history of a million records": Case(put("estimator.fitted.history_", [{"a": 1}] * 300_000), "model", read=True),
    "steps by the thousand": Case(put("estimator.preparation.steps", lambda v: [{"kind": "step"}] * 100_000), "model"),
}  # fmt: skip
