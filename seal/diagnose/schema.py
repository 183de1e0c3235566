"""A call against the documented schema of its tool, and a literal against the text of a conversation."""

import re
from collections.abc import Mapping

from seal.core.types import Call, Json, ToolDoc
from seal.tools.json_schema import fault, fields, violations
from seal.tools.schema import fits

_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
_DETAILS: Mapping[str, str] = {"enum": "enum_value", "const": "enum_value", "pattern": "format", "format": "format"}


def schema_faults(call: Call, doc: ToolDoc, exact: bool = False) -> dict[str, str]:
    """What of a call breaks its documented schema, by parameter: missing_parameter, unexpected_parameter, type or
    enum_value; unexpected ones first, then in the order of the documentation. `exact`: see seal.tools.schema.fits.
    Where the tool's owner wrote a JSON schema, that decides, down to the last nested field."""
    given, known = call.arguments, {param.name for param in doc.params}
    legal = doc.schema is not None and not fault(doc.schema)
    takes_others = legal and fields(doc.schema)[2]
    faults = {name: "unexpected_parameter" for name in given if name not in known and not takes_others}
    found = {v.path[0]: v.rule for v in reversed(violations(doc.schema, given)) if v.path} if legal else {}
    faults |= {name: _DETAILS.get(rule, "type") for name, rule in found.items() if name not in {*known, *faults}}
    for param in doc.params:
        value = given.get(param.name)
        if param.name not in given:
            faults |= {param.name: "missing_parameter"} if param.required else {}
        elif param.name in found:
            faults[param.name] = _DETAILS.get(found[param.name], "type")
        elif not fits(value, param.type, exact) and (not legal or isinstance(value, float)):
            faults[param.name] = "type"
        elif not legal and param.enum and value not in param.enum:
            faults[param.name] = "enum_value"
    return faults


def occurs(value: Json, text: str) -> bool:
    """Whether a literal occurs in a text: a number by value, a string as whole words, a list by its items."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return float(value) in {float(found.replace(",", "")) for found in _NUMBER.findall(text)}
    if isinstance(value, Mapping):
        return bool(value) and all(occurs(item, text) for item in value.values())
    if isinstance(value, list | tuple):
        return bool(value) and all(occurs(item, text) for item in value)
    word = str(value).strip().casefold()
    if not word or word not in (text := text.casefold()):
        return False
    return re.search(rf"(?<![\w/.-]){re.escape(word)}(?![\w/-]|\.\w)", text) is not None


def is_referent(value: Json) -> bool:
    """Whether a literal can name a thing of the world: an id, a name, a path. Flags and small numbers cannot."""
    if isinstance(value, bool) or value is None or isinstance(value, float):
        return False
    if isinstance(value, int):
        return abs(value) >= 100
    if isinstance(value, list | tuple):
        return bool(value) and all(is_referent(item) for item in value)
    return isinstance(value, str) and len(value) > 1 and value.casefold() not in ("true", "false")
