"""Typed sections of a study file: their base class, their JSON schema, and errors in one line.

Sections are pydantic models. From one declaration of a key follow its type, its default, its error
message and its entry in the JSON schema that editors use for completion. We use pydantic and not
msgspec because it returns all errors with their places, so that a misspelt key is reported before
the key that is missing in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetPydanticSchema,
    TypeAdapter,
    ValidationError,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

# Two words are compared letter by letter: a wide table of long names would take minutes.
_COMPARED = 100  # letters of a word
_MOST_COMPARED = 2_000  # words


class SectionError(ValueError):
    """Raised by validators: what is wrong, what to do, and the key within the validated value."""

    def __init__(self, what: str, fix: str, key: str = "") -> None:
        super().__init__(f"{what}; {fix}")
        self.key, self.what, self.fix = key, what, fix


def nearest(word: Any, known: Iterable[Any]) -> str:
    """Return which known word was probably meant, or a list of the known words.

    Examples
    --------
    >>> from baldur.core.schema import nearest
    >>> nearest("colum", ["column", "task"])
    "did you mean 'column'?"
    >>> nearest("x", ["column", "task"])
    'choose one of column, task'
    """
    words = [str(k) for k in known]
    lower = {w.lower()[:_COMPARED]: w for w in words[:_MOST_COMPARED]}
    near = get_close_matches(str(word).lower()[:_COMPARED], list(lower), 1)
    if near:
        return f"did you mean {lower[near[0]]!r}?"
    return f"choose one of {', '.join(words[:20])}{', ...' if len(words) > 20 else ''}"


def one_of(words: Iterable[str]) -> GetPydanticSchema:
    """Return the annotation of a text that has to be one of several words, as `Literal` says."""
    return GetPydanticSchema(lambda source, handler: core_schema.literal_schema(list(words)))


def _not_blank(value: str) -> str:
    if not value.strip():
        raise SectionError("must be text, not empty", "write a text between quotes")
    return value


def different(values: list[str]) -> list[str]:
    """Refuse a list that has a name twice."""
    if len(set(values)) != len(values):
        raise SectionError("lists a name more than once", "list each once")
    return values


Text: TypeAlias = Annotated[str, AfterValidator(_not_blank)]
Names: TypeAlias = Annotated[list[Text], AfterValidator(different)]


class Section(BaseModel):
    """A section of a study file: fixed keys, no conversion between types, not to be changed."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )


