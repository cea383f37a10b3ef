"""Run the ``{run}`` blocks of a page while the site is built, and show what they print.

A page with such blocks is a notebook: text between blocks becomes a Markdown cell, a block becomes
a cell of code. The notebook is executed once, by a real kernel and in a folder with the data of
``docs/data/ad_csf``; a cell that fails stops the build. What it prints is shown below the block,
and the notebook lies beside the page, with its data, as a zip file.

    ```{run} console
    baldur evaluate study.toml --check
    ```

Languages are ``console`` (commands, one per line), ``python``, and ``file NAME`` for the contents
of a file. Results are kept in ``docs/_generated/run`` until a block or the code of the package
changes.
"""

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import zipfile
from base64 import b64decode
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.parsers.rst import directives
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

DOCS = Path(__file__).parents[1]
DATA = DOCS / "data" / "ad_csf"
GENERATED = DOCS / "_generated" / "run"
SITE = DOCS / "_generated" / "site"
"""Files that are copied to the top of the site as they are."""
BLOCK = re.compile(
    r"^```\{run\} (console|python|file \S+)\n((?::[\w-]+:[^\n]*\n)*)(.*?)^```$", re.M | re.S
)
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r(?!\n)")
LONGEST = 300
"""Seconds that one cell may take; the longest one takes about 30."""

log = logging.getLogger(__name__)


def cells_of(text):
    """Return the cells of a page as (kind, source); kinds are markdown and the languages."""
    found, at = [], 0
    for block in BLOCK.finditer(text):
        found += [("markdown", text[at : block.start()].strip()), (block[1], block[3].strip())]
        at = block.end()
    found.append(("markdown", text[at:].strip()))
    return [cell for cell in found if cell[1]]


def notebook_of(cells):
    """Return a notebook; after a cell of commands comes a cell that fails where a command did."""
    made = nbformat.v4.new_notebook()
    made.metadata["kernelspec"] = {
        "name": "python3", "display_name": "Python 3", "language": "python",
    }  # fmt: skip
    for kind, source in cells:
        if kind == "markdown":
            made.cells.append(nbformat.v4.new_markdown_cell(_plain(source)))
        elif kind == "python":
            made.cells.append(nbformat.v4.new_code_cell(source))
        elif kind.startswith("file "):
            made.cells.append(nbformat.v4.new_code_cell(f"%%writefile {kind[5:]}\n{source}"))
        else:
            lines = "\n".join(f"!{line}" for line in source.splitlines())
            made.cells.append(nbformat.v4.new_code_cell(lines))
            check = nbformat.v4.new_code_cell("assert _exit_code == 0")
            check.metadata["tags"] = ["check"]
            made.cells.append(check)
    return made


def _plain(text):
    """Return Markdown without what only Sphinx understands."""
    text = re.sub(r"^```\{.*?^```$\n?", "", text, flags=re.M | re.S)
    text = re.sub(r"^:::.*$\n?", "", text, flags=re.M)
    text = re.sub(r"\{(\w+)\}`([^`<]+?)(?: <[^`]*>)?`", r"\2", text)
    return re.sub(r"\[([^\]]+)\]\((?!http)[^)]*\)", r"\1", text)


