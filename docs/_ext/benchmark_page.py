"""Write the page of benchmarks from the stored results, ``docs/data/benchmarks.json``.

Sentences that repeat stored figures, here and on other pages, are made from them too: a page takes
one by ``{include} ../_generated/NAME.txt``.
"""

import json
from pathlib import Path

from reference_pages import table, write

STORED = Path(__file__).parents[1] / "data" / "benchmarks.json"
UNDECIDED = "differ by less than one shuffle moves them"


def page(stored):
    """Return the page: one section per result, with its date, command and table."""
    parts = ["# Benchmarks", *stored["introduction"]]
    for one in stored["results"]:
        parts += [f"## {one['question']}", answer(one)]
        parts.append(table(one["columns"], one["rows"]))
        commit = f", commit `{one['commit']}`" if one["commit"] else ""
        measured = f"Measured: {one['date']}{commit}. `{one['command']}`. {one['remarks']}"
        parts.append(measured.strip())
    return "\n\n".join(parts)


def answer(one):
    """Return the answer to the question of a result, with the sentences made from its table."""
    if "metric" in one:
        averages = f"Not shown by one shuffle: the averages {UNDECIDED} ({averages_of(one)})."
        return f"{averages} {better_elsewhere(one)} {one['answer']}"
    return one["answer"]


# -- sentences from figures ------------------------------------------------------------------------


def best_of_others(one, row):
    """Return the column and the figure of the best competitor in a row of BALDUR and others."""
    best = max if one["larger"] else min
    return best(zip(one["columns"][2:], row[2:], strict=True), key=lambda pair: float(pair[1]))


def averages_of(one):
    """Return the averages of BALDUR and of the best competitor."""
    row = one["rows"][-1]
    name, value = best_of_others(one, row)
    return f"BALDUR {shown(row[1])}, {name.replace(', ', ' ')} {shown(value)}"


def better_elsewhere(one):
    """Return the sentence on the sets where a competitor is better."""
    sets, sign = one["rows"][:-1], 1 if one["larger"] else -1
    found = []
    for row in sets:
        name, value = best_of_others(one, row)
        if sign * float(value) > sign * float(row[1]):
            where, kind = row[0].split(",")[0], name.split(",")[0]
            found.append(f"*{where}* {shown(value)} with {kind} against {shown(row[1])}")
    size = "larger" if one["larger"] else "smaller"
    return (
        f"A penalised regression had the {size} {one['metric']} on {len(found)} of the "
        f"{len(sets)} sets: {', '.join(found)}."
    )


def shown(value):
    """Return a figure without the zero before its point."""
    return value.removeprefix("0")


def on_real_data(stored):
    """Return the sentences on penalised regression and BALDUR on real data."""
    parts = [one for one in stored["results"] if "metric" in one]
    names = " and ".join(one["metric"] for one in parts)
    averages = "; ".join(f"{one['metric']}: {averages_of(one)}" for one in parts)
    return (
        f"On {len(parts[0]['rows']) - 1} real sets one shuffle does not show that {names} are "
        f"better than those of penalised regression: the averages {UNDECIDED} ({averages}). "
        + " ".join(map(better_elsewhere, parts))
    )


def latent_factors(stored):
    """Return the sentence on how often the number of latent factors was right."""
    (one,) = (one for one in stored["results"] if one["columns"][0] == "labels, true factors")
    counts = []
    for labels, right, *_ in one["rows"]:
        factors = " factors" if labels[-1].isdigit() else ""
        counts.append(f"{right} with {labels.replace(', ', ' labels and ')}{factors}")
    found = f"{', in '.join(counts[:-1])} and in {counts[-1]}".replace(" with", " cohorts with", 1)
    return f"In simulations the number of shared factors was right in {found}."


SENTENCES = {"on_real_data": on_real_data, "latent_factors": latent_factors}
"""Sentences for other pages, by the name of the file that has them."""


def write_page(app, config):
    """Write the page and the sentences before Sphinx looks for them."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    write("benchmarks.md", page(stored))
    for name, sentence in SENTENCES.items():
        write(f"{name}.txt", sentence(stored) + "\n")


def setup(app):
    """Write the page before Sphinx looks for it."""
    app.connect("config-inited", write_page)
    return {"parallel_read_safe": True}
