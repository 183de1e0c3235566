"""The little of a tool schema that reading and judging a call need: parameter order and types."""

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from seal.core.errors import ParamError
from seal.core.types import Json, ToolDoc

Signature = dict[str, dict[str, str]]  # tool -> parameter -> JSON-schema type ("" unknown), in positional order

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "float": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "tuple": (list, tuple),
    "object": (Mapping,),
    "dict": (Mapping,),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def signature_of(schema: Any) -> Signature:
    """From ToolDocs, `{tool: {parameter: type}}`, `{tool: [parameter, ...]}` or a list of JSON-schema tools.

    Raises ParamError when it is none of them.
    """
    if schema is None:
        return {}
    if isinstance(schema, Mapping):
        return {name: _parameters(entry) for name, entry in schema.items()}
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        pairs = [_tool(entry) for entry in schema]
        return dict(pairs)
    raise ParamError("tool schema", type(schema).__name__, "give a mapping of tools or a list of JSON-schema tools")


def _parameters(entry: Any) -> dict[str, str]:
    if isinstance(entry, Mapping):
        return {str(name): str(kind) for name, kind in entry.items()}
    if isinstance(entry, Sequence) and not isinstance(entry, str):
        return {str(name): "" for name in entry}
    raise ParamError("tool schema entry", repr(entry)[:80], 'write {"parameter": "type"} or ["parameter", ...]')


def _tool(entry: Any) -> tuple[str, dict[str, str]]:
    if isinstance(entry, ToolDoc):
        return entry.name, {param.name: param.type for param in entry.params}
    if isinstance(entry, Mapping):
        tool = entry.get("function", entry)
        if isinstance(tool, Mapping) and isinstance(tool.get("name"), str):
            return tool["name"], _properties(tool.get("parameters") or tool.get("inputSchema") or {})
    raise ParamError("tool schema entry", repr(entry)[:80], "every tool needs a name and JSON-schema parameters")


def _properties(parameters: Any) -> dict[str, str]:
    properties = parameters.get("properties") or {} if isinstance(parameters, Mapping) else None
    if not isinstance(properties, Mapping) or not all(isinstance(spec, Mapping) for spec in properties.values()):
        raise ParamError("tool parameters", repr(parameters)[:80], 'write {"properties": {"parameter": {"type": ...}}}')
    return {name: str(spec.get("type", "")) for name, spec in properties.items()}


def coerce(value: str, kind: str) -> Json:
    """A bare word toward its declared type; left as text where it is not of that type."""
    if kind == "boolean" and value in ("true", "false"):
        return value == "true"
    if kind == "integer" and _INTEGER.fullmatch(value):
        return int(value)
    if kind in ("number", "float") and _NUMBER.fullmatch(value) and isfinite(float(value)):
        return float(value)
    return value


def fits(value: Json, type_name: str, exact: bool = False) -> bool:
    """Whether a JSON value is of a JSON-schema type; unknown type names accept anything.

    1.0 is an integer to JSON Schema (2020-12, 4.2.3) and to the tools that run it; `exact`: to one that does not.
    """
    if type_name == "integer" and isinstance(value, float) and not exact:
        return value.is_integer()
    types = _TYPES.get(type_name)
    if types is None or (value is None and type_name != "boolean"):
        return types is None
    return isinstance(value, types) and (isinstance(value, bool) == (type_name == "boolean"))
