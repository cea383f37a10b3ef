"""Write the page of benchmarks from the stored results, ``docs/data/benchmarks.json``."""

import json
from pathlib import Path

from reference_pages import table, write

STORED = Path(__file__).parents[1] / "data" / "benchmarks.json"


def page(stored):
    """Return the page: one section per result, with its date, command and table."""
    parts = ["# Benchmarks", *stored["introduction"]]
    for one in stored["results"]:
        parts += [f"## {one['question']}", one["answer"]]
        parts.append(table(one["columns"], one["rows"]))
        commit = f", commit `{one['commit']}`" if one["commit"] else ""
        parts.append(f"Measured: {one['date']}{commit}. `{one['command']}`. {one['remarks']}")
    return "\n\n".join(parts)


def write_page(app, config):
    """Write the page before Sphinx looks for it."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    write("benchmarks.md", page(stored))


def setup(app):
    """Write the page before Sphinx looks for it."""
    app.connect("config-inited", write_page)
    return {"parallel_read_safe": True}
