"""Draw the import graph of the package into the architecture page.

``python docs/draw_import_graph.py`` (or ``make graph``) reads the imports of every module, writes
``docs/images/import_graph.svg`` and replaces the table between the two marks in
``docs/develop/architecture.md``. ``--check`` changes nothing and fails where the page is stale; a
test calls it.

The picture has one row per part of the package, in the order in which data travel, and one arc from
each part to every part that it imports and does not already reach through another one.
"""

import argparse
import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "baldur"
PAGE = ROOT / "docs" / "develop" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "import_graph.svg"
BEGIN, END = "<!-- import graph: begin -->", "<!-- import graph: end -->"

ROW, LEFT, BOX = 34, 150, 24
"""Height of a row, width of the column of names, and height of a box, in pixels."""


def import_graph():
    """Return the parts in their order, and for each the parts that it imports."""
    sys.path.insert(0, str(ROOT / "tests"))
    from test_imports import ORDER, between, part_of

    graph = {part: set() for part in ORDER}
    for found in between():
        target = part_of(found.target)
        if target and target != "__init__":
            graph[part_of(found.source)].add(target)
    return {part: sorted(graph[part], key=ORDER.index) for part in ORDER}


def reduced(graph):
    """Return the graph without arcs that another path implies."""
    reach = {}
    for part, below in graph.items():  # parts come after what they import
        reach[part] = set(below).union(*(reach[b] for b in below))
    return {
        part: [b for b in below if not any(b in reach[other] for other in below if other != b)]
        for part, below in graph.items()
    }


def first_sentence(part):
    """Return the first sentence of a part's docstring."""
    file = PACKAGE / f"{part}.py"
    if not file.exists():
        file = PACKAGE / part / "__init__.py"
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def table(graph):
    """Return the parts with what they are for and what they import, as Markdown."""
    lines = ["| part | what it is for | imports |", "| --- | --- | --- |"]
    for part, below in graph.items():
        inside = ", ".join(f"`{b}`" for b in below) or "nothing of the package"
        lines.append(f"| `{part}` | {first_sentence(part)} | {inside} |")
    return "\n".join(lines)


def picture(graph):
    """Return the arcs of the graph as SVG."""
    parts = list(graph)
    arcs = [(parts.index(a), parts.index(b)) for a, below in reduced(graph).items() for b in below]
    longest = max((a - b for a, b in arcs), default=1)
    width, height = LEFT + 40 + 17 * longest, ROW * len(parts) + 10
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-family="sans-serif" font-size="13">',
        "<title>Import graph: every part imports parts above it only</title>",
    ]
    for i, part in enumerate(parts):
        y = ROW * i + 5
        made.append(
            f'<rect x="4" y="{y}" width="{LEFT - 8}" height="{BOX}" rx="4" fill="#eef3f8" '
            f'stroke="#5b7a99"/><text x="14" y="{y + 16}" fill="#1b2a38">{part}</text>'
        )
    for a, b in arcs:
        start, end = ROW * a + 5 + BOX / 2, ROW * b + 5 + BOX / 2
        reach = LEFT + 12 + 22 * (a - b)
        made.append(
            f'<path d="M {LEFT - 4} {start} C {reach} {start}, {reach} {end}, {LEFT} {end}" '
            f'fill="none" stroke="#5b7a99" stroke-width="1.2" opacity="0.75"/>'
            f'<circle cx="{LEFT - 1}" cy="{end}" r="2.6" fill="#1b2a38"/>'
        )
    return "\n".join([*made, "</svg>", ""])


def main():
    """Write the picture and the table, or check that they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail where the page is out of date")
    check = parser.parse_args().check
    graph = import_graph()
    old = PAGE.read_text(encoding="utf-8")
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    files = {
        PAGE: f"{before}{BEGIN}\n\n{table(graph)}\n\n{END}{after}",
        PICTURE: picture(graph),
    }
    stale = [f for f, text in files.items() if not f.exists() or f.read_text("utf-8") != text]
    if check and stale:
        names = ", ".join(str(file.relative_to(ROOT)) for file in stale)
        sys.exit(f"Out of date: {names}. Run 'make graph' and commit the result.")
    for file in [] if check else stale:
        file.write_text(files[file], encoding="utf-8")


if __name__ == "__main__":
    main()
