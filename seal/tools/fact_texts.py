"""A fact in few words, of fixed forms: `damaged K3 late K1`, `one of A B`, `starts ORD-`, `after verify`."""

import re
from collections.abc import Callable, Mapping

from seal.core.types import Json
from seal.tools.prose import enum_in_text, one_of, purpose_in_text

_PATTERN = re.compile(r"YY|MM|DD|HH|[\\^$*+?()\[\]{}|]|\s")  # a format with any of these is no plain prefix


def _enum_text(value: Json) -> str:
    """Pairs `word code` sorted by word, a list of values, or the values told in a prose description."""
    if isinstance(value, Mapping):
        return " ".join(f"{word} {code}" for word, code in sorted(value.items()))
    return one_of(enum_in_text(value) if isinstance(value, str) else value)


def _format_text(value: Json) -> str:
    text = str(value)
    return f"format {text}" if _PATTERN.search(text) else f"starts {text}"


def _sibling_text(value: Json) -> str:
    """When another tool is the right one: `mv is for: Move a file or directory from one location to another`."""
    return "; ".join(f"{name} is for: {purpose}" for name, purpose in sorted(value.items()))


def _default_text(value: Json) -> str:
    return f"default {str(value).lower() if isinstance(value, bool) else value}"


# Fact kind -> text, most telling first (the order breaks ties between cues of one parameter).
FACT_TEXTS: Mapping[str, Callable[[Json], str]] = {
    "enum": _enum_text,
    "format": _format_text,
    "needs": lambda tools: " ".join(f"after {tool}" for tool in tools),
    "role": lambda tools: " ".join(f"requires {tool}" for tool in tools),
    "returns": lambda fields: " ".join(["returns", *(f"{field}=" for field in fields)]) if fields else "",
    "required": lambda value: "required" if value else "optional",
    "type": str,
    "purpose": lambda value: purpose_in_text(str(value)),
    "range": lambda bounds: f"from {bounds[0]} to {bounds[1]}",
    "unit": lambda value: f"in {value}",
    "default": _default_text,
    "sibling": _sibling_text,
    "example": lambda value: f"call as {value}",
}