def execute(notebook):
    """Run a notebook in a new folder that holds the data."""
    bin_folder = str(Path(sys.executable).parent)
    environment = os.environ | {
        "PATH": os.pathsep.join([bin_folder, os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join([str(DOCS.parent / "src"), os.environ.get("PYTHONPATH", "")]),
        "COLUMNS": "100",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "TTY_COMPATIBLE": "0",  # no progress bars, although the kernel runs commands in a terminal
    }
    with tempfile.TemporaryDirectory() as folder:
        for file in DATA.glob("*.csv"):
            shutil.copy(file, folder)
        client = NotebookClient(notebook, timeout=LONGEST, resources={"metadata": {"path": folder}})
        with client.setup_kernel(env=environment):
            for i, cell in enumerate(notebook.cells):
                try:
                    client.execute_cell(cell, i)
                except CellExecutionError as error:
                    before = notebook.cells[max(i - 1, 0)]
                    said = "".join(one.get("text", "") for one in before.get("outputs", []))
                    raise RuntimeError(f"{before.source}\n{said}\n{error}") from None
                for one in cell.get("outputs", []):
                    if "text" in one:
                        one["text"] = one["text"].replace(f"{folder}/", "")
        if (report := Path(folder, "results", "report.html")).exists():
            SITE.mkdir(parents=True, exist_ok=True)
            shutil.copy(report, SITE / "report-of-the-tutorial.html")
    notebook.cells = [c for c in notebook.cells if "check" not in c.metadata.get("tags", [])]


def outputs_of(notebook, stem):
    """Return what each cell of code gave: a list of ("text", content) and ("image", file)."""
    found = []
    for number, cell in enumerate(c for c in notebook.cells if c.cell_type == "code"):
        shown, text = [], ""
        for one in cell.outputs:
            data = one.get("data", {})
            if "image/png" in data:
                file = GENERATED / f"{stem}-{number}.png"
                file.write_bytes(b64decode(data["image/png"]))
                shown.append(("image", file.name))
            else:
                text += ANSI.sub("", one.get("text", data.get("text/plain", "") + "\n"))
        if text.strip():
            shown.append(("text", text.replace("\r\n", "\n").strip("\n")))
        found.append(shown)
    return found


def digest_of(text):
    """Return a digest of the blocks of a page and of everything that they run."""
    found = hashlib.sha256(repr(cells_of(text)).encode())
    # Templates, scripts and styles of the report are files of the package as well.
    package = [f for f in (DOCS.parent / "src" / "baldur").rglob("*") if f.is_file()]
    code = [f for f in package if "__pycache__" not in f.parts]
    for file in sorted([*code, *DATA.glob("*.csv")]):
        found.update(file.read_bytes())
    return found.hexdigest()


def run_pages(app, config):
    """Execute the pages that have blocks and have changed."""
    GENERATED.mkdir(parents=True, exist_ok=True)
    for page in sorted(DOCS.glob("*/*.md")):
        text = page.read_text(encoding="utf-8")
        if not BLOCK.search(text) or page.parent.name.startswith("_"):
            continue
        stored = GENERATED / f"{page.stem}.json"
        digest = digest_of(text)
        if stored.exists() and json.loads(stored.read_text("utf-8"))["digest"] == digest:
            continue
        log.info("running the blocks of %s", page.relative_to(DOCS))
        notebook = notebook_of(cells_of(text))
        execute(notebook)
        outputs = outputs_of(notebook, page.stem)
        _write_notebook(notebook, page.stem)
        stored.write_text(json.dumps({"digest": digest, "outputs": outputs}), encoding="utf-8")


def _write_notebook(notebook, stem):
    """Write the notebook, and a zip file with it and its data."""
    file = GENERATED / f"{stem}.ipynb"
    nbformat.write(notebook, file)
    with zipfile.ZipFile(GENERATED / f"{stem}.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(file, file.name)
        for data in sorted([*DATA.glob("*.csv"), DATA / "README.md", DATA / "LICENSE"]):
            packed.write(data, data.name)


class Run(SphinxDirective):
    """A block that was run, and what it printed."""

    required_arguments = 1
    optional_arguments = 1
    has_content = True
    option_spec = {"alt": directives.unchanged, "lines": directives.nonnegative_int}  # noqa: RUF012

    def run(self):
        """Return the block and its output."""
        number = self.env.temp_data.get("run_blocks", 0)
        self.env.temp_data["run_blocks"] = number + 1
        stem = Path(self.env.docname).name
        stored = json.loads((GENERATED / f"{stem}.json").read_text("utf-8"))
        shown = stored["outputs"][number]
        code = "\n".join(self.content)
        texts = [content for kind, content in shown if kind == "text"]
        if self.arguments[0] == "console":
            prompt = "\n".join(f"$ {line}" for line in code.splitlines())
            return [self._literal("\n".join([prompt, *map(self._cut, texts)]), "console")]
        if self.arguments[0] == "file":
            language = Path(self.arguments[1]).suffix[1:] or "text"
            block = self._literal(code, language)
            name = nodes.caption("", "", nodes.literal("", self.arguments[1]))
            return [nodes.container("", name, block, literal_block=True,
                                    classes=["literal-block-wrapper"])]  # fmt: skip
        made = [self._literal(code, "python")]
        made += [self._literal(self._cut(text), "text", "output") for text in texts]
        for kind, name in shown:
            if kind == "image":
                alt = self.options.get("alt") or "Figure drawn by the code above."
                made.append(nodes.image(uri=f"/_generated/run/{name}", alt=alt))
        return made

    def _cut(self, text):
        lines, most = text.splitlines(), self.options.get("lines")
        return "\n".join([*lines[:most], "..."] if most and len(lines) > most else lines)

    def _literal(self, text, language, *classes):
        made = nodes.literal_block(text, text, language=language, classes=list(classes))
        self.set_source_info(made)
        return made


def setup(app):
    """Register the directive; pages are run before any is read."""
    app.add_directive("run", Run)
    app.connect("config-inited", run_pages)
    return {"parallel_read_safe": True}
