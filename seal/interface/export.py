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
_KNOWN = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})


def openai_tools(docs: Sequence[ToolDoc], state: InterfaceState, mode: Mode = "full") -> list[Json]:
    """`tools` of a chat completion: {"type": "function", "function": {name, description, parameters}}.

    Raises ParamError for two tools that would have one name there.
    """
    tools = _tools(docs, state, mode)
    return [{"type": "function", "function": {"name": n, "description": text, "parameters": s}} for n, text, s in tools]


def mcp_tools(docs: Sequence[ToolDoc], state: InterfaceState, mode: Mode = "full") -> Json:
    """The result of MCP `tools/list`: {"tools": [{name, description, inputSchema}]}."""
    return {"tools": [{"name": n, "description": text, "inputSchema": s} for n, text, s in _tools(docs, state, mode)]}


def _tools(docs: Sequence[ToolDoc], state: InterfaceState, mode: Mode) -> list[tuple[str, str, Json]]:
    tools: dict[str, tuple[str, str, Json]] = {}
    of: dict[str, str] = {}
    for doc in render(docs, state, mode):
        name = _name(doc.name)
        if name in tools:
            raise ParamError("tool names", f"{of[name]} and {doc.name} are both {name} there", "rename one of them")
        tools[name], of[name] = (name, noted(doc.description, doc, ""), _schema(doc)), doc.name
    return list(tools.values())


def _name(name: str) -> str:
    """Both protocols take letters, digits, `_` and `-` (at most 64)."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


def annotated(schema: Mapping[str, Json], doc: ToolDoc) -> Json:
    """Somebody else's object schema with the notes of `doc` in the descriptions, and nothing else changed."""
    with_notes = {note.param for note in doc.notes}
    properties = {
        name: {**found, "description": noted(found.get("description", ""), doc, name)} if name in with_notes else found
        for name, found in (schema.get("properties") or {}).items()
    }
    return {**schema, "properties": properties}


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
