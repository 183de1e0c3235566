"""A call against the documented schema of its tool, and a literal against the text of a conversation."""

import re
from collections.abc import Mapping

from seal.core.types import Call, Json, ToolDoc
from seal.tools.schema import fits

_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")


def schema_faults(call: Call, doc: ToolDoc, exact: bool = False) -> dict[str, str]:
    """What of a call breaks its documented schema, by parameter: missing_parameter, unexpected_parameter, type or
    enum_value; unexpected ones first, then in the order of the documentation. `exact`: see seal.tools.schema.fits."""
    given, known = call.arguments, {param.name for param in doc.params}
    faults = {name: "unexpected_parameter" for name in given if name not in known}
    for param in doc.params:
        if param.name not in given:
            faults |= {param.name: "missing_parameter"} if param.required else {}
        elif not fits(given[param.name], param.type, exact):
            faults[param.name] = "type"
        elif param.enum and given[param.name] not in param.enum:
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