class _JsonSchema(GenerateJsonSchema):
    """The JSON schema of a TOML file: TOML has no null, and a view may leave its kind out."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        if described.get("default", 0) is None:
            del described["default"]
        return described

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        return {"anyOf": super().tagged_union_schema(schema)["oneOf"]}


def schema_of(what: Any) -> dict[str, Any]:
    """Return the JSON schema of a section."""
    return TypeAdapter(what).json_schema(schema_generator=_JsonSchema)


# -- one line about a wrong value ------------------------------------------------------------------


def problem_of(error: ValidationError, schema: dict[str, Any], given: Any) -> tuple[str, str, str]:
    """Return what a user is told of a pydantic error: the key, what is wrong, and what to do.

    Of several errors it is the first, or that of a misspelt key. `given` is what was validated.
    """
    errors = error.errors(include_url=False)
    first = min(errors, key=lambda entry: entry["type"] != "extra_forbidden")
    at = first["loc"]
    # Where several types are allowed, the error inside the one that was written says most.
    inside = [e for e in errors if len(e["loc"]) > len(at) and e["loc"][:-2] == at[:-1]]
    first = inside[0] if inside and len(at) > 1 else first
    place = _Place(schema, given)
    place.follow(first["loc"])
    key, kind = place.key, first["type"]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, SectionError):
        dot = "." if key and cause.key and not cause.key.startswith("[") else ""
        return f"{key}{dot}{cause.key}", cause.what, cause.fix
    if kind == "literal_error" and isinstance(place.value, str):
        return key, f"{place.value!r} is not known", nearest(place.value, place.node["enum"])
    if kind == "extra_forbidden":
        return key, "unknown key", nearest(first["loc"][-1], place.siblings)
    if kind == "missing":
        return key, "missing", f"give {place.about}"
    if kind.startswith("union_tag") and isinstance(place.value, Mapping):
        given_kind = place.value.get("kind")
        key = f"{key}.kind" if key else "kind"
        return key, f"{shown(given_kind)} is not known", nearest(given_kind, place.kinds())
    if place.is_section() and not isinstance(place.value, Mapping):
        what = f"must be a section, not {shown(place.value)}"
        return key, what, f"write [{key or 'views.NAME'}] and its keys below"
    what = f"must be {_expected(place.node, place.definitions)}, not {shown(place.value)}"
    is_list = place.node.get("type") == "array"
    return key, what, 'write for example ["age", "sex"]' if is_list else f"it is {place.about}"


class _Place:
    """Where an error lies: its key, what is written there, and the schema of what should be."""

    def __init__(self, schema: dict[str, Any], given: Any) -> None:
        self.definitions = schema.get("$defs", {})
        self.node = schema
        self.value = given
        self.key = ""
        self.about = "a value"
        self.siblings: list[str] = []

    def follow(self, loc: tuple[Any, ...]) -> None:
        """Follow the path of an error through keys and list entries, as far as possible."""
        for step in loc:
            node = self._resolved(self.node)
            if isinstance(self.value, list) and isinstance(step, int) and step < len(self.value):
                # Only sections are counted in a key, as in models[2].name.
                of_sections = "properties" in self._resolved(node.get("items", {}))
                self.key += f"[{step + 1}]" if of_sections else ""
                self.node, self.value = node.get("items", {}), self.value[step]
            elif "anyOf" in node and (branch := self._branch(node, step)) is not None:
                self.node = branch
            elif isinstance(self.value, Mapping) and isinstance(step, str):
                self._enter(step, node)

    def _enter(self, step: str, node: dict[str, Any]) -> None:
        """Follow one key of a section, whose schema is `node`."""
        keys = node.get("properties", {})
        inner = keys.get(step, node.get("additionalProperties"))
        if step not in self.value and step not in keys:
            return  # the name of a type in a union
        self.siblings = list(keys)
        self.key = f"{self.key}.{step}" if self.key else step
        self.node = inner if isinstance(inner, dict) else {}
        about = str(self.node.get("description", "value")).strip()
        self.about = about if about.split()[:1] in _NO_ARTICLE else f"the {about}"
        self.value = self.value.get(step)

    def _branch(self, node: dict[str, Any], tag: Any) -> dict[str, Any] | None:
        """Return the section of a union whose `kind` is a tag."""
        for branch in map(self._resolved, node["anyOf"]):
            if branch.get("properties", {}).get("kind", {}).get("const") == tag:
                return branch
        return None

    def _resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return what a reference stands for; of several types the list, where a list was given."""
        if "$ref" in node:
            return self._resolved(self.definitions[node["$ref"].rpartition("/")[2]])
        if isinstance(self.value, list):
            return next((b for b in node.get("anyOf", []) if b.get("type") == "array"), node)
        return node

    def kinds(self) -> list[str]:
        """Return the kinds of a union of sections."""
        branches = map(self._resolved, self._resolved(self.node).get("anyOf", []))
        return [b["properties"]["kind"]["const"] for b in branches]

    def is_section(self) -> bool:
        """Return whether only a section (keys with values) is expected here."""
        node = self._resolved(self.node)
        branches = [self._resolved(b) for b in node.get("anyOf", [node])]
        return all(b.get("type") == "object" for b in branches)


_NO_ARTICLE = (["a"], ["whether"], ["what"], ["where"], ["how"], ["which"])
"""First words of descriptions that are read as they are; others get "the" in front."""


def _expected(node: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return in words what a schema allows."""
    if "$ref" in node:
        return _expected(definitions[node["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(_expected(part, definitions) for part in node["anyOf"]))
    kind = node.get("type")
    if kind == "array":
        items = node.get("items", {})
        if items.get("type") == "string":
            return "a list of names"
        return "a list of numbers" if items.get("type") == "number" else "a list"
    if kind in ("integer", "number"):
        return ("a whole number" if kind == "integer" else "a number") + _bounds(node)
    return {"string": "text", "boolean": "true or false", "object": "a section"}.get(
        str(kind), "a value of another kind"
    )


def _bounds(node: dict[str, Any]) -> str:
    """Return the limits of a number in words, to be put behind its type."""
    low = node.get("minimum", node.get("exclusiveMinimum"))
    high = node.get("maximum", node.get("exclusiveMaximum"))
    if low is not None and high is not None:
        return f" between {low:g} and {high:,}"
    if low is not None:
        return f" above {low:g}" if "exclusiveMinimum" in node else f" of at least {low:g}"
    return "" if high is None else f" of at most {high:,}"


def shown(value: Any) -> str:
    """Return a value as a message shows it: cut after 80 characters, and as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, list, Mapping)) and not value:
        return "empty"
    names: dict[type, str] = {dict: "a section", list: "a list"}
    return names.get(type(value), repr(value)[:80])
