"""Draw random sentences from messages, documentation and docstrings, to be read without context.

Usage: ``python docs/draw_sentences.py SEED [--count 10]``. A sentence is clear if a statistician or
engineer who does not know the project understands what it says, or what to do. Rewrite the others.
"""

import argparse
import ast
import random
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "baldur").rglob("*.py"))
PAGES = sorted((ROOT / "docs").rglob("*.md")) + [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")
]
SHORTEST = 3  # words: shorter pieces are headings or names, not sentences


def sentences(text):
    """Split text at full stops, colons of lists left alone, and drop what is too short."""
    text = re.sub(r"\s+", " ", text).strip()
    parts = re.split(r"(?<=[.!?])\s+(?=[A-Z`'{*])", text)
    return [part for part in parts if len(part.split()) >= SHORTEST]


def literal(node):
    """Return the text of a string or f-string, its values as ``{expression}``, or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (
            literal(part) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
            for part in node.values
        )
        return "".join(parts)
    return None


def is_message(call):
    """Tell whether a call makes an exception, a warning, or a problem in a study file."""
    name = ast.unparse(call.func).rsplit(".", 1)[-1]
    return name.endswith(("Error", "warn", "problem", "fault"))


def messages(tree):
    """Yield texts passed to exceptions and warnings, and the ``help`` of command-line options."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        texts = call.args if is_message(call) else []
        helps = [keyword.value for keyword in call.keywords if keyword.arg == "help"]
        yield from filter(None, map(literal, [*texts, *helps]))


def docstrings(tree):
    """Yield the first paragraph of each docstring, after the name of what it documents."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in (node for node in ast.walk(tree) if isinstance(node, documented)):
        if text := ast.get_docstring(node):
            yield f"({getattr(node, 'name', 'module')}) " + text.split("\n\n")[0]


def prose(page):
    """Return the paragraphs and list entries of a page, without code, tables and headings."""
    text = re.sub(r"```.*?```|\$\$.*?\$\$", "", page.read_text("utf-8"), flags=re.DOTALL)
    text = re.sub(r"^(#.*|\|.*|!\[.*)$", "", text, flags=re.MULTILINE)
    return re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", text)


def main():
    """Print the drawn sentences of each kind, with the file that each comes from."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=10, help="sentences of each kind")
    given = parser.parse_args()
    trees = [(path, ast.parse(path.read_text("utf-8"))) for path in SOURCES]
    found = {
        "messages": [(path, text) for path, tree in trees for text in messages(tree)],
        "docs": [(path, text) for path in PAGES for text in prose(path)],
        "docstrings": [(path, text) for path, tree in trees for text in docstrings(tree)],
    }
    draw = random.Random(given.seed)
    for kind, texts in found.items():
        every = [(path, one) for path, text in texts for one in sentences(text)]
        print(f"\n{kind}: {given.count} of {len(every)}")
        for path, one in draw.sample(every, min(given.count, len(every))):
            print(f"- {one}\n    [{path.relative_to(ROOT)}]")


if __name__ == "__main__":
    main()
