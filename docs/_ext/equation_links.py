"""Lead from every equation to its code and back, in one click each.

On the pages of `PAGES`, a name in code style such as `baldur.paper.updates.step_gamma` becomes a
link to the source of that function. The source has a link "[equation]" back to the place on the
page, and so has the documentation of the function, on a page that this module writes.
"""

import inspect
import re
from pathlib import Path
from pkgutil import resolve_name

from docutils import nodes
from reference_pages import public_names

DOCS = Path(__file__).parents[1]
PAGES = ("understand/equations", "understand/paper")
CODE_PAGE = "_generated/code_of_equations"
NAME = re.compile(r"baldur(\.\w+)+")


def home(name):
    """Return (module, qualified name) where a function or class is written, or None."""
    found = resolve_name(name)
    if not (inspect.isfunction(found) or inspect.isclass(found)):
        return None
    return found.__module__, found.__qualname__


def places():
    """Return for every function and class on the pages the pages that name it."""
    found = {}
    for page in PAGES:
        file = DOCS / f"{page}.md"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        text = re.sub(r"```.*?```", "", text, flags=re.S)
        for name in re.findall(r"`(baldur(?:\.\w+)+)`", text):
            where = home(name)
            if where:
                found.setdefault(where, []).append((page, anchor(name)))
    return {key: list(dict.fromkeys(value)) for key, value in found.items()}


def anchor(name):
    """Return the id of the place where a page names a function."""
    return f"code-{name.replace('.', '-').replace('_', '-').lower()}"


def write_code_page(app, config):
    """Write the page with the documentation of every function behind an equation."""
    public = {home(f"{part}.{name}") for part, names in public_names().items() for name in names}
    modules = {}
    for module, qualname in places():
        if (module, qualname) not in public:  # those have pages of their own
            modules.setdefault(module, []).append(qualname)
    lines = [
        "The code of the equations",
        "=========================",
        "",
        "For readers of the equations: the functions that compute them, by module. Each entry "
        "leads to its source and back to its equation. They are internal and may change.",
        "",
    ]
    for module, names in sorted(modules.items()):
        lines += [f"``{module}``", "-" * (len(module) + 4), "", f".. currentmodule:: {module}", ""]
        for name in names:
            is_class = inspect.isclass(resolve_name(f"{module}.{name}"))
            kind = "class" if is_class else "method" if "." in name else "function"
            lines += [f".. auto{kind}:: {module}.{name}", ""]
    file = DOCS / f"{CODE_PAGE}.rst"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines)
    if not file.exists() or file.read_text("utf-8") != text:
        file.write_text(text, encoding="utf-8")
    config.equation_places = places()


def in_shortcuts(node):
    """Return whether a node is in the section "In one step"."""
    while node is not None and "in-one-step" not in node.get("ids", ()):
        node = node.parent
    return node is not None


def link_to_source(app, doctree, docname):
    """Turn names on the pages into links to the source."""
    if docname not in PAGES:
        return
    seen = set()
    # The way back leads to an equation rather than to the list of shortcuts at the top.
    for literal in sorted(doctree.findall(nodes.literal), key=in_shortcuts):
        name = literal.astext()
        if not NAME.fullmatch(name) or isinstance(literal.parent, nodes.reference):
            continue
        where = home(name)
        if not where:
            continue
        module, qualname = where
        uri = app.builder.get_relative_uri(docname, f"_modules/{module.replace('.', '/')}")
        link = nodes.reference("", "", refuri=f"{uri}#{qualname}", internal=True)
        if name not in seen:
            link["ids"] = [anchor(name)]
            seen.add(name)
        literal.parent.replace(literal, link)
        link += literal


def link_to_equation(app, what, name, found, options, lines):
    """Add the way back to the documentation of a function."""
    key = (getattr(found, "__module__", ""), getattr(found, "__qualname__", ""))
    root = "../" * app.env.current_document.docname.count("/")
    for page, place in app.config.equation_places.get(key, ()):
        title = "Equation" if page.endswith("equations") else "Equation of the paper"
        lines += ["", f"`{title} <{root}{page}.html#{place}>`__"]


def link_in_source(app, pagename, templatename, context, doctree):
    """Add the way back to the pages of source code, and mend that to the documentation."""
    if not pagename.startswith("_modules/"):
        return
    module = pagename.removeprefix("_modules/").replace("/", ".")

    def mend(match):
        # viewcode knows one module for all names of a file; the page of a name knows its own.
        page, name = match["page"], match["name"]
        stem = page.rsplit("/", 1)[1]
        where = module if page.endswith(CODE_PAGE) else stem.rsplit(".", 1)[0]
        return f'{match["begin"]}{page}.html#{where}.{name}"'

    def add(match):
        known = app.config.equation_places.get((module, match["name"]), ())
        links = (
            f'<a class="viewcode-back" href="{"../" * pagename.count("/")}{page}.html#{place}">'
            f"[equation{' of the paper' if page.endswith('paper') else ''}]</a>"
            for page, place in known
        )
        return match[0] + "".join(links)

    block = re.compile(
        r'<div class="viewcode-block" id="(?P<name>[\w.]+)">\s*'
        r'<a class="viewcode-back"[^>]*>.*?</a>',
        re.S,
    )
    docs = re.compile(
        r'(?P<begin><div class="viewcode-block" id="(?P<name>[\w.]+)">\s*'
        r'<a class="viewcode-back" href=")(?P<page>[^"#]+)\.html#[^"]*"'
    )
    context["body"] = block.sub(add, docs.sub(mend, context["body"]))


def setup(app):
    """Register the links."""
    app.add_config_value("equation_places", {}, "")
    app.connect("config-inited", write_code_page)
    app.connect("autodoc-process-docstring", link_to_equation)
    app.connect("doctree-resolved", link_to_source)
    app.connect("html-page-context", link_in_source)
    return {"parallel_read_safe": True}
