"""Evolved docs for other frameworks: OpenAI tool schemas and an MCP tool list, as plain JSON values."""

import re
from collections.abc import Mapping, Sequence

from seal.core.errors import ParamError
from seal.core.types import Json, Mode, Param, ToolDoc
from seal.interface.render import render
from seal.interface.state import InterfaceState
from seal.tools.prose import enum_of

_JSON_TYPES = {"float": "number", "dict": "object", "bool": "boolean", "int": "integer", "str": "string"}
_JSON_TYPES |= dict.fromkeys(("tuple", "list"), "array")
_OPENAI_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KNOWN = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})


def openai_tools(docs: Sequence[ToolDoc], state: InterfaceState, mode: Mode = "full") -> list[Json]:
    """`tools` of a chat completion: {"type": "function", "function": {name, description, parameters}}.

    Raises ParamError for a name that this form cannot carry, and for two tools of one name.
    """
    return [
        {"type": "function", "function": {"name": _checked(name), "description": text, "parameters": schema}}
        for name, text, schema in _tools(docs, state, mode)
    ]


def mcp_tools(docs: Sequence[ToolDoc], state: InterfaceState, mode: Mode = "full") -> Json:
    """The result of MCP `tools/list`: {"tools": [{name, description, inputSchema}]}."""
    return {"tools": [{"name": n, "description": text, "inputSchema": s} for n, text, s in _tools(docs, state, mode)]}


def _tools(docs: Sequence[ToolDoc], state: InterfaceState, mode: Mode) -> list[tuple[str, str, Json]]:
    """Under their own names, and what their owners wrote unchanged but for the notes."""
    tools = {}
    for doc in render(docs, state, mode):
        if doc.name in tools:
            raise ParamError("tool names", f"two are named {doc.name}", "rename one of them")
        schema = _schema(doc) if doc.schema is None else annotated(doc.schema, doc)
        tools[doc.name] = (doc.name, noted(doc.description, doc, ""), schema)
    return list(tools.values())


def _checked(name: str) -> str:
    if not _OPENAI_NAME.fullmatch(name):
        remedy = "rename it (letters, digits, _ and -, at most 64), or use MCP's form, or tools told as text"
        raise ParamError("tool name, OpenAI's form", name, remedy)
    return name


def annotated(schema: Mapping[str, Json], doc: ToolDoc) -> Json:
    """Somebody else's object schema with the notes of `doc` in the descriptions, and nothing else changed."""
    found = schema.get("properties") or {}
    noted_ones = {}
    for name in {note.param: None for note in doc.notes if note.param in found}:
        own = found[name] if isinstance(found[name], Mapping) else {}
        noted_ones[name] = {**own, "description": noted(own.get("description") or "", doc, name)}
    return {**schema, "properties": {**found, **noted_ones}} if noted_ones or "properties" in schema else dict(schema)


def noted(description: str, doc: ToolDoc, param: str) -> str:
    """A description of the tool (`param` "") or of a parameter, its notes in parentheses behind its first paragraph."""
    notes = "; ".join(note.text for note in doc.notes if note.param == param)
    first, gap, rest = description.rstrip().partition("\n\n")
    return f"{first} ({notes})".lstrip() + gap + rest if notes else description


def _schema(doc: ToolDoc) -> Json:
    properties = {param.name: _property(param, noted(param.description, doc, param.name)) for param in doc.params}
    required = [param.name for param in doc.params if param.required]
    return {"type": "object", "properties": properties, "required": required}


def _property(param: Param, description: str) -> Json:
    kind = _JSON_TYPES.get(param.type, param.type)
    values = list(enum_of(param))
    allowed = {"items": {"enum": values}} if kind == "array" and values else {"enum": values} if values else {}
    return {
        **({"type": kind} if kind in _KNOWN else {}),
        **({"items": {}} if kind == "array" else {}),
        **({"description": description} if description else {}),
        **allowed,
        **({"default": param.default} if param.default is not None else {}),
    }
