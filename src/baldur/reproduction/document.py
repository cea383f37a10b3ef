"""A page as blocks, and its two forms: one HTML file that loads nothing, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from baldur.report.page import asset
from baldur.report.pictures import Picture


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and a second line in smaller letters."""

    text: str
    small: str = ""


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


@dataclass(frozen=True)
class Finding:
    """A statement with its outcome, the figures behind it, and a remark."""

    text: str
    outcome: str
    figures: str
    remark: str = ""
    level: str = "note"  # "care", "serious"}; How the entry is marked in HTML


@dataclass(frozen=True)
class Findings:
    """A list of findings."""

    entries: Sequence[Finding]


Block = str | Table | Figure | Findings | list[str]


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs (text), lists of items, tables and figures below it."""

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
    links = "".join(f'<li><a href="#{s.id}">{escape(s.heading)}</a></li>' for s in page.sections)
    body = "\n".join(
        f'<section id="{s.id}"><h2>{escape(s.heading)}</h2>\n'
        + "\n".join(_html_block(block) for block in s.blocks)
        + "\n</section>"
        for s in page.sections
    )
    lead = "\n".join(f'<p class="lead">{_inline(text)}</p>' for text in page.lead)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="{escape(generator)}">
<link rel="icon" href="data:,">
<title>{escape(page.title)}</title>
<style>
{asset("style.css")}
header nav {{ position: static; }}
nav ul {{ flex-wrap: wrap; }}
</style>
</head>
<body>
<header>
<div class="top"><h1>{escape(page.title)}</h1></div>
{lead}
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main>
{body}
</main>
<footer><p class="quiet">{escape(generator)}</p></footer>
</body>
</html>
"""


def _text(text: str) -> str:
    """Return escaped text, in which no line breaks before a sign of per cent."""
    return escape(text).replace(" %", "&nbsp;%")


def _inline(text: str) -> str:
    return re.sub("`([^`]+)`", r"<code>\1</code>", _text(text))


def _html_block(block: Block) -> str:
    if isinstance(block, str):
        return f"<p>{_inline(block)}</p>"
    if isinstance(block, list):
        return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in block) + "</ul>"
    if isinstance(block, Table):
        return _html_table(block)
    if isinstance(block, Findings):
        return f'<ul class="checks">{"".join(map(_html_finding, block.entries))}</ul>'
    picture = block.picture
    drawn = (
        f'<div class="drawing" role="img" aria-label="{escape(picture.alt)}">{picture.svg}</div>'
        if picture.svg
        else f'<img src="{picture.image}" alt="{escape(picture.alt)}">'
    )
    return (
        f'<div class="figures"><figure class="wide"><figcaption>{escape(picture.caption)}'
        f"</figcaption>{drawn}</figure></div>"
    )


def _html_finding(one: Finding) -> str:
    remark = f' <span class="quiet">{_text(one.remark)}</span>' if one.remark else ""
    return (
        f'<li class="{one.level}"><strong>{_text(one.text)}</strong> '
        f'<span class="level">{escape(one.outcome)}.</span> {_text(one.figures)}{remark}</li>\n'
    )


def _html_table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in table.columns)
    rows = "\n".join(
        "<tr>" + "".join(f"<td{_kind(c)}>{_html_cell(c)}</td>" for c in row) + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.caption)}">'
        f"<table><caption>{_text(table.caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _kind(cell: Cell | str) -> str:
    text = cell if isinstance(cell, str) else cell.text
    # Sentences need a wide column, numbers do not.
    return ' class="text"' if len(text) > 60 else ""


def _html_cell(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return _text(cell)
    return _text(cell.text) + (f" <small>{_text(cell.small)}</small>" if cell.small else "")


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
        return "\n".join(f"- {item}" for item in block)
    if isinstance(block, Table):
        rows = [block.columns, ["---"] * len(block.columns), *block.rows]
        lines = ("| " + " | ".join(_markdown_cell(c) for c in row) + " |" for row in rows)
        return f"{block.caption}\n\n" + "\n".join(lines)
    if isinstance(block, Findings):
        return "\n".join(
            f"- {one.text} **{one.outcome[0].upper()}{one.outcome[1:]}.** {one.figures} "
            f"{one.remark}".rstrip()
            for one in block.entries
        )
    # A bracket or a star would end the text before it is complete.
    alt = re.sub(r"([\[\]])", r"\\\1", block.picture.alt)
    caption = block.picture.caption.replace("*", r"\*")
    return f"![{alt}]({block.file})\n\n*{caption}*"


def _markdown_cell(cell: Cell | str) -> str:
    if isinstance(cell, str):
        text = cell
    else:
        text = cell.text + (f" ({cell.small})" if cell.small else "")
    return text.replace("|", "\\|")
