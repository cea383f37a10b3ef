"""Write the pages of the reference from the code, so that they cannot go stale.

The command line comes from typer, the study file from its JSON schema, results files from the list
that writes them and the reader that knows their columns, and Python names from ``__all__``.
"""

import importlib
import inspect
from pathlib import Path

import typer

DOCS = Path(__file__).parents[1]
GENERATED = DOCS / "_generated"
PARTS = (
    ("baldur", "Estimators and data"),
    ("baldur.paper", "The paper's posterior"),
    ("baldur.preparation", "Preparation"),
    ("baldur.views", "Views"),
    ("baldur.io", "Readers"),
    ("baldur.evaluation", "Evaluation"),
    ("baldur.study", "Studies"),
    ("baldur.plots", "Figures"),
    ("baldur.report", "Report pages"),
    ("baldur.saving", "Saved models"),
    ("baldur.baselines", "Baselines"),
    ("baldur.datasets", "Simulated data"),
    ("baldur.exceptions", "Errors and warnings"),
)
"""Parts that users import from, in the order of the reference."""


# -- Markdown --------------------------------------------------------------------------------------


def table(heading, rows):
    """Return a Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(value):
    return str(value).replace("|", "\\|").replace("\n", " ")


def write(name, text):
    """Write a generated page where it has changed."""
    file = GENERATED / name
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


# -- The command line ------------------------------------------------------------------------------


def command_line():
    """Return the page of the command line."""
    from baldur.cli.entry_point import app

    group = typer.main.get_command(app)
    parts = [
        "# Command line",
        "For users of the command `baldur`: every subcommand with its arguments and options, as "
        "its `--help` has them. Exit codes: 0 done, 1 done but a model failed, 2 wrong input or a "
        "place that cannot be written, 130 interrupted.",
        table(
            ["command", "what it does"],
            [
                [f"[`baldur {name}`](#baldur-{name})", (one.help or "").split("\n")[0]]
                for name, one in group.commands.items()
            ],
        ),
    ]
    for name, one in group.commands.items():
        required = [_shown(p) for p in one.params if not _is_option(p)]
        usage = " ".join(["baldur", name, *required, "[OPTIONS]"])
        parts += [f"## baldur {name}", f"```text\n{usage}\n```", inspect.cleandoc(one.help or "")]
        rows = [[_names(p), _default(p), p.help or ""] for p in one.params]
        parts.append(table(["argument or option", "default", "meaning"], rows))
    return "\n\n".join(parts)


def _is_option(param):
    return param.opts[0].startswith("-")


def _shown(param):
    name = param.metavar or param.name.upper()
    return name if param.required else f"[{name}]"


def _names(param):
    if not _is_option(param):
        return f"`{_shown(param)}`"
    return ", ".join(f"`{one}`" for one in [*param.opts, *param.secondary_opts])


def _default(param):
    if param.required:
        return "required"
    return "" if param.default in (None, False) else f"`{param.default}`"


# -- The study file --------------------------------------------------------------------------------


def study_file():
    """Return the page of the study file."""
    from baldur.study.config import study_schema
    from baldur.study.toml_file import template

    schema = study_schema()
    known = schema["$defs"]
    top = {k: v for k, v in schema["properties"].items() if k not in ("views", "models")}
    sections = {k: known[_target(v)] for k, v in top.items() if _target(v)}
    parts = [
        "# Study file",
        "For readers who write a `study.toml`: every section and key with its type and default, as "
        "`baldur init --schema` prints them. [Describe a study](../howto/study.md) explains their "
        "use. A key that is not listed here is an error.",
        "## Top of the file",
        _keys({k: v for k, v in top.items() if k not in sections}, schema.get("required", ())),
    ]
    for name, section in sections.items():
        parts += [f"## [{name}]", _sentence(section), _keys_of(section)]
    parts.append("## [views.NAME]")
    parts.append("One section per view. Its keys depend on the kind of the file.")
    for name, section in known.items():
        if name.endswith("View"):
            kind = section["properties"]["kind"]["const"]
            parts += [f'### kind = "{kind}"', _sentence(section), _keys_of(section)]
    parts += ["## [[models]]", _sentence(known["ModelEntry"]), _keys_of(known["ModelEntry"])]
    parts += ["## The file that baldur init writes", f"```toml\n{template()}\n```"]
    return "\n\n".join(parts)


def _target(value):
    """Return the name of the section that a key refers to, or None."""
    for one in [value, *value.get("anyOf", []), *value.get("allOf", [])]:
        if "$ref" in one:
            return one["$ref"].rsplit("/", 1)[1]
    return None


def _sentence(section):
    return section.get("description", "").split("\n\n")[0]


def _keys_of(section):
    return _keys(section["properties"], section.get("required", ()))


def _keys(properties, required):
    rows = []
    for name, value in properties.items():
        default = "required" if name in required else ""
        if value.get("default") not in (None, "", [], {}):
            default = f"`{_toml(value['default'])}`"
        rows.append([f"`{name}`", _type(value), default, value.get("description", "")])
    return table(["key", "type", "default", "meaning"], rows)


def _toml(value):
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _type(value):
    if "enum" in value:
        return ", ".join(f"`{_toml(one)}`" for one in value["enum"])
    if "const" in value:
        return f"`{_toml(value['const'])}`"
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(_type(one) for one in value["anyOf"]))
    kind = value.get("type", "any")
    if kind == "array":
        return f"list of {_type(value.get('items', {}))}"
    names = {"string": "text", "integer": "whole number", "boolean": "true or false",
             "object": "section", "number": "number", "null": "none"}  # fmt: skip
    return names.get(kind, kind) + _range(value)


def _range(value):
    low = value.get("minimum", value.get("exclusiveMinimum"))
    high = value.get("maximum", value.get("exclusiveMaximum"))
    if low is None and high is None:
        return ""
    if high is None or high >= 1000:
        return f" from {low:g}" if low is not None else ""
    return f" from {low:g} to {high:g}"


# -- Results ---------------------------------------------------------------------------------------


def results():
    """Return the page of the results folder."""
    from baldur.evaluation.result_files import FILES, TABLES

    kinds = {"text": "text", "number": "number", "share": "from 0 to 1", "count": "whole number",
             "counts": "whole numbers with ; between them", "any": "any"}  # fmt: skip
    parts = [
        "# Results files",
        "For readers of a results folder: every file that `baldur evaluate` may write, and the "
        "columns of its tables. Files without contents are not written.",
        table(["file", "contents"], [[f"`{f.name}`", f.about] for f in FILES if f.about]),
        "## Columns",
        "Types of columns are checked when a folder is read again, for example by `baldur report`.",
    ]
    for name, file in TABLES.items():
        rows = [[f"`{c}`", kinds[k], ""] for c, k in file.columns.items()]
        rows += [[f"`{c}`", kinds[k], "optional"] for c, k in file.optional.items()]
        about = [f"{file.about[0].upper()}{file.about[1:]}."] if file.about else []
        parts += [f"### {name}.csv", *about, table(["column", "type", ""], rows)]
        parts.append(f"Other columns, where there are any: {kinds[file.rest]}.")
    return "\n\n".join(parts)


# -- Python names ----------------------------------------------------------------------------------


def public_names():
    """Return for each part the names that are documented under it, each name once."""
    seen, found = set(), {}
    for module, _ in PARTS:
        part = importlib.import_module(module)
        names = []
        for name in getattr(part, "__all__", None) or _classes(part):
            thing = getattr(part, name)
            if inspect.ismodule(thing) or name == "__version__":
                continue
            key = id(thing) if inspect.isclass(thing) or inspect.isfunction(thing) else name
            if key not in seen:
                seen.add(key)
                names.append(name)
        found[module] = names
    return found


def _classes(module):
    """Return the names of the public classes that a module defines, in their order."""
    return [
        name
        for name, thing in vars(module).items()
        if inspect.isclass(thing) and thing.__module__ == module.__name__ and name[0] != "_"
    ]


def python_pages():
    """Return the pages of the Python names, by file."""
    pages, index = {}, []
    for module, title in PARTS:
        part, names = importlib.import_module(module), public_names()[module]
        summary = (part.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        lines = [title, "=" * len(title), "", f"``{module}``: {summary}", ""]
        lines += [".. autosummary::", "   :toctree: names", ""]
        lines += [f"   {module}.{name}" for name in names]
        file = module.replace(".", "_")
        pages[f"api/{file}.rst"] = "\n".join(lines) + "\n"
        index.append(file)
    head = "Python names"
    about = (
        "For programmers: every public name, by the part of the package that it is imported from. "
        "Pages of names link to the gallery where an example uses them."
    )
    text = [head, "=" * len(head), "", about, "", ".. toctree::", "   :maxdepth: 1", ""]
    text += [f"   {name}" for name in index]
    pages["api/index.rst"] = "\n".join(text) + "\n"
    return pages


def write_pages(app, config):
    """Write all generated pages."""
    write("command_line.md", command_line())
    write("study_file.md", study_file())
    write("results_files.md", results())
    for name, text in python_pages().items():
        write(name, text)


def setup(app):
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True}
