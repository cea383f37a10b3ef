"""Damaged results folders, made from a sound one: wrong types, missing columns, cut files."""

import json
import shutil

import numpy as np

WRONG = (None, "text", -1, 1.5, 10**30, True, [], {}, [1], ["x", None], {"a": 1}, {"a": [1]})
"""Values of which most do not have the type of an entry of run.json."""
CELLS = ("", "text", "nan", "inf", "-inf", "1e308", "-5", "0.5", "1;2", "=1+1", "\ufffd", "9" * 30)
"""Values that a cell of a table may be replaced by."""


def record_damages(folder):
    """Yield (name, function of a folder) for run.json."""
    text = (folder / "run.json").read_text()
    record = json.loads(text)

    def write(content):
        return lambda place: (place / "run.json").write_bytes(content)

    for key in record:
        for value in WRONG:
            if record[key] != value or type(record[key]) is not type(value):
                changed = json.dumps({**record, key: value}).encode()
                yield f"run.json {key} = {str(value)[:20]!r}", write(changed)
        less = {k: v for k, v in record.items() if k != key}
        yield f"run.json without {key}", write(json.dumps(less).encode())
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        yield f"run.json cut at {share}", write(text[: int(share * len(text))].encode())
    yield "run.json is a list", write(b"[1, 2]")
    yield "run.json is nested", write(b'{"schema": ' + b"[" * 100_000)
    yield "run.json is binary", write(bytes(range(256)))
    yield "run.json is gone", lambda place: (place / "run.json").unlink()
    for field in ("name", "features", "people"):
        for value in WRONG:
            views = [{**record["views"][0], field: value}, *record["views"][1:]]
            changed = json.dumps({**record, "views": views}).encode()
            yield f"run.json views {field} = {str(value)[:20]!r}", write(changed)


def table_damages(folder, rng):
    """Yield (name, function of a folder) for every table, with random places drawn anew."""
    for file in sorted(folder.glob("*.csv")):
        yield from _of_one_table(file.name, rng)


def _of_one_table(name, rng):
    def lines_changed(change):
        def damage(place):
            lines = (place / name).read_text().splitlines(keepends=True)
            (place / name).write_text("".join(change(lines)))

        return damage

    def cells_changed(change):
        def one(lines):
            cells = [line.rstrip("\n").split(",") for line in lines]
            return [",".join(row) + "\n" for row in change(cells)]

        return lines_changed(one)

    def cut(place):
        content = (place / name).read_bytes()
        (place / name).write_bytes(content[: rng.integers(1, len(content))])

    def drop_column(rows):
        at = rng.integers(len(rows[0]))
        return [row[:at] + row[at + 1 :] for row in rows]

    def set_cell(rows):
        row = rows[rng.integers(1, len(rows))] if len(rows) > 1 else rows[0]
        row[rng.integers(len(row))] = str(rng.choice(CELLS))
        return rows

    def set_column(rows):
        at, value = rng.integers(len(rows[0])), str(rng.choice(CELLS))
        return [rows[0]] + [[*row[:at], value, *row[at + 1 :]] for row in rows[1:]]

    def swap(rows):
        a, b = rng.integers(len(rows[0]), size=2)
        for row in rows:
            if max(a, b) < len(row):
                row[a], row[b] = row[b], row[a]
        return rows

    def to_folder(place):
        (place / name).unlink()
        (place / name).mkdir()

    def other_table(place):
        others = sorted(p.name for p in place.glob("*.csv") if p.name != name)
        shutil.copy(place / str(rng.choice(others)), place / name)

    yield f"{name} is gone", lambda place: (place / name).unlink()
    yield f"{name} is empty", lambda place: (place / name).write_bytes(b"")
    yield f"{name} is a folder", to_folder
    yield f"{name} is binary", lambda place: (place / name).write_bytes(rng.bytes(2000))
    yield f"{name} is another table", other_table
    yield f"{name} has its heading alone", lines_changed(lambda lines: lines[:1])
    yield f"{name} has no heading", lines_changed(lambda lines: lines[1:])
    yield (
        f"{name} has every row twice",
        lines_changed(lambda lines: lines[:1] + [line for line in lines[1:] for _ in range(2)]),
    )
    yield (
        f"{name} lacks rows",
        lines_changed(lambda lines: lines[:1] + [x for x in lines[1:] if rng.random() < 0.6]),
    )
    yield f"{name} is cut at a line", lines_changed(lambda lines: lines[: 1 + len(lines) // 2])
    yield f"{name} has a long row", lines_changed(lambda lines: [*lines, "1,2,3" * 40 + "\n"])
    for i in range(3):
        yield f"{name} is cut ({i})", cut
        yield f"{name} lacks a column ({i})", cells_changed(drop_column)
        yield f"{name} has a wrong cell ({i})", cells_changed(set_cell)
        yield f"{name} has a wrong column ({i})", cells_changed(set_column)
        yield f"{name} has columns exchanged ({i})", cells_changed(swap)


def damaged_folders(folder, place, count, seed=0):
    """Yield (name, folder) for so many damages, each in a fresh copy of a sound folder."""
    rng = np.random.default_rng(seed)
    every = [*record_damages(folder), *table_damages(folder, rng)]
    chosen = rng.permutation(len(every))
    for i in range(count):
        name, damage = every[chosen[i % len(every)]]
        shutil.copytree(folder, place, ignore=shutil.ignore_patterns("report.html"))
        damage(place)
        yield name, place
        shutil.rmtree(place)
