"""A page as blocks, and its two forms: one HTML file that loads nothing, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from baldur.report.formatting import Cell
from baldur.report.page import asset, template
from baldur.report.pictures import Picture
from baldur.reproduction.evidence import Claim


@dataclass(frozen=True)
class Table:
    """A table: its caption, headings and rows."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]


@dataclass(frozen=True)
class Figure:
    """A figure: as it is embedded in HTML, and the file that Markdown links."""

    picture: Picture
    file: str


Block = str | Table | Figure | list[Claim] | list[str]


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs (text), lists of items or claims, tables and figures below it."""

    heading: str
    blocks: Sequence[Block]

    @property
    def id(self) -> str:
        """The anchor of the section."""
        return self.heading.lower().replace(" ", "-").replace("'", "").replace(",", "")


@dataclass(frozen=True)
class Document:
    """A page: title, the paragraphs below it, and sections.

    Texts are plain; what stands between backticks is code.
    """

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]


def html_of(page: Document, generator: str) -> str:
    """Return a page as one HTML file, in the style of the report."""
    made = template("reproduction.html.j2", text=_text, inline=_inline)
    return str(made.render(page=page, generator=generator, style=asset("style.css"))) + "\n"


def _text(text: str) -> str:
    """Return escaped text, in which no line breaks before a sign of per cent."""
    return escape(text).replace(" %", "&nbsp;%")


def _inline(text: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", _text(text))


def markdown_of(page: Document, note: str) -> str:
    """Return a page as Markdown; figures are links to their files."""
    parts = [f"# {page.title}", *page.lead]
    for section in page.sections:
        parts.append(f"## {section.heading}")
        parts += [_markdown_block(block) for block in section.blocks]
    return "\n\n".join([*parts, note]) + "\n"


def _markdown_block(block: Block) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, list):
        return "\n".join(f"- {_markdown_item(item)}" for item in block)
    if isinstance(block, Table):
        rows: list[Any] = [block.columns, ["---"] * len(block.columns), *block.rows]
        lines = ("| " + " | ".join(_markdown_cell(c) for c in row) + " |" for row in rows)
        return f"{block.caption}\n\n" + "\n".join(lines)
    # A bracket or a star would end the text before it is complete.
    alt = re.sub(r"([\[\]])", r"\\\1", block.picture.alt)
    caption = block.picture.caption.replace("*", r"\*")
    return f"![{alt}]({block.file})\n\n*{caption}*"


def _markdown_item(item: Claim | str) -> str:
    if isinstance(item, str):
        return item
    verdict = item.verdict
    outcome = f"{verdict.outcome[0].upper()}{verdict.outcome[1:]}"
    return f"{item.text} **{outcome}.** {verdict.figures} {verdict.why}".rstrip()


def _markdown_cell(cell: Cell | str) -> str:
    text = cell if isinstance(cell, str) else cell.text
    small = "" if isinstance(cell, str) or not cell.small else f" ({cell.small})"
    return f"{text}{small}".replace("|", "\\|")
