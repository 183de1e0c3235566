"""JSON schemas of tools, whoever wrote them (a benchmark, a function's hints, an MCP server), as ToolDocs and facts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from seal.core.types import Fact, Param, ToolDoc
from seal.tools.prose import enum_of

_JSON_TYPES: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


def tool_doc(name: str, description: str, schema: Mapping[str, Any], verbatim: bool = False) -> ToolDoc:
    """The doc of a tool whose arguments `schema` (an object schema) describes.

    `verbatim`: descriptions of parameters keep their line breaks and double spaces (a benchmark's are part of it).
    """
    required = schema.get("required") or ()
    shared = schema.get("$defs") or {}
    properties = schema.get("properties") or {}
    params = [param(key, properties[key], key in required, shared) for key in properties]
    if not verbatim:
        params = [replace(param, description=" ".join(param.description.split())) for param in params]
    return ToolDoc(name, description, tuple(params))


def param(name: str, schema: Mapping[str, Any], required: bool, shared: Mapping[str, Any]) -> Param:
    """One parameter. A type that is no single JSON-schema name (a union) is "": anything."""
    inner = _resolved(schema, shared)
    values = inner.get("enum") or ([inner["const"]] if "const" in inner else [])
    kind = inner.get("type", "")
    if not kind and len({type(value) for value in values}) == 1:
        kind = _JSON_TYPES.get(type(values[0]), "")
    description = str(schema.get("description") or inner.get("description") or "")
    kind = kind if isinstance(kind, str) else ""
    return Param(name, kind, required, description, tuple(values), schema.get("default"))


def _resolved(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """References followed, and `X or null` as X."""
    for _ in range(8):
        options = [option for key in ("anyOf", "oneOf") for option in schema.get(key, ()) if option != {"type": "null"}]
        if "$ref" in schema:
            schema = shared.get(str(schema["$ref"]).rsplit("/", 1)[-1], {})
        elif len(options) == 1:
            schema = options[0]
        else:
            break
    return schema


def facts_of(doc: ToolDoc, returns: Sequence[str] = (), in_prose: bool = False) -> tuple[Fact, ...]:
    """What the docs state and the executor enforces: all of it is documented, but the fields that a call `returns`.

    `in_prose`: allowed values that only a description names count as well.
    """
    facts = [Fact(doc.name, "", "purpose", doc.description, documented=True)]
    if returns:
        facts.append(Fact(doc.name, "", "returns", list(returns)))
    for p in doc.params:
        stated = {"required": p.required, "type": p.type, "enum": list(enum_of(p) if in_prose else p.enum)}
        facts += [Fact(doc.name, p.name, kind, value, documented=True) for kind, value in stated.items() if value != []]
    return tuple(facts)
